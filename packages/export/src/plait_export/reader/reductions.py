"""Reading reductions of axes and of windows, by any function.

The function is a region, which is read as a function of values; `plait.lax` recognises the common
ones.

Invariant: elements may be combined in any grouping, because StableHLO requires associative
functions.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import plait
from plait.ext.ops import reduction
from plait.ext.ops.windows import select_and_scatter_add_
from plait.ext.sizes import is_symbolic
from plait.ext.trace import Value
from plait.ext.values import Literal

from ..errors import NotReadable
from .cells import of_cells
from .comparisons import body_of, extreme_of, is_sum
from .table import reads
from .walking import Walk

if TYPE_CHECKING:
    from .module import Block


def _combining(walk: Walk, block: "Block") -> Callable:
    """Return a region as a function of two tuples of arrays."""
    apply = of_cells(walk, block)
    return lambda xs, ys: tuple(apply([*xs, *ys]))


_PLAIN = {
    "stablehlo.add": (reduction.reduce_sum, lambda d: 0),
    "stablehlo.multiply": (reduction.reduce_prod, lambda d: 1),
    "stablehlo.maximum": (reduction.reduce_max, reduction.lowest),
    "stablehlo.minimum": (reduction.reduce_min, reduction.highest),
    "stablehlo.and": (reduction.reduce_and, lambda d: True if d == np.bool_ else -1),
    "stablehlo.or": (reduction.reduce_or, lambda d: 0),
    "stablehlo.xor": (reduction.reduce_xor, lambda d: 0),
}
"""By function: the reduction, and the neutral element for a dtype."""


def _is_neutral(start: Any, neutral: Any) -> bool:
    return start.__class__ is Literal and bool(start.value == neutral)


@reads("stablehlo.reduce")
def _(walk: Walk, op, xs: list[Value]):
    half, axes = len(xs) // 2, op.attributes["dimensions"]
    operands, start = tuple(xs[:half]), tuple(xs[half:])
    block = op.regions[0]
    combine = _combining(walk, block)
    body = body_of(block) if half == 1 else None
    plain = _PLAIN.get(str(body))
    if plain is not None and _is_neutral(start[0], plain[1](xs[0].aval.dtype)) and axes:
        return plain[0].bind(xs[0], axes=tuple(sorted(axes)))
    if body is None and is_symbolic([xs[0].aval.shape[a] for a in axes]):
        return _one_after_the_other(combine, operands, start, axes)
    return list(plait.lax.reduce(operands, start, combine, axes))


def _one_after_the_other(combine: Callable, xs: tuple, start: tuple, axes: Any) -> list:
    """Reduce axes of symbolic size by a loop over rows."""
    for axis in sorted(axes, reverse=True):
        rows = [plait.numpy.moveaxis(x, axis, 0) for x in xs]
        first = tuple([plait.lax.broadcast(s, r.shape[1:]) for s, r in zip(start, rows)])
        xs, _ = plait.lax.scan(lambda c, r: (combine(c, r), None), first, tuple(rows))
    return list(xs)


@reads("stablehlo.reduce_window")
def _(walk: Walk, op, xs: list[Value]):
    half, at = len(xs) // 2, op.attributes
    pairs, n = at.get("padding"), xs[0].aval.ndim
    found = plait.lax.reduce_window(
        tuple(xs[:half]), tuple(xs[half:]), _combining(walk, op.regions[0]),
        at["window_dimensions"], at.get("window_strides"),
        ((0, 0),) * n if pairs is None else [(int(lo), int(hi)) for lo, hi in pairs],
        at.get("base_dilations"), at.get("window_dilations"),
    )  # fmt: skip
    return list(found)


@reads("stablehlo.select_and_scatter")
def _(walk: Walk, op, xs):
    """Read a sum of sources at the extremes of windows; refuse other functions."""
    x, source, start = xs
    select = extreme_of(op.regions[0], walk.constant_at)
    if select is None or not is_sum(op.regions[1]):
        raise NotReadable(f"{op.name} by other functions than the extreme and the sum")
    at, n = op.attributes, x.aval.ndim
    pairs = at.get("padding", np.zeros((n, 2), int))
    found = select_and_scatter_add_.bind(
        source, x, select=select, window=at.get("window_dimensions", (1,) * n),
        strides=at.get("window_strides", (1,) * n),
        padding=tuple([tuple(map(int, p)) for p in pairs]),
    )  # fmt: skip
    return plait.lax.add(found, plait.lax.broadcast(start, found.aval.shape))
