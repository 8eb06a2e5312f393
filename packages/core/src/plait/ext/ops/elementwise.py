"""Elementwise operations, and reading bits as another dtype.

Invariant: nothing is defined here.
"""

from ..._ops import accuracy as _accuracy
from ..._ops import conversion as _conversion
from ..._ops import elementwise as _elementwise
from ..._ops.accuracy import *
from ..._ops.conversion import *
from ..._ops.elementwise import *

__all__: list[str] = []
__all__ += _accuracy.__all__
__all__ += _conversion.__all__
__all__ += _elementwise.__all__
