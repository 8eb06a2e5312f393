"""The platform a program runs on.

Invariant: nothing is defined here.
"""

from ..._ops import platforms as _platforms
from ..._ops.platforms import *

__all__ = _platforms.__all__
