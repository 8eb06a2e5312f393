"""Resizing of images and volumes.

Each axis is resampled by a matrix of weights, made from a kernel: the value between samples is the
kernel's mean of the samples around it.  Source of the kernels: C. E. Duchon, Lanczos filtering in
one and two dimensions, J. Appl. Meteor. 18 (1979); R. Keys, Cubic convolution interpolation for
digital image processing, IEEE Trans. ASSP 29 (1981), with a = -1/2.

Invariant: a constant image stays the same constant, whatever the kernel and the size.
"""

import enum
from collections.abc import Callable, Sequence
from typing import Any

from plait.errors import ArgumentError, AxisError, ShapeError
from plait.ext.surface import advise as _advise
from plait.ext.trace import Value
from plait.ext.types import FLOATING, default_dtype
from plait.lax import Precision
from plait.typing import Array, ArrayLike

from .numpy import (
    abs,
    arange,
    asarray,
    clip,
    floor,
    maximum,
    moveaxis,
    sinc,
    take,
    tensordot,
    where,
    zeros,
)
from .refusals import explain

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """Kernels for resizing."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5

    @staticmethod
    def from_string(name: str) -> "ResizeMethod":
        """Return the kernel of this name.  Raises TypeRule if the name is unknown."""
        found = _NAMES.get(name)
        if found is None:
            raise ShapeError(
                f"there is no way to resize called {name!r}", fix=f"choose of {', '.join(_NAMES)}"
            )
        return found


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    "linear": ResizeMethod.LINEAR,
    "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR,
    "triangle": ResizeMethod.LINEAR,
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "cubic": ResizeMethod.CUBIC,
    "bicubic": ResizeMethod.CUBIC,
    "tricubic": ResizeMethod.CUBIC,
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "tricubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
}


def _triangle(x: Value) -> Any:
    return maximum(0.0, 1.0 - x)


def _lanczos(radius: float) -> Callable[[Any], Any]:
    return lambda x: where(x < radius, sinc(x) * sinc(x / radius), 0.0)


def _keys(a: float) -> Callable[[Any], Any]:
    """Return R. Keys's kernel of slope `a` at 1: Cubic convolution interpolation, 1981."""

    def kernel(x: Value) -> Any:
        near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
        far = ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
        return where(x < 1, near, where(x < 2, far, 0.0))

    return kernel


_KERNELS: dict[ResizeMethod, Callable[[Any], Any]] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
    ResizeMethod.CUBIC: _keys(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _keys(-0.75),
}


def _method(method: "str | ResizeMethod") -> ResizeMethod:
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def _weights(
    n: int,
    m: int,
    scale: ArrayLike,
    translation: ArrayLike,
    kernel: Callable,
    antialias: bool,
    dtype: object,
) -> Any:
    """Return the weights [n, m] of each of `n` samples in each of `m` results.

    Result i lies at (i + 1/2 - translation) / scale of the axis.
    """
    inverse = 1.0 / asarray(scale, dtype)
    width = maximum(inverse, 1.0) if antialias else asarray(1.0, dtype)
    at = (arange(m, dtype=dtype) + 0.5 - translation) * inverse - 0.5
    distance = abs(at[None, :] - arange(n, dtype=dtype)[:, None]) / width
    weights = kernel(distance)
    total = weights.sum(0, keepdims=True)
    some = abs(total) > 1e-6
    weights = where(some, weights / where(some, total, 1.0), 0.0)
    inside = (at >= -0.5) & (at <= n - 0.5)
    return where(inside[None, :], weights, 0.0)


def _ratio(m: int, n: int, dtype: object) -> Any:
    """Return m / n; symbolic sizes are divided in the precision of the weights."""
    if m.__class__ is int and n.__class__ is int:
        return m / n
    return asarray(m, dtype) / asarray(n, dtype)


def _real(image: object) -> Array:
    x = asarray(image)
    return x if x.dtype.kind in "fc" or x.aval.inexact else x.astype(default_dtype(FLOATING))


def _exact(x: Array) -> Any:
    """Return the dtype of weights for `x`: half precision could not separate positions of
    samples."""
    dtype = x.real.dtype
    return "float32" if dtype.itemsize < 4 else dtype


def _resampled(x: Array, axis: int, weights: Value, precision: Any) -> Any:
    out = tensordot(x, weights.astype(x.dtype), ((axis,), (0,)), precision=precision)
    return moveaxis(out, -1, axis)


