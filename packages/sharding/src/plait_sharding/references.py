"""References of outside that are read in shard_map: every device has the whole of them.

Invariant: only the table of plait_state loads this.
"""

from collections.abc import Sequence
from typing import Any

from plait_state.ext import discharge_rules, reading

from .manual import shard_map_p

__all__: list[str] = []


@discharge_rules.rule(shard_map_p)
def _shard_map(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    operands, params = reading(shard_map_p, args, params)
    # a reference has no axes, and neither has what was said of it
    specs = [
        s if x is a else ((),) * x.aval.ndim
        for x, a, s in zip(operands, args, params["in_specs"], strict=True)
    ]
    return shard_map_p.bind(*operands, **{**params, "in_specs": tuple(specs)})
