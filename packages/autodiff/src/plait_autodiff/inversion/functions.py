"""invertible and custom_ivjp: reverse mode that recovers values instead of keeping them.

Called outside of transformations, the user's Python runs on values.  Reverse mode keeps the
results, and those arguments that cannot be recovered.  Forward mode treats these functions like
any other.

Invariant: a reversal is a property of the function's program.  Only a derivative of the derivative
loses it; other transformations do not.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from plait.ext.control import InspectableStage
from plait.ext.errors import ArgumentError, TreeMismatch, border, warn
from plait.ext.ir import Primitive, Program, Thunk, dce, derived, evaluate
from plait.ext.lower import IrValue
from plait.ext.ops.control_flow import call, expect
from plait.ext.ops.shape import barrier
from plait.ext.rules import eager_rules, lower_rules
from plait.ext.trace import (
    Call,
    Carrier,
    Deferred,
    Ends,
    Function,
    Slots,
    Value,
    Wiring,
    admitted,
    rule_thunk,
    settled,
    stage,
    staged,
    tracers_of,
    use,
    width,
)
from plait.ext.tree import flatten
from plait.ext.types import Aval
from plait.ext.values import Literal, as_value
from plait.typing import Array

from ..custom.functions import (
    DERIVATIVE,
    CustomWiring,
    applied,
    body,
    closed_over,
    lowered,
    varying,
)
from ..custom.linear import custom_lin, linear_map
from ..custom.symbolic_zeros import typed
from ..custom.vjp import duals_by_pullback, flat_cotangents
from ..forward import DUAL, JVP, ZERO, instantiate, jvp_rules
from ..split import Split, part, split_rules
from ..tangents import expect_function
from .recovery import Reverse, inverse_rules, reverse

if TYPE_CHECKING:
    from plait.ext.lower import Emitter

# ---- operations ----------------------------------------------------------------------------


class _Invertible(CustomWiring):
    """A function whose reversal follows from its program."""

    def ends(self, params: dict, ins: range, outs: range) -> list[Ends]:
        return []

    def settle(self, params: dict, args: Sequence[Any]) -> tuple[Sequence[Any], dict]:
        args = [as_value(a) for a in args]
        program, captured = settled(params["program"], [], args)
        return [*captured, *args], {"program": program, "consts": len(captured)}


class _Ivjp(CustomWiring):
    """rule: captured, xs, ys, cotangents of inexact ys -> xs, cotangents of inexact xs."""

    names = ("rule",)
    whole = True

    def ends(self, params: dict, ins: range, outs: range) -> list[Ends]:
        p, k = params["program"], params["consts"]
        given = (*ins, *outs, *varying(p.out_avals, outs))
        return [Ends(params["rule"], given, (*ins[k:], *varying(p.in_avals[k:], ins[k:])))]

    def settle(self, params: dict, args: Sequence[Any]) -> tuple[Sequence[Any], dict]:
        args = [as_value(a) for a in args]
        rule = params["rule"]
        program, captured = settled(params["program"], [rule], args)
        outs = program.out_avals
        types = [*(a.aval for a in args), *outs, *(o.tangent_type for o in outs if o.varies)]
        thunk = rule_thunk(rule, captured, lambda: types)
        return [*captured, *args], {"program": program, "rule": thunk, "consts": len(captured)}


class _Along(Wiring):
    """xs, then tangents of the active ones -> ys, tangents of the inexact ones."""

    custom, hint = DERIVATIVE, True

    def slots(self, params: dict) -> Slots:
        p = params["program"]
        n, m = len(p.inputs), len(p.outputs)
        ins, outs = range(n), range(n, n + m)
        rule, k = params["rule"], params["consts"]
        ends = _Ivjp().ends({**params, "consts": k}, ins, outs) if rule is not None else ()
        given = (*ins, *part(ins, params["active"]))
        return Slots(
            given,
            (*outs, *varying(p.out_avals, outs)),
            [(p, ins, outs)],
            n + m,
            rules=ends,
            whole=rule is not None,
        )

    def rebuild(
        self,
        params: dict[str, Any],
        programs: list[Program | Thunk],
        parts: list[tuple[Any, ...]],
        operands: list[Value],
        extra: list[Any],
    ):
        k, active = params["consts"], params["active"]
        widths = [len(ps) for ps in parts[: len(active)]]
        lifted = [a for a, w in zip(active, widths) for _ in range(w)]
        new = {
            "program": programs[0],
            "rule": programs[1] if len(programs) > 1 else None,
            "consts": width(parts[:k]) + len(extra),
            "active": (*(False,) * len(extra), *lifted),
        }
        return [*extra, *operands], new

    def erase(self, prim: object, params: dict) -> tuple[Any, dict]:
        return call, {"program": along(params["program"], params["active"])}


def _along(*xs: Aval, program: Program, rule: Any, consts: int, active: tuple) -> list[Aval]:
    """Apply a function that can be reversed, and its derivative along a direction."""
    expect(f"custom function {program.name}", program.in_avals, xs[: len(active)])
    outs = program.out_avals
    return [*outs, *(o.tangent_type for o in outs if o.varies)]


invertible_call = Primitive("autodiff.invertible_call", body, many=True, higher=_Invertible())
custom_ivjp_call = Primitive("autodiff.custom_ivjp_call", body, many=True, higher=_Ivjp())
invertible_jvp = Primitive("autodiff.invertible_jvp", _along, many=True, higher=_Along())
lower_rules.rule(invertible_call, custom_ivjp_call)(lowered)
eager_rules.rule(invertible_call, custom_ivjp_call)(applied)


@lower_rules.rule(invertible_jvp)
def _(
    e: "Emitter",
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    program: Program,
    rule: Thunk | None,
    consts: int,
    active: tuple[bool, ...],
):
    return e.call(along(program, active), xs)


def along(program: Program, active: tuple[bool, ...]) -> Program:
    """Return the program: xs, tangents of active ones -> ys, tangents of the inexact ones."""
    avals, outs = program.in_avals, program.out_avals
    forms = tuple([DUAL if a else None for a in active])
    varies = tuple([DUAL if o.varies else None for o in outs])

    def make() -> Program:
        both, _ = JVP(None).lift_program(program, forms, varies)

        def ordered(*vs: Value) -> list:
            ts = iter(vs[len(active) :])
            pairs = [(x, next(ts)) if a else (x,) for x, a in zip(vs, active)]
            got = iter(evaluate(both, [v for pair in pairs for v in pair]))
            halves = [(next(got), next(got) if v else None) for v in varies]
            return [*(y for y, _ in halves), *(t for _, t in halves if t is not None)]

        return staged(ordered, [*avals, *part(avals, active)], program.name)

    return derived(program, ("along", active), make)


# ---- reversal ------------------------------------------------------------------------------


@inverse_rules.rule(invertible_call)
def _(params: dict[str, Any]) -> Reverse | None:
    program = params["program"]
    return reverse(program, (True,) * len(program.inputs))


@inverse_rules.rule(custom_ivjp_call)
def _(params: dict[str, Any]) -> Reverse:
    return _by_rule(params["program"], params["rule"].get(), params["consts"])


def _by_rule(program: Program, rule: Program, consts: int) -> Reverse:
    """Return the reversal by the user's rule; it saves the arguments that the rule reads."""
    n = len(program.inputs)

    def make() -> Reverse:
        used = dce(rule, (True,) * len(rule.outputs))[1][:n]
        recovered = tuple([i >= consts and not u for i, u in enumerate(used)])
        ins = program.in_avals

        def back(*vs: Value) -> list:
            it = iter(vs)
            xs = [next(it) if u else Literal(0, a) for a, u in zip(ins, used)]
            got = evaluate(rule, [*xs, *it])
            m = n - consts
            values = [x for x, r in zip(got[:m], recovered[consts:]) if r]
            zeros = [Literal(0, a) for a in ins[:consts] if a.varies]
            return [*values, *zeros, *got[m:]]

        types = [*part(ins, used), *rule.in_avals[n:]]
        return Reverse(used, recovered, staged(back, types, rule.name, prune=True))

    return derived(rule, ("reverse", consts), make, [program])


