"""Sorting.

Invariant: nothing is defined here.
"""

from ..._ops import sorting as _sorting
from ..._ops.sorting import *

__all__ = _sorting.__all__
