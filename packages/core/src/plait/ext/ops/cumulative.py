"""Running reductions and linear recurrences.

Invariant: nothing is defined here.
"""

from ..._ops.cumulative import (
    accumulated,
    cumlogsumexp_,
    cummax_,
    cummin_,
    cumprod_,
    cumsum_,
    law_of,
    recurrence,
)

__all__ = [
    "accumulated",
    "cumlogsumexp_",
    "cummax_",
    "cummin_",
    "cumprod_",
    "cumsum_",
    "law_of",
    "recurrence",
]
