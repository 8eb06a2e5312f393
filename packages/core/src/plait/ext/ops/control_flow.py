"""Operations that carry programs.

Invariant: nothing is defined here.
"""

from ..._ops import composite as _composite
from ..._ops import control_flow as _control_flow
from ..._ops import mapping as _mapping
from ..._ops.composite import *
from ..._ops.control_flow import *
from ..._ops.mapping import *

__all__: list[str] = []
__all__ += _composite.__all__
__all__ += _control_flow.__all__
__all__ += _mapping.__all__
