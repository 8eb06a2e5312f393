"""Rows taken from, and put at, places that tables say; axes and choices on the way.

Places are computed from lengths, and count from the front.  What users write as `x[at]` is ten
operations to the compiler: negative places count from the end there, and both ends are checked.
Rules of piles are run for every equation, and types are known in them: what users write as
`where(flags[:, None], x, 0)` is one operation to the compiler and a hundred calls of Python.

Invariant: a place outside stands for the nearest row when it is read, and nothing is written there.
"""

from typing import Any

import numpy as np

from plait.ext.ops.elementwise import lt, select
from plait.ext.ops.indexing import (
    CLIP,
    FILL,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    gather_,
    scatter_,
    scatter_add_,
    scatter_max_,
    scatter_min_,
    scatter_mul_,
)
from plait.ext.ops.shape import broadcast_in_dim, convert, reshape_
from plait.ext.values import Literal, as_value

__all__ = ["chosen", "filled", "put", "rows_at", "rows_or", "shaped"]


def shaped(x: Any, shape: tuple) -> Any:
    """The elements in another shape."""
    return x if x.aval.shape == shape else reshape_.bind(x, shape=shape)


def filled(value: Any, aval: Any) -> Any:
    """An array of a type, all of whose elements are a number."""
    if value.__class__ in _NUMBERS:
        return Literal(value, aval)
    if isinstance(value, np.generic):
        return Literal(value.item(), aval)
    x = convert(as_value(value), aval.dtype)  # a number that is computed; or none, which is refused
    return broadcast_in_dim.bind(x, shape=aval.shape, dims=()) if aval.ndim else x


_NUMBERS = frozenset((bool, int, float, complex))


def chosen(flags: Any, axes: tuple[int, ...], x: Any, other: Any) -> Any:
    """`x` where the flags, whose axes are these of `x`, are true; elsewhere `other`, a value of the
    same shape or a number."""
    aval = x.aval
    if len(axes) < aval.ndim:
        flags = broadcast_in_dim.bind(flags, shape=aval.shape, dims=axes)
    is_whole = hasattr(other, "aval") and other.aval.shape == aval.shape
    return select.bind(flags, x, other if is_whole else filled(other, aval))


def rows_at(x: Any, places: Any, axis: int = 0) -> Any:
    """The rows of `x` along `axis` at places, whose axes stand where that axis was; the nearest
    row for places outside."""
    x, places = as_value(x), as_value(places)
    shape, rank = x.aval.shape, places.aval.ndim
    others = (*range(axis), *range(axis + rank, len(shape) + rank - 1))
    return gather_.bind(
        x,
        reshape_.bind(places, shape=(*places.aval.shape, 1)),
        dimension_numbers=GatherDimensionNumbers(others, (axis,), (axis,)),
        slice_sizes=(*shape[:axis], 1, *shape[axis + 1 :]),
        mode=CLIP,
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=False,
    )


def rows_or(fill: Any, x: Any, places: Any, axis: int = 0) -> Any:
    """The same, with `fill` for places beyond the last row."""
    n = x.aval.shape[axis]
    # a size of an operation around is a number of the program
    inside = lt.bind(places, Literal(n, places.aval)) if n.__class__ is int else places < n
    at = tuple(range(axis, axis + places.aval.ndim))
    return chosen(inside, at, rows_at(x, places, axis), fill)


_PUT = {
    "set": scatter_,
    "add": scatter_add_,
    "multiply": scatter_mul_,
    "max": scatter_max_,
    "min": scatter_min_,
}


def put(x: Any, places: Any, rows: Any, how: str = "set") -> Any:
    """`x` with `rows` combined with its own at these places; what is outside is left out."""
    return _PUT[how].bind(
        x,
        reshape_.bind(places, shape=(*places.aval.shape, 1)),
        rows,
        dimension_numbers=ScatterDimensionNumbers(tuple(range(1, x.aval.ndim)), (0,), (0,)),
        mode=FILL,
        indices_are_sorted=False,
        unique_indices=False,
    )
