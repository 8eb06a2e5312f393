"""The names of scipy.fft: Fourier transforms as numpy's, and cosine transforms.

Invariant: everything is defined in `plait.numpy.fourier` and `plait.scipy.transforms`.
"""

import plait_numpy.numpy.fourier as _fourier
from plait.ext.surface import advise as _advise

from ..numpy.fft import *
from ..refusals import explain
from .transforms import dct, dctn, idct, idctn

# Not `from ..numpy import fourier`: type checkers would then take the package's list for this one.
__all__ = ["dct", "dctn", "idct", "idctn"]
__all__ += _fourier.__all__

explain(globals())

_advise("plait.scipy.fft", globals())