def scale_and_translate(
    image: ArrayLike, shape: Sequence[int], spatial_dims: Sequence[int], scale: ArrayLike,
    translation: ArrayLike, method: "str | ResizeMethod", antialias: bool = True,
    precision: object = Precision.HIGHEST,
) -> Array:  # fmt: skip
    """Return an image of another shape, scaled and moved along some axes.

    The value at position x of an axis moves to `scale * x + translation`; values from outside of
    the image are zero.  The result is differentiable in `image`, `scale` and `translation`.

    Args:
      image: an array with any number of axes.
      shape: the shape of the result; all axes not in `spatial_dims` keep their size.
      spatial_dims: the axes that are scaled and moved.
      scale, translation: a number for each of them.
      method: "linear", "cubic", "lanczos3", "lanczos5" (and "bilinear", "bicubic", ...).
      antialias: True if the kernel is widened when the image shrinks, so that every sample counts.

    Raises TypeRule or AxisError if shapes, axes or the method do not fit.
    """
    x, shape = _real(image), tuple(shape)
    kind = _method(method)
    if kind is ResizeMethod.NEAREST:
        raise ArgumentError(
            "scale_and_translate has no kernel for the nearest sample",
            fix='use resize, or "linear"',
        )
    if len(shape) != x.ndim:
        raise ShapeError(f"an image of {x.ndim} axes cannot become one of the shape {shape}")
    axes = [_axis(d, x.ndim) for d in spatial_dims]
    others = [i for i in range(x.ndim) if i not in axes and shape[i] != x.shape[i]]
    if others:
        raise ShapeError(
            f"axis {others[0]} is of size {x.shape[others[0]]}, and would become of size "
            f"{shape[others[0]]}",
            fix="name it in spatial_dims",
        )
    scales, moves = asarray(scale), asarray(translation)
    if scales.shape != (len(axes),) or moves.shape != (len(axes),):
        raise ShapeError(
            f"scale and translation are of the shapes {scales.shape} and {moves.shape}",
            fix=f"give {len(axes)} numbers for {len(axes)} spatial_dims",
        )
    dtype = _exact(x)
    for k, d in enumerate(axes):
        w = _weights(x.shape[d], shape[d], scales[k], moves[k], _KERNELS[kind], antialias, dtype)
        x = _resampled(x, d, w, precision)
    return x


def resize(
    image: ArrayLike, shape: Sequence[int], method: "str | ResizeMethod", antialias: bool = True,
    precision: object = Precision.HIGHEST,
) -> Array:  # fmt: skip
    """Return an image of another size.

    Args:
      image: an array with any number of axes; integers become floats, except for "nearest".
      shape: one size for each axis of the image; axes of the same size are not changed.
      method: "nearest", "linear", "cubic", "lanczos3", "lanczos5" (and "bilinear", ...).
      antialias: True if the kernel is widened when the image shrinks, so that every sample counts.

    Raises TypeRule if the shape or the method do not fit.

    >>> import plait
    >>> plait.image.resize(plait.numpy.array([0.0, 1.0]), (4,), "linear")
    Array([0.  , 0.25, 0.75, 1.  ], dtype=float32)
    """
    kind, shape = _method(method), tuple(shape)
    x = asarray(image) if kind is ResizeMethod.NEAREST else _real(image)
    if len(shape) != x.ndim:
        raise ShapeError(f"an image of {x.ndim} axes cannot become one of the shape {shape}")
    for d, (n, m) in enumerate(zip(x.shape, shape)):
        if n == m:
            continue
        if not m:
            return zeros(shape, x.dtype)
        if not n:
            raise ShapeError(f"axis {d} of size {n} cannot become one of size {m}")
        if kind is ResizeMethod.NEAREST:
            middle = floor((arange(m, dtype="float32") + 0.5) * (n / m))
            x = take(x, clip(middle, 0, n - 1).astype("int32"), axis=d)
        else:
            w = _weights(n, m, _ratio(m, n, _exact(x)), 0.0, _KERNELS[kind], antialias, _exact(x))
            x = _resampled(x, d, w, precision)
    return x


def _axis(d: int, n: int) -> int:
    d = d.__index__()
    if not -n <= d < n:
        raise AxisError(f"axis {d} is out of range for an image of {n} axes")
    return d % n


_advise("plait.image", globals())


explain(globals())
