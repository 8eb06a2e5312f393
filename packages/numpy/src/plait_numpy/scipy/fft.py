"""The names of scipy.fft: Fourier transforms as numpy's, and cosine transforms.

Invariant: everything is defined in `plait.numpy.fourier` and `plait.scipy.transforms`.
"""

import plait_numpy.numpy.fourier as _fourier

from ..numpy.fft import *
from .transforms import dct, dctn, idct, idctn

# An import from the package would make type checkers take its list for this one.
__all__ = ["dct", "dctn", "idct", "idctn"]
__all__ += _fourier.__all__