def pullback_of(r: Reverse, outs: int, active: tuple[bool, ...]) -> Thunk:
    """Return the pullback: saved values, results, cotangents -> cotangents of active inputs.

    There are `outs` results.  The pullback is a rule behind a barrier, so that the compiler does
    not merge recomputed values with the first ones and keep these.
    """

    def make() -> Thunk:
        program = r.cotangents(active)
        n = r.saved.count(True) + outs

        def apart(*vs: Value) -> list:
            return evaluate(program, [*(barrier.bind(*vs[:n]) if n else []), *vs[n:]])

        types = program.in_avals
        return Thunk(lambda: staged(apart, types, program.name, prune=True))

    return derived(r.program, ("pullback", active), make)


# ---- derivatives ---------------------------------------------------------------------------


@jvp_rules.rule(invertible_call, custom_ivjp_call)
def _(jvp: JVP, args: Sequence[Array], params):
    prim = custom_ivjp_call if "rule" in params else invertible_call
    xs, ts = jvp.halves(args)
    if isinstance(params["program"], Deferred):
        s = jvp.parent
        if isinstance(s, Split) and any(s.unknown(t) for t in ts):
            if prim is custom_ivjp_call:
                return _reversed_by_python(jvp, xs, ts, params)
            return _reversed_at_once(jvp, xs, ts, params["program"])
        if not jvp.staging:  # no reversal will be needed later
            with use(jvp):
                return params["program"].f(*args)
        args, params = prim.higher.settle(params, args)  # type: ignore[union-attr]
        xs, ts = jvp.halves(args)
    if prim is custom_ivjp_call:
        closed_over(args, ts, params["consts"], params["program"], [params["rule"]])
    f = params["program"]
    active = tuple([t is not ZERO for t in ts])
    outs = invertible_jvp.bind(
        *xs,
        *(t for t in ts if t is not ZERO),
        program=f,
        rule=params.get("rule"),
        consts=params["consts"],
        active=active,
    )
    m = len(f.outputs)
    dots = iter(outs[m:])
    return jvp.duals(outs[:m], [next(dots) if o.aval.varies else ZERO for o in outs[:m]])


