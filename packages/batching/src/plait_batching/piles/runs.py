"""Programs observed on examples whose sizes differ.

Invariant: only the rule table `runs` loads this module.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.errors import MissingRule
from plait.ext.observers import runs_rules

from .capacities import ragged_axes
from .operation import SHARED, STACKED, pile_map

__all__: list[str] = []


@runs_rules.rule(pile_map)
def _(passage: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    inner = passage.examples(params["program"], params["size"])
    names = {s.name for s in params["sizes"]}
    found = inner.program.out_avals[: inner.width]
    if any(ragged_axes(a.shape, names) for a in found):
        raise MissingRule(
            "an array that is observed in an example, or shown by a check, has a size that "
            "differs from example to example",
            fix="observe numbers that are made of it, its sum for instance",
        )
    front = (*(SHARED for _ in inner.operands), *(STACKED for _ in inner.rows))
    new = {
        **params,
        "program": inner.program,
        "kinds": (*front, *params["kinds"]),
        "outs": (*(STACKED,) * inner.width, *params["outs"]),
    }
    n = len(params["sizes"])
    outs = pile_map.bind(*args[:n], *inner.operands, *inner.rows, *args[n:], **new)
    return passage.taken_examples(inner, outs, lambda i: f"in example {i}")
