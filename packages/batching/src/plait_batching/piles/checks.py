"""Checks of examples whose sizes differ: errors name the first example that fails.

Invariant: only the rule table of plait.checks loads this module.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.errors import MissingRule
from plait.ext.rules import checks_rules

from .capacities import ragged_axes
from .operation import STACKED, pile_map

__all__: list[str] = []


@checks_rules.rule(pile_map)
def _(found: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    inner = found.checked(params["program"])
    names = {s.name for s in params["sizes"]}
    if any(ragged_axes(a.shape, names) for a in inner.state):
        raise MissingRule(
            "the message of a check shows an array whose size differs from example to example",
            where=inner.places[0].where,
            fix="show numbers that are made of it, its sum for instance",
        )
    kinds = (STACKED,) * inner.width
    new = {**params, "program": inner.program, "outs": (*kinds, *params["outs"])}
    return found.taken_first(inner, pile_map.bind(*args, **new), lambda i: f"in example {i}")
