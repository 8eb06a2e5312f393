"""Sorting.

Invariant: nothing is defined here.
"""

from ..._ops.sorting import (
    argsort_ as argsort_,
)
from ..._ops.sorting import (
    sort_ as sort_,
)
from ..._ops.sorting import (
    top_k_ as top_k_,
)

__all__ = [
    "argsort_",
    "sort_",
    "top_k_",
]
