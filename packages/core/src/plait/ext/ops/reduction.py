"""Reductions over axes, and the places of extremes.

Invariant: nothing is defined here.
"""

from ..._ops import argreduction as _argreduction
from ..._ops import reduction as _reduction
from ..._ops.argreduction import *
from ..._ops.reduction import *

__all__: list[str] = []
__all__ += _argreduction.__all__
__all__ += _reduction.__all__
