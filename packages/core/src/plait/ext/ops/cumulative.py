"""Running reductions and linear recurrences.

Invariant: nothing is defined here.
"""

from ..._ops.cumulative import (
    cumlogsumexp_,
    cummax_,
    cummin_,
    cumprod_,
    cumsum_,
    recurrence,
)

__all__ = [
    "cumlogsumexp_",
    "cummax_",
    "cummin_",
    "cumprod_",
    "cumsum_",
    "recurrence",
]
