"""Reading and writing of rows at places from the tables; reshaping and selecting on the way.

Places are computed from lengths, and count from the front.  The public `x[at]` compiles to ten
operations, since it supports negative places and checks both ends.  Rules of piles run for every
equation and have all types at hand: the public `where(flags[:, None], x, 0)` is one operation to
the compiler, but a hundred calls of Python.

Invariant: a place outside reads the nearest row, and writes nothing.
"""

from typing import Any

import numpy as np

from plait.ext.ops import indexing as ix
from plait.ext.ops.elementwise import lt, select
from plait.ext.ops.shape import broadcast_in_dim, convert, reshape_
from plait.ext.trace import Value
from plait.ext.types import Aval
from plait.ext.values import Literal, as_value
from plait.typing import Array

__all__ = ["chosen", "filled", "put", "rows_at", "rows_or", "shaped"]


def shaped(x: Any, shape: tuple[Any, ...]) -> Any:
    """Reshape `x`, unless it has that shape."""
    return x if x.aval.shape == shape else reshape_.bind(x, shape=shape)


def filled(value: Any, aval: Aval) -> Any:
    """Return an array of type `aval` filled with `value`."""
    if value.__class__ in _NUMBERS:
        return Literal(value, aval)
    if isinstance(value, np.generic):
        return Literal(value.item(), aval)
    x = convert(as_value(value), aval.dtype)  # a computed number; refuses other values
    return broadcast_in_dim.bind(x, shape=aval.shape, dims=()) if aval.ndim else x


_NUMBERS = frozenset((bool, int, float, complex))


def chosen(flags: Value, axes: tuple[int, ...], x: Value, other: Any) -> Any:
    """Return `x` where the flags are true, and `other` elsewhere.

    The axes of `flags` are `axes` of `x`; `other` is a value of the same shape, or a number."""
    aval = x.aval
    if len(axes) < aval.ndim:
        flags = broadcast_in_dim.bind(flags, shape=aval.shape, dims=axes)
    is_whole = hasattr(other, "aval") and other.aval.shape == aval.shape
    return select.bind(flags, x, other if is_whole else filled(other, aval))


def rows_at(x: Any, places: Any, axis: int = 0) -> Any:
    """Return the rows of `x` along `axis` at `places`, whose axes replace that axis.

    Places outside read the nearest row."""
    x, places = as_value(x), as_value(places)
    shape, rank = x.aval.shape, places.aval.ndim
    others = (*range(axis), *range(axis + rank, len(shape) + rank - 1))
    return ix.gather_.bind(
        x,
        reshape_.bind(places, shape=(*places.aval.shape, 1)),
        dimension_numbers=ix.GatherDimensionNumbers(others, (axis,), (axis,)),
        slice_sizes=(*shape[:axis], 1, *shape[axis + 1 :]),
        mode=ix.CLIP,
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=False,
    )


def rows_or(fill: float, x: Any, places: Value, axis: int = 0) -> Any:
    """Return the same as `rows_at`, but with `fill` for places beyond the last row."""
    n = x.aval.shape[axis]
    # A symbolic size is computed by the enclosing program, so it cannot be a Literal.
    inside = lt.bind(places, Literal(n, places.aval)) if n.__class__ is int else places < n
    at = tuple(range(axis, axis + places.aval.ndim))
    return chosen(inside, at, rows_at(x, places, axis), fill)


_PUT = {
    "set": ix.scatter_,
    "add": ix.scatter_add_,
    "multiply": ix.scatter_mul_,
    "max": ix.scatter_max_,
    "min": ix.scatter_min_,
}


def put(x: Array, places: Array, rows: Array, how: str = "set") -> Any:
    """Combine `rows` with the rows of `x` at these places; places outside are ignored."""
    return _PUT[how].bind(
        x,
        reshape_.bind(places, shape=(*places.aval.shape, 1)),
        rows,
        dimension_numbers=ix.ScatterDimensionNumbers(tuple(range(1, x.aval.ndim)), (0,), (0,)),
        mode=ix.FILL,
        indices_are_sorted=False,
        unique_indices=False,
    )
