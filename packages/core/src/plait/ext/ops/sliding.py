"""Products of an array with a kernel that moves over it, exact for integers.

Invariant: nothing is defined here.
"""

from ..._ops import sliding as _sliding
from ..._ops.sliding import *

__all__ = _sliding.__all__
