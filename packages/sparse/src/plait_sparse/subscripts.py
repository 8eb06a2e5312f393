"""Subscripts of sparse arrays: integers, slices, `...` and None.

Invariant: a selection is sparse, and has at most the entries of the array.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from plait import ext
from plait.ext.errors import ArgumentError, AxisError

from .entries import Entries
from .structure import broadcast, dynamic_piece, piece, reversed_along, squeezed

if TYPE_CHECKING:
    from .bcoo import BCOO

__all__ = ["subscripted"]


def subscripted(x: Entries, index: object) -> Any:
    """Return `x[index]`."""
    parts = list(index) if isinstance(index, tuple) else [index]
    named = [p for p in parts if p is not None and p is not Ellipsis]
    if len(named) > x.ndim or sum(p is Ellipsis for p in parts) > 1:
        raise AxisError(
            f"expected at most {x.ndim} indices for a sparse array of shape {x.shape}, got {index}",
            fix="use one index for each axis, and ... once",
        )
    fill = [slice(None)] * (x.ndim - len(named))
    where = next((k for k, p in enumerate(parts) if p is Ellipsis), len(parts))
    parts = [*parts[:where], *fill, *parts[where + 1 :]]
    ranges = [_range(p, n, k) for k, (p, n) in enumerate(_with_sizes(parts, x.shape))]
    out = _selected(x, ranges)
    dropped = [k for k, r in enumerate(ranges) if r[3]]
    out = squeezed(out, dropped) if dropped else out
    return _with_new_axes(out, parts)


def _with_sizes(parts: list[Any], shape: tuple[int, ...]) -> list[tuple[Any, int]]:
    """Return each index but None with the size of its axis."""
    return list(zip((p for p in parts if p is not None), shape, strict=True))


def _range(p: object, n: int, axis: int) -> tuple[Any, int, int, bool]:
    """Return (start, size, step, whether the axis is dropped) of one index."""
    if isinstance(p, slice):
        start, stop, step = p.indices(n)
        size = len(range(start, stop, step))
        return start, size, step, False
    if isinstance(p, int | np.integer) and not isinstance(p, bool):
        if not -n <= p < n:
            raise ext.errors.AxisError(
                f"index {p} is out of bounds for axis {axis} of size {n}",
                fix=f"use an index from {-n} to {n - 1}",
            )
        return int(p) % n, 1, 1, True
    if isinstance(p, ext.Value) and p.aval.dtype.kind in "iu" and not p.aval.ndim:
        return p, 1, 1, True
    raise ArgumentError(
        f"a sparse array is indexed by integers, slices, ... and None, got {type(p).__name__}",
        fix="index the dense array, x.todense()[...], or multiply by a sparse selection",
    )


def _selected(x: Entries, ranges: list[tuple[Any, int, int, bool]]) -> Any:
    """Return the elements in a range of each axis."""
    fixed = [not hasattr(r[0], "aval") for r in ranges]
    low, high, step = [], [], []
    for (a, size, st, _), is_fixed, n in zip(ranges, fixed, x.shape, strict=True):
        first = a if st > 0 else a + (size - 1) * st
        low.append(first if is_fixed and size else 0)
        high.append((first + (size - 1) * abs(st) + 1 if size else 0) if is_fixed else n)
        step.append(abs(st))
    x = piece(x, low, high, step)
    turned = [k for k, r in enumerate(ranges) if r[2] < 0]
    x = reversed_along(x, turned) if turned else x
    if all(fixed):
        return x
    starts = [0 if f else r[0] for r, f in zip(ranges, fixed, strict=True)]
    sizes = [n if f else 1 for n, f in zip(x.shape, fixed, strict=True)]
    return dynamic_piece(x, starts, sizes)


def _with_new_axes(x: "BCOO", parts: list[Any]) -> Any:
    """Return the array with an axis of size 1 for each None."""
    if all(p is not None for p in parts):
        return x
    shown = [p for p in parts if p is None or isinstance(p, slice)]
    sizes, axes, left = [], [], list(x.shape)
    for k, p in enumerate(shown):
        if p is not None:
            axes.append(k)
        sizes.append(1 if p is None else left.pop(0))
    return broadcast(x, sizes, axes)
