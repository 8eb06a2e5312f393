"""Rearranging: shapes, axes, turning.

Invariant: elements are moved and never computed with; axes out of range and sizes that do not fit
raise at once, whatever the values.
"""

import builtins
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex, overload

import numpy as np

from plait.errors import ArgumentError, AxisError, ShapeError, Unsupported
from plait.ext import Tracer, Value, materialise_at_ground
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.indexing import dynamic_slice_in_dim
from plait.ext.ops.shape import given_axes, normal_axes, normal_axis, normal_shape, size_value
from plait.ext.sizes import Dim
from plait.ext.surface import dispatched, value
from plait.ext.types import broadcast_shapes
from plait.typing import Array, ArrayLike, Axis, Shape

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to", "expand_dims",
    "flip", "fliplr", "flipud", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "reshape",
    "roll", "rollaxis", "rot90", "squeeze", "swapaxes", "transpose", "unstack",
]  # fmt: skip

# ---- shapes --------------------------------------------------------------------------------


def _order(order: str, what: str) -> None:
    if order not in ("C", "F"):
        kind = Unsupported if order in ("A", "K") else ArgumentError
        raise kind(f'{what}: order must be "C" or "F", not {order!r}', fix='use order="C"')


@dispatched
def reshape(
    a: ArrayLike, shape: SupportsIndex | Shape, order: str = "C", *, copy: bool | None = None
) -> Array:
    """Return the same elements in another shape.

    Args:
      a: an array.
      shape: ints; one may be -1, to be inferred from the others.
      order: "C", the last axis fastest, or "F", the first.
      copy: accepted for compatibility.

    Raises TypeRule if the number of elements differs.  As numpy.reshape.

    >>> import numpy as np, plait
    >>> plait.numpy.reshape(np.arange(6), (2, -1)).shape
    (2, 3)
    """
    _order(order, "reshape")
    if order == "F":
        turned = normal_shape(shape)[::-1]
        return sh.transpose(sh.reshape(sh.transpose(a), turned))
    return materialise_at_ground(sh.reshape(a, shape))


