"""A condition that must hold: the primitive that `plait.checks.check` records.

Invariant: it has no results, and does nothing where the condition holds.  Lowering refuses it
unless it was collected before, may be left out (`optional`), or calls Python where the condition
does not hold (`Said.enforced`).
"""

from typing import Any, Protocol

import numpy as np

from .._base.errors import ArgumentError
from .._base.jaxlib_api import IrValue
from .._core.interpreter import Value
from .._core.ir import Effect, Program
from .._core.primitive import Primitive
from .._core.staging import staged
from .._types.avals import BOOL, INT32, Aval
from .._xla.lower import eager_rules, lower_rules
from .callbacks import DEBUG, host
from .control_flow import cond
from .reduction import reduce_and
from .shape import convert

__all__ = ["CHECK", "check_p"]

CHECK = Effect("check", repeatable=True)


class Said(Protocol):
    """The error to raise where a condition does not hold."""

    enforced: bool
    """True if compiled code calls Python to raise the error of a check that was not collected.

    It is for `optional` conditions: they are left out where Python is not called (in artifacts and
    in the pieces of `shard_map`)."""

    def error(self, ok: Any, payload: Any) -> Exception:
        """Return the error for a condition and its payload, as numpy arrays."""
        ...


def _check(ok: Aval, *payload: Aval, said: object, optional: bool) -> list[Aval]:
    """Require that `ok` is True everywhere.  Its axes are leading axes of everything in `payload`,
    which is for the message."""
    if ok.dtype != BOOL or any(x.shape[: ok.ndim] != ok.shape for x in payload):
        raise ArgumentError(
            f"a check of {ok!r} with {list(payload)} for its message",
            fix="the condition is of bools, and its axes are the first of all others",
        )
    return []


check_p = Primitive("core.check", _check, many=True, effect=lambda params: CHECK)


@eager_rules.rule(check_p)
def _(args, params: dict[str, Any]):
    ok, *payload = [a.numpy() for a in args]
    if not ok.all():
        raise params["said"].error(ok, payload)
    return []


def _refusal(said: Said, avals: tuple[Aval, ...]) -> Program:
    """Return a program that calls Python if a condition does not hold, and only then."""

    def refuse(*given: Any) -> tuple[()]:
        ok, *payload = map(np.asarray, given)
        if not ok.all():
            raise said.error(ok, payload)
        return ()

    def call(*given: Value) -> list[Any]:
        return host.bind(*given, f=refuse, outs=(), effect=DEBUG, whole="")

    def choose(ok: Value, *payload: Value) -> list[Any]:
        holds = reduce_and.bind(ok, axes=tuple(range(ok.aval.ndim)))
        branches = staged(call, avals, "refuse"), staged(lambda *_: [], avals, "held")
        return cond.bind(convert(holds, INT32), ok, *payload, branches=branches)

    return staged(choose, avals, "check")


@lower_rules.rule(check_p)
def _(e, xs: list[IrValue], ins: list[Aval], outs: list[Any], said, optional: float):
    if optional and said.enforced and not e.bound:  # the pieces of `shard_map` call no Python
        return e.call(_refusal(said, tuple(ins)), xs)
    if optional:
        return []
    raise ArgumentError(
        "check: compiled code cannot raise errors, and no checkify collects them",
        where=getattr(said, "where", None),
        fix="call plait.checks.checkify(f) instead of f, outside of jit or inside of it, and look "
        "at the error that it returns; or use debug_check, which is left out here",
    )
