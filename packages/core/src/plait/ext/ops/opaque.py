"""Elements that are no numbers.

Invariant: nothing is defined here.
"""

from ..._ops.opaque import (
    unwrap_ as unwrap_,
)
from ..._ops.opaque import (
    wrap_ as wrap_,
)

__all__ = [
    "unwrap_",
    "wrap_",
]