def ravel(a: ArrayLike, order: str = "C") -> Array:
    """Return all elements as a vector, in row-major ("C") or column-major ("F") order.

    As numpy.ravel.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.ravel(np.array([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    return reshape(a, (-1,) if value(a).aval.size != 0 else (0,), order)


@dispatched
def transpose(a: ArrayLike, axes: Axis | None = None) -> Array:
    """Permute the axes; reverse them by default.  As numpy.transpose.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.transpose(np.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return materialise_at_ground(sh.transpose(a, axes))


def permute_dims(a: ArrayLike, /, axes: Axis) -> Array:
    """Permute the axes: a: any shape; axes: all of them.  As numpy.permute_dims.

    Raises NotAnArrayError if `a` is not an array, and AxisError unless `axes` is a permutation of
    its axes.

    >>> import numpy as np, plait
    >>> plait.numpy.permute_dims(np.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Swap the last two axes.  As numpy.matrix_transpose.

    Raises NotAnArrayError if `x` is not an array, and AxisError if it has fewer than two axes.

    >>> import numpy as np, plait
    >>> plait.numpy.matrix_transpose(np.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    return swapaxes(x, -1, -2)


@dispatched
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Swap two axes.  As numpy.swapaxes.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.swapaxes(np.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = value(a)
    n = x.aval.ndim
    i, j = normal_axis(axis1, n, "axis1"), normal_axis(axis2, n, "axis2")
    perm = list(range(n))
    perm[i], perm[j] = j, i
    return transpose(x, tuple(perm))


@dispatched
def moveaxis(a: ArrayLike, source: Any, destination: Any) -> Array:
    """Move some axes to other positions; the others keep their order.

    Args:
      a: an array.
      source, destination: an axis each, or equally many.

    As numpy.moveaxis.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis or the
    numbers of axes differ.

    >>> import numpy as np, plait
    >>> plait.numpy.moveaxis(np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    if source is None or destination is None:
        raise ShapeError("moveaxis needs both source and destination", fix="name the axes")
    return materialise_at_ground(sh.moveaxis(a, source, destination))


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Move one axis before the position `start`.  As numpy.rollaxis.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.rollaxis(np.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = value(a)
    n = x.aval.ndim
    at = normal_axis(axis, n)
    # The end counts as a position too, yet negative positions count from the last axis.
    start = n if start == n else normal_axis(start, n, "start")
    return moveaxis(x, at, start - 1 if at < start else start)


@dispatched
def squeeze(a: ArrayLike, axis: Axis | None = None) -> Array:
    """Remove axes of size 1: all of them, or those named.

    Raises ShapeError for a named axis of another size, and UndecidedDim if none is named and a
    symbolic size may be 1.  As numpy.squeeze.

    Raises NotAnArrayError if `a` is not an array, and AxisError for an axis that `a` lacks.

    >>> import numpy as np, plait
    >>> plait.numpy.squeeze(np.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    return materialise_at_ground(sh.squeeze(a, axis))


@dispatched
def expand_dims(a: ArrayLike, axis: Axis) -> Array:
    """Insert axes of size 1, at positions of the result.  As numpy.expand_dims.

    Raises NotAnArrayError if `a` is not an array, and AxisError if the result has no such axis or
    one is named twice.

    >>> import numpy as np, plait
    >>> plait.numpy.expand_dims(np.ones(3), (0, 2)).shape
    (1, 3, 1)
    """
    return sh.expand_dims(a, axis)


@dispatched
def broadcast_to(array: ArrayLike, shape: SupportsIndex | Shape) -> Array:
    """Repeat an array along new axes and those of size 1.

    Raises TypeRule if sizes are neither equal nor 1.  As numpy.broadcast_to.

    >>> import numpy as np, plait
    >>> plait.numpy.broadcast_to(np.arange(3), (2, 3)).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    return materialise_at_ground(sh.broadcast_to(array, shape))


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """Broadcast arrays to one shape.  As numpy.broadcast_arrays.

    Raises NotAnArrayError if one of `args` is not an array, and DimMismatch if shapes do not
    broadcast.

    >>> import numpy as np, plait
    >>> [x.shape for x in plait.numpy.broadcast_arrays(np.ones(3), np.ones((2, 1)))]
    [(2, 3), (2, 3)]
    """
    xs = [value(x) for x in args]
    target = broadcast_shapes([x.aval.shape for x in xs])
    return [broadcast_to(x, target) for x in xs]


@overload
def atleast_1d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]: ...
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]:
    """Add axes up to at least one; return an array, or a list for several.  As numpy.atleast_1d.

    Raises NotAnArrayError if one of `arys` is not an array.

    >>> import plait
    >>> plait.numpy.atleast_1d(7).shape
    (1,)
    """
    return _each(arys, lambda x: sh.reshape(x, (1,)) if not x.aval.ndim else x)


@overload
def atleast_2d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]: ...
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]:
    """Add axes up to at least two; new ones come first.  As numpy.atleast_2d.

    Raises NotAnArrayError if one of `arys` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.atleast_2d(np.arange(3)).shape
    (1, 3)
    """
    return _each(arys, two_axes)


def two_axes(x: Value) -> Any:
    n = x.aval.ndim
    return x if n > 1 else sh.expand_dims(x, tuple(range(2 - n)))


@overload
def atleast_3d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]: ...
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]:
    """Add axes up to at least three: a vector becomes (1, n, 1), a matrix (n, m, 1).

    As numpy.atleast_3d.

    Raises NotAnArrayError if one of `arys` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.atleast_3d(np.arange(3)).shape
    (1, 3, 1)
    """
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _each(arys, lambda x: sh.expand_dims(x, new.get(x.aval.ndim, ())))


def _each(arys: Sequence[Any], f: Callable[..., Any]) -> Any:
    out = [materialise_at_ground(f(value(x))) for x in arys]
    return out[0] if len(out) == 1 else out


