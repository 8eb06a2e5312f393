"""What moves and makes elements: shapes, slices, padding, joining, conversion, iota.

Invariant: arguments are explicit: sizes and axes are checked, and nothing is promoted.
"""

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Dim, product
from ..errors import AxisError, TypeRule
from ..ops import shape as sh
from ..ops.conversion import bitcast
from ..ops.shape import materialise_at_ground, normal_axes, normal_axis, normal_shape
from ..surface import value
from ..tree import flatten
from ..types import WEAK, Aval, dtype_of
from ..types import broadcast_shapes as _broadcast_shapes
from ..values import canonical

# ---- dtypes --------------------------------------------------------------------------------


def dtype(x: Any) -> np.dtype:
    """The dtype of an array or scalar."""
    return value(x).aval.dtype


def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """The array in another dtype: floats are cut towards zero, anything but zero is True.

    The classes bool, int, float and complex stand for the default dtypes.
    """
    weak = isinstance(new_dtype, type) and new_dtype in WEAK
    kind = WEAK[new_dtype].dtype if weak else canonical(dtype_of(new_dtype))
    return materialise_at_ground(sh.convert(value(operand), kind))


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The bits read as elements of another dtype.

    A narrower one makes a new last axis; a wider one takes the last axis in.  Raises TypeRule for
    booleans, complex numbers and sizes that do not fit.
    """
    return materialise_at_ground(bitcast(operand, new_dtype))


# ---- shapes --------------------------------------------------------------------------------


def reshape(operand: Any, new_sizes: Any, dimensions: Sequence[int] | None = None) -> Any:
    """The same elements in another shape; with `dimensions`, transposed first.

    Raises TypeRule if the number of elements differs.
    """
    x = operand if dimensions is None else sh.transpose(operand, tuple(dimensions))
    return materialise_at_ground(sh.reshape(x, new_sizes))


def transpose(operand: Any, permutation: Any) -> Any:
    """Axes in another order: axis i of the result is axis `permutation[i]`."""
    return materialise_at_ground(sh.transpose(operand, tuple(permutation)))


def squeeze(array: Any, dimensions: Any) -> Any:
    """Without these axes, which have size 1.  Raises TypeRule for other sizes."""
    return materialise_at_ground(sh.squeeze(array, tuple(dimensions)))


def expand_dims(array: Any, dimensions: Any) -> Any:
    """With new axes of size 1, at these places of the result."""
    return materialise_at_ground(sh.expand_dims(array, tuple(dimensions)))


def rev(operand: Any, dimensions: Any) -> Any:
    """Reversed along axes."""
    x = materialise_at_ground(value(operand))
    axes = tuple(sorted(normal_axes(tuple(dimensions), x.aval.ndim)))
    return sh.rev.bind(x, axes=axes) if axes else x


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """Axes from `start_dimension` up to `stop_dimension` made one."""
    x = value(operand)
    first, last, _ = builtins.slice(start_dimension, stop_dimension).indices(x.aval.ndim)
    if last < first:
        raise AxisError(f"collapse of axes {first} up to {last}", fix="give them in order")
    s = x.aval.shape
    return reshape(x, (*s[:first], product(s[first:last]), *s[last:]))


def broadcast(operand: Any, sizes: Any) -> Any:
    """With new leading axes of these sizes, along which the elements repeat."""
    x = value(operand)
    return materialise_at_ground(sh.broadcast_to(x, (*normal_shape(sizes), *x.aval.shape)))


def broadcast_in_dim(operand: Any, shape: Any, broadcast_dimensions: Any) -> Any:
    """Axis i becomes axis `broadcast_dimensions[i]` of `shape`; axes of size 1 repeat.

    Raises TypeRule if sizes are neither equal nor 1.
    """
    x, shape = value(operand), normal_shape(shape)
    at = tuple([d.__index__() for d in broadcast_dimensions])
    if list(at) != sorted(set(at)):
        raise AxisError(f"broadcast_dimensions {at} are not in order", fix="transpose first")
    if shape == x.aval.shape and at == tuple(range(x.aval.ndim)):
        return materialise_at_ground(x)
    return sh.broadcast_in_dim.bind(x, shape=shape, dims=at)


def broadcast_to_rank(x: Any, rank: int) -> Any:
    """With leading axes of size 1, up to so many axes."""
    x = value(x)
    return reshape(x, (1,) * (rank - x.aval.ndim) + x.aval.shape)


def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """In the shape of another array.  Raises TypeRule if sizes are neither equal nor 1."""
    return materialise_at_ground(sh.broadcast_to(arr, value(like_arr).aval.shape))


def broadcast_shapes(*shapes: Any) -> tuple[Any, ...]:
    """The shape of arrays of these shapes together.  Raises DimMismatch if there is none."""
    return _broadcast_shapes([tuple(s) for s in shapes])


def tile(operand: Any, reps: Sequence[int]) -> Any:
    """The whole array repeated: `reps[i]` times along axis i."""
    x = value(operand)
    times = normal_shape(tuple(reps))
    if len(times) != x.aval.ndim:
        raise TypeRule(f"tile of {x.aval!r} {times} times", fix="give a number for each axis")
    spread = sh.reshape(x, [d for s in x.aval.shape for d in (1, s)])
    spread = sh.broadcast_to(spread, [d for r, s in zip(times, x.aval.shape) for d in (r, s)])
    return reshape(spread, [r * s for r, s in zip(times, x.aval.shape)])


# ---- slices --------------------------------------------------------------------------------


def slice(
    operand: Any, start_indices: Any, limit_indices: Any, strides: Any = None
) -> Any:
    """The box from `start_indices` to `limit_indices`, every `strides`-th element.

    Raises TypeRule for places outside, and limits before their starts.
    """
    x = materialise_at_ground(value(operand))
    n = x.aval.ndim
    starts, limits = tuple(start_indices), tuple(limit_indices)
    steps = (1,) * n if strides is None else tuple(strides)
    if not len(starts) == len(limits) == len(steps) == n:
        raise TypeRule(
            f"slice of {x.aval!r}: {len(starts)} starts, {len(limits)} limits and "
            f"{len(steps)} strides",
            fix=f"give {n} of each",
        )
    for a, b, s, d in zip(starts, limits, steps, x.aval.shape):
        fixed = all(v.__class__ is not Dim for v in (a, b, d))
        if s < 1 or (fixed and not 0 <= a <= b <= d):
            raise TypeRule(
                f"slice from {starts} to {limits} by {steps} of {x.aval!r}",
                fix="0 <= start <= limit <= size, and strides are positive",
            )
    return sh.slice_.bind(x, starts=starts, limits=limits, strides=steps)


def slice_in_dim(
    operand: Any, start_index: Any, limit_index: Any, stride: int = 1, axis: int = 0
) -> Any:
    """The part of one axis from `start_index` to `limit_index`.

    None is the beginning or the end; negative places count from the end.
    """
    x = value(operand)
    at = normal_axis(axis, x.aval.ndim)
    n = x.aval.shape[at]
    a, b = (0 if start_index is None else start_index), (n if limit_index is None else limit_index)
    a, b = (v + n if v.__class__ is not Dim and v < 0 else v for v in (a, b))
    starts, limits, strides = [0] * x.aval.ndim, list(x.aval.shape), [1] * x.aval.ndim
    starts[at], limits[at], strides[at] = a, b, stride
    return slice(x, starts, limits, strides)


def split(operand: Any, sizes: Sequence[Any], axis: int = 0) -> list:
    """Parts of these sizes along an axis.  Raises TypeRule if they do not add up."""
    x = value(operand)
    at = normal_axis(axis, x.aval.ndim)
    total = 0
    places = [0]
    for s in sizes:
        total = total + s
        places.append(total)
    if total != x.aval.shape[at]:
        raise TypeRule(f"split of {x.aval!r} into sizes {tuple(sizes)}", fix="they must add up")
    return [slice_in_dim(x, a, b, axis=at) for a, b in zip(places, places[1:])]


def unstack(x: Any, axis: int = 0) -> tuple:
    """The parts along an axis, without it."""
    x = value(x)
    at = normal_axis(axis, x.aval.ndim)
    rows = [slice_in_dim(x, i, i + 1, axis=at) for i in range(x.aval.shape[at])]
    return tuple([sh.squeeze(r, at) for r in rows])


def _one_dtype(name: str, operands: Any) -> list:
    xs = [value(x) for x in operands]
    if len({x.aval.dtype for x in xs}) > 1:
        raise TypeRule(
            f"lax.{name}: operands must have one dtype, not {', '.join(repr(x.aval) for x in xs)}",
            fix="convert them with .astype, or use weft.numpy, which promotes",
        )
    return xs


def concatenate(operands: Any, dimension: int) -> Any:
    """One after the other along an axis.  Raises TypeRule for different dtypes."""
    return sh.concatenate(_one_dtype("concatenate", operands), dimension)


def stack(operands: Any, axis: int = 0) -> Any:
    """Along a new axis.  Raises TypeRule for different dtypes."""
    return sh.stack(_one_dtype("stack", operands), axis)


def pad(operand: Any, padding_value: Any, padding_config: Any) -> Any:
    """`padding_value` around and between elements.

    Args:
      operand: an array.
      padding_value: without axes, of the same dtype (or a Python number).
      padding_config: (before, after, between) for each axis; the first two may be negative.

    Raises TypeRule for different dtypes, and if more is cut off than there is.
    """
    x, v = value(operand), value(padding_value)
    if not v.aval.weak_type and v.aval.dtype != x.aval.dtype:
        raise TypeRule(
            f"lax.pad of {x.aval!r} with {v.aval!r}", fix="convert the value with .astype"
        )
    config = [tuple(c) for c in padding_config]
    if len(config) != x.aval.ndim or any(len(c) != 3 for c in config):
        raise TypeRule(
            f"lax.pad of {x.aval!r} by {config}", fix="give (before, after, between) for each axis"
        )
    return materialise_at_ground(sh.pad(x, v, config))


# ---- new arrays ----------------------------------------------------------------------------


def iota(dtype: Any, size: Any) -> Any:
    """0, 1, 2, ...: a vector of this dtype and size."""
    return sh.iota(dtype, (size,))


def broadcasted_iota(dtype: Any, shape: Any, dimension: int) -> Any:
    """0, 1, 2, ... along one axis of an array of this shape."""
    shape = normal_shape(shape)
    return sh.iota(dtype, shape, normal_axis(dimension, len(shape), "dimension"))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """`fill_value`, a number without axes, everywhere; of its own dtype if none is given."""
    v = value(fill_value)
    if v.aval.ndim:
        raise TypeRule(f"lax.full with {v.aval!r}", fix="give one number, or use broadcast_to")
    v = v if dtype is None else sh.convert(v, canonical(dtype_of(dtype)))
    return materialise_at_ground(sh.broadcast_to(v, normal_shape(shape)))


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    """`fill_value` everywhere, in the shape and dtype of `x` unless others are given."""
    like = x if hasattr(x, "shape") and hasattr(x, "dtype") else value(x)
    weak = dtype is None and getattr(like, "weak_type", False)
    kind = canonical(dtype_of(like.dtype if dtype is None else dtype))
    v = sh.convert(value(fill_value), kind, weak)
    if v.aval.ndim:
        raise TypeRule(f"lax.full_like with {v.aval!r}", fix="give one number")
    size = tuple(like.shape) if shape is None else normal_shape(shape)
    return materialise_at_ground(sh.broadcast_to(v, size))


def empty(shape: Any, dtype: Any) -> Any:
    """Zeros: there are no arrays without contents."""
    return sh.fill(0, Aval(normal_shape(shape), canonical(dtype_of(dtype))))


def optimization_barrier(operand: Any, /) -> Any:
    """The tree itself; the compiler may not move work across this place."""
    leaves, tree = flatten(operand)
    if not leaves:
        return operand
    return tree.unflatten(sh.barrier.bind(*[materialise_at_ground(value(x)) for x in leaves]))
