"""Conversions between the layouts of ragged values.

Invariant: every row keeps its value; values in places without rows are undefined before and after.
"""

from typing import Any

import plait.numpy as pnp
from plait.ext.trace import Value
from plait.ext.types import Aval, Opaque
from plait.typing import Array

from ..interpreter import with_axis_at
from .capacities import TILE
from .operation import FLAT, PADDED, TILES
from .row_access import rows_at, rows_or, shaped

__all__ = [
    "along", "converted", "fit", "from_padded", "from_tiles", "to_padded", "to_tiles",
]  # fmt: skip


def along(v: Array, axis: int, ndim: int) -> Any:
    """Reshape a vector to an array that varies along one axis."""
    return shaped(v, (*(1,) * axis, v.aval.shape[0], *(1,) * (ndim - 1 - axis)))


def fit(x: Array, axis: int, n: int) -> Any:
    """Return `x` with `n` rows along `axis`: truncated, or extended by undefined rows."""
    have = x.shape[axis]
    if have == n:
        return x
    if have > n:
        return x[(slice(None),) * axis + (slice(0, n),)]
    if x.aval.dtype.__class__ is Opaque and have:  # an opaque dtype has no zero to pad with
        return rows_at(x, pnp.arange(n, dtype="int32"), axis)
    return pnp.pad(x, [(0, n - have) if i == axis else (0, 0) for i in range(x.ndim)])


def _merged(y: Any, a: int) -> Any:
    """Merge the axes `a` and `a + 1`."""
    shape = y.aval.shape
    return shaped(y, (*shape[:a], shape[a] * shape[a + 1], *shape[a + 2 :]))


def to_tiles(r: Any, x: Any, a: int, d: Any, fill: Any = 0) -> Any:
    """Convert values flat along axis `a`, of size `d`, to [tiles, ..TILE..]."""
    y = rows_or(fill, x, r.rows(d).tile_rows, a)
    return with_axis_at(y, a, 0)


def from_tiles(r: Any, y: Any, a: int, d: Any) -> Any:
    """Convert [tiles, ..TILE..] to values flat along axis `a`, of size `d`."""
    y = with_axis_at(y, 0, a)
    y = _merged(y, a)
    return rows_at(y, r.rows(d).row_tiles, a)


def to_padded(r: Any, x: Any, a: int, d: Any) -> Any:
    """Convert values flat along axis `a`, of size `d`, to [size, ..longest..]."""
    if r.fills(d):
        shape = x.aval.shape
        parts = r.size, shape[a] // r.size
        return with_axis_at(shaped(x, (*shape[:a], *parts, *shape[a + 1 :])), a, 0)
    return with_axis_at(rows_at(x, r.rows(d).padded_rows, a), a, 0)


def from_padded(r: Any, y: Any, a: int, d: Any) -> Any:
    """Convert [size, ..longest..] to values flat along axis `a`, of size `d`."""
    y = with_axis_at(y, 0, a)
    y = _merged(y, a)
    return y if r.fills(d) else rows_at(y, r.rows(d).row_places, a)


def _tiles_to_padded(r: Any, y: Array, aval: Aval, axes: tuple[int, ...]) -> Any:
    """Convert [pairs, ..TILE..TILE..] to [size, ..longest..longest..]."""
    a, b = axes
    p = r.pairs(aval.shape[a], aval.shape[b])
    m, n = (-(-t.longest // TILE) for t in (p.a, p.b))
    left, right = pnp.arange(m)[:, None], pnp.arange(n)
    at = p.first[:-1, None, None] + left * pnp.maximum(p.b.counts, 1)[:, None, None] + right
    y = rows_at(y, at)  # [size, m, n, ...]
    y = pnp.moveaxis(y, (1, 2), (a + 1, b + 2))  # each tile number in front of its rows
    shape = list(y.shape)
    shape[a + 1 : a + 3] = [m * TILE]
    shape[b + 1 : b + 3] = [n * TILE]
    y = y.reshape(shape)
    return fit(fit(y, a + 1, p.a.longest), b + 1, p.b.longest)


def _padded_to_tiles(r: Any, y: Array, aval: Aval, axes: tuple[int, ...]) -> Any:
    """Convert [size, ..longest..longest..] to [pairs, ..TILE..TILE..]."""
    a, b = axes
    p = r.pairs(aval.shape[a], aval.shape[b])
    m, n = (-(-t.longest // TILE) for t in (p.a, p.b))
    y = fit(fit(y, a + 1, m * TILE), b + 1, n * TILE)
    shape = list(y.shape)
    shape[b + 1 : b + 2] = [n, TILE]
    shape[a + 1 : a + 2] = [m, TILE]
    y = pnp.moveaxis(y.reshape(shape), (a + 1, b + 2), (1, 2))  # [size, m, n, ...]
    y = _merged(_merged(y, 0), 0)
    i, j = (pnp.clip(k, 0, c - 1) for k, c in zip(p.place, (m, n)))
    return rows_at(y, (p.owner * m + i) * n + j)


def converted(r: Any, aval: Aval, x: Value, how: str, to: str) -> Any:
    """Convert a value of this ragged type to another layout, with its new axis in front."""
    axes = r.axes(aval)
    if how == FLAT:
        x = to_padded(r, x, axes[0], aval.shape[axes[0]])
        how = PADDED
    elif how == TILES:
        x = _tiles_to_padded(r, x, aval, axes)
    if to == FLAT:
        return from_padded(r, x, axes[0], aval.shape[axes[0]])
    return _padded_to_tiles(r, x, aval, axes) if to == TILES else x
