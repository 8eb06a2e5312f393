"""The public surface for authors of batching rules.

Invariant: nothing is defined here.
"""

from .interpreter import (
    Batch,
    batching_rules,
    insert,
    skip,
)
from .overrides import (
    custom_vmap_call,
)

__all__ = [
    "Batch",
    "batching_rules",
    "custom_vmap_call",
    "insert",
    "skip",
]
