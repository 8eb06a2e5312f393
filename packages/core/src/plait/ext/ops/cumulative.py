"""Running reductions and linear recurrences.

Invariant: nothing is defined here.
"""

from ..._ops import cumulative as _cumulative
from ..._ops.cumulative import *

__all__ = _cumulative.__all__
