"""New arrays: numbers in order, one value everywhere, sizes.

Invariant: the dtype is the one requested, or that of the value.
"""

from typing import Any, SupportsIndex

from plait.typing import Array, ArrayLike, DTypeLike, Shape

from .._api.surfaces import value
from .._base.errors import ArgumentError
from .._core.array import canonical
from .._ops import shape as sh
from .._ops.layout import beside, placed
from .._ops.shape import materialise_at_ground, normal_axis, normal_shape
from .._ops.sizes import size_value
from .._types.avals import INT32, INTEGER, Aval, asked_dtype, dtype_of
from .slices import stack


def iota(dtype: DTypeLike, size: object) -> Array:
    """Return 0, 1, 2, ...: a vector of this dtype and size.  Raises TypeRule for a negative size.

    >>> import plait
    >>> plait.lax.iota("int32", 3).tolist()
    [0, 1, 2]
    """
    return sh.iota(asked_dtype(dtype, INTEGER), (size,))


def broadcasted_iota(
    dtype: DTypeLike, shape: Shape, dimension: int, *, out_sharding: object = None
) -> Array:
    """Return 0, 1, 2, ... along one axis of an array of this shape.

    out_sharding: sharding of the result.  Raises AxisError for an axis out of range.

    >>> import plait
    >>> plait.lax.broadcasted_iota("int32", (2, 3), 1).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    shape = normal_shape(shape)
    at = normal_axis(dimension, len(shape), "dimension")
    out = sh.iota(asked_dtype(dtype, INTEGER), shape, at)
    return placed(out, out_sharding)


def full(
    shape: SupportsIndex | Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None, *,
    sharding: object = None,
) -> Array:  # fmt: skip
    """Return `fill_value`, a number without axes, everywhere; in its own dtype if none is given.

    sharding: sharding of the array.  Raises TypeRule for a value with axes.

    >>> import plait
    >>> plait.lax.full((2,), 7).tolist()
    [7, 7]
    """
    v: Any = fill_value if fill_value.__class__ is int and dtype is not None else value(fill_value)
    v = v if dtype is None else sh.convert(v, asked_dtype(dtype))
    if v.aval.ndim:
        raise ArgumentError(f"lax.full with {v.aval!r}", fix="give one number, or use broadcast_to")
    return placed(materialise_at_ground(sh.broadcast_to(v, normal_shape(shape))), sharding)


def full_like(
    x: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: Shape | None = None,
    sharding: object = None,
) -> Array:  # fmt: skip
    """Return `fill_value` everywhere, in the shape and dtype of `x` unless others are given.

    sharding: sharding of the array; by default that of `x`, if the shapes are equal.  Raises
    TypeRule for a value with axes.

    >>> import plait
    >>> plait.lax.full_like(plait.numpy.zeros(2), 7).tolist()
    [7.0, 7.0]
    """
    like: Any = x if hasattr(x, "shape") and hasattr(x, "dtype") else value(x)
    weak = dtype is None and getattr(like, "weak_type", False)
    kind = canonical(dtype_of(like.dtype)) if dtype is None else asked_dtype(dtype)
    into = sh.convert_into if dtype is None else sh.convert
    v = sh.convert(into(fill_value, kind), kind, weak)
    if v.aval.ndim:
        raise ArgumentError(f"lax.full_like with {v.aval!r}", fix="give one number")
    size = tuple(like.shape) if shape is None else normal_shape(shape)
    out = materialise_at_ground(sh.broadcast_to(v, size))
    return beside(out, x) if sharding is None else placed(out, sharding)


def empty(shape: Shape, dtype: DTypeLike, *, out_sharding: object = None) -> Array:
    """Return zeros: arrays always have defined contents.

    out_sharding: sharding of the result.

    Raises ShapeError if `shape` is not a tuple of integers.

    >>> import plait
    >>> plait.lax.empty((2,), "float32").tolist()
    [0.0, 0.0]
    """
    return placed(sh.fill(0, Aval(normal_shape(shape), asked_dtype(dtype))), out_sharding)


def shape_as_value(shape: Shape) -> Array:
    """Return a shape, which may have symbolic sizes, as a vector of i32.

    Raises ShapeError if `shape` is not a tuple of integers.

    >>> import plait
    >>> plait.lax.shape_as_value((2, 3)).tolist()
    [2, 3]
    """
    sizes = [sh.convert(size_value(n, INT32), INT32) for n in normal_shape(shape)]
    return stack(sizes) if sizes else full((0,), 0, INT32)
