"""linear_call: a linear function with a transpose of the user's own.

Invariant: the operands are captured values, residuals, and the arguments in which the function is
linear.  The transpose of the operation is the operation with both functions exchanged, so that
neither is transposed by rules of the operations inside it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.errors import MissingRule, OperandTypeError, TreeMismatch, border
from plait.ext.ir import Primitive, Program, Thunk, evaluate
from plait.ext.ops.elementwise import add
from plait.ext.ops.shape import materialise_at_ground
from plait.ext.rules import lower_rules
from plait.ext.trace import (
    Deferred,
    Ends,
    Value,
    current,
    name_of,
    opened,
    rule_thunk,
    staged,
    trace,
    width,
)
from plait.ext.tree import difference, flatten
from plait.ext.types import Aval
from plait.ext.values import as_value

from ..forward import JVP, ZERO, instantiate, jvp_rules
from ..split import split_rules
from ..tangents import expect_function
from ..transpose import is_linear, solid_ct, transpose_rules
from .functions import CustomWiring, body, lowered
from .symbolic_zeros import differential

__all__ = ["linear_call"]


class _Transposable(CustomWiring):
    """A function of captured values, `residuals` values, and those in which it is linear.

    Its rule takes the captured values, the residuals and cotangents of all results, and returns
    cotangents of the arguments in which the function is linear.
    """

    names = ("transpose",)

    def ends(self, params: dict, ins: range, outs: range) -> list[Ends]:
        first = params["consts"] + params["residuals"]
        return [Ends(params["transpose"], (*ins[:first], *outs), tuple(ins[first:]), tuple(outs))]

    def rebuild(
        self,
        params: dict[str, Any],
        programs: list[Program | Thunk],
        parts: list[tuple[Any, ...]],
        operands: list[Value],
        extra: list[Any],
    ):
        at = params["consts"]
        operands, new = super().rebuild(params, programs, parts, operands, extra)
        return operands, {**new, "residuals": width(parts[at : at + params["residuals"]])}


linear = Primitive("autodiff.linear_call", body, many=True, higher=_Transposable())
lower_rules.rule(linear)(lowered)


@jvp_rules.rule(linear)
def _(jvp: JVP, args: Sequence[Value], params: dict[str, Any]):
    first = params["consts"] + params["residuals"]
    xs, ts = jvp.halves(args)
    outs = linear.bind(*xs, **params)
    dots: list[Any] = [ZERO] * len(outs)
    if any(t is not ZERO for t in ts[first:]):
        moved = [instantiate(t, x) for t, x in zip(ts[first:], xs[first:])]
        dots = list(linear.bind(*xs[:first], *moved, **params))
    if any(t is not ZERO for t in ts[:first]):
        inner = JVP(current())
        with opened(inner):
            duals = inner.duals(xs[:first], ts[:first])
            found = evaluate(params["program"], [*duals, *xs[first:]])
        others = [inner.halves([y])[1][0] for y in found]
        dots = [
            b if a is ZERO else a if b is ZERO else add.bind(a, b) for a, b in zip(dots, others)
        ]
    return jvp.duals(outs, dots)


@split_rules.rule(linear)
def _(split: Any, args: Sequence[Any], params: dict[str, Any]):
    """Record it undivided: a part of it would have no transpose."""
    return split.stage.apply(linear, args, params)


@transpose_rules.rule(linear)
def _(cts: list[Any], *args: Any, program: Program, transpose: Thunk, consts: int, residuals: int):
    first = consts + residuals
    if any(map(is_linear, args[:first])):
        raise MissingRule(
            "linear_call is transposed in its residual arguments",
            fix="differentiate with grad or vjp; they transpose it in its linear arguments only",
        )
    given = [solid_ct(c, a) for c, a in zip(cts, program.out_avals, strict=True)]
    got = linear.bind(
        *args[:first], *given,
        program=transpose.get(), transpose=Thunk(lambda: program),
        consts=consts, residuals=residuals,
    )  # fmt: skip
    return [*[None] * first, *got]


# ---- the user's interface ------------------------------------------------------------------


@border
def linear_call(
    fun: Callable, fun_transpose: Callable, residual_args: object, linear_args: object
) -> Any:
    """Apply a linear function whose transpose is `fun_transpose`.

    Reverse mode applies `fun_transpose`, and transposes it by `fun` again; neither is looked into.
    The derivative in the residuals is that of the function.

    Args:
      fun: `fun(residual_args, linear_args)`, linear in the latter.
      fun_transpose: `fun_transpose(residual_args, cotangent)` returns a cotangent of `linear_args`
        for one of what `fun` returns.  It is traced when it is first needed, and may call this
        function.
      residual_args: a tree of arrays.
      linear_args: a tree of real or complex arrays.

    Returns what `fun` returns.  Raises OperandTypeError if linear arguments or results are integers
    or booleans, TreeMismatch if a cotangent has another structure than `linear_args`.

    >>> import plait
    >>> half = lambda x: plait.custom_derivatives.linear_call(
    ...     lambda r, x: x / r, lambda r, t: t / r, 2.0, x)
    >>> half(3.0), plait.grad(half)(3.0)
    (Array(1.5, dtype=float32, weak_type=True), Array(0.5, dtype=float32, weak_type=True))
    """
    expect_function(fun, "fun of linear_call")
    expect_function(fun_transpose, "fun_transpose of linear_call")
    leaves, tree = flatten(residual_args)
    kept = [as_value(x) for x in leaves]
    leaves, kind = flatten(linear_args)
    moved = [as_value(x) for x in leaves]
    _inexact("argument", [x.aval for x in moved])
    forward = trace(fun, (tree.unflatten(kept), kind.unflatten(moved)), {}, "linear_call")
    program: Program = forward.program
    _inexact("result", program.out_avals)
    who = name_of(fun_transpose, "fun_transpose")

    def back(*vs: Value) -> list[Value]:
        cotangent = forward.tree.unflatten(vs[len(kept) :])
        out = fun_transpose(tree.unflatten(vs[: len(kept)]), cotangent)
        found, other = flatten(out)
        if other != kind:
            raise TreeMismatch(
                f"{who} returned another structure than linear_args: "
                + difference(linear_args, out),
                fix="return a cotangent for every linear argument, and zeros where there is none",
            )
        return [differential(who, d, x.aval, "cotangent") for d, x in zip(found, moved)]

    rule = Deferred(back, fun_transpose)
    at, captured = len(forward.captured), list(forward.captured)
    captured += [x for x in rule.tracers() if not any(x is c for c in captured)]
    if len(captured) > at:
        given = [x.aval for x in (*captured, *kept, *moved)]
        of = lambda *vs: evaluate(forward.program, [*vs[:at], *vs[len(captured) :]])  # noqa: E731
        program = staged(of, given, program.name)
    outs = linear.bind(
        *captured, *kept, *moved,
        program=program,
        transpose=rule_thunk(
            rule, captured, lambda: [*(x.aval for x in kept), *program.out_avals]
        ),
        consts=len(captured),
        residuals=len(kept),
    )  # fmt: skip
    return forward.tree.unflatten([materialise_at_ground(o) for o in outs])


def _inexact(what: str, avals: Sequence[Aval]) -> None:
    for a in avals:
        if not a.varies:
            raise OperandTypeError(
                f"linear_call got the linear {what} {a!r}, which has no derivative",
                fix="convert it to a real dtype, or make it a residual argument",
            )
