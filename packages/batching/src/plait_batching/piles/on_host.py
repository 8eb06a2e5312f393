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
from plait.ext.values import Array

from .capacities import TILE, Capacities, ragged_axes
from .operation import FLAT, TILES, layout, place

__all__ = ["elements_on_host", "is_on_host", "laid_out", "padded_on_host"]


def is_on_host(*xs: Any) -> bool:
    """Return whether numpy may take these arrays apart: known numbers, in no chosen place."""
    return current() is GROUND and all(map(_is_known, xs))


def _is_known(x: Any) -> bool:
    if x.__class__ is Array:
        return x.dtype.__class__ is not Opaque and is_unplaced(x)
    return isinstance(x, np.ndarray)


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
    """Return the elements in the layout of their type."""
    axes = ragged_axes(t.shape, caps.named)
    how = place(t, caps, False)
    out = np.zeros(layout(t, caps, how).shape, t.dtype)
    if how == FLAT and column:
        (a,) = axes
        rows = out[(*[slice(None)] * a, slice(0, sum([x.shape[a] for x in column])))]
        np.concatenate(column, a, out=rows, casting="unsafe")
        return out
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
