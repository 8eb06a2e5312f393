"""Sorting.

Invariant: nothing is defined here.
"""

from ..._ops.sorting import argsort_, sort_, top_k_

__all__ = [
    "argsort_",
    "sort_",
    "top_k_",
]
