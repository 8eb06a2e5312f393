"""Elements that are not numbers.

Invariant: nothing is defined here.
"""

from ..._ops.opaque import unwrap, unwrap_, wrap, wrap_

__all__ = [
    "unwrap",
    "unwrap_",
    "wrap",
    "wrap_",
]
