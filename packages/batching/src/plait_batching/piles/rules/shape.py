"""Iota, broadcast, transpose, squeeze, reshape.

Invariant: flat values have the user's axes; in tiles and padded there is one more in front.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import plait.numpy as pnp
from plait.ext.ops.shape import broadcast_in_dim, iota_, reshape_, squeeze_, transpose_
from plait.ext.sizes import Dim
from plait.ext.trace import Value
from plait.ext.types import Aval
from plait.ext.values import Literal

from ...interpreter import with_axis_at
from ..carrier import Ragged, pile_rules
from ..layouts import along, fit
from ..operation import FLAT, PADDED, TILES, layout, place
from ..row_access import rows_at, rows_or
from ..tables import I32, Pairs

__all__ = ["to_pairs"]


@pile_rules.rule(iota_)
def _(r, args: Sequence[Any], out, *, shape, axis, dtype):
    how = place(out, r.caps, r.padded)
    want = layout(out, r.caps, how).shape
    axes = r.axes(out)
    if how == FLAT and axis in axes:
        at = r.rows(shape[axis]).position.astype(dtype)
        return r.result(out, broadcast_in_dim.bind(at, shape=want, dims=(axis,)), how)
    if how == FLAT:
        return r.result(out, iota_.bind(shape=want, axis=axis, dtype=dtype), how)
    if how == TILES and axis in axes:
        p = r.pairs(shape[axes[0]], shape[axes[1]])
        t, which = (p.a, p.left) if axis == axes[0] else (p.b, p.right)
        at = rows_at(t.tile_position, which).astype(dtype)
        return r.result(out, broadcast_in_dim.bind(at, shape=want, dims=(0, axis + 1)), how)
    return r.result(out, iota_.bind(shape=want, axis=axis + 1, dtype=dtype), how)


@pile_rules.rule(broadcast_in_dim)
def _(r, args, out, *, shape, dims):
    (x,) = args
    how = r.how(x) if len(r.axes(x.aval)) == len(r.axes(out)) else None
    how = how or place(out, r.caps, r.padded)
    want = layout(out, r.caps, how)
    if x.__class__ is Literal:
        return r.result(out, Literal(x.value, want), how)
    y, at = {FLAT: _to_flat, TILES: _to_tiles, PADDED: _to_padded}[how](r, x, out, dims)
    order = sorted(range(len(at)), key=at.__getitem__)
    if order != list(range(len(at))):
        y, at = pnp.transpose(y, order), sorted(at)
    return r.result(out, broadcast_in_dim.bind(y, shape=want.shape, dims=tuple(at)), how)


def _to_flat(r: Ragged, x: Value, out: Aval, dims: tuple) -> tuple[Any, list[int]]:
    """Return (values to broadcast, the axes of the flat result that theirs map to)."""
    if r.axes(x.aval):
        return r.data(x, FLAT), list(dims)
    (a,) = r.axes(out)
    y, d = r.dense(x)
    at = list(dims)
    lost = tuple([i for i, k in enumerate(dims) if k == a])  # an axis of size 1
    if d is not None:
        y = rows_at(r.front(y, d), r.rows(out.shape[a]).owner)
        y = _without(y, tuple([i + 1 for i in lost]))
        return y, [a, *[k for k in at if k != a]]
    return _without(y, lost), [k for k in at if k != a]


def _without(x: Value, axes: tuple[int, ...]) -> Any:
    """Remove axes of size 1."""
    return squeeze_.bind(x, axes=axes) if axes else x


def _to_tiles(r: Ragged, x: Value, out: Aval, dims: tuple) -> tuple[Any, list[int]]:
    axes = r.axes(out)
    p = r.pairs(*[out.shape[a] for a in axes])
    mine = r.axes(x.aval)
    y, d = to_pairs(r, x, p, [dims[i] == axes[0] for i in mine])
    lead = 0 if d is None else 1
    lost = tuple([i for i, k in enumerate(dims) if k in axes and i not in mine])
    y = _without(y, tuple([i + lead for i in lost]))
    return y, [0] * lead + [k + 1 for i, k in enumerate(dims) if i not in lost]


def to_pairs(r: Ragged, x: Value, p: Pairs, left: list[bool]) -> tuple[Any, int | None]:
    """Return a value on pairs of tiles, and the position of their axis.

    `left`: for each ragged axis, whether it is the first one of the pair."""
    axes = r.axes(x.aval)
    if not axes:
        y, d = r.dense(x)
        return (y, None) if d is None else (rows_at(r.front(y, d), p.owner), 0)
    if len(axes) == 2:
        return r.data(x, TILES), 0
    (a,) = axes
    at = p.rows_of(r.rows(x.aval.shape[a]), left[0])
    return with_axis_at(rows_or(0, r.data(x, FLAT), at, a), a, 0), 0


def _to_padded(r: Ragged, x: Value, out: Aval, dims: tuple) -> tuple[Any, list[int]]:
    if r.axes(x.aval):
        return r.data(x, PADDED), [0, *[k + 1 for k in dims]]
    y, d = r.dense(x)
    if d is None:
        return y, [k + 1 for k in dims]
    return r.front(y, d), [0, *[k + 1 for k in dims]]


@pile_rules.rule(transpose_)
def _(r, args: Sequence[Value], out, *, perm):
    (x,) = args
    how, axes = r.how(x), r.axes(x.aval)
    how = how or place(out, r.caps, r.padded)
    y = r.data(x, how)
    if how == FLAT:
        return r.result(out, transpose_.bind(y, perm=perm), how)
    if how == TILES and perm.index(axes[0]) > perm.index(axes[1]):
        y = _swapped(r, x, y)
    return r.result(out, transpose_.bind(y, perm=(0, *[i + 1 for i in perm])), how)


def _swapped(r: Ragged, x: Value, y: Value) -> Any:
    """Return the tiles of (n, m) in the order of those of (m, n)."""
    a, b = [x.aval.shape[i] for i in r.axes(x.aval)]
    p, q = r.pairs(a, b), r.pairs(b, a)
    m, n = q.place
    at = rows_at(p.first, q.example) + n * rows_at(pnp.maximum(p.b.counts, 1), q.owner) + m
    return rows_at(y, at)


@pile_rules.rule(squeeze_)
def _(r, args, out, *, axes):
    (x,) = args
    if any(a in axes for a in r.axes(x.aval)):
        return reshaped(r, x, out)
    how = r.like(args, out)
    lead = 0 if how == FLAT else 1
    y = squeeze_.bind(r.data(x, how), axes=tuple([a + lead for a in axes]))
    return r.result(out, y, how)


@pile_rules.rule(reshape_)
def _(r, args: list[Value], out: Aval, *, shape: tuple[int | Dim, ...]):
    return reshaped(r, args[0], out)


def reshaped(r: Ragged, x: Value, out: Aval) -> Any:
    """Reshape the elements of each example, in row-major order of its own sizes."""
    have, want = r.axes(x.aval), r.axes(out)
    if _in_place(r, x.aval.shape, out.shape, have, want):
        how = r.like([x], out)
        y = reshape_.bind(r.data(x, how), shape=layout(out, r.caps, how).shape)
        return r.result(out, y, how)
    if len(have) == len(want) == 1 and have[0] == want[0] == 0 and not r.padded:
        # The leading axis is the ragged one, so the flat elements keep their order.
        y = r.data(x, FLAT).reshape(-1)
        shape = layout(out, r.caps, FLAT).shape
        return r.result(out, fit(y, 0, prod(shape)).reshape(shape), FLAT)
    y = _moved(r, r.data(x, PADDED), x.aval.shape, layout(out, r.caps, PADDED).shape, out.shape)
    return r.result(out, y, PADDED)


def _in_place(r: Ragged, shape: tuple, goal: tuple, have: tuple, want: tuple) -> bool:
    """Return whether ragged axes stay, with as many elements before and between them."""
    if len(have) != len(want) or [shape[a] for a in have] != [goal[a] for a in want]:
        return False
    edges = zip((-1, *have), (*have, len(shape)), (-1, *want), (*want, len(goal)), strict=True)
    return all(prod(shape[a + 1 : b]) == prod(goal[c + 1 : d]) for a, b, c, d in edges)


def _moved(r: Ragged, y: Value, shape: tuple, capacity: tuple, goal: tuple) -> Any:
    """Reshape padded values from `shape` to `goal`.

    Each place of the result is numbered in row-major order of the example's own sizes; that number
    locates the element of the operand."""
    number: Any = pnp.zeros((1,) * len(capacity), I32)
    stride: Any = pnp.ones((r.size, *(1,) * len(goal)), I32)
    for a in range(len(goal) - 1, -1, -1):
        at = along(pnp.arange(capacity[a + 1], dtype=I32), a + 1, len(capacity))
        number = number + at * stride
        stride = stride * _extent(r, goal[a], len(capacity))
    where: Any = pnp.zeros_like(number)
    scale = 1
    for a in range(len(shape) - 1, -1, -1):
        n = pnp.maximum(_extent(r, shape[a], len(capacity)), 1)
        where = where + number % n * scale
        number = number // n
        scale *= y.shape[a + 1]
    where = pnp.clip(pnp.broadcast_to(where, capacity), 0, max(scale - 1, 0))
    flat = y.reshape((r.size, scale))
    got = pnp.take_along_axis(
        flat, where.reshape((r.size, prod(capacity[1:]))), axis=1, mode="clip"
    )
    return got.reshape(capacity)


def _extent(r: Ragged, d: Any, ndim: int) -> Any:
    """Return a size of each example, along the first of `ndim` axes."""
    n = r.lengths(d) if r.caps.mine(d) else pnp.full(r.size, d, I32)
    return n.reshape((r.size, *(1,) * (ndim - 1)))
