"""Reductions over axes, and the places of extremes.

Invariant: nothing is defined here.
"""

from ..._ops.argreduction import argmax_, argmin_, dtype_for_indices, is_max, is_min
from ..._ops.reduction import (
    highest,
    lowest,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)

__all__ = [
    "argmax_",
    "argmin_",
    "dtype_for_indices",
    "highest",
    "is_max",
    "is_min",
    "lowest",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reduce_xor",
]
