"""vmap of Fourier transforms against a Python loop.

Invariant: as in conftest: every axis, none, size 1, nested.
"""

import numpy as np

import plait.numpy as pnp


def test_every_kind(mapped):
    mapped(lambda x: [pnp.fft.rfft2(x), pnp.fft.fft(x, 3, 0)], (4, 3))
    mapped(lambda x: [pnp.fft.irfftn(x), pnp.fft.ifft(x, axis=0)], (4, 3), dtypes=np.complex128)
