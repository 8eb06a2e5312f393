"""Operations on windows.

Invariant: nothing is defined here.
"""

from ..._ops import windows as _windows
from ..._ops.windows import *

__all__ = _windows.__all__
