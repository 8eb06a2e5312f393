"""Products that sum over shared axes.

Invariant: nothing is defined here.
"""

from ..._ops import contraction as _contraction
from ..._ops.contraction import *

__all__ = _contraction.__all__
