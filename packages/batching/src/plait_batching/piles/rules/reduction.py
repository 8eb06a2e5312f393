"""Reductions over ragged and other axes.

In the flat layout, a reduction over rows is a scatter into examples.  In tiles it is a reduction
over the tiles' own axes, then a scatter.  All others use the padded layout.

Invariant: the result of an empty example is the neutral element.
"""

from typing import Any

import plait.numpy as pnp
from plait.ext.ir import Primitive
from plait.ext.ops import reduction
from plait.ext.ops.elementwise import once
from plait.ext.trace import Value
from plait.ext.types import Aval
from plait.typing import Array

from ...interpreter import with_axis_at
from ..carrier import Ragged, pile_rules
from ..layouts import from_tiles
from ..operation import FLAT, PADDED, TILES
from ..padding import padding_rules
from ..row_access import chosen, filled, put, rows_at

__all__ = ["combined", "tile_mask"]


def combined(fill: float, count: int, at: Value, y: Array, how: str) -> Any:
    """Scatter the rows of `y` to the places `at`, combined by `how`: [count, ...]."""
    aval = y.aval
    return put(filled(fill, aval.with_shape((count, *aval.shape[1:])).strong()), at, y, how)


def tile_mask(y: Value, there: Value, axis: int, fill: float) -> Any:
    """Return [pairs, ..TILE..] with `fill` in places without rows along `axis`."""
    return chosen(there, (0, axis), y, fill)


def _reduction(prim: Any, how: str | None) -> None:
    @pile_rules.rule(prim)
    def _(r, args, out, *, axes):
        (x,) = args
        fill = padding_rules.find(prim)([x.aval], axes=axes)[0].get(axes[0]) if axes else None  # type: ignore[misc]
        at = r.how(x) or PADDED
        if at == PADDED or (how is None and not set(axes).isdisjoint(r.axes(x.aval))):
            return r.by_padding(prim, args, out, {"axes": axes})
        over = _over_rows if at == FLAT else _over_tiles
        return over(r, prim, x, out, axes, fill, how)


def _over_rows(
    r: Ragged, prim: Primitive, x: Value, out: Aval, axes: tuple, fill: Any, how: str | None
) -> Any:
    (a,) = r.axes(x.aval)
    y = r.data(x, FLAT)
    if a not in axes:
        return r.result(out, prim.bind(y, axes=axes), FLAT)
    others = tuple([i for i in axes if i != a])
    if others:
        y = prim.bind(y, axes=others)
    y = with_axis_at(y, a - sum([i < a for i in others]), 0)
    t = r.rows(x.aval.shape[a])
    return r.lift(out, 0, (combined(fill, r.size, t.example, y, str(how)),))


def _over_tiles(
    r: Ragged, prim: Primitive, x: Value, out: Aval, axes: tuple, fill: Any, how: str | None
) -> Any:
    own = r.axes(x.aval)
    p = r.pairs(*[x.aval.shape[a] for a in own])
    y = r.data(x, TILES)
    gone = [i for i in own if i in axes]
    for i in gone:
        y = tile_mask(y, p.left_there if i == own[0] else p.right_there, i + 1, fill)
    y = prim.bind(y, axes=tuple([i + 1 for i in axes]))
    if not gone:
        return r.result(out, y, TILES)
    if len(gone) == 2:
        return r.lift(out, 0, (combined(fill, r.size, p.example, y, str(how)),))
    t, at = (p.a, p.left) if gone[0] == own[1] else (p.b, p.right)
    y = combined(fill, t.tiles, at, y, str(how))
    (k,) = r.axes(out)
    return r.result(out, from_tiles(r, y, k, out.shape[k]), FLAT)


_HOW: tuple[tuple[Any, str | None], ...] = (
    (reduction.reduce_sum, "add"),
    (reduction.reduce_prod, "multiply"),
    (reduction.reduce_max, "max"),
    (reduction.reduce_min, "min"),
    (reduction.reduce_and, None),
    (reduction.reduce_or, None),
    (reduction.reduce_xor, None),
)
for _prim, _how in _HOW:
    _reduction(_prim, _how)


def _place(prim: Any, how: str) -> None:
    @pile_rules.rule(prim)
    def _(r: Ragged, args, out, *, axis, index_dtype: object):
        (x,) = args
        params = {"axis": axis, "index_dtype": index_dtype}
        if r.how(x) == FLAT and axis not in r.axes(x.aval):
            return r.result(out, prim.bind(r.data(x, FLAT), **params), FLAT)
        if r.how(x) == FLAT:
            fill = padding_rules.find(prim)([x.aval], **params)[0][axis]  # type: ignore[misc]
            return r.lift(out, 0, (_first(r, x, axis, fill, how).astype(index_dtype),))
        return r.by_padding(prim, args, out, params)


_NOWHERE = (1 << 31) - 1


def _first(r: Ragged, x: Value, axis: int, fill: float, how: str) -> Any:
    """Return the first position of the extreme of each example; 0 if it is empty: [size, ...]."""
    y = once.bind(with_axis_at(r.data(x, FLAT), axis, 0))
    t = r.rows(x.aval.shape[axis])
    best = rows_at(combined(fill, r.size, t.example, y, how), t.owner)
    hit = pnp.logical_or(y == best, y != y)  # a nan wins both argmax and argmin
    at = pnp.where(hit, t.position.reshape((-1, *(1,) * (y.ndim - 1))), _NOWHERE)
    found = combined(_NOWHERE, r.size, t.example, at.astype("int32"), "min")
    return pnp.where(found == _NOWHERE, 0, found)


for _prim, _how in ((reduction.argmax_, "max"), (reduction.argmin_, "min")):
    _place(_prim, _how)
