"""Convolutions, trends and spectra of signals, with the names of scipy.signal.

Invariant: sizes of results follow from sizes of operands alone.
"""

from typing import Any

import numpy as np

from plait.errors import ArgumentError, AxisError
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.reduction import mean
from plait.ext.ops.sliding import slide
from plait.ext.sizes import is_symbolic, max_dim
from plait.ext.surface import advise as _advise
from plait.ext.surface import fused, value
from plait.ext.trace import Value
from plait.ext.types import COMPLEX
from plait.typing import Array, ArrayLike, Axis

from ..numpy.fourier import fftn, ifftn, irfftn, rfftn
from ..numpy.padding import pad as padded
from ..refusals import explain
from .spectra import csd, istft, stft, welch, without_line

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft",
    "stft", "welch",
]  # fmt: skip
_MODES = ("full", "same", "valid")
_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


# ---- convolutions --------------------------------------------------------------------------


def _operands(does: str, in1: ArrayLike, in2: ArrayLike, mode: str) -> tuple[Any, Any]:
    x, y = sh.convert_together([value(in1), value(in2)])
    if mode not in _MODES:
        raise ArgumentError(
            f"{does}: there is no mode {mode!r}", fix='use "full", "same" or "valid"'
        )
    if x.aval.ndim != y.aval.ndim:
        raise AxisError(f"{does} of {x.aval!r} and {y.aval!r}", fix="give as many axes")
    return x, y


def _backwards(x: Value) -> Any:
    return sh.rev.bind(x, axes=tuple(range(x.aval.ndim))) if x.aval.ndim else x


def _centered(full: Array, sizes: list[int], skip: Any = None) -> Any:
    """Return the middle of `full`, of these sizes."""
    for i, n in enumerate(sizes):
        start = (full.aval.shape[i] - n) // 2 if skip is None else skip[i]
        full = sh.slice_in_dim(full, start, start + n, axis=i)
    return full


def _fits(x: Value, y: Value) -> bool:
    return all(n >= m for n, m in zip(x.aval.shape, y.aval.shape))


def _swapped_if_valid(does: str, x: Value, y: Value, mode: str) -> bool:
    """Return whether to swap the operands, as "valid" permits; one must fit in the other."""
    if mode != "valid" or _fits(x, y):
        return False
    if not _fits(y, x):
        raise AxisError(
            f"{does}: neither of {x.aval!r} and {y.aval!r} fits in the other",
            fix='with mode="valid" one of them is as large as the other along every axis',
        )
    return True


@fused
def _direct(x: Value, y: Value, *, mode: str, precision: Any) -> Any:
    if not x.aval.ndim:
        return el.mul(x, y)
    kernel = _backwards(y)
    return slide(x, kernel, _around(y, mode), precision)


def _around(kernel: Value, mode: str, later: int = 0) -> list:
    """Return the padding of each axis at both ends.  An odd remainder of "same" goes to the
    front, or with `later` to the end."""
    whole = {"full": lambda k: (k, k), "same": lambda k: (k - (k + later) // 2, (k + later) // 2)}
    return [whole.get(mode, lambda k: (0, 0))(m - 1) for m in kernel.aval.shape]


def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: object = None,
) -> Array:
    """Convolve two arrays over all their axes.

    Args:
      in1, in2: arrays with as many axes.
      mode: "full", every overlap; "same", the middle of it, as large as `in1`; "valid", positions
        where one operand lies entirely in the other.
      method: "direct" (also "auto") or "fft", which is faster for long kernels.
      precision: None, "default", "high" or "highest".

    Raises AxisError for different numbers of axes.  As scipy.signal.convolve.

    >>> import numpy as np, plait
    >>> plait.scipy.signal.convolve(np.float32([1, 2, 3]), np.float32([1, 1])).tolist()
    [1.0, 3.0, 5.0, 3.0]
    """
    if method not in ("auto", "direct", "fft"):
        raise ArgumentError(f"there is no method {method!r}", fix='use "auto", "direct" or "fft"')
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    x, y = _operands("convolve", in1, in2, mode)
    x, y = (y, x) if _swapped_if_valid("convolve", x, y, mode) else (x, y)
    return _direct(x, y, mode=mode, precision=precision)


def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: object = None,
) -> Array:
    """Correlate two arrays over all their axes, `in2` conjugated.

    Arguments are those of `convolve`.  As scipy.signal.correlate.

    >>> import numpy as np, plait
    >>> plait.scipy.signal.correlate(np.ones(3), np.ones(2), mode="valid").tolist()
    [2.0, 2.0]
    """
    x, y = _operands("correlate", in1, in2, mode)
    swapped = _swapped_if_valid("correlate", x, y, mode)
    y = _backwards(el.conj(y) if y.aval.category == COMPLEX else y)
    return (
        convolve(y, x, mode, method, precision)
        if swapped
        else convolve(x, y, mode, method, precision)
    )