def _reversed_by_python(jvp: Carrier, xs: list, ts: list, params: dict) -> list:
    """Run the user's rule when the pullback runs, so that it may branch on values."""
    rule = params["rule"]
    outs = [as_value(y) for y in params["program"].f(*xs)]
    kept, n = [*xs, *outs], len(xs)
    back = Deferred(lambda *vs: rule.f(*vs)[n:], rule.user)
    tangents = [instantiate(t, x) for t, x in zip(ts, xs) if x.aval.varies]
    return duals_by_pullback(jvp, outs, kept, tangents, back)


def _reversed_at_once(jvp: Carrier, xs: list, ts: list, f: Deferred) -> list:
    """Stage, for these values, a function that may branch on them; reverse the program."""
    by = InspectableStage(jvp.parent, "invertible", f.user, tuple(xs), {})
    program, captured = stage(f.f, [x.aval for x in xs], f.name, on=by)
    outs = evaluate(program, [*captured, *xs])
    r = reverse(program, (True,) * len(program.inputs))
    assert r is not None
    active = (*(False,) * len(captured), *(t is not ZERO for t in ts))
    inexact = [flag for flag, a in zip(active, program.in_avals) if a.varies]
    kept = [*part([*captured, *xs], r.saved), *outs]
    back = pullback_of(r, len(outs), tuple(inexact))
    return duals_by_pullback(jvp, outs, kept, [t for t in ts if t is not ZERO], back)


@jvp_rules.rule(invertible_jvp)
def _(jvp: Carrier, args: Sequence[Value], params):
    program = along(params["program"], params["active"])
    with use(jvp):
        return evaluate(program, args)


@split_rules.rule(invertible_jvp)
def _(split: Split, args: Sequence[Value], params: dict[str, Any]):
    program, active, rule = params["program"], params["active"], params["rule"]
    n = len(active)
    xs, ts = list(args[:n]), list(args[n:])
    prim = invertible_call if rule is None else custom_ivjp_call
    own = {k: params[k] for k in ("program", "rule", "consts") if params[k] is not None}
    r = inverse_rules[prim](own)
    if r is None or any(split.unknown(x) for x in xs):
        with use(split):
            return evaluate(along(program, active), args)
    outs = prim.bind(*xs, **own)
    kept = [*part(xs, r.saved), *outs]
    inexact = tuple([flag for flag, a in zip(active, program.in_avals) if a.varies])
    operands, lin = linear_map(kept, ts, pullback_of(r, len(outs), inexact), outs)
    return [*outs, *split.stage.apply(custom_lin, operands, lin)]


# ---- the user's interface ------------------------------------------------------------------


