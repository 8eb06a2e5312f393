"""A condition that must hold: what `plait.checks.check` records.

Invariant: it has no results, and says nothing where the condition holds; compiled, it is refused,
unless somebody collected it before or it may be left out (`optional`).
"""

from typing import Any, Protocol

from .._base.errors import ArgumentError
from .._core.ir import Effect
from .._core.primitive import Primitive
from .._plugins.rules import RuleTable
from .._types.avals import BOOL, Aval
from .._xla.lower import eager_rules, lower_rules

CHECK = Effect("check", repeatable=True)

checks_rules = RuleTable(
    "checks",
    owns=("core",),
    signature="(found, args, params)",
    programs="(found, args, params)",
    doc="the results of an operation with programs in which checks are, for `checkify`: the rule "
    "applies it over `found.checked(program)` and lets `found` take what that found.",
)


class Said(Protocol):
    """What is said where a condition does not hold."""

    def error(self, ok: Any, payload: Any) -> Exception:
        """Return the error for a condition, and what goes with it, as numpy arrays."""
        ...


def _check(ok: Aval, *payload: Aval, said: Any, optional: bool) -> list[Aval]:
    """Hold that `ok` is True everywhere; its axes are leading axes of everything in `payload`,
    which is for the message."""
    if ok.dtype != BOOL or any(x.shape[: ok.ndim] != ok.shape for x in payload):
        raise ArgumentError(
            f"a check of {ok!r} with {list(payload)} for its message",
            fix="the condition is of bools, and its axes are the first of all others",
        )
    return []


check_p = Primitive("core.check", _check, many=True, effect=lambda params: CHECK)


@eager_rules.rule(check_p)
def _(args, params):
    ok, *payload = [a.numpy() for a in args]
    if not ok.all():
        raise params["said"].error(ok, payload)
    return []


@lower_rules.rule(check_p)
def _(e, xs, ins, outs, said, optional):
    if optional:
        return []
    raise ArgumentError(
        "check: compiled code can not raise errors, and nobody collects them",
        where=getattr(said, "where", None),
        fix="call plait.checks.checkify(f) instead of f, outside of jit or inside of it, and look "
        "at the error that it returns; debug_check is left out where nobody does",
    )
