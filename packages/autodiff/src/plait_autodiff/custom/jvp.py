"""custom_jvp: functions with a derivative rule of their own for forward mode.

A staged call is an operation that carries the function and its rule.  So it survives jit, scan and
every transformation that commutes with differentiation.

Invariant: the rule takes captured values, arguments, then tangents of the inexact arguments (of
all, or with symbolic zeros of those that are not zero).  It returns results, then tangents of the
inexact ones.
"""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from plait.ext.errors import ArgumentError, PlaitError, TreeMismatch, border
from plait.ext.ir import Primitive, Program, Thunk
from plait.ext.rules import eager_rules, lower_rules
from plait.ext.trace import Call, Deferred, Ends, Function, Value, rule_thunk, settled
from plait.ext.tree import children, difference, flatten
from plait.ext.types import Aval
from plait.ext.values import as_value, is_literal_zero

from ..adable import kept_parts
from ..forward import JVP, ZERO, instantiate, jvp_rules
from ..transpose import transpose_rules
from .functions import (
    CustomWiring,
    applied,
    body,
    closed_over,
    lowered,
    promised,
    transposed,
    varying,
)
from .symbolic_zeros import differential, differentials
from .variants import Present, Variants, as_function, run

P = ParamSpec("P")
R = TypeVar("R")

# ---- the operation -------------------------------------------------------------------------


class _Jvp(CustomWiring):
    """rule: captured, xs, tangents of inexact xs -> outs, tangents of inexact outs."""

    names = ("rule",)

    def ends(self, params: dict, ins: range, outs: range) -> list[Ends]:
        p, k = params["program"], params["consts"]
        tangents = varying(p.in_avals[k:], ins[k:])
        dots = varying(p.out_avals, outs)
        return [Ends(params["rule"], (*ins, *tangents), (*outs, *dots))]

    def settle(self, params: dict, args: Sequence[Any]) -> tuple[Sequence[Any], dict]:
        args = [as_value(a) for a in args]
        rule = params["rule"]
        program, captured = settled(params["program"], [rule], args)
        avals = [a.aval for a in args]
        dots = [a.tangent_type for a in avals if a.varies]
        want = program.out_avals

        def check(got: list[Aval]) -> None:
            m = sum(a.varies for a in want)
            as_function(f"the derivative rule {rule.name}", want, got[: len(got) - m])

        def staged(key: tuple[Present]) -> Thunk:
            types = [*avals, *(a for a, there in zip(dots, key[-1]) if there)]
            f = Deferred(lambda *flat: rule.f(*key, *flat), rule.user, static=rule.static)
            return rule_thunk(f, captured, lambda: types, check)

        made: Any = Variants(staged, rule.name)
        if not rule.symbolic:
            made = rule_thunk(rule, captured, lambda: [*avals, *dots], check)
        return [*captured, *args], {"program": program, "rule": made, "consts": len(captured)}


custom_jvp_call = Primitive("autodiff.custom_jvp_call", body, many=True, higher=_Jvp())
lower_rules.rule(custom_jvp_call)(lowered)
eager_rules.rule(custom_jvp_call)(applied)


@jvp_rules.rule(custom_jvp_call)
def _(jvp: JVP, args: Sequence[Value], params):
    program, rule, consts = params["program"], params["rule"], params["consts"]
    xs, ts = jvp.halves(args)
    given = [(t, x) for t, x in zip(ts[consts:], xs[consts:], strict=True) if x.aval.varies]
    want = promised(program, xs)
    key, made = None, rule
    if getattr(rule, "symbolic", False):
        key = (tuple([t is not ZERO for t, _ in given]),)
        given = [(t, x) for t, x in given if t is not ZERO]
        made = rule.on(key) if isinstance(rule, Variants) else rule
    closed_over(args, ts, consts, program, [made])
    results = run(made, [*xs, *(instantiate(t, x) for t, x in given)], key)
    m = _count(program, results)
    outs, dots = results[:m], iter(results[m:])
    if want is not None:
        as_function(f"the derivative rule {rule.name}", want, [o.aval for o in outs])
    moved = [next(dots) if o.aval.varies else ZERO for o in outs]
    return jvp.duals(outs, [ZERO if is_literal_zero(t) else t for t in moved])


@transpose_rules.rule(custom_jvp_call)
def _(cts, *args, program, consts: object, rule: object):
    return transposed(cts, args, program)


def _count(program: Deferred | Program, results: list) -> int:
    """Return how many of the results are values; the others are tangents of the inexact ones."""
    if isinstance(program, Program):
        return len(program.outputs)
    n = 0
    left = len(results)
    while left > 0:
        left -= 2 if results[n].aval.varies else 1
        n += 1
    return n


# ---- the user's interface ------------------------------------------------------------------


