"""plait.scipy's signals and cosine transforms against scipy.

Invariant: scipy says what is right; the one place where it does not conjugate is left out.
"""

import doctest

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import plait.numpy.fft
import plait.scipy.fft as fourier
import plait.scipy.signal as signal
from plait.errors import AxisError, TypeRule
from plait.scipy import spectra, transforms

RNG = np.random.default_rng(0)
X, Y, Z = RNG.normal(size=7), RNG.normal(size=4), RNG.normal(size=4) + 1j * RNG.normal(size=4)


def same(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode):
    for name in ("convolve", "correlate", "fftconvolve"):
        ours, theirs = getattr(signal, name), getattr(scipy.signal, name)
        for x, y in ((X, Z), (Y, X)):
            same(ours(x, y, mode), theirs(x, y, mode))
    same(signal.convolve(X, Y, mode, "fft"), scipy.signal.convolve(X, Y, mode, "fft"))
    image, kernel = RNG.normal(size=(6, 5)), RNG.normal(size=(4, 3))
    for name in ("convolve2d", "correlate2d"):
        for boundary, fill in (("fill", 1.5), ("symm", 0)):
            ours, theirs = getattr(signal, name), getattr(scipy.signal, name)
            same(ours(image, kernel, mode, boundary, fill),
                 theirs(image, kernel, mode, boundary, fill))  # fmt: skip
        if mode == "valid":
            same(ours(image[:2, :2], kernel, mode), theirs(image[:2, :2], kernel, mode))


def test_axes_and_dtypes_of_convolutions():
    x = RNG.normal(size=(3, 8))
    same(signal.fftconvolve(x, x[:, :4], axes=1), scipy.signal.fftconvolve(x, x[:, :4], axes=1))
    k = RNG.integers(-5, 5, (5, 6))
    assert signal.convolve(k, k[:2, :3]).dtype == k.dtype
    same(signal.convolve(k, k[:2, :3]), scipy.signal.convolve(k, k[:2, :3], method="direct"))
    for f in (lambda: signal.convolve(X, x), lambda: signal.convolve2d(X, Y),
              lambda: signal.convolve(x, x.T, "valid")):  # fmt: skip
        with pytest.raises(AxisError):
            f()
    with pytest.raises(TypeRule, match="no mode"):
        signal.convolve(X, Y, "half")


def test_trends():
    x = RNG.normal(size=(3, 20)) + np.arange(20)
    same(signal.detrend(x), scipy.signal.detrend(x))
    same(signal.detrend(x, 0, "constant"), scipy.signal.detrend(x, 0, "constant"))
    same(signal.detrend(x, bp=[5, 9]), scipy.signal.detrend(x, bp=[5, 9]))
    with pytest.raises(TypeRule, match="no trend"):
        signal.detrend(x, type="cubic")


POWERS = [
    {"nperseg": 15, "noverlap": 4, "window": "hamming"},
    {"nperseg": 16, "nfft": 20, "scaling": "spectrum", "detrend": False, "average": "median"},
    {"nperseg": 16, "return_onesided": False, "fs": 10.0, "window": ("kaiser", 3.0)},
]


@pytest.mark.parametrize("options", POWERS, ids=lambda o: str(len(o)))
@pytest.mark.filterwarnings("ignore")
def test_power(options):
    x, y = RNG.normal(size=(2, 2, 60))
    for name, operands in (("welch", (x,)), ("csd", (x, y))):
        got = getattr(signal, name)(*operands, **options)
        for g, w in zip(got, getattr(scipy.signal, name)(*operands, **options)):
            np.testing.assert_allclose(np.asarray(g), w, rtol=1e-6, atol=1e-9)


PIECES = [
    {"nperseg": 15, "noverlap": 4},
    {"nperseg": 16, "boundary": None, "padded": False},
    {"nperseg": 16, "fs": 3.0, "nfft": 32, "axis": 0},
    {"nperseg": 16, "return_onesided": False, "window": "boxcar"},
]


@pytest.mark.parametrize("options", PIECES, ids=lambda o: str(o["nperseg"]) + str(len(o)))
@pytest.mark.filterwarnings("ignore")
def test_pieces(options):
    x = RNG.normal(size=(2, 100))
    x = x.T if "axis" in options else x
    theirs = scipy.signal.stft(x, **options)
    for g, w in zip(signal.stft(x, **options), theirs):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-6, atol=1e-9)
    both = ("nperseg", "noverlap", "fs", "nfft", "window")
    back = {k: v for k, v in options.items() if k in both}
    back["boundary"] = "boundary" not in options
    back["input_onesided"] = "return_onesided" not in options
    z = np.moveaxis(theirs[2], 0, 1) if "axis" in options else theirs[2]
    same(signal.istft(z, **back)[1], scipy.signal.istft(z, **back)[1])


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_cosine_transforms(kind):
    x = RNG.normal(size=(3, 6))
    for norm, names in (("ortho", ("dct", "idct")), (None, ("dct",)), ("forward", ("idct",))):
        for name in names:
            ours, theirs = getattr(fourier, name), getattr(scipy.fft, name)
            same(ours(x, kind, n=None, norm=norm), theirs(x, kind, norm=norm))
    same(fourier.dct(x, kind, n=8, axis=0), scipy.fft.dct(x, kind, n=8, axis=0))
    same(fourier.idct(x, kind, n=2, axis=0), scipy.fft.idct(x, kind, n=2, axis=0))
    same(fourier.dctn(x, kind), scipy.fft.dctn(x, kind))
    same(fourier.idctn(x, kind, (4, 4), norm="ortho"),
         scipy.fft.idctn(x, kind, (4, 4), norm="ortho"))  # fmt: skip


def test_errors_of_transforms():
    with pytest.raises(TypeRule, match="no cosine transform of type 5"):
        fourier.dct(X, 5)
    with pytest.raises(TypeRule, match="no window"):
        signal.welch(X, window="round")
    assert fourier.fft is plait.numpy.fft.fft


def test_examples():
    for module in (signal, spectra, transforms):
        assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("window", ["hann", "hamming", "triang", "blackman", ("kaiser", 3.0)])
def test_windows_of_one_element(window):
    x = np.array([2.375])
    _, _, got = plait.scipy.signal.stft(x, window=window, nperseg=1)
    _, _, want = scipy.signal.stft(x, window=window, nperseg=1)
    np.testing.assert_allclose(got, want, rtol=1e-6)
