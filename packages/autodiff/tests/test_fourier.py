"""Derivatives of Fourier transforms against finite differences, and inner products.

Invariant: every kind, lengths odd and even, one axis and several.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.ext.ops.fourier import fft_
from plait_autodiff import check_grads, grad
from plait_autodiff.laws import jvp_law, transpose_law

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 3, 4))
Z = X + 1j * rng.normal(size=(2, 3, 4))
CASES = [
    (Z, "fft", (3, 4)), (X, "rfft", (3, 4)), (X[..., :3], "rfft", (3,)),
    (Z[..., :3], "irfft", (3, 4)), (Z[..., :3], "irfft", (5,)), (Z[..., :1], "irfft", (1,)),
]  # fmt: skip


@pytest.mark.parametrize(("x", "kind", "lengths"), CASES, ids=lambda p: str(p)[:9])
def test_laws(x, kind, lengths):
    params = {"kind": kind, "lengths": lengths}
    assert jvp_law(fft_, (x,), params) == 2
    assert transpose_law(fft_, (x,), params) == 2


def test_through_numpys_names():
    def f(x):
        y = pnp.fft.rfft2(x, norm="ortho")
        z = pnp.fft.irfftn(y * y, (2, 3), (2, 1))
        return pnp.fft.hfft(pnp.fft.fft(z, 3, axis=0), axis=0)

    check_grads(f, (X,), order=2)


def test_energy_is_kept():
    """The sum of squares of an orthonormal spectrum is that of the signal."""
    g = plait.jit(grad(lambda x: pnp.sum(pnp.abs(pnp.fft.fftn(x, norm="ortho")) ** 2)))(X)
    np.testing.assert_allclose(np.asarray(g), 2 * X, rtol=1e-10)
