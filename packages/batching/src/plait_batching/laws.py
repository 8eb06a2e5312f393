"""Conformance laws of the batching and padding tables, for `plait.testing`.

    batching: a primitive mapped over an axis returns the stack of its results for each element
    padding: if padding holds the table's values, the result without padding appears unchanged,
    at the same positions

Invariant: the reference side applies the primitive to one element after the other in a Python
loop, or to arrays without padding.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from plait import jit
from plait.ext.errors import PlaitError
from plait.ext.ir import Primitive
from plait.ext.trace import as_list
from plait.ext.types import COMPLEX, FLOATING, category
from plait.ext.values import from_numpy
from plait_testing.ext import Inapplicable, agree

from .api import vmap
from .piles.padding import padding_rules

__all__ = ["batching_law", "padding_law"]

Axes = tuple[int | None, ...]


def batching_law(prim: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]) -> int:
    """Check that the mapped primitive returns the stack of its results for single elements.

    Maps over every axis of each operand, alone and together, over sizes 3, 1 and 0, eager and
    staged.  Elements differ by a positive factor (integers are rolled, unless parameters promise an
    order).  Returns the number of comparisons.
    """
    if not args:
        raise Inapplicable("there is no operand to map over")
    elements = [[_varied(x, k, params) for k in range(3)] for x in args]
    count = 0
    for axes in _mappings(args):
        count += _compare(prim, elements, axes, 3, params)
    front: Axes = (0,) * len(args)
    count += _compare(prim, elements, front, 1, params)
    return count + _empty(prim, args, front, params)


def _varied(x: np.ndarray, k: int, params: dict[str, Any]) -> np.ndarray:
    """Return element number `k` of a stack: a variation of `x` that is equally valid."""
    if category(x.dtype) in (FLOATING, COMPLEX):
        return (x * np.asarray([1, 0.75, 1.25])[k]).astype(x.dtype)
    promised = params.get("indices_are_sorted") or params.get("unique_indices")
    return x if promised or not x.ndim else np.roll(x, k, 0)


def _mappings(args: Sequence[np.ndarray]) -> Iterator[Axes]:
    """Yield axes to map: all operands along their first and last axes; each alone along every
    axis; all but one."""
    n = len(args)
    yield (0,) * n
    last = tuple([x.ndim for x in args])
    if any(last):
        yield last
    for i in range(n) if n > 1 else ():
        yield tuple([None if k == i else 0 for k in range(n)])
    for i, x in enumerate(args):
        for axis in range(x.ndim + 1):
            alone: Axes = tuple([axis if k == i else None for k in range(n)])
            if n > 1 or axis not in (0, x.ndim):
                yield alone


def _compare(prim: Primitive, elements: list, axes: Axes, size: int, params: dict[str, Any]) -> int:
    singles = [
        _of(prim, params)(*[from_numpy(e[0 if a is None else k]) for e, a in zip(elements, axes)])
        for k in range(size)
    ]
    stacked = [
        from_numpy(e[0] if a is None else np.stack(e[:size], a)) for e, a in zip(elements, axes)
    ]
    count = 0
    for out_axis in (0, -1):
        want = [np.stack([np.asarray(y) for y in ys], out_axis) for ys in zip(*singles)]
        mapped = vmap(_of(prim, params), in_axes=axes, out_axes=out_axis)
        what = f"vmap over axes {axes} of size {size} to {out_axis}"
        count += agree(mapped(*stacked), want, None, what)
    return count + agree(jit(mapped)(*stacked), want, None, f"{what}, staged")


def _of(prim: Primitive, params: dict[str, Any]):
    """Return the primitive as a function of its operands that returns a list."""
    return lambda *vs: as_list(prim.bind(*vs, **params))


def _empty(prim: Primitive, args: Sequence[np.ndarray], axes: Axes, params: dict[str, Any]) -> int:
    """Check that a map over no elements returns empty results of the right types."""
    single = _of(prim, params)(*map(from_numpy, args))
    stacked = [from_numpy(np.zeros((0, *x.shape), x.dtype)) for x in args]
    got = vmap(_of(prim, params), in_axes=axes)(*stacked)
    for y, s in zip(got, single, strict=True):
        want = s.aval.with_shape((0, *s.aval.shape))
        assert y.aval.same_type(want), f"vmap over no elements gives {y.aval!r}, not {want!r}"
    return len(got)


# ---- padding -------------------------------------------------------------------------------


def padding_law(prim: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]) -> int:
    """Check that padding filled with the table's values does not change a primitive's results.

    Adds two positions along each axis that the primitive reads across.  Returns the number of
    comparisons; raises Inapplicable if it reads across no axis, or no operand can be longer alone
    or together.
    """
    rule: Any = padding_rules.find(prim)
    fills = rule([from_numpy(x).aval for x in args], **params)
    if not any(fills):
        raise Inapplicable("no axis is crossed")
    if any(category(x.dtype) == COMPLEX and not np.isfinite(x).all() for x in args):
        raise Inapplicable("a complex infinity times one is not a number: nothing is neutral to it")
    want = _of(prim, params)(*map(from_numpy, args))
    count = 0
    for which in [range(len(args)), *[(i,) for i in range(len(args))]]:
        longer = [
            _longer(x, fills[i]) if i in which else x for i, x in enumerate(map(np.asarray, args))
        ]
        try:
            got = _of(prim, params)(*map(from_numpy, longer))
        except PlaitError:
            continue  # sizes of operands that meet must be equal
        if any(m < n for y, w in zip(got, want) for m, n in zip(y.aval.shape, w.aval.shape)):
            continue  # a longer kernel has fewer windows
        cut = [np.asarray(y)[tuple([slice(0, n) for n in w.shape])] for y, w in zip(got, want)]
        count += agree(
            [from_numpy(c) for c in cut], [np.asarray(w) for w in want], None, "with padding"
        )
    if not count:
        raise Inapplicable("no operand can be padded")
    return count


def _longer(x: np.ndarray, fills: dict[int, Any]) -> np.ndarray:
    for axis, value in fills.items():
        more = np.full((*x.shape[:axis], 2, *x.shape[axis + 1 :]), value, x.dtype)
        x = np.concatenate([x, more], axis)
    return x


def _has_padding(prim: Primitive) -> bool:
    """Return whether the law applies; primitives without an entry never read across padding, or
    have their own rules."""
    return padding_rules.find(prim) is not None


padding_law.applies = _has_padding  # type: ignore[attr-defined]
