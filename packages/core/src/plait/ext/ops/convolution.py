"""Convolutions.

Invariant: nothing is defined here.
"""

from ..._ops import convolution as _convolution
from ..._ops.convolution import *

__all__ = _convolution.__all__
