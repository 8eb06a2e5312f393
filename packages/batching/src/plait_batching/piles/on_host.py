"""Known piles, laid out and taken apart by numpy.

What a program does around its jitted part depends on every batch's lengths; done by operations, it
would compile a program for each batch.

Invariant: nothing is compiled here; arrays that a user placed on devices stay with the operations.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.ext.sizes import Dim
from plait.ext.trace import GROUND, current, is_unplaced
from plait.ext.types import Aval, Opaque
from plait.ext.values import Array, as_argument, shared

from .capacities import TILE, Capacities, ragged_axes
from .operation import FLAT, TILES, layout, place

__all__ = [
    "elements_on_host", "is_on_host", "laid_out", "new_rows", "on_device", "padded_on_host",
]  # fmt: skip

_SHARED_BYTES = 1 << 18
"""Bytes from which a device uses the memory of numpy itself, where it can: a copy of 2 MiB took
170 us.  Smaller arrays are copied, since finding aligned memory takes as long as that."""

_ALIGNED = 64
"""Bytes by which the runtime wants memory to be aligned that it uses."""


def is_on_host(*xs: Any) -> bool:
    """Return whether numpy may take these arrays apart: known numbers, in no chosen place."""
    return current() is GROUND and all(map(_is_known, xs))


def _is_known(x: Any) -> bool:
    if x.__class__ is Array:
        return x.aval.dtype.__class__ is not Opaque and is_unplaced(x)
    return isinstance(x, np.ndarray)


def new_rows(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray[Any, Any]:
    """Return memory for `on_device`, with any values."""
    out = np.empty(shape, dtype)
    if out.nbytes < _SHARED_BYTES:
        return out
    raw = np.empty(out.nbytes + _ALIGNED, np.uint8)
    start = -raw.__array_interface__["data"][0] % _ALIGNED
    return raw[start : start + out.nbytes].view(dtype).reshape(shape)


def on_device(rows: np.ndarray[Any, Any]) -> Any:
    """Return an array of these numbers, which may use their memory: do not write to it again."""
    return as_argument(rows) if rows.nbytes < _SHARED_BYTES else shared(rows)


def elements_on_host(x: Any, t: Aval, caps: Capacities, sizes: list[dict[str, int]]) -> list[Any]:
    """Return the elements of a column of rows `x`, as numpy arrays; `sizes` are those of each."""
    rows, how = np.asarray(x), place(t, caps, False)
    axes = ragged_axes(t.shape, caps.named)
    found, at = [], 0
    for b, own in enumerate(sizes):
        shape: list[Any] = [
            d.substitute(own) if d.__class__ is Dim else d
            for d in t.shape  # type: ignore[union-attr]
        ]
        if how == FLAT:
            (a,) = axes
            found.append(rows[(slice(None),) * a + (slice(at, at + shape[a]),)])
            at += shape[a]
        elif how == TILES:
            element = np.zeros(shape, rows.dtype)
            for tile, cut in _tiles(shape, axes):
                element[cut] = rows[(at + tile, *[slice(0, n) for n in element[cut].shape])]
            at += -(-shape[axes[0]] // TILE) * -(-shape[axes[1]] // TILE)
            found.append(element)
        else:
            found.append(rows[(b, *[slice(0, n) for n in shape])])
    return found


def _tiles(shape: Sequence[int], axes: tuple[int, ...]) -> list[tuple[int, tuple]]:
    """Return (number, slices of an element) of each tile of an element."""
    i, j = axes
    found = []
    for p in range(0, shape[i], TILE):
        for q in range(0, shape[j], TILE):
            cut = [slice(None)] * len(shape)
            cut[i], cut[j] = slice(p, p + TILE), slice(q, q + TILE)
            found.append((len(found), tuple(cut)))
    return found


def laid_out(column: Any, t: Aval, caps: Capacities, count: int) -> np.ndarray[Any, Any]:
    """Return the elements in the layout of their type, in memory for `on_device`."""
    spot = caps.on_host.get(t)
    if spot is None:
        how = place(t, caps, False)
        spot = caps.on_host[t] = how, caps.axes(t), layout(t, caps, how).shape
    how, axes, shape = spot
    out = new_rows(shape, t.dtype)
    if how == FLAT and column:
        (a,) = axes
        before = (slice(None),) * a
        end = sum([x.shape[a] for x in column] if a else map(len, column))
        np.concatenate(column, a, out=out[(*before, slice(end))], casting="unsafe")
        out[(*before, slice(end, None))] = 0
        return out
    out[...] = 0
    at = 0
    for b, x in enumerate(column):
        if how == TILES:
            tiles = _tiles(x.shape, axes)
            for tile, cut in tiles:
                out[(at + tile, *[slice(0, n) for n in x[cut].shape])] = x[cut]
            at += len(tiles)
        else:
            out[(b, *[slice(0, n) for n in x.shape])] = x
    return out


def padded_on_host(
    elements: list[Any], shape: tuple[Any, ...], dtype: np.dtype, fill: float
) -> np.ndarray[Any, Any]:
    """Return [number of elements, *shape], with `fill` beyond the end of each element."""
    out = np.full((len(elements), *shape), fill, dtype)
    for b, x in enumerate(elements):
        out[(b, *[slice(0, n) for n in x.shape])] = x
    return out
