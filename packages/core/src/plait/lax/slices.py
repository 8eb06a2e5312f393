"""Slicing, splitting, joining and padding of arrays.

Invariant: arguments are explicit: sizes and axes are checked, and nothing is promoted.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from plait.typing import Array, ArrayLike

from .._api.surfaces import value
from .._base.errors import ArgumentError, OperandTypeError, ShapeError
from .._ops import shape as sh
from .._ops.shape import materialise_at_ground, normal_axis
from .._ops.static_arguments import fixed_each
from .._types.dims import Dim
from .operands import in_dtype_of


def slice(
    operand: ArrayLike, start_indices: object, limit_indices: object, strides: object = None
) -> Array:
    """Return the box from `start_indices` to `limit_indices`, every `strides`-th element.

    Each has one integer for each axis.  Raises TypeRule for positions outside, and limits before
    their starts.

    >>> import plait
    >>> plait.lax.slice(plait.numpy.arange(6), (1,), (5,), (2,)).tolist()
    [1, 3]
    """
    x = materialise_at_ground(value(operand))
    n = x.aval.ndim
    starts = fixed_each("slice", "start_indices", start_indices)
    limits = fixed_each("slice", "limit_indices", limit_indices)
    steps = (1,) * n if strides is None else fixed_each("slice", "strides", strides)
    if not len(starts) == len(limits) == len(steps) == n:
        raise ArgumentError(
            f"slice of {x.aval!r}: {len(starts)} starts, {len(limits)} limits and "
            f"{len(steps)} strides",
            fix=f"give {n} of each",
        )
    for a, b, s, d in zip(starts, limits, steps, x.aval.shape):
        known = all(v.__class__ is not Dim for v in (a, b, d))
        if s < 1 or (known and not 0 <= a <= b <= d):
            raise ArgumentError(
                f"slice from {starts} to {limits} by {steps} of {x.aval!r}",
                fix="0 <= start <= limit <= size, and strides are positive",
            )
    return sh.slice_.bind(x, starts=starts, limits=limits, strides=steps)


def slice_in_dim(
    operand: ArrayLike, start_index: ArrayLike, limit_index: object, stride: int = 1, axis: int = 0
) -> Array:
    """Return the part of one axis from `start_index` to `limit_index`, every `stride`-th element.

    None is the beginning or the end; negative positions count from the end.  Raises AxisError for
    an axis that the operand lacks, TypeRule for positions outside.

    >>> import plait
    >>> plait.lax.slice_in_dim(plait.numpy.arange(6), 1, -1, 2).tolist()
    [1, 3]
    """
    x = value(operand)
    at = normal_axis(axis, x.aval.ndim)
    n = x.aval.shape[at]
    a, b = (0 if start_index is None else start_index), (n if limit_index is None else limit_index)
    a, b, step = fixed_each("slice_in_dim", "start, limit and stride", (a, b, stride))
    a, b = (v + n if v.__class__ is not Dim and v < 0 else v for v in (a, b))
    starts, limits, strides = [0] * x.aval.ndim, list(x.aval.shape), [1] * x.aval.ndim
    starts[at], limits[at], strides[at] = a, b, step
    return slice(x, starts, limits, strides)


def split(operand: ArrayLike, sizes: Sequence[Any], axis: int = 0) -> list[Array]:
    """Split an array along an axis into parts of these sizes, in a list.

    Raises TypeRule if they do not add up, AxisError for an axis that the operand lacks.

    >>> import plait
    >>> [part.tolist() for part in plait.lax.split(plait.numpy.arange(5), (2, 3))]
    [[0, 1], [2, 3, 4]]
    """
    x = value(operand)
    at = normal_axis(axis, x.aval.ndim)
    sizes = fixed_each("split", "sizes", sizes)
    total = 0
    positions = [0]
    for s in sizes:
        total = total + s
        positions.append(total)
    if total != x.aval.shape[at] or any(s.__class__ is int and s < 0 for s in sizes):
        raise ShapeError(
            f"split of {x.aval!r} into sizes {sizes}",
            fix="they must add up, and none is negative",
        )
    return [slice_in_dim(x, a, b, axis=at) for a, b in zip(positions, positions[1:])]


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Split an array along an axis, dropping it.  Raises AxisError for an axis that `x` lacks.

    >>> import plait
    >>> [part.tolist() for part in plait.lax.unstack(plait.numpy.arange(4).reshape(2, 2), 1)]
    [[0, 2], [1, 3]]
    """
    x = value(x)
    at = normal_axis(axis, x.aval.ndim)
    rows = [slice_in_dim(x, i, i + 1, axis=at) for i in range(x.aval.shape[at])]
    return tuple([sh.squeeze(r, at) for r in rows])


def _one_dtype(name: str, operands: Any) -> list:
    if not isinstance(operands, tuple | list) and getattr(operands, "ndim", 0) < 1:
        raise ArgumentError(f"lax.{name} of {operands!r}", fix="give a sequence of arrays")
    xs = [value(x) for x in operands]
    if not xs:
        raise OperandTypeError(f"lax.{name} of no arrays", fix="give at least one")
    if len({x.aval.dtype for x in xs}) > 1:
        raise OperandTypeError(
            f"lax.{name}: operands must have one dtype, not {', '.join(repr(x.aval) for x in xs)}",
            fix="convert them with .astype, or use plait.numpy, which promotes",
        )
    return xs


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """Join a sequence of arrays of one dtype along an axis.

    Raises TypeRule for different dtypes and shapes, AxisError for an axis that they lack.

    >>> import plait
    >>> plait.lax.concatenate([plait.numpy.arange(2), plait.numpy.arange(1)], 0).tolist()
    [0, 1, 0]
    """
    return sh.concatenate(_one_dtype("concatenate", operands), dimension)


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Join a sequence of arrays of one shape and dtype along a new axis.

    Raises TypeRule for different ones, AxisError for a position that the result does not have.

    >>> import plait
    >>> plait.lax.stack([plait.numpy.arange(2), plait.numpy.arange(2)], 1).tolist()
    [[0, 0], [1, 1]]
    """
    return sh.stack(_one_dtype("stack", operands), axis)


def pad(operand: ArrayLike, padding_value: object, padding_config: object) -> Array:
    """Put `padding_value` around and between elements.

    Args:
      operand: an array.
      padding_value: without axes, of the same dtype (or a Python number).
      padding_config: (before, after, between) for each axis; the first two may be negative.

    Raises TypeRule for different dtypes, and if more is cut off than an axis has.

    >>> import plait
    >>> plait.lax.pad(plait.numpy.array([1, 2]), 0, [(1, 2, 1)]).tolist()
    [0, 1, 0, 2, 0, 0]
    """
    x = value(operand)
    v = in_dtype_of(x, padding_value, "lax.pad")
    if not isinstance(padding_config, Iterable):
        padding_config = [padding_config]
    config = [fixed_each("lax.pad", "padding", c) for c in padding_config]
    if len(config) != x.aval.ndim or any(len(c) != 3 for c in config):
        raise ShapeError(
            f"lax.pad of {x.aval!r} by {config}", fix="give (before, after, between) for each axis"
        )
    return materialise_at_ground(sh.pad(x, v, config))
