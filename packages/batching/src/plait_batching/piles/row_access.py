"""Rows taken from, and put at, places that tables say.

Places are computed from lengths, and count from the front.  What users write as `x[at]` is ten
operations to the compiler: negative places count from the end there, and both ends are checked.

Invariant: a place outside stands for the nearest row when it is read, and nothing is written there.
"""

from typing import Any

import plait.numpy as pnp
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
from plait.ext.values import (
    as_value,
)

__all__ = ["put", "rows_at", "rows_or"]


def rows_at(x: Any, places: Any, axis: int = 0) -> Any:
    """The rows of `x` along `axis` at places, whose axes stand where that axis was; the nearest
    row for places outside."""
    x, places = as_value(x), as_value(places)
    rank = places.ndim
    others = tuple([i if i < axis else i + rank for i in range(x.ndim - 1)])
    return gather_.bind(
        x,
        places.reshape((*places.shape, 1)),
        dimension_numbers=GatherDimensionNumbers(others, (axis,), (axis,)),
        slice_sizes=tuple([1 if i == axis else n for i, n in enumerate(x.shape)]),
        mode=CLIP,
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=False,
    )


def rows_or(fill: Any, x: Any, places: Any, axis: int = 0) -> Any:
    """The same, with `fill` for places beyond the last row."""
    inside = places < x.shape[axis]
    shape = (*(1,) * axis, *places.shape, *(1,) * (x.ndim - 1 - axis))
    return pnp.where(inside.reshape(shape), rows_at(x, places, axis), pnp.asarray(fill, x.dtype))


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
        places[:, None],
        rows,
        dimension_numbers=ScatterDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,)),
        mode=FILL,
        indices_are_sorted=False,
        unique_indices=False,
    )
