"""custom_lin: the linear map of a custom_vjp function, given by its pullback alone.

Reverse mode applies the pullback.  Forward mode transposes it, if it is linear in cotangents.

Invariant: the operands are captured values and residuals, then tangents; the results are linear
in the tangents together.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plait.ext.errors import MissingRule, PlaitError
from plait.ext.ir import Primitive, Program, Thunk, derived, evaluate
from plait.ext.lower import IrValue
from plait.ext.ops.control_flow import call
from plait.ext.ops.shape import materialise_at_ground
from plait.ext.rules import eager_rules, lower_rules
from plait.ext.trace import (
    Deferred,
    Ends,
    Slots,
    Value,
    Wiring,
    current,
    rule_thunk,
    staged,
    use,
    width,
)
from plait.ext.types import Aval
from plait.ext.values import as_value, is_literal_zero
from plait.typing import Array

from ..forward import JVP, ZERO, instantiate, jvp_rules
from ..linearity import is_linear_in
from ..split import split_program
from ..transpose import Linear, backward, is_linear, solid_ct, transpose_rules
from .functions import DERIVATIVE
from .variants import Present, Variants, run

if TYPE_CHECKING:
    from plait.ext.lower import Emitter


class _Lin(Wiring):
    """captured and residuals, then tangents of inexact xs -> tangents of inexact outs."""

    custom, hint = DERIVATIVE, True
    waits = True

    def pending(self, params: dict) -> bool:
        return isinstance(params["bwd"], Deferred)

    def settle(self, params: dict, args: Sequence[Any]) -> tuple[Sequence[Any], dict]:
        args = [as_value(a) for a in args]
        residuals, bwd = args[: params["residuals"]], params["bwd"]
        avals, outs = [r.aval for r in residuals], params["outs"]
        captured = bwd.tracers()

        def staged_for(key: tuple[Present]) -> Thunk:
            types = [*avals, *(a for a, there in zip(outs, key[-1]) if there)]
            f = Deferred(lambda *vs: bwd.f(*key, *vs), bwd.user, static=bwd.static)
            return rule_thunk(f, captured, lambda: types)

        rule: Any = Variants(staged_for, bwd.name)
        if not bwd.symbolic:
            rule = rule_thunk(bwd, captured, lambda: [*avals, *outs])
        count, args = len(captured) + len(residuals), [*captured, *args]
        return args, {**params, "bwd": rule, "residuals": count, **varying_along(args)}

    def slots(self, params: dict) -> Slots:
        r, n = params["residuals"], params["operands"] + params["residuals"]
        outs = range(n, n + len(params["outs"]))
        ends = Ends(params["bwd"], (*range(r), *outs), tuple(range(r, n)), tuple(outs))
        along = (*params.get("along", ((),) * n), *(a.vma for a in params["outs"]))
        declared = {s: frozenset(axes) for s, axes in enumerate(along)}
        return Slots(range(n), outs, [], n + len(outs), rules=[ends], declared=declared)

    def rebuild(
        self,
        params: dict[str, Any],
        programs: list[Thunk],
        parts: list[tuple[Any, ...]],
        operands: list[Value],
        extra: list[Any],
    ):
        r, n = params["residuals"], params["operands"] + params["residuals"]
        outs = tuple([p.aval for ps in parts[n:] for p in ps])
        new = {
            "bwd": programs[0],
            "residuals": width(parts[:r]) + len(extra),
            "operands": width(parts[r:n]),
            "outs": outs,
        }
        operands = [*extra, *operands]
        return operands, {**new, **varying_along(operands)}

    def erase(self, prim: object, params: dict) -> tuple[Any, dict]:
        return call, {"program": pushforward(**params)}


def varying_along(operands: Sequence[Any]) -> dict[str, tuple[Any, ...]]:
    """Return the parameter of `custom_lin` with the mesh axes along which operands vary; an empty
    dict if none varies."""
    along = tuple([tuple(sorted(x.aval.vma)) for x in operands])
    return {"along": along} if any(along) else {}


def _lin(
    *xs: Aval, bwd: object, residuals: int, operands: int, outs: tuple, along: tuple = ()
) -> list[Aval]:
    """Apply the derivative of a function that is given by its pullback `bwd`.

    The results have the types `outs` if the operands vary along the mesh axes in `along`.  A
    function that sums over devices varies less than its operands.
    """
    return list(outs)


custom_lin = Primitive("autodiff.custom_lin", _lin, many=True, higher=_Lin())


def linear_map(
    residuals: Sequence[Any], tangents: Sequence[Any], bwd: object, outs: Sequence[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return (operands, parameters) of `custom_lin`: tangents of `outs` whose pullback is `bwd`."""
    operands = [*residuals, *tangents]
    return operands, {
        "bwd": bwd,
        "residuals": len(residuals),
        "operands": len(tangents),
        "outs": tuple([o.aval.tangent_type for o in outs if o.aval.varies]),
        **varying_along(operands),
    }


