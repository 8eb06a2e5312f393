"""Batching of reshape, transpose, broadcast, slice, concatenate, pad, conversion.

Invariant: parameters name axes of the user's value; these rules renumber them around the mapped
axis.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.ops import shape as sh
from plait.ext.ops.elementwise import select
from plait.ext.trace import Carrier, Value
from plait.ext.types import BOOL, Aval
from plait.ext.values import Literal

from ..interpreter import Batch, batching_rules, insert, skip


@batching_rules.rule(sh.convert_)
def _(batch: Carrier, xs: list[Value], dims: list[int], /, **params: object):
    return sh.convert_.bind(*xs, **params), dims[0]


@batching_rules.rule(sh.barrier)
def _(batch: Carrier, xs: list[Value], dims: list[None | int]):
    return sh.barrier.bind(*xs), dims


@batching_rules.rule(sh.reshape_)
def _(batch: Batch, xs: Sequence[Value], dims: Sequence[int], *, shape: Sequence[int]):
    x = batch.front(xs[0], dims[0])
    return sh.reshape_.bind(x, shape=(batch.size, *shape)), 0


@batching_rules.rule(sh.squeeze_)
def _(batch: Carrier, xs: list[Value], dims: list[int], *, axes: tuple[int, ...]):
    d = dims[0]
    return sh.squeeze_.bind(*xs, axes=skip(axes, d)), d - sum(a < d for a in skip(axes, d))


@batching_rules.rule(sh.broadcast_in_dim)
def _(
    batch: Batch,
    xs: Sequence[Value],
    at: list[int],
    *,
    shape: tuple[int, ...],
    dims: tuple[int, ...],
):
    x = batch.front(xs[0], at[0])
    shape = (batch.size, *shape)
    return sh.broadcast_in_dim.bind(x, shape=shape, dims=(0, *(d + 1 for d in dims))), 0


@batching_rules.rule(sh.transpose_)
def _(batch: Carrier, xs: list[Value], dims: list[int], *, perm: tuple[int, ...]):
    return sh.transpose_.bind(*xs, perm=(dims[0], *skip(perm, dims[0]))), 0


@batching_rules.rule(sh.rev)
def _(batch: Carrier, xs: list[Value], dims: list[int], *, axes: tuple[int, ...]):
    return sh.rev.bind(*xs, axes=skip(axes, dims[0])), dims[0]


@batching_rules.rule(sh.slice_)
def _(
    batch: Batch,
    xs: list[Value],
    dims: list[int],
    *,
    starts: tuple[int, ...],
    limits: tuple[int, ...],
    strides: tuple[int, ...],
):
    (d,) = dims
    return sh.slice_.bind(
        *xs,
        starts=insert(starts, d, 0),
        limits=insert(limits, d, batch.size),
        strides=insert(strides, d, 1),
    ), d


@batching_rules.rule(sh.concatenate_)
def _(batch: Batch, xs: Sequence[Value], dims: list[None | int], *, axis: int):
    to = next(d for d in dims if d is not None)
    moved = [batch.move(x, d, to) for x, d in zip(xs, dims)]
    return sh.concatenate_.bind(*moved, axis=axis + (axis >= to)), to


@batching_rules.rule(sh.pad_)
def _(
    batch: Batch,
    xs: list[Value],
    dims: Sequence[None | int],
    *,
    low: tuple[int, ...],
    high: tuple[int, ...],
    interior: tuple[int, ...],
):
    (x, value), (d, v) = xs, dims
    d = 0 if d is None else d
    x = batch.move(x, dims[0], d)
    grown = dict(low=insert(low, d, 0), high=insert(high, d, 0), interior=insert(interior, d, 0))
    if v is None:
        return sh.pad_.bind(x, value, **grown), d
    zero = Literal(0, Aval((), value.aval.dtype))
    padded = sh.pad_.bind(x, zero, **grown)
    return _filled(padded, x, value, d, grown), d


def _filled(padded: Value, x: Value, value: Value, d: int, grown: dict) -> Any:
    """Replace what `pad_` added around `x` by the padding value of each element."""
    from_x = Literal(True, Aval(x.aval.shape, BOOL))
    inside = sh.pad_.bind(from_x, Literal(False, Aval((), BOOL)), **grown)
    here = sh.broadcast_in_dim.bind(value, shape=padded.aval.shape, dims=(d,))
    return select.bind(inside, padded, here)
