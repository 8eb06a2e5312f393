"""Dtypes, shapes and broadcasting: operations that move elements unchanged.

Invariant: arguments are explicit: sizes and axes are checked, and nothing is promoted.
"""

import builtins
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from plait.typing import Array, ArrayLike, Axis, DTypeLike, Shape

from .._api.surfaces import value
from .._base.errors import ArgumentError, AxisError, ShapeError
from .._ops import shape as sh
from .._ops.conversion import bitcast
from .._ops.layout import free, placed
from .._ops.shape import materialise_at_ground, normal_axes, normal_shape
from .._ops.static_arguments import fixed, fixed_each
from .._types.avals import asked_dtype
from .._types.avals import broadcast_shapes as _broadcast_shapes
from .._types.dims import product
from ..dtypes import canonicalize_dtype
from ..tree import flatten

__all__ = [
    "bitcast_convert_type", "broadcast", "broadcast_in_dim", "broadcast_like", "broadcast_shapes",
    "broadcast_to_rank", "collapse", "convert_element_type", "dce_sink", "dtype", "expand_dims",
    "optimization_barrier", "reshape", "rev", "squeeze", "stage", "tile", "transpose",
]  # fmt: skip

T = TypeVar("T")

# ---- dtypes --------------------------------------------------------------------------------


def dtype(x: ArrayLike) -> np.dtype:
    """Return the dtype of an array or scalar, or the one that a name or a class stands for.

    >>> import plait
    >>> plait.lax.dtype(1.5)
    dtype('float32')
    """
    return canonicalize_dtype(x, allow_extended_dtype=True)


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Convert an array to another dtype: floats are cut towards zero, any nonzero value is True.

    The shape stays.  The classes bool, int, float and complex stand for the default dtypes.  Raises
    TypeRule for values that are not dtypes.

    >>> import plait
    >>> plait.lax.convert_element_type(plait.numpy.array([1.7, -1.7]), "int8").tolist()
    [1, -1]
    """
    kind = asked_dtype(new_dtype)
    x = operand if operand.__class__ is int else value(operand)
    return materialise_at_ground(sh.convert(x, kind))


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Reinterpret the bits as elements of another dtype.

    A narrower one adds a last axis; a wider one absorbs the last axis.  Raises TypeRule for
    booleans, complex numbers and sizes that do not fit.

    >>> import numpy as np, plait
    >>> hex(plait.lax.bitcast_convert_type(np.float32(1), "uint32").item())
    '0x3f800000'
    """
    return materialise_at_ground(bitcast(operand, asked_dtype(new_dtype)))


def stage(x: ArrayLike, /) -> Array:
    """Return an array or number of any shape as a value of the function being traced; outside of
    traced functions, as an array.

    >>> import plait
    >>> plait.lax.stage(2)
    Array(2, dtype=int32, weak_type=True)
    """
    return materialise_at_ground(value(x))


# ---- shapes --------------------------------------------------------------------------------


