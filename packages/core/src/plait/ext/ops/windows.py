"""Operations on windows.

Invariant: nothing is defined here.
"""

from ..._ops import sliding as _sliding
from ..._ops import windows as _windows
from ..._ops.sliding import *
from ..._ops.windows import *

__all__: list[str] = []
__all__ += _sliding.__all__
__all__ += _windows.__all__
