"""Running reductions and linear recurrences.

Invariant: nothing is defined here.
"""

from ..._ops.cumulative import (
    cumlogsumexp_ as cumlogsumexp_,
)
from ..._ops.cumulative import (
    cummax_ as cummax_,
)
from ..._ops.cumulative import (
    cummin_ as cummin_,
)
from ..._ops.cumulative import (
    cumprod_ as cumprod_,
)
from ..._ops.cumulative import (
    cumsum_ as cumsum_,
)
from ..._ops.cumulative import (
    recurrence as recurrence,
)

__all__ = [
    "cumlogsumexp_",
    "cummax_",
    "cummin_",
    "cumprod_",
    "cumsum_",
    "recurrence",
]
