"""vmap of Fourier transforms against a Python loop.

Invariant: as in conftest: every axis, none, size 1, nested.
"""

import numpy as np

import weft.numpy as wnp


def test_every_kind(mapped):
    mapped(lambda x: [wnp.fft.rfft2(x), wnp.fft.fft(x, 3, 0)], (4, 3))
    mapped(lambda x: [wnp.fft.irfftn(x), wnp.fft.ifft(x, axis=0)], (4, 3), dtypes=np.complex128)
