"""The names of numpy.fft.

Invariant: everything is defined in `plait.numpy.fourier`.
"""

import plait_numpy.numpy.fourier as _fourier

from .fourier import *
from .refusals import explain

# Not `from . import fourier`: type checkers would then take the list of the package for this one.
__all__: list[str] = []
__all__ += _fourier.__all__

explain(globals())
