"""Normalisation along axes, and one-hot encoding.

Invariant: the variance in the denominator is never negative.
"""

from typing import Any

import numpy as np

from plait.errors import ArgumentError, AxisError
from plait.ext.ops import elementwise as el
from plait.ext.ops import reduction
from plait.ext.ops.elementwise import rounded, single
from plait.ext.ops.shape import convert, expand_dims, given_axes, iota, normal_axes, normal_axis
from plait.ext.sizes import Dim
from plait.ext.surface import fixed, fused, value
from plait.ext.trace import Value
from plait.ext.types import INTEGER, asked_dtype
from plait.lax import axis_index, axis_size
from plait.typing import Array, ArrayLike, Axis, DTypeLike

from ..numpy.creation import asarray


def _axes(axis: object, x: Array) -> tuple[int, ...]:
    return tuple(sorted(normal_axes(axis, x.aval.ndim)))


@fused(numbers=("epsilon",))
def _standardize(
    x: Any, mean: Any, variance: Any, epsilon: Any, where: Any, *, axis: object, algorithm: str
) -> Any:
    (x,) = el.floating((x,))
    # Squares of narrow floats overflow, or their differences are mere rounding errors.
    as_given = el.promoted([x, *[v for v in (mean, variance) if v is not None]])[0]
    x = single(x)
    axes = _axes(axis, x)
    own = mean is None
    if own:
        mean = reduction.mean(x, axes, keepdims=True, where=where)
    if variance is None:
        moment = lambda v: reduction.mean(el.square(v), axes, keepdims=True, where=where)  # noqa: E731
        if algorithm == "stable":
            variance = moment(el.sub(x, mean))
        elif own:
            # Squares of elements far from zero hide the variance, so they are taken about the
            # mean.  The other square is 0, and has the derivatives that the first lacks.
            centre = el.stop.bind(mean)
            variance = el.sub(moment(el.sub(x, centre)), el.square(el.sub(mean, centre)))
        else:  # rounding may make it negative
            variance = el.maximum(el.sub(moment(x), el.square(mean)), 0)
    out = el.mul(el.sub(x, mean), el.rsqrt(el.add(variance, epsilon)))
    return rounded(out, as_given)


def standardize(
    x: ArrayLike, axis: Axis = -1, mean: object = None, variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5, where: ArrayLike | None = None, *, algorithm: str = "fast",
) -> Array:  # fmt: skip
    """Return (x - mean) / sqrt(variance + epsilon), along axes.

    Args:
      x: real, any shape; integers become the default float.
      axis: an int, a tuple of ints, or None (all).
      mean, variance: along the axes, which are kept; computed if they are not given.
      epsilon: keeps the root from zero.
      where: mask of the elements that count for mean and variance.
      algorithm: "fast", the mean of squares less the square of the mean, both about the value of
        the mean unless `mean` is given, or "stable", the mean of squared differences.

    >>> import numpy as np, plait
    >>> plait.nn.standardize(np.array([1.0, 3.0]), epsilon=0.0).tolist()
    [-1.0, 1.0]
    """
    if algorithm not in ("fast", "stable"):
        raise ArgumentError(
            f"standardize has no algorithm {algorithm!r}", fix='use "fast" or "stable"'
        )
    axis = given_axes(axis)
    return _standardize(x, mean, variance, epsilon, where, axis=axis, algorithm=algorithm)


def one_hot(
    x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: int | str = -1
) -> Array:
    """Encode labels as ones at their positions, else zeros; labels out of range give only zeros.

    Args:
      x: labels, any shape; also a list of them.
      num_classes: the size of the new axis.
      dtype: dtype of the result; the default float if not given.
      axis: position of the new axis; or the name of an axis that is bound outside, of this size,
        along which each position gets its own element.

    Raises AxisError for a position out of range, and for a named axis of another size.

    >>> import plait
    >>> plait.nn.one_hot(plait.numpy.array([0, 2]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    x = value(asarray(x) if isinstance(x, list | tuple) else x)
    kind = asked_dtype(dtype)
    if num_classes.__class__ is not Dim:
        num_classes = fixed("one_hot", "num_classes", num_classes)
    if isinstance(axis, str):
        return _element_of_one_hot(x, num_classes, kind, axis)
    at = normal_axis(axis, x.aval.ndim + 1)
    return _one_hot(x, classes=num_classes, dtype=kind, axis=at)


def _element_of_one_hot(x: Any, classes: int, kind: Any, name: str) -> Array:
    size = axis_size(name)
    if size != classes:
        raise AxisError(
            f"one_hot: the axis {name!r} has size {size}, and there are {classes} classes",
            fix=f"pass num_classes={size}",
        )
    return convert(el.eq(x, axis_index(name)), kind)


@fused
def _one_hot(x: Value, *, classes: object, dtype: np.dtype, axis: int) -> Any:
    x = expand_dims(x, axis)
    shape = [classes if i == axis else 1 for i in range(x.aval.ndim)]
    kind = x.aval.dtype if x.aval.category == INTEGER else np.dtype(np.int32)
    return convert(el.eq(x, iota(kind, shape, axis)), dtype)
