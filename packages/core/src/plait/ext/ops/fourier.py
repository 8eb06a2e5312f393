"""Fourier transforms.

Invariant: nothing is defined here.
"""

from ..._ops.fourier import fft_

__all__ = [
    "fft_",
]
