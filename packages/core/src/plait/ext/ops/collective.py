"""Operations along named axes.

Invariant: nothing is defined here.
"""

from ..._ops import collective as _collective
from ..._ops.collective import *

__all__ = _collective.__all__
