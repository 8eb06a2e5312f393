"""Reductions over axes, and the places of extremes.

Invariant: nothing is defined here.
"""

from ..._ops.argreduction import (
    argmax_ as argmax_,
)
from ..._ops.argreduction import (
    argmin_ as argmin_,
)
from ..._ops.argreduction import (
    dtype_for_indices as dtype_for_indices,
)
from ..._ops.reduction import (
    reduce_and as reduce_and,
)
from ..._ops.reduction import (
    reduce_max as reduce_max,
)
from ..._ops.reduction import (
    reduce_min as reduce_min,
)
from ..._ops.reduction import (
    reduce_or as reduce_or,
)
from ..._ops.reduction import (
    reduce_prod as reduce_prod,
)
from ..._ops.reduction import (
    reduce_sum as reduce_sum,
)
from ..._ops.reduction import (
    reduce_xor as reduce_xor,
)

__all__ = [
    "argmax_",
    "argmin_",
    "dtype_for_indices",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reduce_xor",
]