@fused
def _by_spectra(x: Value, y: Value, *, mode: str, axes: tuple) -> Any:
    lengths = [x.aval.shape[i] + y.aval.shape[i] - 1 for i in axes]
    lengths = [n if n.__class__ is int else max_dim(n, 0) for n in lengths]
    fast = tuple([_fast(n) for n in lengths])
    whole = COMPLEX in (x.aval.category, y.aval.category)
    forth, back = (fftn, ifftn) if whole else (rfftn, irfftn)
    out = back(el.mul(forth(x, fast, axes), forth(y, fast, axes)), fast, axes)
    for i, n in zip(axes, lengths):
        out = sh.slice_in_dim(out, 0, n, axis=i)
    if mode == "full":
        return out
    sizes = list(out.aval.shape)
    for i in axes:
        n, m = x.aval.shape[i], y.aval.shape[i]
        sizes[i] = n if mode == "same" else n - m + 1
    return _centered(out, sizes)


def _fast(n: Any) -> Any:
    """Return the least length from `n` on without prime factors above 5; `n` itself if symbolic."""
    if n.__class__ is not int:
        return n
    best = 1 << max(n - 1, 0).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            best = min(best, three << max(-(-n // three) - 1, 0).bit_length())
            three *= 3
        five *= 5
    return max(best, 1)


def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Axis | None = None
) -> Array:
    """Convolve two arrays by multiplying their spectra.

    Args:
      in1, in2: arrays with as many axes; the result is floating.
      mode: as in `convolve`.
      axes: axes to convolve; all if not given, the others broadcast.

    As scipy.signal.fftconvolve.

    >>> import numpy as np, plait
    >>> plait.scipy.signal.fftconvolve(np.ones(3), np.ones(2)).round(3).tolist()
    [1.0, 2.0, 2.0, 1.0]
    """
    x, y = [el.floating((v,))[0] for v in _operands("fftconvolve", in1, in2, mode)]
    x, y = (y, x) if _swapped_if_valid("fftconvolve", x, y, mode) else (x, y)
    at = sh.normal_axes(axes, x.aval.ndim)
    return _by_spectra(x, y, mode=mode, axes=tuple(at)) if at else el.mul(x, y)


# ---- images --------------------------------------------------------------------------------


def _image(
    does: str,
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str,
    boundary: str,
    fillvalue: Any,
    precision: Any,
    turned: bool,
) -> Any:
    x, y = _operands(does, in1, in2, mode)
    if x.aval.ndim != 2:
        raise AxisError(f"{does} of {x.aval!r}", fix=f"give matrices, or use {does[:-2]}")
    if boundary not in _BOUNDARIES:
        raise ArgumentError(
            f"there is no boundary {boundary!r}", fix='use "fill", "wrap" or "symm"'
        )
    if turned and _swapped_if_valid(does, x, y, mode):
        out = _image(does, y, x, mode, boundary, fillvalue, precision, True)
        out = _backwards(out)
        return el.conj(out) if out.aval.category == COMPLEX else out
    if not turned and _swapped_if_valid(does, x, y, mode):
        x, y = y, x
    kernel = _backwards(y) if not turned else (el.conj(y) if y.aval.category == COMPLEX else y)
    around = _around(y, mode, int(turned))
    if boundary != "fill" or fillvalue.__class__ not in (int, float) or fillvalue != 0:
        how = {"constant_values": fillvalue} if boundary == "fill" else {}
        x = padded(x, around, _BOUNDARIES[boundary], **how)
        around = [(0, 0)] * 2
    return slide(x, kernel, around, precision)


def convolve2d(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill",
    fillvalue: ArrayLike = 0, precision: object = None,
) -> Array:  # fmt: skip
    """Convolve two matrices.

    Args:
      in1, in2: matrices.
      mode: as in `convolve`.
      boundary: values outside of `in1`: "fill" (`fillvalue`), "wrap" or "symm" (mirrored).
      fillvalue: a number.
      precision: as in `convolve`.

    As scipy.signal.convolve2d.

    >>> import numpy as np, plait
    >>> plait.scipy.signal.convolve2d(np.ones((3, 3)), np.ones((2, 2)), mode="valid").tolist()
    [[4.0, 4.0], [4.0, 4.0]]
    """
    return _image("convolve2d", in1, in2, mode, boundary, fillvalue, precision, False)


def correlate2d(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill",
    fillvalue: ArrayLike = 0, precision: object = None,
) -> Array:  # fmt: skip
    """Correlate two matrices, `in2` conjugated.

    Arguments are those of `convolve2d`.  As scipy.signal.correlate2d.

    >>> import numpy as np, plait
    >>> plait.scipy.signal.correlate2d(np.ones((3, 3)), np.ones((2, 2))).shape
    (4, 4)
    """
    return _image("correlate2d", in1, in2, mode, boundary, fillvalue, precision, True)


# ---- trends --------------------------------------------------------------------------------


@fused
def _detrended(x: Array, *, axis: int, type: str, breaks: tuple) -> Any:  # noqa: A002
    x = sh.moveaxis(x, axis, -1)
    if type == "constant":
        out = el.sub(x, mean(x, -1, keepdims=True))
    else:
        ends = [0, *breaks, x.aval.shape[-1]]
        pairs = [(a, b) for a, b in zip(ends, ends[1:]) if is_symbolic((b,)) or b > a]
        pieces = [sh.slice_in_dim(x, a, b, axis=-1) for a, b in pairs]
        out = sh.concatenate([without_line(p) for p in pieces], -1)
    return sh.moveaxis(out, -1, axis)


def detrend(
    data: ArrayLike, axis: int = -1, type: str = "linear", bp: Any = 0,
    overwrite_data: None = None,
) -> Array:  # fmt: skip
    """Subtract the mean, or the line of least squares.

    Args:
      data: any shape; integers become the default float.
      axis: axis of the signals.
      type: "linear" or "constant".
      bp: positions where a new line begins: an int or several.
      overwrite_data: accepted for compatibility.

    As scipy.signal.detrend.

    >>> import numpy as np, plait
    >>> plait.scipy.signal.detrend(np.array([1.0, 2.0, 3.0]), type="constant").tolist()
    [-1.0, 0.0, 1.0]
    """
    if type not in ("linear", "constant"):
        raise ArgumentError(f"there is no trend {type!r}", fix='use "linear" or "constant"')
    (x,) = el.floating((data,))
    at = sh.normal_axis(axis, x.aval.ndim)
    n = x.aval.shape[at]
    breaks = tuple(sorted({int(b) for b in np.atleast_1d(bp)} - {0}))
    if any(not 0 <= b <= n for b in breaks):
        raise AxisError(f"detrend: break points {breaks} of {n} elements", fix="give smaller ones")
    return _detrended(x, axis=at, type=type, breaks=breaks)


explain(globals())

_advise("plait.scipy.signal", globals())
