"""Sizes in a graph: numbers if they are static in TensorFlow, scalar tensors if not.

Invariant: a shape is a list of numbers if all its sizes are known, so that TensorFlow's shapes are
as static as possible.
"""

from collections.abc import Sequence
from typing import Any

from ..library import tf


def sizes_of(x: Any) -> list[Any]:
    """Return the sizes of a tensor, each a number or a scalar tensor of int32."""
    known = x.shape.as_list()
    if None not in known:
        return known
    asked = tf.shape(x)
    return [asked[i] if n is None else n for i, n in enumerate(known)]


def size(x: Any, axis: int) -> Any:
    """Return the size of one axis, as `sizes_of` does."""
    return sizes_of(x)[axis]


def as_shape(each: Sequence[Any]) -> Any:
    """Return sizes as a shape: a list of numbers, or a vector of int32."""
    if all(isinstance(n, int) for n in each):
        return list(each)
    return tf.stack([tf.cast(n, tf.int32) for n in each])


def listed(vector: Any) -> list[Any]:
    """Return the sizes in a vector, as numbers if they are known."""
    known = tf.get_static_value(vector)
    if known is not None:
        return [int(n) for n in known]
    known = tf.get_static_value(vector, partial=True)
    n = vector.shape[0]
    if known is None:
        known = [None] * n
    return [tf.cast(vector[i], tf.int32) if known[i] is None else int(known[i]) for i in range(n)]


def product(each: Sequence[Any]) -> Any:
    """Return the product of sizes."""
    total: Any = 1
    for n in each:
        total = total * n
    return total


def broadcast(x: Any, shape: Sequence[Any], dims: Sequence[int]) -> Any:
    """Broadcast a tensor whose axes are the axes `dims` of a larger shape."""
    order = sorted(range(len(dims)), key=dims.__getitem__)
    if order != list(range(len(dims))):
        x, dims = tf.transpose(x, order), sorted(dims)
    rank = len(shape)
    # Trailing axes need no reshape, because numpy's broadcasting aligns them.
    if list(dims) != list(range(rank - len(dims), rank)):
        have = dict(zip(dims, sizes_of(x)))
        x = tf.reshape(x, as_shape([have.get(i, 1) for i in range(rank)]))
    return tf.broadcast_to(x, as_shape(shape)) if rank else x


def counted(dtype: Any, shape: Sequence[Any], axis: int) -> Any:
    """Return a tensor of the given shape with numbers from 0 along an axis."""
    n = shape[axis]
    row = tf.range(n) if n.__class__ is int or n.dtype == tf.int32 else tf.range(n, dtype=n.dtype)
    return broadcast(tf.cast(row, dtype), shape, (axis,))


def along(x: Any, axis: int, begin: Any = None, end: Any = None, step: int = 1) -> Any:
    """Return a slice along an axis."""
    return x[(*[slice(None)] * axis, slice(begin, end, step))]
