"""Elements along one axis, by number.

Invariant: positions are counted from the front, wrapped or clamped before anything is read, so that
the mode alone decides about positions outside.
"""

from typing import Any

from .._base.errors import ShapeError, SubscriptError
from .._core.array import as_value
from .._types.avals import BOOL, broadcast_shapes
from ..typing import ArrayLike
from . import composed
from . import elementwise as el
from .indexing import GatherDimensionNumbers, gather_, normal_fill, normal_mode
from .reduction import any_, sum_
from .shape import (
    broadcast_to,
    expand_dims,
    iota,
    materialise_at_ground,
    moveaxis,
    normal_axis,
    reshape,
)
from .sizes import from_front, integers, size_value
from .subscript import At

__all__ = ["take", "take_along_axis"]


def take(
    x: Any,
    indices: Any,
    axis: float | None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """Return elements along one axis, by number.

    Args:
      x: an array.
      indices: an integer or an array of them, of any shape.
      axis: the axis; None takes from the array in row-major order.
      mode: the treatment of numbers outside: "fill" (the default), "clip", "wrap" (periodic) or
        "promise_in_bounds".  "fill" reads `fill_value`, by default nan, or the least (signed) or
        greatest integer.  Negative numbers count from the end, except with "clip".
      unique_indices, indices_are_sorted: promises about the indices, which may make it faster.

    Raises TypeRule if the indices are not integers.
    """
    x = as_value(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    at = normal_axis(axis, x.aval.ndim)
    n = x.aval.shape[at]
    i = integers(indices, "indices")
    if mode == "wrap":
        i, mode = composed.modulo(i, size_value(n, i.aval.dtype)), "promise_in_bounds"
    elif mode == "clip":
        i = el.maximum(i, 0)
    named = normal_mode(mode)
    if x.aval.shape[at].__class__ is int and not n and i.aval.size:
        raise SubscriptError("there is nothing to take from an empty axis", fix="take no elements")
    return At(x)[(*(slice(None),) * at, i)].get(
        mode=named,
        fill_value=fill_value,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
    )


def take_along_axis(
    x: Any,
    indices: ArrayLike,
    axis: float | None = -1,
    mode: str | None = None,
    fill_value: Any = None,
) -> Any:
    """Return elements along one axis, by numbers that may differ from position to position.

    Args:
      x: an array.
      indices: integers, of a shape that agrees with that of `x` (or broadcasts) elsewhere.
      axis: the axis; None takes from the array in row-major order.
      mode, fill_value: as `take`, but negative numbers count from the end with "clip", too; only
        those before the first element are clipped.  "one_hot" compares positions instead of
        reading by them, which may be faster on accelerators; positions outside read zero.

    >>> import plait
    >>> x = plait.numpy.array([[3, 1, 2], [6, 5, 4]])
    >>> plait.numpy.take_along_axis(x, x.argsort(axis=1), axis=1)
    Array([[1, 2, 3],
           [4, 5, 6]], dtype=int32)
    """
    x, i = materialise_at_ground(as_value(x)), integers(indices, "indices")
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    if x.aval.ndim != i.aval.ndim:
        raise ShapeError(
            f"take_along_axis: indices {i.aval!r} for {x.aval!r}", fix="give as many axes"
        )
    at = normal_axis(axis, x.aval.ndim)
    rest = lambda v: (*v.aval.shape[:at], 1, *v.aval.shape[at + 1 :])  # noqa: E731
    shape = list(broadcast_shapes([rest(x), rest(i)]))
    own, asked = list(shape), list(shape)
    own[at], asked[at] = x.aval.shape[at], i.aval.shape[at]
    x, i = broadcast_to(x, tuple(own)), broadcast_to(i, tuple(asked))
    if mode == "wrap":
        i, mode = composed.modulo(i, size_value(own[at], i.aval.dtype)), "promise_in_bounds"
    i = from_front(i, own[at])
    if mode == "one_hot":
        return _compared(x, i, at)
    rest_axes = tuple([a for a in range(len(own)) if a != at])
    return gather_.bind(
        x,
        expand_dims(i, i.aval.ndim),
        dimension_numbers=GatherDimensionNumbers((), (at,), (at,), rest_axes, rest_axes),
        slice_sizes=(1,) * len(own),
        mode=normal_mode(mode),
        fill_value=normal_fill(fill_value, x.aval.dtype),
        indices_are_sorted=False,
        unique_indices=False,
    )


def _compared(x: Any, i: Any, at: int) -> Any:
    """Return elements along an axis by comparing each position with every other.

    Elements are selected and not multiplied: nan and infinity stay where they are.
    """
    n, last = x.aval.shape[at], x.aval.ndim
    x, i = moveaxis(x, at, -1), expand_dims(moveaxis(i, at, -1), last)
    positions = iota(i.aval.dtype, (n,), 0)
    chosen = el.eq(i, reshape(positions, (*[1] * last, n)))
    if x.aval.dtype == BOOL:
        out = any_(el.and_(chosen, expand_dims(x, last - 1)), -1)
    else:
        out = sum_(el.select(chosen, expand_dims(x, last - 1), 0), -1, x.aval.dtype)
    return moveaxis(out, -1, at)
