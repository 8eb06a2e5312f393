"""The base of custom derivatives: operations that carry a function and its derivative rules.

Invariant: the function's inputs are the values that the call captured (`consts` of them), then its
arguments.  The ends of rules are given by the slots of these.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plait import config
from plait.errors import UnexpectedTracerError
from plait.ext.errors import ArgumentError, ConcretizationError
from plait.ext.ir import Eqn, Program, Thunk, Var, dce, derived, evaluate
from plait.ext.lower import IrValue
from plait.ext.ops.control_flow import call, expect
from plait.ext.ops.shape import materialise_at_ground
from plait.ext.trace import Deferred, Ends, Slots, Value, Wiring, enclosed, stage, staged, width
from plait.ext.types import Aval
from plait.ext.values import Literal

from ..forward import DUAL, JVP, ZERO
from ..split import part
from ..transpose import is_linear, transpose_divided

if TYPE_CHECKING:
    from plait.ext.lower import Emitter

DERIVATIVE = "derivative"
"""The kind of custom rule that transformations may commute with."""


class CustomWiring(Wiring):
    """A function of captured values and arguments, with rules named `names` in its parameters."""

    custom = DERIVATIVE
    names: tuple[str, ...] = ()
    whole = False

    def pending(self, params: dict[str, Any]) -> bool:
        return isinstance(params["program"], Deferred)

    def ends(self, params: dict[str, Any], ins: range, outs: range) -> list[Ends]:
        """Return the ends of its rules, by the slots of the function's inputs and outputs."""
        raise ArgumentError("a custom operation says what the ends of its rules are")

    def slots(self, params: dict[str, Any]) -> Slots:
        p = params["program"]
        n, m = len(p.inputs), len(p.outputs)
        ins, outs = range(n), range(n, n + m)
        ends = self.ends(params, ins, outs)
        return Slots(ins, outs, [(p, ins, outs)], n + m, rules=ends, whole=self.whole)

    def rebuild(
        self,
        params: dict[str, Any],
        programs: list[Program | Thunk],
        parts: list[tuple[Any, ...]],
        operands: list[Value],
        extra: list[Any],
    ) -> tuple[list[Any], dict[str, Any]]:
        consts = width(parts[: params["consts"]]) + len(extra)
        new = dict(zip(("program", *self.names), programs))
        return [*extra, *operands], {**params, **new, "consts": consts}

    def erase(self, prim: Any, params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return call, {"program": params["program"]}


def body(*xs: Aval, program: Program, consts: int, **rules: object) -> list[Aval]:
    """Apply the function; derivatives use its rule."""
    expect(f"custom function {program.name}", program.in_avals, xs)
    return program.out_avals


def varying(avals: Sequence[Aval], slots: Sequence[int]) -> tuple[int, ...]:
    """Return the slots of values that can have a derivative."""
    return tuple([s for s, a in zip(slots, avals, strict=True) if a.varies])


def lowered(
    e: "Emitter",
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    program: Program,
    **rules: object,
) -> Any:
    """Lower any of these operations to a call of the function."""
    return e.call(program, xs)


def applied(args: Sequence[Any], params: dict[str, Any]) -> list[Any] | None:
    """Evaluate any of these operations by the user's Python, if it is still there."""
    program = params["program"]
    if not isinstance(program, Deferred):
        return None
    return [materialise_at_ground(o) for o in program.f(*args)]


def closed_over(
    args: Sequence[Any], ts: Sequence[Any], consts: int, program: Any, rules: Sequence[Any]
) -> None:
    """Raise ClosedOver if a custom function or rule reads a differentiated value that it closes
    over: one of the first `consts` of `args`, whose tangents are `ts`.

    It may close over a value only for its type, or over an object that holds one.  So values that
    the programs do not read are ignored.  Rules are staged here only for this check.
    """
    moving = [i for i, t in enumerate(ts[:consts]) if t is not ZERO]
    if moving and any(_reads(p, moving) for p in (program, *(r.get() for r in rules))):
        raise enclosed(args[moving[0]], "a custom derivative", JVP.heeds[DERIVATIVE])


def _reads(program: Program, inputs: Sequence[int]) -> bool:
    """Return whether results of a program depend on some of the inputs.

    An operation with programs reads an operand only if its programs do.  Rules of operations
    inside are ignored here: they are checked when these operations are differentiated.
    """
    used = dce(program)[1]
    watched = {program.inputs[i] for i in inputs if used[i]}
    if not watched.isdisjoint([a for a in program.outputs if a.__class__ is Var]):
        return True
    return any(
        a.__class__ is Var and a in watched and _operand_read(e, k)
        for e in program.eqns
        for k, a in enumerate(e.inputs)
    )


def _operand_read(e: Eqn, k: int) -> bool:
    if e.prim.higher is None:
        return True
    w = e.prim.higher.slots(e.params)
    s = w.operands[k]
    inside = [(p, [i for i, at in enumerate(ins) if at == s]) for p, ins, _ in w.bodies]
    return s in w.plain or not w.bodies or any(_reads(p, at) for p, at in inside if at)


def along_input(program: Program, k: int) -> Program:
    """Return the program (inputs, a tangent of input `k`) -> tangents of the outputs, literal zeros
    where an output does not depend on it."""
    n = len(program.inputs)
    forms = tuple([DUAL if i == k else None for i in range(n)])

    def tangents(*vs: Value) -> list:
        both, got = JVP(None).lift_program(program, forms)
        outs = iter(evaluate(both, [*vs[: k + 1], vs[n], *vs[k + 1 : n]]))
        halves = [(next(outs), next(outs) if f else None) for f in got]
        return [Literal(0, x.aval.tangent_type) if t is None else t for x, t in halves]

    def make() -> Program:
        types = [*program.in_avals, program.in_avals[k].tangent_type]
        return staged(tangents, types, program.name, prune=True)

    return derived(program, ("along", k), make)


def transposed(cts: Sequence[Any], args: Sequence[Any], program: Program) -> list[Any]:
    """Transpose any of these operations, if linear in some operands, by transposing the function.

    A derivative rule does not help here.  The derivative of a linear function is the function
    itself, which does not lead to its transpose.
    """
    linear = tuple(map(is_linear, args))
    given = tuple([c is not None for c in cts])
    back = transpose_divided(program, linear, given)
    got = iter(call.bind(*part(args, linear, False), *part(cts, given), program=back))
    return [next(got) if flag else None for flag in linear]


def promised(program: Deferred | Program, xs: Sequence[Any]) -> list[Aval] | None:
    """Return the types of the function's own results, for comparison with its rule's.

    Return None if checks are off.  Return None for a staged function too: its rule was checked
    when it was staged.  The function is only traced, so that its effects do not happen twice; one
    that needs values in Python, or a reference that cannot be read there, is not checked.
    """
    if not config.checks or not isinstance(program, Deferred):
        return None
    try:
        return list(stage(program.f, [x.aval for x in xs], program.name)[0].out_avals)
    except (ConcretizationError, UnexpectedTracerError):
        return None
