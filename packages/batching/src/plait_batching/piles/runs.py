"""Programs observed on examples whose sizes differ.

Invariant: only the rule table `runs` loads this module.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.errors import ArgumentError, MissingRule
from plait.ext.observers import Observer, runs_rules
from plait.ext.values import as_value

from .capacities import PRESENCE, ragged_axes
from .operation import SHARED, STACKED, pile_map

__all__: list[str] = []


@runs_rules.rule(pile_map)
def _(passage: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    inner = passage.examples(params["program"], params["size"])
    names = {s.name for s in params["sizes"]}
    found = inner.program.out_avals[: inner.width]
    if any(ragged_axes(a.shape, names) for a in found):
        # A check runs on groups of examples of equal sizes instead; findings cannot be stacked so.
        kind = ArgumentError if isinstance(passage, Observer) else MissingRule
        raise kind(
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
    marks = [x for x, s in zip(args, params["sizes"]) if s.name == PRESENCE]
    present = {"there": as_value(marks[0]) > 0} if marks else {}
    return passage.taken_examples(inner, outs, lambda i: f"in example {i}", **present)