class custom_jvp(Function[P, R]):  # noqa: N801  (a decorator)
    """A function with its own derivative rule for forward mode.

    Args:
      fun: takes and returns trees of arrays.
      nondiff_argnums, nondiff_argnames: arguments that are not arrays, by position or by name;
        the rule takes them first, in their order.

    >>> import plait
    >>> @plait.custom_jvp
    ... def f(x):
    ...     return plait.numpy.log1p(plait.numpy.exp(x))
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return f(x), t * plait.nn.sigmoid(x)
    >>> plait.grad(f)(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """

    jvp: Callable | None = None
    symbolic_zeros: bool = False

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Set the rule: `jvp(*static, primals, tangents) -> (out, tangent)`.

        With `symbolic_zeros` the tangents of values that do not vary are `plait.SymbolicZero`s.
        The rule may then return such zeros, or None, for parts of its tangent.

        Raises TypeRule if the rule cannot be called with that many arguments.
        """
        self.expect_rule("defjvp", jvp, "static arguments, primals and tangents", 2)
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Set one rule per argument, `jvp(tangent, out, *primals) -> tangent`, or None for zero.

        Raises TypeRule for rules that are not functions.  A call raises it if there are not as
        many rules as arguments.
        """
        if self.static:
            raise ArgumentError(
                "defjvps cannot be used with nondiff_argnums",
                fix="use defjvp, whose rule is given these arguments",
            )

        for j in jvps:
            if not (j is None or callable(j)):
                raise ArgumentError(
                    f"defjvps of {self.name()} needs functions, not {j!r}",
                    fix="give one function or None for each argument",
                )

        def jvp(primals: tuple, tangents: tuple) -> tuple:
            if len(jvps) != len(primals):
                raise ArgumentError(
                    f"defjvps of {self.name()} was given {len(jvps)} rules, and the function "
                    f"{len(primals)} arguments",
                    fix="give one rule for each argument, None where the derivative is zero",
                )
            out = self(*primals)  # type: ignore[call-arg]
            outs, tree = flatten(out)
            sums: list = [None] * len(outs)
            for j, t in zip(jvps, tangents):
                if j is not None:
                    dots = self._flat_tangent(tree, j(t, out, *primals))
                    sums = [d if s is None else s + d for s, d in zip(sums, dots)]
            return out, tree.unflatten(sums)

        self.jvp, self.symbolic_zeros = jvp, False

    @border
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.jvp is None:
            raise self.missing("JVP", "custom_jvp", "defjvp")
        c = self.call(args, kwargs)
        jvp, static, symbolic = self.jvp, list(c.static.values()), self.symbolic_zeros

        def function(*xs: Value) -> list:
            return c.results(self.fun(*c.arguments(xs)))

        def told(present: Present | None, *flat: Value) -> list:
            n = len(c.leaves)
            avals = [x.aval for x in flat[:n]]
            primals = tuple(c.tree.unflatten(flat[:n]))
            dots = differentials(flat[n:], avals, present)
            for i in kept_parts(primals, c.tree):
                dots[i] = flat[i]
            out, dot = self._checked(jvp(*static, primals, tuple(c.tree.unflatten(dots))))
            outs = c.results(out)
            return [*outs, *self._tangents(c, outs, dot)]

        def rule(*flat: Value) -> list:
            return told(None, *flat)

        outs = custom_jvp_call.bind(
            *c.leaves,
            program=Deferred(function, self.fun),
            rule=Deferred(told if symbolic else rule, jvp, symbolic, static),
            consts=0,
        )
        return c.out.unflatten(outs)

    def _checked(self, result: Value | tuple[Any, ...]) -> tuple:
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise ArgumentError(
                f"the derivative rule of {self.name()} must return a pair (out, tangent), and "
                f"returned {result!r}",
                fix="return (out, tangent), trees of one structure",
            )
        return tuple(result)

    def _flat_tangent(self, tree: Any, dot: Any) -> list:
        """Return the leaves of a tangent of a result of this structure; each may be None."""
        try:
            dots = tree.flatten_up_to(dot)
        except (ValueError, TypeError):
            dots = None
        if dots is None or any(d is not None and children(d) is not None for d in dots):
            like = tree.unflatten([0] * tree.num_leaves)
            raise TreeMismatch(
                f"the derivative rule of {self.name()} returned a tangent of another structure "
                f"than its result: {difference(like, dot)}",
                fix="return a tangent for every part of the result",
            ).defined(self.jvp)
        return dots

    def _tangents(self, c: Call, outs: list, dot: object) -> list:
        found = []
        for o, d in zip(outs, self._flat_tangent(c.out, dot), strict=True):
            if not o.aval.varies:
                continue
            want = o.aval.tangent_type
            who = f"the derivative rule of {self.name()}"
            try:
                found.append(differential(who, d, want, "tangent"))
            except PlaitError as e:
                e.defined(self.jvp)
                raise
        return found
