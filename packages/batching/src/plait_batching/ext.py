"""The public interface for authors of batching rules.

Invariant: this module defines nothing itself.
"""

from .interpreter import Batch, batching_rules, insert, skip
from .overrides import custom_vmap_call
from .piles.carrier import Ragged, pile_rules
from .piles.operation import pile_map
from .piles.padding import padding_rules

__all__ = [
    "Batch", "Ragged", "batching_rules", "custom_vmap_call", "insert", "padding_rules", "pile_map",
    "pile_rules", "skip",
]  # fmt: skip
