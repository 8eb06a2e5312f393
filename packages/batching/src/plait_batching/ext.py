"""What authors of batching rules build on.

Invariant: nothing is defined here.
"""

from .interpreter import (
    Batch as Batch,
)
from .interpreter import (
    batching_rules as batching_rules,
)
from .interpreter import (
    insert as insert,
)
from .interpreter import (
    skip as skip,
)
from .overrides import (
    custom_vmap_call as custom_vmap_call,
)

__all__ = [
    "Batch",
    "batching_rules",
    "custom_vmap_call",
    "insert",
    "skip",
]
