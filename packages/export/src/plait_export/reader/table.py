"""The table of rules: for each operation of StableHLO, how it is said with operations of Plait.

    @reads("stablehlo.add")
    def _(walk, op, xs):          # xs: values
        return el.add.bind(*xs)   # a value, or a list of them if the operation has many results

Invariant: an operation has one rule, or is refused by name with what is to be done instead.
"""

from collections.abc import Callable
from typing import Any

RULES: dict[str, Callable] = {}
"""By name of the operation: rule(walk, op, xs) -> value, or list of values."""

OF_SEVERAL_DEVICES = (
    "stablehlo.partition_id", "stablehlo.replica_id", "stablehlo.all_reduce",
    "stablehlo.all_gather", "stablehlo.all_to_all", "stablehlo.collective_permute",
    "stablehlo.collective_broadcast", "stablehlo.reduce_scatter", "stablehlo.cross-replica-sum",
    "sdy.manual_computation", "sdy.mesh", "sdy.return",
)  # fmt: skip
"""Operations that have a meaning where several devices run the module."""

ACTING = (
    "stablehlo.create_token", "stablehlo.after_all", "stablehlo.infeed", "stablehlo.outfeed",
    "stablehlo.send", "stablehlo.recv",
)  # fmt: skip
"""Operations that act on the world, or say when others do."""

UNSEEN_STATE = "stablehlo.rng"
"""The operation that draws from a state which nobody sees."""

REFUSED: dict[str, str] = {}
"""By name of an operation that is known and can not be read: why."""


def reads(*names: str) -> Callable[[Callable], Callable]:
    """A rule for operations."""

    def register(rule: Callable) -> Callable:
        for name in names:
            assert name not in RULES, name
            RULES[name] = rule
        return rule

    return register


def refuses(why: str, *names: str) -> None:
    """Operations that are refused."""
    for name in names:
        REFUSED[name] = why


def enum(attribute: Any) -> str:
    """The word of an enumeration, `#stablehlo<comparison_direction EQ>`, or of its short form."""
    return str(attribute).rstrip(">").replace("<", " ").split()[-1]