# ---- forward -------------------------------------------------------------------------------


def pushforward(
    bwd: Any, residuals: int, operands: int, outs: Sequence[Aval], along: tuple[Any, ...] = ()
) -> Program:
    """Return the program: captured and residuals, tangents of inexact xs -> those of inexact outs.

    The pullback of a linear map is its transpose, and the transpose of that is the map.  Raises
    MissingRule if the pullback is not linear in cotangents, or cannot be transposed.
    """
    rule = bwd.on(((True,) * len(outs),)) if isinstance(bwd, Variants) else bwd
    program = rule.get() if isinstance(rule, Thunk) else rule

    def forward(*vs: Value) -> list:
        unknown = (*(False,) * residuals, *(True,) * len(outs))
        h = split_program(program, unknown, (True,) * len(program.outputs))
        known = evaluate(h.known, vs[:residuals])
        got = backward(h.unknown, [*known, *(Linear(a) for a in outs)], vs[residuals:])
        return [solid_ct(t, a) for t, a in zip(got[len(known) :], outs, strict=True)]

    def make() -> Program:
        if not is_linear_in(program, residuals):
            raise reverse_only("which is not linear in cotangents")
        try:
            return staged(forward, [*program.in_avals[:residuals], *program.out_avals], "forward")
        except (MissingRule, TypeError) as error:
            why = error.what if isinstance(error, PlaitError) else str(error)
            raise reverse_only(f"which cannot be transposed ({why})") from error

    return derived(program, ("pushforward", residuals), make)


def reverse_only(why: str) -> MissingRule:
    """Return the error for forward mode where only reverse mode is possible."""
    return MissingRule(
        "forward mode of a custom_vjp function: of its derivative only the pullback is known, "
        + why,
        fix="use custom_jvp, or reverse mode (grad, vjp, jacrev)",
    )


def _pushed(args: Sequence[Any], params: dict) -> list:
    """Apply the map to values, under the current interpreter."""
    if custom_lin.higher.pending(params):  # type: ignore[union-attr]
        args, params = custom_lin.higher.settle(params, args)  # type: ignore[union-attr]
    return evaluate(pushforward(**params), args)


@lower_rules.rule(custom_lin)
def _(e: "Emitter", xs: list[IrValue], ins: list[Aval], outs_: list[Aval], /, **params):
    return e.call(pushforward(**params), xs)


@eager_rules.rule(custom_lin)
def _(args: Sequence[Value], params: dict[str, Any]):
    return [materialise_at_ground(o) for o in _pushed(args, params)]


@jvp_rules.rule(custom_lin)
def _(jvp: JVP, args: Sequence[Array], params):
    residuals = params["residuals"]
    xs, ts = jvp.halves(args)
    if any(t is not ZERO for t in ts[:residuals]):
        with use(jvp):
            return _pushed(args, params)
    outs = custom_lin.bind(*xs, **params)
    moved = [instantiate(t, x) for t, x in zip(ts[residuals:], xs[residuals:])]
    return jvp.duals(outs, custom_lin.bind(*xs[:residuals], *moved, **params))


# ---- reverse -------------------------------------------------------------------------------


@transpose_rules.rule(custom_lin)
def _(
    cts: list[Any],
    *args: Value | Linear,
    bwd,
    residuals: int,
    operands: int,
    outs: tuple[Aval, ...],
    along: tuple[Any, ...] = (),
):
    if any(is_linear(a) for a in args[:residuals]):
        raise reverse_only("and what it keeps is itself to be transposed")
    if isinstance(bwd, Deferred):
        for p in current().recorders:
            p.where = None  # the user's Python has lines of its own
    if bwd.__class__ is not Program and getattr(bwd, "symbolic", False):
        present = tuple([c is not None and not is_literal_zero(c) for c in cts])
        given = [c for c, there in zip(cts, present) if there]
        got = run(bwd, [*args[:residuals], *given], (present,))
    else:
        given = [solid_ct(c, a) for c, a in zip(cts, outs, strict=True)]
        got = run(bwd, [*args[:residuals], *given])
    return [*[None] * residuals, *(None if is_literal_zero(c) else c for c in got)]