def fixed_size(x: Array, axis: int) -> int:
    n = x.aval.shape[axis]
    if n.__class__ is Dim:
        raise ShapeError(f"axis {axis} of {x.aval!r} has no fixed size", fix="give a fixed size")
    return n


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split an array along an axis, dropping it.

    Raises TypeRule for an axis of symbolic size.  As numpy.unstack.

    Raises AxisError for an axis that `x` lacks.

    >>> import numpy as np, plait
    >>> [part.tolist() for part in plait.numpy.unstack(np.array([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    x = value(x)
    at = normal_axis(axis, x.aval.ndim)
    parts = [sh.slice_in_dim(x, i, i + 1, axis=at) for i in range(fixed_size(x, at))]
    return tuple([sh.squeeze(p, at) for p in parts])


# ---- turning -------------------------------------------------------------------------------


@dispatched
def flip(m: ArrayLike, axis: Axis | None = None) -> Array:
    """Reverse the order along axes, all of them by default.  As numpy.flip.

    Raises NotAnArrayError if `m` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.flip(np.array([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    x = materialise_at_ground(value(m))
    axes = tuple(sorted(normal_axes(axis, x.aval.ndim)))
    return sh.rev.bind(x, axes=axes) if axes else x


def fliplr(m: ArrayLike) -> Array:
    """Reverse the order along the second axis.  As numpy.fliplr.

    Raises NotAnArrayError if `m` is not an array, and AxisError if it has fewer than two axes.

    >>> import numpy as np, plait
    >>> plait.numpy.fliplr(np.array([[1, 2]])).tolist()
    [[2, 1]]
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """Reverse the order along the first axis.  As numpy.flipud.

    Raises NotAnArrayError if `m` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.flipud(np.array([[1], [2]])).tolist()
    [[2], [1]]
    """
    return flip(m, 0)


def rot90(m: ArrayLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """Rotate by a quarter turn `k` times, from the first axis of `axes` to the second.

    Raises AxisError unless `axes` are two.  As numpy.rot90.

    Raises NotAnArrayError if `m` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.rot90(np.array([[1, 2]])).tolist()
    [[2], [1]]
    """
    x = value(m)
    if len(axes) != 2:
        raise AxisError(f"rot90 in the axes {axes}", fix="name two axes")
    i, j = normal_axes(tuple(axes), x.aval.ndim, "axes")
    k = k.__index__() % 4
    if k == 2:
        return flip(x, (i, j))
    if k == 0:
        return materialise_at_ground(x)
    return swapaxes(flip(x, j), i, j) if k == 1 else flip(swapaxes(x, i, j), j)


def roll(a: ArrayLike, shift: object, axis: Axis | None = None) -> Array:
    """Shift elements along axes; those that leave at one end enter at the other.

    Args:
      a: an array.
      shift: the distance: an integer, which may be traced, or one for each axis.
      axis: axes to shift along; None shifts the flattened array.

    Raises TypeRule if shifts and axes differ in number, and neither is one.  As numpy.roll.

    >>> import numpy as np, plait
    >>> plait.numpy.roll(np.array([1, 2, 3]), 1).tolist()
    [3, 1, 2]
    """
    x = value(a)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.aval.shape)
    axis = given_axes(axis)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple | list) else (shift,)
    if isinstance(shift, Value | np.ndarray) and shift.ndim:
        shifts = list(unstack(shift))
    if not axes and not shifts:
        return materialise_at_ground(x)
    count = builtins.max(len(axes), len(shifts))
    if {len(axes), len(shifts)} - {1, count}:
        raise ShapeError(f"roll by {len(shifts)} along {len(axes)} axes", fix="give as many")
    for s, at in zip(list(shifts) * (count // len(shifts)), list(axes) * (count // len(axes))):
        x = _rolled(x, s, normal_axis(at, x.aval.ndim))
    return materialise_at_ground(x)


def _rolled(x: Value, shift: Any, axis: int) -> Any:
    n = x.aval.shape[axis]
    if n.__class__ is int and n < 2:
        return x
    if not isinstance(shift, Tracer) and n.__class__ is int:
        k = shift.__index__() % n
        if not k:
            return x
        cut = [sh.slice_in_dim(x, n - k, n, axis=axis), sh.slice_in_dim(x, 0, n - k, axis=axis)]
        return sh.concatenate(cut, axis)
    start = el.modulo(el.neg(shift), size_value(n, value(shift).aval.dtype))
    return dynamic_slice_in_dim(sh.concatenate([x, x], axis), start, n, axis)
