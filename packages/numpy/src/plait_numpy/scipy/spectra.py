"""Spectra of segments of signals: short-time Fourier transforms, and averaged power.

Invariant: windows are computed on the host; segments are gathered once, and added once.
"""

from typing import Any, NamedTuple

import numpy as np

from plait.errors import ArgumentError, AxisError, ShapeError
from plait.ext import Aval
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.indexing import At, getitem
from plait.ext.ops.reduction import mean, sum_
from plait.ext.sizes import is_symbolic
from plait.ext.surface import value
from plait.ext.trace import Value
from plait.ext.types import COMPLEX
from plait.ext.values import from_numpy
from plait.typing import Array, ArrayLike

from ..numpy.fourier import fft, fftfreq, ifft, irfft, rfft, rfftfreq
from ..numpy.statistics import median

_BOUNDARIES = ("zeros", None)


def _triangle(n: int) -> np.ndarray:
    """Return scipy's window "triang", whose ends are not 0."""
    distance = np.abs(2 * np.arange(n) - (n - 1))
    return 1 - distance / (n + 1 if n % 2 else n)


_WINDOWS: dict[str, Any] = {
    "hann": np.hanning,
    "hamming": np.hamming,
    "blackman": np.blackman,
    "bartlett": np.bartlett,
    "triang": _triangle,
}


def _window(given: Any, n: int) -> np.ndarray:
    """Return a window of `n` elements, the first ones of a period."""
    if isinstance(given, str | tuple):
        name, *rest = (given,) if isinstance(given, str) else given
        if name == "boxcar":
            return np.ones(n)
        if name == "kaiser" and len(rest) == 1:
            return np.kaiser(n + 1, rest[0])[:-1] if n > 1 else np.ones(n)
        if name in _WINDOWS and not rest:  # one element is 1, as in scipy: nothing to taper
            return _WINDOWS[name](n + 1)[:-1] if n > 1 else np.ones(n)
        known = ", ".join([*_WINDOWS, "boxcar", '("kaiser", beta)'])
        raise ShapeError(
            f"there is no window {given!r}", fix=f"use one of {known}, or its elements"
        )
    found = np.asarray(given, np.float64)
    if found.shape != (n,):
        raise AxisError(f"a window of shape {found.shape} for pieces of {n}", fix="make them agree")
    return found


class _Cut(NamedTuple):
    """The division of signals into segments."""

    window: np.ndarray
    size: int
    step: int
    length: int  # length of the transforms


def _cut(
    window: str | tuple[float | str, ...],
    n: int | None,
    nperseg: int | None,
    noverlap: int | None,
    nfft: int | None,
) -> _Cut:
    if not isinstance(window, str | tuple) and nperseg is None:
        nperseg = len(window)
    size = 256 if nperseg is None else int(nperseg)
    if n is not None and isinstance(window, str | tuple):
        size = min(size, n)
    overlap = size // 2 if noverlap is None else int(noverlap)
    length = size if nfft is None else int(nfft)
    if size < 1 or not 0 <= overlap < size or length < size:
        raise ShapeError(
            f"pieces of {size} that share {overlap}, transformed over {length} elements",
            fix="nperseg is positive, noverlap less than it, and nfft not less",
        )
    return _Cut(_window(window, size), size, size - overlap, length)


def _weights(x: Array, values: np.ndarray) -> Any:
    real = np.zeros(0, x.aval.dtype).real.dtype
    return sh.convert(from_numpy(values.astype(real)), x.aval.dtype)


def _pieces(x: Value, cut: _Cut, trend: Any) -> Any:
    """Return the spectra of segments of the last axis: (..., segments, frequencies), whole or
    half."""
    count = (x.aval.shape[-1] - cut.size) // cut.step + 1
    at = np.arange(count)[:, None] * cut.step + np.arange(cut.size)
    found = getitem(x, (..., from_numpy(at.astype(np.int32))))
    if trend == "constant":
        found = el.sub(found, mean(found, -1, keepdims=True))
    elif trend == "linear":
        found = without_line(found)
    elif trend:
        found = trend(found)
    return el.mul(found, _weights(found, cut.window))


def without_line(x: Array) -> Any:
    """Subtract the line of least squares, along the last axis."""
    n = x.aval.shape[-1]
    x = el.sub(x, mean(x, -1, keepdims=True))
    if is_symbolic((n,)):
        return _without_slope(x, n)
    if n < 2:
        return x
    t = np.arange(n) - (n - 1) / 2
    t = from_numpy((t / np.sqrt((t * t).sum())).astype(np.zeros(0, x.aval.dtype).real.dtype))
    t = sh.convert(t, x.aval.dtype)
    return el.sub(x, el.mul(sum_(el.mul(x, t), -1, keepdims=True), t))


def _without_slope(x: Any, n: Any) -> Any:
    """Subtract the line of least squares through 0, for a symbolic size."""
    kind = np.zeros(0, x.aval.dtype).real.dtype
    t = el.sub(sh.iota(kind, (n,)), el.div(sh.size_value(n - 1, kind), 2))
    squares = el.maximum(sum_(el.mul(t, t)), 0.5)  # one element has no slope
    t = sh.convert(el.div(t, squares), x.aval.dtype), sh.convert(t, x.aval.dtype)
    return el.sub(x, el.mul(sum_(el.mul(x, t[0]), -1, keepdims=True), t[1]))


