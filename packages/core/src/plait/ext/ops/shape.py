"""Operations that move elements, conversion, constants.

Invariant: nothing is defined here.
"""

from ..._ops import shape as _shape
from ..._ops import sizes as _sizes
from ..._ops.shape import *
from ..._ops.sizes import *

__all__: list[str] = []
__all__ += _shape.__all__
__all__ += _sizes.__all__
