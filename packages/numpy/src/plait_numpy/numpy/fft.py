"""The names of numpy.fft.

Invariant: everything is defined in `plait.numpy.fourier`.
"""

from . import fourier as _fourier
from .fourier import *
from .refusals import explain

__all__: list[str] = []
__all__ += _fourier.__all__

explain(globals())