def _transformed(x: Value, cut: _Cut, half: bool) -> Any:
    return rfft(x, cut.length) if half else fft(x, cut.length)


def _half(return_onesided: bool, *xs: Value) -> bool:
    return bool(return_onesided) and all(x.aval.category != COMPLEX for x in xs)


def _frequencies(cut: _Cut, half: bool, fs: Any) -> Any:
    return (rfftfreq if half else fftfreq)(cut.length, 1 / fs)


def _checked_trend(trend: bool | str) -> Any:
    if trend in (False, None, "constant", "linear") or callable(trend):
        return trend
    raise ArgumentError(f"detrend={trend!r} is not known here",
                   fix='use "constant", "linear", False or a function of pieces')  # fmt: skip


def csd(
    x: ArrayLike, y: ArrayLike | None, fs: object = 1.0, window: Any = "hann",
    nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
    detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:  # fmt: skip
    """Return the cross power spectrum of two signals, averaged over segments (P. D. Welch, 1967).

    Args:
      x, y: signals along `axis`; `y` None: the power spectrum of `x`.
      fs: samples per unit of time.
      window: "hann", "hamming", "blackman", "bartlett", "boxcar", ("kaiser", beta), or elements.
      nperseg: elements of a segment (256, or the signal).
      noverlap: elements shared by neighbouring segments (half of them).
      nfft: elements of a transform (those of a segment).
      detrend: "constant" (subtract the mean of each segment), "linear" (subtract its line of least
        squares), False, or a function of segments.
      return_onesided: whether real signals give only the frequencies that are not negative.
      scaling: "density" (power for each frequency) or "spectrum" (power).
      axis: axis of the signals.
      average: "mean" or "median".

    Returns (frequencies, spectrum).  As scipy.signal.csd.

    >>> import numpy as np, plait
    >>> plait.scipy.signal.csd(np.ones(16), np.ones(16), nperseg=8)[1].shape
    (5,)
    """
    a = el.floating((x,))[0]
    b = a if y is None else el.floating((y,))[0]
    a, b = sh.convert_together([a, b])
    at = sh.normal_axis(axis, a.aval.ndim)
    a, b = sh.moveaxis(a, at, -1), sh.moveaxis(b, at, -1)
    n = max(a.aval.shape[-1], b.aval.shape[-1])
    a, b = (sh.pad(v, 0, [(0, 0, 0)] * (v.aval.ndim - 1) + [(0, n - v.aval.shape[-1], 0)])
            for v in (a, b))  # fmt: skip
    cut, trend = _cut(window, n, nperseg, noverlap, nfft), _checked_trend(detrend)
    half = _half(return_onesided, a, b)
    first = _transformed(_pieces(a, cut, trend), cut, half)
    second = first if y is None else _transformed(_pieces(b, cut, trend), cut, half)
    power = el.mul(el.conj(first), second)
    power = el.real(power) if y is None else power
    power = el.mul(power, _weights(power, _scales(cut, half, fs, scaling)))
    out = sh.moveaxis(_averaged(power, average), -1, at)
    return _frequencies(cut, half, fs), out


def _scales(cut: _Cut, half: bool, fs: Any, scaling: str) -> np.ndarray:
    if scaling not in ("density", "spectrum"):
        raise ArgumentError(f"there is no scaling {scaling!r}", fix='use "density" or "spectrum"')
    w = cut.window
    one = 1 / (fs * (w * w).sum()) if scaling == "density" else 1 / w.sum() ** 2
    count = cut.length // 2 + 1 if half else cut.length
    out = np.full(count, one)
    if half:  # the frequencies that stand for two
        out[1 : None if cut.length % 2 else -1] *= 2
    return out


def _averaged(power: Value, average: str) -> Any:
    """Average over segments, the axis before the last."""
    if average == "mean":
        return mean(power, -2)
    if average != "median":
        raise ArgumentError(f"there is no average {average!r}", fix='use "mean" or "median"')
    count = power.aval.shape[-2]
    pairs = 2 * np.arange(1.0, (count - 1) // 2 + 1)
    bias = 1 + (1 / (pairs + 1) - 1 / pairs).sum()  # bias of the median of exponential variables
    if power.aval.category == COMPLEX:
        middle = el.complex_(median(el.real(power), -2), median(el.imag(power), -2))
    else:
        middle = median(power, -2)
    return el.div(middle, float(bias))


def welch(
    x: ArrayLike, fs: object = 1.0, window: object = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, detrend: object = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:  # fmt: skip
    """Return the power spectrum of a signal, averaged over segments.

    Arguments are those of `csd`.  Returns (frequencies, power).  As scipy.signal.welch.

    >>> import numpy as np, plait
    >>> t = np.arange(1024, dtype=np.float32)
    >>> f, power = plait.scipy.signal.welch(np.sin(2 * np.pi * 0.25 * t))
    >>> float(f[power.argmax()])
    0.25
    """
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling,
               axis, average)  # fmt: skip


def stft(
    x: ArrayLike, fs: object = 1.0, window: Any = "hann", nperseg: int = 256,
    noverlap: int | None = None, nfft: int | None = None, detrend: Any = False,
    return_onesided: bool = True, boundary: str | None = "zeros", padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the spectra of successive segments of a signal.

    Args:
      x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, axis: as in `csd`.
      boundary: "zeros" adds half a segment of zeros at both ends, so that the first segment is
        centred on the first element; or None.
      padded: whether zeros at the end complete the last segment.

    Returns (frequencies, times, spectra): frequencies along `axis`, segments along the last axis.
    As scipy.signal.stft.

    >>> import numpy as np, plait
    >>> plait.scipy.signal.stft(np.ones(16), nperseg=8)[2].shape
    (5, 5)
    """
    if boundary not in _BOUNDARIES:
        raise ArgumentError(f"there is no boundary {boundary!r}", fix='use "zeros" or None')
    (v,) = el.floating((x,))
    at = sh.normal_axis(axis, v.aval.ndim)
    v = sh.moveaxis(v, at, -1)
    cut = _cut(window, v.aval.shape[-1], nperseg, noverlap, nfft)
    side = cut.size // 2 if boundary else 0
    n = v.aval.shape[-1] + 2 * side
    rest = -(n - cut.size) % cut.step % cut.size if padded else 0
    v = sh.pad(v, 0, [(0, 0, 0)] * (v.aval.ndim - 1) + [(side, side + rest, 0)])
    half = _half(return_onesided, v)
    out = _transformed(_pieces(v, cut, _checked_trend(detrend)), cut, half)
    out = el.mul(out, _weights(out, np.full((), 1 / cut.window.sum())))
    count = out.aval.shape[-2]
    middle = 0 if boundary else cut.size / 2
    times = (np.arange(count) * cut.step + middle) / fs
    real = np.zeros(0, out.aval.dtype).real.dtype
    out = sh.moveaxis(sh.moveaxis(out, -2, -1), -2, at)
    return _frequencies(cut, half, fs), from_numpy(times.astype(real)), out


def istft(
    Zxx: ArrayLike, fs: object = 1.0, window: Any = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True,
    boundary: bool = True, time_axis: int = -1, freq_axis: int = -2,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the signal whose segments have these spectra: the inverse of `stft`, by least squares.

    Args:
      Zxx: spectra, complex.
      fs, window, nperseg, noverlap, nfft: as passed to `stft`.
      input_onesided: whether each spectrum is given by half.
      boundary: whether the signal was extended by half a segment at both ends.
      time_axis, freq_axis: the axes of segments and of frequencies.

    Returns (times, signal).  As scipy.signal.istft.

    >>> import numpy as np, plait
    >>> plait.scipy.signal.istft(np.ones((5, 5)), nperseg=8)[1].shape
    (16,)
    """
    z = value(Zxx)
    if z.aval.ndim < 2:
        raise AxisError(f"istft of {z.aval!r}", fix="give spectra of pieces, two axes at least")
    axes = sh.normal_axis(time_axis, z.aval.ndim), sh.normal_axis(freq_axis, z.aval.ndim)
    z = sh.moveaxis(z, axes, (-2, -1))
    rows = z.aval.shape[-1]
    whole = 2 * (rows - 1) if input_onesided else rows
    size = whole if nperseg is None else int(nperseg)
    length = whole + (input_onesided and size == whole + 1) if nfft is None else int(nfft)
    cut = _cut(window, None, size, noverlap, length)
    pieces = irfft(z, cut.length) if input_onesided else ifft(z, cut.length)
    pieces = sh.slice_in_dim(pieces, 0, cut.size, axis=-1)
    pieces = el.mul(pieces, _weights(pieces, cut.window * cut.window.sum()))
    x = _added(pieces, cut)
    weight = np.zeros(x.aval.shape[-1])
    for k in range(pieces.aval.shape[-2]):
        weight[k * cut.step : k * cut.step + cut.size] += cut.window**2
    x = el.div(x, _weights(x, np.where(weight > 1e-10, weight, 1.0)))
    side = cut.size // 2 if boundary else 0
    x = sh.slice_in_dim(x, side, x.aval.shape[-1] - side, axis=-1)
    real = np.zeros(0, x.aval.dtype).real.dtype
    times = from_numpy((np.arange(x.aval.shape[-1]) / fs).astype(real))
    if x.aval.ndim > 1 and time_axis < freq_axis:
        x = sh.moveaxis(x, -1, time_axis if time_axis >= 0 else time_axis + 1)
    return times, x


def _added(pieces: Value, cut: _Cut) -> Any:
    """Add segments at their positions; overlapping elements are summed."""
    *lead, count, size = pieces.aval.shape
    n = size + (count - 1) * cut.step
    at = (np.arange(count)[:, None] * cut.step + np.arange(size)).ravel().astype(np.int32)
    flat = sh.reshape(pieces, (*lead, count * size))
    return At(sh.fill(0, Aval((*lead, n), flat.aval.dtype)))[..., from_numpy(at)].add(flat)
