"""Gathering, scattering, slicing at computed places, subscripts.

Invariant: nothing is defined here.
"""

from ..._ops import dynamic_slicing as _dynamic_slicing
from ..._ops import indexing as _indexing
from ..._ops import scattering as _scattering
from ..._ops import subscript as _subscript
from ..._ops.dynamic_slicing import *
from ..._ops.index_access import SCATTER
from ..._ops.indexing import *
from ..._ops.scattering import *
from ..._ops.subscript import *

__all__ = ["SCATTER"]
__all__ += _dynamic_slicing.__all__
__all__ += _indexing.__all__
__all__ += _scattering.__all__
__all__ += _subscript.__all__
