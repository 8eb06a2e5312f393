"""Calls of Python, and of foreign functions.

Invariant: nothing is defined here.
"""

from ..._ops import callbacks as _callbacks
from ..._ops import foreign_calls as _foreign_calls
from ..._ops.callbacks import *
from ..._ops.foreign_calls import *

__all__: list[str] = []
__all__ += _callbacks.__all__
__all__ += _foreign_calls.__all__
