"""Reductions over axes, and the places of extremes.

Invariant: nothing is defined here.
"""

from ..._ops import argreduction as _argreduction
from ..._ops import reduction as _reduction
from ..._ops import scaled_products as _scaled_products
from ..._ops.argreduction import *
from ..._ops.reduction import *
from ..._ops.scaled_products import *

__all__: list[str] = []
__all__ += _argreduction.__all__
__all__ += _reduction.__all__
__all__ += _scaled_products.__all__
