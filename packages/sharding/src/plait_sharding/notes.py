"""Notes beside operations of sharding on the pages of programs.

Invariant: only the rule table `notes` loads this module.
"""

from collections.abc import Sequence
from typing import Any

from plait_inspect.ext import note_rules

from .manual import shard_map_p

__all__: list[str] = []


@note_rules.rule(shard_map_p)
def _(avals: Sequence[Any], outs: Sequence[Any], /, **params: object) -> str:
    """Return the devices that run the pieces."""
    return f"on each device of {params['mesh']!r}"
