"""The table of rules that map each operation of StableHLO to operations of Plait.

    @reads("stablehlo.add")
    def _(walk, op, xs):          # xs: values
        return el.add.bind(*xs)   # a value, or a list of them if the operation has many results

Invariant: an operation has one rule, or is refused by name with a reason.
"""

from collections.abc import Callable
from typing import Any

RULES: dict[str, Callable[..., Any]] = {}
"""By name of the operation: rule(walk, op, xs) -> value, or list of values."""

OF_SEVERAL_DEVICES = (
    "stablehlo.partition_id", "stablehlo.replica_id", "stablehlo.all_reduce",
    "stablehlo.all_gather", "stablehlo.all_to_all", "stablehlo.collective_permute",
    "stablehlo.collective_broadcast", "stablehlo.reduce_scatter", "stablehlo.cross-replica-sum",
    "sdy.manual_computation", "sdy.mesh", "sdy.return",
)  # fmt: skip
"""Operations that have a meaning only if several devices run the module."""

ACTING = (
    "stablehlo.create_token", "stablehlo.after_all", "stablehlo.infeed", "stablehlo.outfeed",
    "stablehlo.send", "stablehlo.recv",
)  # fmt: skip
"""Operations that act on the world, or order those that do."""

UNSEEN_STATE = "stablehlo.rng"
"""The operation that draws from a hidden state."""

REFUSED: dict[str, str] = {}
"""By name of a known operation that cannot be read: the reason."""


def reads(*names: str) -> Callable[[Callable], Callable]:
    """Register a rule for operations."""

    def register(rule: Callable) -> Callable:
        for name in names:
            assert name not in RULES, name
            RULES[name] = rule
        return rule

    return register


def refuses(why: str, *names: str) -> None:
    """Register operations as refused, with a reason."""
    for name in names:
        REFUSED[name] = why


def enum(attribute: str) -> str:
    """Return the word of an enumeration such as `#stablehlo<comparison_direction EQ>`.

    Its short form is accepted, too.
    """
    return str(attribute).rstrip(">").replace("<", " ").split()[-1]
