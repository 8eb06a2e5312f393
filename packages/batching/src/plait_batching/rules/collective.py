"""Batching of collectives: over the mapped axis they become ordinary array operations; over other
axes, the array axes in their parameters are renumbered.

Invariant: an operand that does not vary gives the same results as a stack of copies.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.ext.ir import Primitive
from plait.ext.ops import collective
from plait.ext.ops.elementwise import mul
from plait.ext.ops.indexing import getitem
from plait.ext.ops.reduction import highest, lowest, reduce_max, reduce_min, reduce_sum
from plait.ext.ops.shape import concatenate, fill, iota_, moveaxis, reshape
from plait.ext.sizes import Dim
from plait.ext.trace import Carrier, Value
from plait.ext.types import INT32
from plait.ext.values import Literal

from ..api import vmap
from ..interpreter import Batch, batching_rules


def _reduction(prim: Any, reduce: Primitive, neutral: Callable[[Any], Any]) -> None:
    @batching_rules.rule(prim)
    def _(
        batch: Batch,
        xs: Sequence[Value],
        dims: list[None | int],
        *,
        axes: tuple[str, ...],
        groups: tuple[tuple[Any, ...], ...] = (),
    ):
        x, d = batch.of_elements(xs[0], dims[0], neutral(xs[0].aval.dtype))
        if groups:
            if batch.axis_name not in axes:
                return prim.bind(x, axes=axes, groups=groups), d
            return _in_groups(prim, batch.front(x, d), groups, axes=axes)
        if batch.axis_name in axes:
            axes = tuple([a for a in axes if a != batch.axis_name])
            if d is not None:
                x = reduce.bind(x, axes=(d,))
            elif prim is collective.psum_:
                x = mul.bind(x, Literal(batch.size, x.aval))
            d = None
        return (prim.bind(x, axes=axes) if axes else x), d


def _in_groups(prim: Primitive, x: Value, groups: tuple, /, **params: Any) -> tuple:
    """Apply a collective within groups of elements.

    It is mapped over the groups of one size at a time, with an axis of the members."""
    name = params["name"] if "name" in params else params["axes"][0]
    within = vmap(vmap(lambda v: prim.bind(v, **params), axis_name=name))
    parts = []
    for size in sorted({len(g) for g in groups}):
        members = np.array([g for g in groups if len(g) == size], np.int32)
        y = within(getitem(x, members))
        parts.append((members, reshape(y, (members.size, *y.aval.shape[2:]))))
    order = np.argsort(np.concatenate([m.reshape(-1) for m, _ in parts])).astype(np.int32)
    return getitem(concatenate([y for _, y in parts], 0), order), 0


_reduction(collective.psum_, reduce_sum, lambda dtype: 0)
_reduction(collective.pmax_, reduce_max, lowest)
_reduction(collective.pmin_, reduce_min, highest)


@batching_rules.rule(collective.axis_index_)
def _(batch: Batch, xs: list[Any], dims: list[Any], *, name: str):
    if name == batch.axis_name:
        return iota_.bind(shape=(batch.size,), axis=0, dtype=INT32), 0
    return collective.axis_index_.bind(name=name), None


def _along(prim: Any, *speak: str) -> Callable:
    """Return a decorator for `ours(batch, x, **params) -> (out, dim)`, the rule over the mapped
    axis, which is in front in `x`; the parameters `speak` are axes of the array."""

    def register(ours: Callable) -> None:
        @batching_rules.rule(prim)
        def _(batch: Batch, xs: Sequence[Value], dims: list[int], /, *, name: str, **params):
            x, d = batch.of_elements(xs[0], dims[0], 0)
            if name == batch.axis_name:
                groups = params.pop("groups", ())
                if groups:
                    return _in_groups(prim, batch.front(x, d), groups, name=name, **params)
                return ours(batch, batch.front(x, d), **params)
            if d is not None:
                params.update({k: params[k] + (params[k] >= d) for k in speak})
            return prim.bind(x, name=name, **params), d

    return register


def _joined(x: Value, axis: int) -> Any:
    """Merge the leading axis into `axis` of the rest."""
    n, *s = x.aval.shape
    return reshape(moveaxis(x, 0, axis), (*s[:axis], n * s[axis], *s[axis + 1 :]))


def _parted(x: Value, axis: int, size: int) -> Any:
    """Divide `axis` into `size` pieces, and make their number the leading axis."""
    s = x.aval.shape
    shape = (*s[:axis], size, s[axis] // size, *s[axis + 1 :])
    return moveaxis(reshape(x, shape), axis, 0)


@_along(collective.all_gather_, "axis")
def _(batch: Carrier, x: Value, *, axis: int, size: Dim | int):
    return _joined(x, axis), None


@_along(collective.psum_scatter_, "axis")
def _(batch: Carrier, x: Value, *, axis: int, size: int):
    return _parted(reduce_sum.bind(x, axes=(0,)), axis, size), 0


@_along(collective.all_to_all_, "split", "concat")
def _(batch: Carrier, x: Value, *, split: int, concat: int, size: int):
    pieces = _parted(x, split + 1, size)  # axes: receiver, sender, ...
    y = moveaxis(pieces, 1, concat + 1)
    _, *rest = y.aval.shape
    shape = (size, *rest[:concat], size * rest[concat + 1], *rest[concat + 2 :])
    return reshape(y, shape), 0


@_along(collective.ppermute_)
def _(batch: Carrier, x: Value, *, perm: tuple[tuple[Any, ...], ...], size: int) -> Any:
    source = {b: a for a, b in perm}
    zero = fill(0, x.aval.with_shape((1, *x.aval.shape[1:])))
    index = np.array([source.get(i, size) for i in range(size)], np.int32)
    return getitem(concatenate([x, zero]), index), 0
