"""Fourier transforms: the primitive, and numpy.fft's names, against numpy.

Invariant: numpy says what is right, and so it does what is wrong.
"""

import numpy as np
import pytest

import plait
import plait.lax as lax
import plait.numpy as pnp
from plait import testing
from plait.errors import AxisError, TypeRule
from plait.ext.ops.fourier import fft_
from plait.ext.sizes import symbolic_dims

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 4))
Z = X + 1j * RNG.normal(size=(2, 3, 4))
PRIMITIVES = [
    (Z, "fft", (3, 4), lambda x: np.fft.fftn(x, axes=(-2, -1))),
    (Z.astype(np.complex64), "ifft", (4,), np.fft.ifft),
    (X, "rfft", (2, 3, 4), np.fft.rfftn),
    (Z[..., :3], "irfft", (5,), lambda x: np.fft.irfft(x, 5)),
]


@pytest.mark.parametrize(("x", "kind", "lengths", "reference"), PRIMITIVES,
                         ids=lambda p: str(p)[:9])  # fmt: skip
def test_the_primitive_conforms(x, kind, lengths, reference):
    want = lambda x, **params: reference(x)  # noqa: E731
    report = testing.conformance(fft_, [x], want, {"kind": kind, "lengths": lengths})
    for check in ("type", "value", "jit", "text", "trait linear"):
        assert report.checks[check] == 1, report
    assert report.checks.get("symbolic") == (1 if len(lengths) < x.ndim else None), report


def same(got, want):
    assert got.shape == want.shape
    assert got.dtype.kind == want.dtype.kind
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_along_one_axis(name):
    x = X if name in ("rfft", "ihfft") else Z
    ours, numpys = getattr(pnp.fft, name), getattr(np.fft, name)
    for options in ({}, {"n": 7, "norm": "ortho"}, {"n": 1, "axis": -2, "norm": "forward"}):
        same(ours(x, **options), numpys(x, **options))
    same(plait.jit(lambda v: ours(v, 6, 0))(x), numpys(x, 6, 0))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_over_several_axes(name):
    x = X if name == "rfft" else Z
    many, manys = getattr(pnp.fft, name + "n"), getattr(np.fft, name + "n")
    two, twos = getattr(pnp.fft, name + "2"), getattr(np.fft, name + "2")
    same(many(x, (5, 2), (2, 0), "ortho"), manys(x, (5, 2), (2, 0), "ortho"))
    same(two(x, (4, 4), norm="forward"), twos(x, (4, 4), norm="forward"))
    wide = np.stack([x, 2 * x])[:, None]  # five axes: two transforms
    same(many(wide), manys(wide))
    if name in ("fft", "ifft"):
        same(many(x, axes=(0, 1, 0)), manys(x, axes=(0, 1, 0)))
        same(many(x, axes=()), manys(x, axes=()))


def test_dtypes():
    for dtype, back in ((np.float32, np.complex64), (np.float64, np.complex128),
                        (np.int32, np.complex64), (np.float16, np.complex64),
                        (np.bool_, np.complex64), (np.complex64, np.complex64)):  # fmt: skip
        assert pnp.fft.fft(np.ones(4, dtype)).dtype == back
    assert pnp.fft.irfft(np.ones(3, np.complex64)).dtype == np.float32
    assert pnp.fft.irfft(np.ones(3)).dtype == np.float64


def test_axes_of_spectra():
    for n in (1, 4, 5):
        same(pnp.fft.fftfreq(n, 0.5, dtype="float64"), np.fft.fftfreq(n, 0.5))
        same(pnp.fft.rfftfreq(n, dtype="float64"), np.fft.rfftfreq(n))
    same(plait.jit(lambda d: pnp.fft.fftfreq(6, d, dtype="float64"))(0.25), np.fft.fftfreq(6, 0.25))
    assert pnp.fft.fftfreq(3).dtype == np.float32
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 1, (0, 2)):
            same(getattr(pnp.fft, name)(X, axes), getattr(np.fft, name)(X, axes))


def test_nothing_to_transform():
    assert pnp.fft.fft(np.ones((0, 4))).shape == (0, 4)
    with pytest.raises(TypeRule, match="over 0 elements"):
        pnp.fft.rfft(np.ones((3, 0)))
    with pytest.raises(TypeRule, match="over 0 elements"):
        pnp.fft.fft(np.ones((3, 4)), n=0)


def test_lax():
    same(lax.fft(Z, "FFT", 4), np.fft.fft(Z))
    same(lax.fft(X, lax.FftType.RFFT, (3, 4)), np.fft.rfft2(X))


def test_errors():
    with pytest.raises(AxisError):
        pnp.fft.fft(X, axis=3)
    with pytest.raises(TypeRule, match="no norm 'half'"):
        pnp.fft.fft(X, norm="half")
    with pytest.raises(AxisError, match="2 lengths for 1 axes"):
        pnp.fft.fftn(X, (2, 2), (0,))
    with pytest.raises(TypeRule, match="take .real first"):
        pnp.fft.rfft(Z)
    with pytest.raises(TypeRule, match="takes the sizes"):
        lax.fft(Z, "ifft", (5,))
    with pytest.raises(TypeRule, match="there is no kind 'dct'"):
        lax.fft(Z, "dct", (4,))
    with pytest.raises(AxisError, match="one to three axes"):
        lax.fft(Z, "fft", (1, 2, 3, 4))
    (b,) = symbolic_dims("b")
    whole = plait.ShapeDtypeStruct((3, b), np.complex64)
    assert plait.eval_shape(pnp.fft.fft, whole).shape == (3, b)
    half = plait.ShapeDtypeStruct((b, 4, 6), np.float32)
    assert plait.eval_shape(lambda x: pnp.fft.rfft2(x), half).shape == (b, 4, 4)
