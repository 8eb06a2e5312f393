"""Public names for authors of rules for programs on many devices.

Invariant: this module only re-exports.
"""

from .collectives import manual_rules
from .explicit_types import ShardingTypeError, entries_of, explicit_rules
from .manual import shard_map_p
from .placement import constraint

__all__ = [
    "ShardingTypeError", "constraint", "entries_of", "explicit_rules", "manual_rules",
    "shard_map_p",
]  # fmt: skip