def invertible(fun: Callable) -> Callable:
    """Return `fun` so that reverse mode recovers its values from its results.

    Operations with an inverse (`plait_autodiff.ext.inverse_rules`) are undone in lock-step with
    their derivatives: sums, products, exp, tanh, moves of elements, scans over blocks, functions
    with a `custom_ivjp`.  Arguments that cannot be recovered are kept: usually the parameters, in
    the worst case all of them, as with `checkpoint`.  Values are recovered up to rounding.  A
    factor is recovered by dividing by the other factor, and becomes nan where that is zero.

    Args:
      fun: takes and returns trees of arrays.  Values that it closes over are kept.

    >>> import plait
    >>> plait.grad(plait.invertible(lambda x: plait.numpy.exp(x) * 4))(0.0)
    Array(4., dtype=float32, weak_type=True)
    """
    expect_function(fun, "invertible")
    function = Function(fun)

    def called(*args: object, **kwargs: object) -> Any:
        c = function.call(args, kwargs)

        def flat(*xs: Value) -> list:
            return c.results(fun(*c.arguments(xs)))

        f = Deferred(flat, fun)
        params: dict[str, Any] = {"program": f, "consts": 0}
        operands: Sequence[Any] = c.leaves
        if tracers_of(fun):
            warn(
                f"Values that an @invertible function closes over are kept for its derivative, "
                f"and {function.name()} closes over some: pass them as arguments to have them "
                "recovered where that is possible"
            )
            operands, params = _Invertible().settle(params, operands)
        outs = invertible_call.bind(*operands, **params)
        return c.out.unflatten(outs)

    return _named(called, fun)


def _named(f: Callable, like: Callable) -> Callable:
    f.__wrapped__ = like  # type: ignore[attr-defined]
    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        if hasattr(like, name):
            setattr(f, name, getattr(like, name))
    return f


class custom_ivjp(Function[..., Any]):  # noqa: N801  (a decorator)
    """A function with its own reverse rule: (results, cotangents) -> arguments and cotangents.

    When staged inside an `invertible` function, only the arguments that the rule reads are kept.
    Forward mode differentiates the function itself.

    Args:
      fun: takes and returns trees of arrays.

    >>> import plait
    >>> @plait.custom_ivjp
    ... def double(x):
    ...     return x * 2
    >>> @double.defivjp
    ... def double_ivjp(xs, y, dy):
    ...     return (y / 2,), (dy * 2,)
    >>> plait.grad(double)(3.0)
    Array(2., dtype=float32, weak_type=True)
    """

    ivjp: Callable | None = None

    def __init__(self, fun: Callable):
        super().__init__(fun)

    def defivjp(self, ivjp: Callable) -> Callable:
        """Set the rule: `ivjp(xs, ys, dys) -> (xs, dxs)`.

        `xs` and `dxs` are tuples of the arguments and of their cotangents; `ys` and `dys` are like
        the result.

        Raises TypeRule if the rule cannot be called with three arguments.
        """
        self.expect_rule("defivjp", ivjp, "arguments, results and cotangents", 3)
        self.ivjp = ivjp
        return ivjp

    @border
    def __call__(self, *args: Any, **kwargs: object) -> Any:
        if self.ivjp is None:
            raise self.missing("inverse VJP", "custom_ivjp", "defivjp")
        c = self.call(args, kwargs)
        ivjp, n = self.ivjp, len(c.leaves)

        def flat(*xs: Value) -> list:
            return c.results(self.fun(*c.arguments(xs)))

        def rule(*vs: Value) -> list:
            m = c.out.num_leaves
            ys, cts = vs[n : n + m], iter(vs[n + m :])
            dys = [next(cts) if y.aval.varies else Literal(0, y.aval.tangent_type) for y in ys]
            got = ivjp(c.tree.unflatten(vs[:n]), c.out.unflatten(ys), c.out.unflatten(dys))
            return self._checked(c, got)

        outs = custom_ivjp_call.bind(
            *c.leaves, program=Deferred(flat, self.fun), rule=Deferred(rule, ivjp), consts=0
        )
        return c.out.unflatten(outs)

    def _checked(self, c: Call, got: tuple[Any, ...]) -> list:
        who = f"the custom ivjp of {self.name()}"
        if not isinstance(got, tuple | list) or len(got) != 2:
            raise ArgumentError(
                f"{who} must return two trees, arguments and cotangents, and returned {got!r}",
                fix="return (xs, dxs)",
            )
        leaves, tree = flatten(tuple(got[0]) if isinstance(got[0], list) else got[0])
        if tree != c.tree:
            raise TreeMismatch(
                f"{who} returned arguments of structure {tree}, where the function takes {c.tree}",
                fix="return a tuple of all arguments, as they were",
            )
        xs = [typed(admitted(x), a, who, "argument") for x, a in zip(leaves, c.avals, strict=True)]
        return [*xs, *flat_cotangents(who, c.tree, got[1], c.avals)]
