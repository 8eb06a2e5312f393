"""The names of scipy.fft: Fourier transforms as numpy's, and cosine transforms.

Invariant: everything is defined in `plait.numpy.fourier` and `plait.scipy.transforms`.
"""

from ..numpy import fft as _fft
from ..numpy.fft import *
from .transforms import dct, dctn, idct, idctn

__all__ = ["dct", "dctn", "idct", "idctn"]
__all__ += _fft.__all__