def reshape(
    operand: ArrayLike, new_sizes: Shape, dimensions: Sequence[int] | None = None, *,
    out_sharding: object = None,
) -> Array:  # fmt: skip
    """Return the same elements in another shape; with `dimensions`, transpose first.

    out_sharding: sharding of the result.  Raises TypeRule if the number of elements differs.

    >>> import plait
    >>> plait.lax.reshape(plait.numpy.arange(6), (2, 3)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    x = free(operand, out_sharding)
    x = x if dimensions is None else transpose(x, dimensions)
    return placed(materialise_at_ground(sh.reshape(x, new_sizes)), out_sharding)


def transpose(operand: ArrayLike, permutation: object) -> Array:
    """Permute axes: axis i of the result is axis `permutation[i]`.

    Raises AxisError unless `permutation` is a permutation of all axes.

    >>> import plait
    >>> plait.lax.transpose(plait.numpy.zeros((2, 3)), (1, 0)).shape
    (3, 2)
    """
    order = fixed_each("transpose", "permutation", permutation)
    return materialise_at_ground(sh.transpose(operand, order))


def squeeze(array: ArrayLike, dimensions: Axis) -> Array:
    """Remove these axes, which have size 1.

    Raises TypeRule for other sizes, AxisError for axes that the array lacks.

    >>> import plait
    >>> plait.lax.squeeze(plait.numpy.zeros((1, 3)), (0,)).shape
    (3,)
    """
    return materialise_at_ground(sh.squeeze(array, fixed_each("squeeze", "dimensions", dimensions)))


def expand_dims(array: ArrayLike, dimensions: Axis) -> Array:
    """Insert axes of size 1, at these positions of the result.

    Raises AxisError for positions that the result does not have.

    >>> import plait
    >>> plait.lax.expand_dims(plait.numpy.zeros(3), (0, 2)).shape
    (1, 3, 1)
    """
    return materialise_at_ground(
        sh.expand_dims(array, fixed_each("expand_dims", "dimensions", dimensions))
    )


def rev(operand: ArrayLike, dimensions: Axis) -> Array:
    """Reverse the order along axes.  Raises AxisError for axes that the operand lacks.

    >>> import plait
    >>> plait.lax.rev(plait.numpy.arange(3), (0,)).tolist()
    [2, 1, 0]
    """
    x = materialise_at_ground(value(operand))
    given = fixed_each("rev", "dimensions", dimensions)
    axes = tuple(sorted(normal_axes(given, x.aval.ndim, "dimensions")))
    return sh.rev.bind(x, axes=axes) if axes else x


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merge the axes from `start_dimension` up to `stop_dimension` (the last, if None) into one.

    Raises AxisError if they are not in order.

    >>> import plait
    >>> plait.lax.collapse(plait.numpy.zeros((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    x = value(operand)
    start = fixed("collapse", "start_dimension", start_dimension)
    stop = stop_dimension if stop_dimension is None else fixed(
        "collapse", "stop_dimension", stop_dimension
    )  # fmt: skip
    first, last, _ = builtins.slice(start, stop).indices(x.aval.ndim)
    if last < first:
        raise AxisError(f"collapse of axes {first} up to {last}", fix="give them in order")
    s = x.aval.shape
    return reshape(x, (*s[:first], product(s[first:last]), *s[last:]))


def broadcast(operand: ArrayLike, sizes: Shape, *, out_sharding: object = None) -> Array:
    """Add leading axes of these sizes, along which the elements repeat.

    out_sharding: sharding of the result.

    Raises ShapeError if `sizes` is not a tuple of integers.

    >>> import plait
    >>> plait.lax.broadcast(plait.numpy.arange(2), (3,)).tolist()
    [[0, 1], [0, 1], [0, 1]]
    """
    x = free(value(operand), out_sharding)
    out = sh.broadcast_to(x, (*normal_shape(sizes), *x.aval.shape))
    return placed(materialise_at_ground(out), out_sharding)


def broadcast_in_dim(
    operand: ArrayLike, shape: Shape, broadcast_dimensions: object, *, out_sharding: object = None
) -> Array:
    """Make axis i axis `broadcast_dimensions[i]` of `shape`; axes of size 1 repeat.

    out_sharding: sharding of the result.  Raises TypeRule if sizes are neither equal nor 1,
    AxisError for an axis that is named twice.

    >>> import plait
    >>> plait.lax.broadcast_in_dim(plait.numpy.arange(2), (2, 3), (0,)).tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    x, shape = free(value(operand), out_sharding), normal_shape(shape)
    at = fixed_each("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    if len(set(at)) < len(at):
        raise AxisError(
            f"broadcast_dimensions {at} name an axis twice", fix="name each axis of the result once"
        )
    if list(at) != sorted(at) and len(at) == x.aval.ndim:
        x, at = transpose(x, sorted(range(len(at)), key=at.__getitem__)), tuple(sorted(at))
    if shape == x.aval.shape and at == tuple(range(x.aval.ndim)):
        return placed(materialise_at_ground(x), out_sharding)
    return placed(sh.broadcast_in_dim.bind(x, shape=shape, dims=at), out_sharding)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Add leading axes of size 1, up to `rank` axes; return the array itself if it has them.

    Raises NotAnArrayError if `x` is not an array.

    >>> import plait
    >>> plait.lax.broadcast_to_rank(plait.numpy.zeros(3), 3).shape
    (1, 1, 3)
    """
    x, n = value(x), fixed("broadcast_to_rank", "rank", rank)
    if n <= x.aval.ndim:
        return materialise_at_ground(x)
    return reshape(x, (1,) * (n - x.aval.ndim) + x.aval.shape)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Broadcast to the shape of another array.  Raises TypeRule if sizes are neither equal nor 1.

    >>> import plait
    >>> plait.lax.broadcast_like(plait.numpy.arange(2), plait.numpy.zeros((3, 2))).shape
    (3, 2)
    """
    return materialise_at_ground(sh.broadcast_to(arr, value(like_arr).aval.shape))


def broadcast_shapes(*shapes: Any) -> tuple[Any, ...]:
    """Return the shape that these shapes broadcast to.  Raises DimMismatch if there is none.

    >>> import plait
    >>> plait.lax.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    given = [normal_shape(shape) for shape in shapes]
    for shape in given:
        if any(n.__class__ is int and n < 0 for n in shape):
            raise ShapeError(f"{shape} has a negative size", fix="give sizes from 0 on")
    return _broadcast_shapes(given)


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat the whole array: `reps[i]` times along axis i.

    Raises TypeRule unless there is a number for each axis.

    >>> import plait
    >>> plait.lax.tile(plait.numpy.arange(2), (2,)).tolist()
    [0, 1, 0, 1]
    """
    x = value(operand)
    times = normal_shape(fixed_each("tile", "reps", reps))
    if len(times) != x.aval.ndim or any(r.__class__ is int and r < 0 for r in times):
        raise ShapeError(
            f"tile of {x.aval!r} {times} times",
            fix="give a number for each axis, none of them negative",
        )
    spread = sh.reshape(x, [d for s in x.aval.shape for d in (1, s)])
    spread = sh.broadcast_to(spread, [d for r, s in zip(times, x.aval.shape) for d in (r, s)])
    return reshape(spread, [r * s for r, s in zip(times, x.aval.shape)])


# ---- directives for the compiler -------------------------------------------------------------


def optimization_barrier(operand: T, /) -> T:
    """Return the tree itself; the compiler may not move work across this position.

    Raises NotAnArrayError for a leaf that is not an array.

    >>> import plait
    >>> plait.lax.optimization_barrier(plait.numpy.arange(2)).tolist()
    [0, 1]
    """
    leaves, tree = flatten(operand)
    if not leaves:
        return operand
    return tree.unflatten(sh.barrier.bind(*[materialise_at_ground(value(x)) for x in leaves]))


def dce_sink(val: ArrayLike, *, prevent_mlir_dce: bool = False) -> None:
    """Use the tree `val`, and return nothing.

    A program keeps equations with unused results, so nothing else is needed.  The compiler may
    still remove them: `prevent_mlir_dce` is refused.

    Raises TypeRule for `prevent_mlir_dce`, and for leaves that are not arrays.

    >>> import plait
    >>> plait.lax.dce_sink(plait.numpy.arange(2))
    """
    if prevent_mlir_dce:
        raise ArgumentError(
            "dce_sink cannot keep what the compiler finds to be unused",
            fix="return it, or hand it to plait.debug.callback",
        )
    for x in flatten(val)[0]:
        value(x)
