"""Discrete Fourier transforms with numpy.fft's norms, lengths and axes.

Invariant: a transform is one compiled program; over more than three axes, or the same axis twice,
it is several transforms in it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.errors import ArgumentError, AxisError, ShapeError
from plait.ext import Literal
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.fourier import fft_, spectral
from plait.ext.sizes import Dim, decide_ge, is_symbolic, max_dim, min_dim, product
from plait.ext.surface import fused, size_given, value
from plait.ext.trace import Value
from plait.ext.types import INT32, inexact_dtype
from plait.typing import Array, ArrayLike, Axis, DTypeLike

from .interchange import computed, placeable
from .manipulation import roll

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_NORMS = (None, "backward", "ortho", "forward")


def _resized(x: Value, axis: int, n: int) -> Any:
    """Cut an axis at its end, or pad it with zeros there."""
    have = x.aval.shape[axis]
    if have == n:
        return x
    if decide_ge(have, n):
        return sh.slice_in_dim(x, 0, n, axis=axis)
    if not decide_ge(n, have):
        x = sh.slice_in_dim(x, 0, min_dim(n, have), axis=axis)
        have = x.aval.shape[axis]
    return sh.pad(x, 0, [(0, n - have if i == axis else 0, 0) for i in range(x.aval.ndim)])


def _at(x: Value, kind: str, lengths: Sequence[int], axes: Sequence[int]) -> Any:
    """Apply the primitive over up to three different axes, at any positions."""
    ends = tuple(range(-len(axes), 0))
    out = fft_.bind(sh.moveaxis(x, tuple(axes), ends), kind=kind, lengths=tuple(lengths))
    return sh.moveaxis(out, ends, tuple(axes))


def _groups(axes: Sequence[int]) -> list[range]:
    """Return runs of up to three different axes, the last first."""
    found, end = [], len(axes)
    while end:
        start = max(end - 3, 0)
        while len(set(axes[start:end])) < end - start:
            start += 1
        found.append(range(start, end))
        end = start
    return found


@fused
def _transform(x: Value, *, kind: str, lengths: tuple, axes: tuple, norm: str | None) -> Any:
    x = spectral(x, kind == "rfft")
    for i, (n, axis) in enumerate(zip(lengths, axes)):
        last = kind == "irfft" and i == len(axes) - 1
        x = _resized(x, axis, n // 2 + 1 if last else n)
    real, *rest = _groups(axes)
    steps = [(kind, real), *[(kind.replace("r", ""), g) for g in rest]]
    for how, group in reversed(steps) if kind == "irfft" else steps:
        x = _at(x, how, [lengths[i] for i in group], [axes[i] for i in group])
    if is_symbolic(lengths):
        return _scaled(x, lengths, kind, norm)
    scale = _scale(float(np.prod(lengths)), kind, norm)
    return x if scale == 1.0 else el.mul.bind(x, Literal(scale, x.aval))


def _scaled(x: Value, lengths: tuple, kind: str, norm: str | None) -> Any:
    """Scale a result when a length is symbolic."""
    power = _power(kind, norm)
    if not power:
        return x
    exact = x.aval.dtype.type().real.dtype  # precision of the result, or of its real part
    total = sh.size_value(product(lengths), exact)
    scale = el.power(el.maximum(total, 1.0), power)
    return el.mul(x, sh.convert(scale, x.aval.dtype))


def _scale(total: float, kind: str, norm: str | None) -> float:
    """Return the factor for the primitive's result; the primitive itself scales only the
    inverse."""
    return total ** _power(kind, norm)


def _power(kind: str, norm: str | None) -> float:
    """Return the power of the number of elements to multiply by."""
    power = {"ortho": 0.5, "forward": 1.0}.get(norm or "", 0.0)
    return power if kind.startswith("i") else -power


def _checked(a: object, kind: str, s: Any, axes: Any, norm: object, many: bool) -> Any:
    x = value(a)
    if norm not in _NORMS:
        raise ArgumentError(
            f"there is no norm {norm!r}", fix='use "backward", "ortho" or "forward"'
        )
    ndim = x.aval.ndim
    if axes is None:
        axes = range(ndim) if s is None else range(-len(s), 0)
    at = tuple([sh.normal_axis(i, ndim) for i in axes])
    if not at:
        if many and kind in ("fft", "ifft"):
            return spectral(x)
        raise AxisError(f"{kind} over no axis of {x.aval!r}", fix="give an axis at least")
    if s is not None and len(s) != len(at):
        raise AxisError(f"{len(s)} lengths for {len(at)} axes", fix="give one for each axis")
    if kind in ("fft", "ifft") and _empty(x, s, at):
        sizes = list(x.aval.shape)
        for i, n in zip(at, s or ()):
            sizes[i] = sizes[i] if n in (None, -1) else n
        return sh.fill(0, spectral(x).aval.with_shape(sizes).strong())
    lengths = [_length(x, kind, i, s, at) for i in range(len(at))]
    return _transform(x, kind=kind, lengths=tuple(lengths), axes=at, norm=norm)


def _empty(x: Value, s: Any, at: tuple) -> bool:
    """Return whether an empty axis is transformed without being padded."""
    return any(
        x.aval.shape[i].__class__ is int and x.aval.shape[i] == 0 and n in (None, -1)
        for i, n in zip(at, [None] * len(at) if s is None else s)
    )


def _length(x: Value, kind: str, i: int, s: Any, at: tuple) -> Any:
    """Return the number of elements along axis `i` of the transform, on the side that is not
    half a spectrum."""
    n = None if s is None else s[i]
    have = x.aval.shape[at[i]]
    if n is None or (not isinstance(n, Dim) and n == -1):
        half = kind == "irfft" and i == len(at) - 1
        n = 2 * (have - 1) if half else have
    if isinstance(n, Dim):
        return max_dim(n, 0)
    n = n.__index__()
    if not decide_ge(n, 1):
        raise ShapeError(f"a transform over {n} elements", fix="there must be one at least")
    return n


def _one(a: object, kind: str, n: Any, axis: object, norm: object) -> Any:
    if n is not None and n.__class__ is int and n < 1:
        raise ShapeError(f"a transform over {n} elements", fix="there must be one at least")
    return _checked(a, kind, None if n is None else (n,), (axis,), norm, False)


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the discrete Fourier transform along an axis.

    Args:
      a: any shape; integers and half floats count as float32, the result is complex.
      n: the length to transform: longer axes are cut, shorter ones padded with zeros.
      axis: axis of the transform.
      norm: direction that divides by `n`: "backward" (None: in the inverse), "forward" (here),
        or "ortho" (half in each).

    Raises AxisError for an axis that `a` lacks, TypeRule for other norms.  As numpy.fft.fft.

    >>> import numpy as np, plait
    >>> plait.numpy.fft.fft(np.float32([1, 0, 0, 0])).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _one(a, "fft", n, axis, norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of `fft`, complex.

    a, n, axis, norm: as in `fft`.  Raises as `fft`.  As numpy.fft.ifft.

    Raises NotAnArrayError if `a` is not an array, and AxisError for an axis that `a` lacks.

    >>> import numpy as np, plait
    >>> plait.numpy.fft.ifft(np.array([4.0, 0, 0, 0])).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _one(a, "ifft", n, axis, norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Transform a real array; return its n // 2 + 1 elements up to the mirrored half.

    a: real; n, axis, norm: as in `fft`.  As numpy.fft.rfft.

    Raises NotAnArrayError if `a` is not an array, AxisError if it has no such axis, and
    ArgumentError for complex numbers.

    >>> import numpy as np, plait
    >>> plait.numpy.fft.rfft(np.float32([1, 2, 3])).shape
    (2,)
    """
    return _one(a, "rfft", n, axis, norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of `rfft`, which is real.

    a: half a spectrum, m elements; n: length of the result (2 (m - 1) if not given);
    axis, norm: as in `fft`.  As numpy.fft.irfft.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.eval_shape(plait.numpy.fft.irfft, np.ones(3)).shape
    (4,)
    """
    return _one(a, "irfft", n, axis, norm)


_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the real spectrum of a Hermitian-symmetric signal, given its first half.

    a: m elements; n: length of the result, 2 (m - 1) if not given; axis, norm: as in `fft`.
    As numpy.fft.hfft.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.eval_shape(plait.numpy.fft.hfft, np.ones(3)).shape
    (4,)
    """
    return irfft(el.conj(spectral(value(a))), n, axis, _SWAPPED.get(norm, norm))


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of `hfft`: half a signal, from its real spectrum.

    a: real; n, axis, norm: as in `fft`.  As numpy.fft.ihfft.

    Raises NotAnArrayError if `a` is not an array, AxisError if it has no such axis, and
    ArgumentError for complex numbers.

    >>> import numpy as np, plait
    >>> plait.eval_shape(plait.numpy.fft.ihfft, np.ones(4)).shape
    (3,)
    """
    return el.conj(rfft(a, n, axis, _SWAPPED.get(norm, norm)))


def fftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axis | None = None, norm: str | None = None
) -> Array:
    """Return the discrete Fourier transform over several axes.

    Args:
      a: any shape.
      s: the length to transform along each axis (-1: the size of the axis).
      axes: axes of the transform; all, or the last `len(s)`, if not given.
      norm: as in `fft`.

    Raises AxisError for axes that `a` lacks, or that do not fit `s`; TypeRule for other norms.  As
    numpy.fft.fftn.

    >>> import numpy as np, plait
    >>> plait.numpy.fft.fftn(np.ones((2, 3))).shape
    (2, 3)
    """
    return _checked(a, "fft", s, axes, norm, True)


def ifftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axis | None = None, norm: str | None = None
) -> Array:
    """Return the inverse of `fftn`, with its arguments.  As numpy.fft.ifftn.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> plait.eval_shape(plait.numpy.fft.ifftn, np.ones((2, 3))).shape
    (2, 3)
    """
    return _checked(a, "ifft", s, axes, norm, True)


def rfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axis | None = None, norm: str | None = None
) -> Array:
    """Transform a real array over several axes; return half of the last one.

    a: real; s, axes, norm: as in `fftn`.  As numpy.fft.rfftn.

    Raises NotAnArrayError if `a` is not an array, and ArgumentError for complex numbers.

    >>> import numpy as np, plait
    >>> plait.eval_shape(plait.numpy.fft.rfftn, np.ones((2, 4))).shape
    (2, 3)
    """
    return _checked(a, "rfft", s, axes, norm, True)


def irfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axis | None = None, norm: str | None = None
) -> Array:
    """Return the inverse of `rfftn`, which is real; `s` are the sizes of the result.

    a, axes, norm: as in `fftn`.  As numpy.fft.irfftn.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> plait.eval_shape(plait.numpy.fft.irfftn, np.ones((2, 3))).shape
    (2, 4)
    """
    return _checked(a, "irfft", s, axes, norm, True)


def fft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axis = (-2, -1), norm: str | None = None
) -> Array:
    """Return `fftn` over two axes, with its arguments.  As numpy.fft.fft2.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has fewer than two axes.

    >>> import numpy as np, plait
    >>> plait.numpy.fft.fft2(np.ones((2, 3))).shape
    (2, 3)
    """
    return fftn(a, s, axes, norm)


def ifft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axis = (-2, -1), norm: str | None = None
) -> Array:
    """Return `ifftn` over two axes, with its arguments.  As numpy.fft.ifft2.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has fewer than two axes.

    >>> import numpy as np, plait
    >>> plait.eval_shape(plait.numpy.fft.ifft2, np.ones((2, 3))).shape
    (2, 3)
    """
    return ifftn(a, s, axes, norm)


def rfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axis = (-2, -1), norm: str | None = None
) -> Array:
    """Return `rfftn` over two axes, with its arguments.  As numpy.fft.rfft2.

    Raises NotAnArrayError if `a` is not an array, AxisError if it has fewer than two axes, and
    ArgumentError for complex numbers.

    >>> import numpy as np, plait
    >>> plait.eval_shape(plait.numpy.fft.rfft2, np.ones((2, 4))).shape
    (2, 3)
    """
    return rfftn(a, s, axes, norm)


def irfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Axis = (-2, -1), norm: str | None = None
) -> Array:
    """Return `irfftn` over two axes, with its arguments.  As numpy.fft.irfft2.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has fewer than two axes.

    >>> import numpy as np, plait
    >>> plait.eval_shape(plait.numpy.fft.irfft2, np.ones((2, 3))).shape
    (2, 4)
    """
    return irfftn(a, s, axes, norm)


# ---- the axes of spectra -------------------------------------------------------------------


def _frequencies(positions: Any, n: Any, d: Any, dtype: Any) -> Any:
    dtype = inexact_dtype("frequencies", dtype)
    if is_symbolic((n,)):
        return el.div(sh.convert(positions, dtype), el.mul(d, sh.size_value(n, dtype)))
    if isinstance(d, int | float):
        return computed((positions * (1.0 / (n * d))).astype(dtype))
    return el.div(computed(positions.astype(dtype)), el.mul(d, float(n)))


@placeable
def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None) -> Array:
    """Return the frequencies of the elements of a spectrum: 0, 1, ..., then the negative ones, in
    cycles per unit of `d`.

    Args:
      n: number of elements.
      d: spacing of the signal's elements.
      dtype: the default float if not given.

    Raises TypeRule unless `n` is at least 1.  As numpy.fft.fftfreq.

    >>> import plait
    >>> plait.numpy.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    n = size_given(n)
    _positive(n)
    half = (n + 1) // 2
    if is_symbolic((n,)):
        i = sh.iota(INT32, (n,))
        count = sh.size_value(n, INT32)
        i = el.select(el.lt(i, sh.size_value(half, INT32)), i, el.sub(i, count))
        return _frequencies(i, n, d, dtype)
    return _frequencies(np.concatenate([np.arange(half), np.arange(half - n, 0)]), n, d, dtype)


@placeable
def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None) -> Array:
    """Return the frequencies of the elements of `rfft` of `n` elements, none of them negative.

    d, dtype: as in `fftfreq`.  Raises TypeRule unless `n` is at least 1.  As numpy.fft.rfftfreq.

    >>> import plait
    >>> plait.numpy.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    n = size_given(n)
    _positive(n)
    last = n // 2 + 1
    return _frequencies(
        sh.iota(INT32, (last,)) if is_symbolic((n,)) else np.arange(last), n, d, dtype
    )


def _positive(n: int) -> None:
    if n < 1:
        raise ShapeError(f"frequencies of {n} elements", fix="give one at least")


def _shifted(x: object, axes: Any, back: bool) -> Any:
    x = value(x)
    ndim = x.aval.ndim
    axes = sh.given_axes(range(ndim) if axes is None else axes)
    at = tuple([sh.normal_axis(i, ndim) for i in (axes if isinstance(axes, tuple) else (axes,))])
    return roll(x, tuple([-(x.aval.shape[i] // 2) if back else x.aval.shape[i] // 2 for i in at]),
                at)  # fmt: skip


def fftshift(x: ArrayLike, axes: Axis | None = None) -> Array:
    """Move the zero frequency to the middle, along `axes` (all if not given).

    As numpy.fft.fftshift.

    Raises NotAnArrayError if `x` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.fft.fftshift(np.arange(4)).tolist()
    [2, 3, 0, 1]
    """
    return _shifted(x, axes, False)


def ifftshift(x: ArrayLike, axes: Axis | None = None) -> Array:
    """Return the inverse of `fftshift`, with its arguments.  As numpy.fft.ifftshift.

    Raises NotAnArrayError if `x` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.fft.ifftshift(np.arange(4)).tolist()
    [2, 3, 0, 1]
    """
    return _shifted(x, axes, True)
