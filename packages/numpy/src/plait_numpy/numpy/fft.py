"""The names of numpy.fft.

Invariant: everything is defined in `plait.numpy.fourier`.
"""

import plait_numpy.numpy.fourier as _fourier
from plait.ext.surface import advise as _advise

from ..refusals import explain
from .fourier import *

# An import from the package would make type checkers take its list for this one.
__all__: list[str] = []
__all__ += _fourier.__all__

explain(globals())

_advise("plait.numpy.fft", globals())
