"""Elements that are not numbers.

Invariant: nothing is defined here.
"""

from ..._ops import opaque as _opaque
from ..._ops.opaque import *

__all__ = _opaque.__all__
