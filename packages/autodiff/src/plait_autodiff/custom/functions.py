"""The base of custom derivatives: operations that carry a function and its derivative rules.

Invariant: the function's inputs are the values that the call captured (`consts` of them), then
its arguments; rules speak of the slots of these.
"""

from collections.abc import Sequence
from typing import Any

from plait import config
from plait.ext.errors import (
    ArgumentError,
    MissingRule,
)
from plait.ext.ir import (
    Program,
)
from plait.ext.ops.control_flow import (
    call,
    expect,
)
from plait.ext.ops.shape import (
    materialise_at_ground,
)
from plait.ext.trace import (
    Deferred,
    Ends,
    Slots,
    Wiring,
    width,
)
from plait.ext.types import (
    Aval,
)

from ..forward import ZERO

DERIVATIVE = "derivative"
"""The kind of custom rule that transformations may commute with."""


class CustomWiring(Wiring):
    """A function of captured values and arguments, with rules named `names` in its parameters."""

    custom = DERIVATIVE
    names: tuple[str, ...] = ()

    def pending(self, params: dict) -> bool:
        return isinstance(params["program"], Deferred)

    def ends(self, params: dict, ins: range, outs: range) -> list[Ends]:
        """What the ends of its rules are, by the slots of the function's inputs and outputs."""
        raise ArgumentError("a custom operation says what the ends of its rules are")

    def slots(self, params: dict) -> Slots:
        p = params["program"]
        n, m = len(p.inputs), len(p.outputs)
        ins, outs = range(n), range(n, n + m)
        return Slots(ins, outs, [(p, ins, outs)], n + m, rules=self.ends(params, ins, outs))

    def rebuild(self, params, programs, parts, operands, extra):
        consts = width(parts[: params["consts"]]) + len(extra)
        new = dict(zip(("program", *self.names), programs))
        return [*extra, *operands], {**params, **new, "consts": consts}

    def erase(self, prim: Any, params: dict) -> tuple[Any, dict]:
        return call, {"program": params["program"]}


def body(*xs: Aval, program: Program, consts: int, **rules: Any) -> list[Aval]:
    """Apply the function; whoever differentiates uses its rule."""
    expect(f"custom function {program.name}", program.in_avals, xs)
    return program.out_avals


def varying(avals: Sequence[Aval], slots: Sequence[int]) -> tuple[int, ...]:
    """The slots of values that can have a derivative."""
    return tuple([s for s, a in zip(slots, avals, strict=True) if a.varies])


def lowered(e, xs, ins, outs, program, **rules):
    """The lowering of all of them: a call of the function."""
    return e.call(program, xs)


def applied(args: Sequence[Any], params: dict) -> list | None:
    """Evaluation of all of them: the user's Python, if it is still there."""
    program = params["program"]
    if not isinstance(program, Deferred):
        return None
    return [materialise_at_ground(o) for o in program.f(*args)]


def closed_over(ts: Sequence[Any], consts: int) -> None:
    """What a custom rule closes over can not be differentiated: MissingRule."""
    if any(t is not ZERO for t in ts[:consts]):
        raise MissingRule(
            "a custom derivative closes over a value that is being differentiated",
            fix="pass that value as an argument of the function, and give its derivative",
        )


def promised(program: Any, xs: Sequence[Any]) -> list[Aval] | None:
    """Types of what the function itself returns, when its rule is run in its stead and checks are
    wanted; where the function has been staged, its rule was checked then."""
    if not config.checks or not isinstance(program, Deferred):
        return None
    return [o.aval for o in program.f(*xs)]
