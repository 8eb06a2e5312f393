"""Fourier transforms.

Invariant: nothing is defined here.
"""

from ..._ops import fourier as _fourier
from ..._ops.fourier import *

__all__ = _fourier.__all__
