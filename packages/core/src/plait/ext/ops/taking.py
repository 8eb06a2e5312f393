"""Elements taken along one axis.

Invariant: nothing is defined here.
"""

from ..._ops import taking as _taking
from ..._ops.taking import *

__all__ = _taking.__all__
