"""custom_jvp and custom_vjp: functions that bring their own derivative.

Applied at once, the user's Python runs on values, and may branch on them.  Staged, the call is an
operation that carries the function and its rule as programs, and so survives jit, scan and every
transformation that commutes with differentiation.

Invariant: what is known about a call (its trees, its staged programs) belongs to the call and not
to the function; the tree of residuals travels with the residuals.  A rule is staged when somebody
asks for it, for it may well call the function it serves.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.config import config
from weft.errors import MissingRule, TreeMismatch, TypeRule
from weft.interpreter import GROUND, named_axes
from weft.ir import Program, Thunk, Var, evaluate
from weft.ops.higher import call, expect
from weft.ops.shape import materialise_at_ground
from weft.primitive import Primitive
from weft.source import where_defined
from weft.staging import Stage, stage
from weft.tree import difference, flatten
from weft.types import Aval, float0
from weft.values import Literal, as_value
from weft.wiring import Ends, Slots, Wiring, width
from weft.xla.execute import eager_rules
from weft.xla.lower import lower_rules

from .closure import tracers_of
from .forward import ZERO, instantiate, jvp_rules
from .transpose import recorder, solid_ct, transpose_rules

DERIVATIVE = "derivative"


class Deferred:
    """A flat Python function, not staged yet: values in, values out."""

    __slots__ = ("f", "name", "user")

    def __init__(self, f: Callable[..., Any], user: Any):
        self.f, self.user = f, user
        self.name = getattr(user, "__name__", "f")

    def __repr__(self) -> str:
        return f"<function {self.name}>"


def run(f: Any, args: Sequence[Any]) -> list:
    """A rule, in Python if it still is that, else as a program."""
    if isinstance(f, Deferred):
        return f.f(*args)
    return evaluate(f.get() if isinstance(f, Thunk) else f, args)


def rule_thunk(
    f: Deferred,
    captured: Sequence[Any],
    avals: Callable[[], Sequence[Aval]],
    check: Callable[[list[Aval]], None] | None = None,
) -> Thunk:
    """A rule to be staged later, on what the call captured and then on `avals()`; `check` is told
    the types of its results.  It sees the named axes that the call sees."""
    axes = named_axes()

    def make() -> Program:
        s = Stage(None, "rule", f.user)
        s.sizes = axes  # type: ignore[misc]
        for x in captured:
            s.captured[id(x)] = s.var(x.aval, getattr(x, "where", None)), x
        program, found = stage(f.f, avals(), f.name, on=s)
        assert len(found) == len(captured)
        if check is not None:
            check(program.out_avals)
        return program

    return Thunk(make)


def as_function(who: str, want: Sequence[Aval], got: Sequence[Aval]) -> None:
    """A rule returns, before all else, what its function does: TypeRule otherwise."""
    if len(want) != len(got) or not all(w.same_type(g) for w, g in zip(want, got)):
        raise TypeRule(
            f"{who} returned results of types {list(got)}, where the function itself returns "
            f"{list(want)}",
            fix="return what the function returns, of the same structure, shapes and dtypes",
        )


def settled(
    program: Deferred, rules: Sequence[Deferred], args: Sequence[Any]
) -> tuple[Program, list[Any]]:
    """(the function staged on the arguments, what it and its rules close over).

    The program's inputs are the captured values, then the arguments.
    """
    made, captured = stage(program.f, [a.aval for a in args], program.name)
    known = {id(c) for c in captured}
    extra = [t for t in tracers_of(*(r.user for r in rules)) if id(t) not in known]
    if extra:
        unused = []
        for t in extra:
            v = Var()
            v.by, v.aval, v.where = GROUND, t.aval, None
            unused.append(v)
        made = made.with_inputs([*unused, *made.inputs])
    return made, [*extra, *captured]


# ---- operations ----------------------------------------------------------------------------


class _Custom(Wiring):
    """A function of captured values and arguments, with rules."""

    custom = DERIVATIVE

    def pending(self, params: dict) -> bool:
        return isinstance(params["program"], Deferred)

    def ends(self, params: dict, ins: range, outs: range) -> list[Ends]:
        raise TypeRule("a custom operation says what the ends of its rules are")

    def slots(self, params: dict) -> Slots:
        p = params["program"]
        n, m = len(p.inputs), len(p.outputs)
        ins, outs = range(n), range(n, n + m)
        return Slots(ins, outs, [(p, ins, outs)], n + m, rules=self.ends(params, ins, outs))

    def rebuild(self, params, programs, parts, operands, extra):
        names = ("program", *(k for k in ("rule", "fwd", "bwd") if k in params))
        consts = width(parts[: params["consts"]]) + len(extra)
        return [*extra, *operands], {**dict(zip(names, programs)), "consts": consts}

    def erase(self, prim: Any, params: dict) -> tuple[Any, dict]:
        return call, {"program": params["program"]}


def _varying(avals: Sequence[Aval], slots: Sequence[int]) -> tuple[int, ...]:
    return tuple([s for s, a in zip(slots, avals, strict=True) if a.inexact])


class _Jvp(_Custom):
    """rule: captured, xs, tangents of inexact xs -> outs, tangents of inexact outs."""

    def ends(self, params: dict, ins: range, outs: range) -> list[Ends]:
        p, k = params["program"], params["consts"]
        tangents = _varying(p.in_avals[k:], ins[k:])
        dots = _varying(p.out_avals, outs)
        return [Ends(params["rule"], (*ins, *tangents), (*outs, *dots))]

    def settle(self, params: dict, args: Sequence[Any]) -> tuple[Sequence[Any], dict]:
        args = [as_value(a) for a in args]
        rule = params["rule"]
        program, captured = settled(params["program"], [rule], args)
        avals = [a.aval for a in args]
        types = [*avals, *(a for a in avals if a.inexact)]
        want = program.out_avals

        def check(got: list[Aval]) -> None:
            dots = sum(a.inexact for a in want)
            as_function(f"the derivative rule {rule.name}", want, got[: len(got) - dots])

        thunk = rule_thunk(rule, captured, lambda: types, check)
        new = {"program": program, "rule": thunk, "consts": len(captured)}
        return [*captured, *args], new


class _Vjp(_Custom):
    """fwd: captured, xs -> outs, residuals.

    bwd: captured, residuals, cotangents of inexact outs -> cotangents of inexact xs.
    """

    def ends(self, params: dict, ins: range, outs: range) -> list[Ends]:
        p, k = params["program"], params["consts"]
        cts = _varying(p.out_avals, outs)
        grads = _varying(p.in_avals[k:], ins[k:])
        return [
            Ends(params["fwd"], tuple(ins), (*outs, ...)),
            Ends(params["bwd"], (*ins[:k], ..., *cts), grads),
        ]

    def settle(self, params: dict, args: Sequence[Any]) -> tuple[Sequence[Any], dict]:
        args = [as_value(a) for a in args]
        f, fwd = params["program"], params["fwd"]
        program, captured = settled(f, [fwd, params["bwd"]], args)
        avals = [a.aval for a in args]
        want = program.out_avals
        m = len(want)
        found: dict[str, Any] = {}

        def forward(*xs: Any) -> list:
            outs, residuals, found["bwd"] = fwd.f(*xs)
            as_function(f"the forward rule {fwd.name}", want, [o.aval for o in outs])
            return [*outs, *residuals]

        first = rule_thunk(Deferred(forward, fwd.user), captured, lambda: avals)

        def backward_avals() -> list[Aval]:
            outs = first.get().out_avals
            return [*outs[m:], *(a for a in outs[:m] if a.inexact)]

        def backward(*vs: Any) -> list:
            first.get()
            return found["bwd"].f(*vs)

        second = rule_thunk(Deferred(backward, params["bwd"].user), captured, backward_avals)
        new = {"program": program, "fwd": first, "bwd": second, "consts": len(captured)}
        return [*captured, *args], new


class _Lin(Wiring):
    """captured and residuals, then tangents of inexact xs -> tangents of inexact outs."""

    custom = DERIVATIVE

    def pending(self, params: dict) -> bool:
        return isinstance(params["bwd"], Deferred)

    def settle(self, params: dict, args: Sequence[Any]) -> tuple[Sequence[Any], dict]:
        args = [as_value(a) for a in args]
        residuals = args[: params["residuals"]]
        bwd = params["bwd"]
        types = [*(r.aval for r in residuals), *params["outs"]]
        captured = tracers_of(bwd.user)
        thunk = rule_thunk(bwd, captured, lambda: types)
        count = len(captured) + len(residuals)
        return [*captured, *args], {**params, "bwd": thunk, "residuals": count}

    def slots(self, params: dict) -> Slots:
        r, n = params["residuals"], params["operands"] + params["residuals"]
        outs = range(n, n + len(params["outs"]))
        ends = Ends(params["bwd"], (*range(r), *outs), tuple(range(r, n)))
        return Slots(range(n), outs, [], n + len(outs), rules=[ends])

    def rebuild(self, params, programs, parts, operands, extra):
        r, n = params["residuals"], params["operands"] + params["residuals"]
        outs = tuple([p.aval for ps in parts[n:] for p in ps])
        new = {
            "bwd": programs[0],
            "residuals": width(parts[:r]) + len(extra),
            "operands": width(parts[r:n]),
            "outs": outs,
        }
        return [*extra, *operands], new

    def erase(self, prim: Any, params: dict) -> tuple[Any, dict]:
        raise _reverse_only()


def _body(*xs: Aval, program: Program, consts: int, **rules: Any) -> list[Aval]:
    """Apply the function; whoever differentiates uses its rule."""
    expect(f"custom function {program.name}", program.in_avals, xs)
    return program.out_avals


def _lin(*xs: Aval, bwd: Any, residuals: int, operands: int, outs: tuple) -> list[Aval]:
    """The derivative of a function of which only the pullback `bwd` is known."""
    return list(outs)


custom_jvp_call = Primitive("autodiff.custom_jvp_call", _body, many=True, higher=_Jvp())
custom_vjp_call = Primitive("autodiff.custom_vjp_call", _body, many=True, higher=_Vjp())
custom_lin = Primitive("autodiff.custom_lin", _lin, many=True, higher=_Lin())


@lower_rules.rule(custom_jvp_call, custom_vjp_call)
def _(e, xs, ins, outs, program, **rules):
    return e.call(program, xs)


@eager_rules.rule(custom_jvp_call, custom_vjp_call)
def _(args, params):
    program = params["program"]
    if not isinstance(program, Deferred):
        return None
    return [materialise_at_ground(o) for o in program.f(*args)]


def _reverse_only() -> MissingRule:
    return MissingRule(
        "forward mode of a custom_vjp function: of its derivative only the pullback is known",
        fix="use custom_jvp, or reverse mode (grad, vjp, jacrev)",
    )


@lower_rules.rule(custom_lin)
def _(*args, **params):
    raise _reverse_only()


@eager_rules.rule(custom_lin)
def _(args, params):
    raise _reverse_only()


# ---- derivatives ---------------------------------------------------------------------------


def _closed_over(ts: Sequence[Any], consts: int) -> None:
    if any(t is not ZERO for t in ts[:consts]):
        raise MissingRule(
            "a custom derivative closes over a value that is being differentiated",
            fix="pass that value as an argument of the function, and give its derivative",
        )


@jvp_rules.rule(custom_jvp_call)
def _(jvp, args, params):
    program, rule, consts = params["program"], params["rule"], params["consts"]
    xs, ts = jvp.halves(args)
    _closed_over(ts, consts)
    given = list(zip(ts[consts:], xs[consts:], strict=True))
    tangents = [instantiate(t, x) for t, x in given if x.aval.inexact]
    want = _promised(program, xs)
    results = run(rule, [*xs, *tangents])
    m = _count(program, rule, results)
    outs, dots = results[:m], iter(results[m:])
    if want is not None:
        as_function(f"the derivative rule {rule.name}", want, [o.aval for o in outs])
    return jvp.duals(outs, [next(dots) if o.aval.inexact else ZERO for o in outs])


def _promised(program: Any, xs: Sequence[Any]) -> list[Aval] | None:
    """Types of what the function itself returns, when its rule is run in its stead and checks are
    wanted; where the function has been staged, its rule was checked then."""
    if not config.checks or not isinstance(program, Deferred):
        return None
    return [o.aval for o in program.f(*xs)]


def _count(program: Any, rule: Any, results: list) -> int:
    """How many of the results are values; the others are tangents of the inexact ones."""
    if isinstance(program, Program):
        return len(program.outputs)
    n = 0
    left = len(results)
    while left > 0:
        left -= 2 if results[n].aval.inexact else 1
        n += 1
    return n


@jvp_rules.rule(custom_vjp_call)
def _(jvp, args, params):
    fwd, bwd, consts = params["fwd"], params["bwd"], params["consts"]
    xs, ts = jvp.halves(args)
    _closed_over(ts, consts)
    captured = xs[:consts]
    if isinstance(fwd, Deferred):
        want = _promised(params["program"], xs)
        outs, residuals, bwd = fwd.f(*xs)
        if want is not None:
            as_function(f"the forward rule {fwd.name}", want, [o.aval for o in outs])
    else:
        results = evaluate(fwd.get(), xs)
        m = len(params["program"].outputs)
        outs, residuals = results[:m], [*captured, *results[m:]]
    given = zip(ts[consts:], xs[consts:], strict=True)
    tangents = [instantiate(t, x) for t, x in given if x.aval.inexact]
    dots = iter(
        custom_lin.bind(
            *residuals,
            *tangents,
            bwd=bwd,
            residuals=len(residuals),
            operands=len(tangents),
            outs=tuple([o.aval.strong() for o in outs if o.aval.inexact]),
        )
    )
    return jvp.duals(outs, [next(dots) if o.aval.inexact else ZERO for o in outs])


@jvp_rules.rule(custom_lin)
def _(jvp, args, params):
    residuals = params["residuals"]
    xs, ts = jvp.halves(args)
    if any(t is not ZERO for t in ts[:residuals]):
        raise _reverse_only()
    outs = custom_lin.bind(*xs, **params)
    moved = [instantiate(t, x) for t, x in zip(ts[residuals:], xs[residuals:])]
    return jvp.duals(outs, custom_lin.bind(*xs[:residuals], *moved, **params))


@transpose_rules.rule(custom_lin)
def _(cts, *args, bwd, residuals, operands, outs):
    given = [solid_ct(c, a) for c, a in zip(cts, outs, strict=True)]
    by = recorder()
    if by is not None and isinstance(bwd, Deferred):
        by.where = None  # the user's Python has lines of its own
    got = run(bwd, [*args[:residuals], *given])
    return [*[None] * residuals, *got]


# ---- as users say it -----------------------------------------------------------------------


def no_tangent(aval: Aval) -> np.ndarray:
    """The tangent or cotangent of what can not vary."""
    return np.zeros(aval.shape, float0)


def _differentials(flat: Sequence[Any], avals: Sequence[Aval]) -> list:
    """One per value: those given for inexact ones, float0 for the others."""
    it = iter(flat)
    return [next(it) if a.inexact else no_tangent(a) for a in avals]


class _Call:
    """One call of a custom function: its arguments, and its tree of results once known."""

    def __init__(self, user: Callable, static: dict[int, Any], args: tuple):
        self.user, self.static = user, static
        self.leaves, self.tree = flatten(args)
        self.leaves = [as_value(x) for x in self.leaves]
        self.avals = [x.aval for x in self.leaves]
        self.out: Any = None

    def arguments(self, xs: Sequence[Any]) -> list:
        """All positional arguments, static ones in their places."""
        out = list(self.tree.unflatten(xs))
        for i in sorted(self.static):
            out.insert(i, self.static[i])
        return out

    def results(self, out: Any) -> list:
        """Flat results; their tree is that of the call."""
        outs, self.out = flatten(out)
        return [as_value(o) for o in outs]


class _Function:
    """What custom_jvp and custom_vjp share: arguments by position, static ones apart."""

    def __init__(self, fun: Callable, nondiff_argnums: Sequence[int] | int = ()):
        functools.update_wrapper(self, fun)  # type: ignore[arg-type]
        self.fun = fun
        nums = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        self.nondiff = nums
        try:
            self.signature: Any = inspect.signature(fun)
        except (TypeError, ValueError):
            self.signature = None

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else functools.partial(self, instance)  # type: ignore[arg-type]

    def positional(self, args: tuple, kwargs: dict) -> tuple:
        """All arguments by position; raises TypeError for keyword-only ones."""
        if not kwargs and self.signature is None:
            return args
        if self.signature is None:
            raise TypeError(f"{self.name()} takes no keyword arguments")
        given = self.signature.bind(*args, **kwargs)
        given.apply_defaults() if kwargs else None
        left = {k: v for k, v in given.kwargs.items() if k in kwargs}
        if left:
            raise TypeError(
                f"keyword arguments ({', '.join(left)}) of {self.name()} could not be resolved to "
                "positions; pass them by position, or close over them"
            )
        return given.args

    def name(self) -> str:
        return getattr(self.fun, "__name__", "f")

    def call(self, args: tuple, kwargs: dict) -> _Call:
        args = self.positional(args, kwargs)
        n = len(args)
        fixed = {i % n: args[i] for i in self.nondiff} if self.nondiff else {}
        return _Call(self.fun, fixed, tuple([a for i, a in enumerate(args) if i not in fixed]))

    def missing(self, what: str, how: str) -> MissingRule:
        return MissingRule(
            f"the custom function {where_defined(self.fun)} has no {what}",
            fix=f"Did you forget to use {how}?",
        )


class custom_jvp(_Function):  # noqa: N801  (a decorator)
    """A function with its own derivative along a direction.

    Args:
      fun: takes and returns trees of arrays.
      nondiff_argnums: arguments that are not arrays; the rule is given them first.

    >>> import weft as wf
    >>> @wf.custom_jvp
    ... def f(x):
    ...     return wf.numpy.log1p(wf.numpy.exp(x))
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return f(x), t * wf.nn.sigmoid(x)
    >>> wf.grad(f)(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """

    jvp: Callable | None = None

    def defjvp(self, jvp: Callable) -> Callable:
        """Set the rule: `jvp(*static, primals, tangents) -> (out, tangent)`."""
        self.jvp = jvp
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """One rule per argument, `jvp(tangent, out, *primals) -> tangent`, or None for zero."""
        if self.nondiff:
            raise TypeError("defjvps can not be used with nondiff_argnums: use defjvp")

        def jvp(primals: tuple, tangents: tuple) -> tuple:
            out = self(*primals)
            parts = [j(t, out, *primals) for j, t in zip(jvps, tangents) if j is not None]
            outs, tree = flatten(out)
            sums = [Literal(0, as_value(o).aval) for o in outs]
            for k, p in enumerate(parts):
                dots = flatten(p)[0]
                sums = dots if k == 0 else [s + d for s, d in zip(sums, dots)]
            return out, tree.unflatten(sums)

        self.jvp = jvp

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise self.missing("derivative rule", f"defjvp to define one for {self.name()}")
        c = self.call(args, kwargs)
        jvp, static = self.jvp, list(c.static.values())

        def body(*xs: Any) -> list:
            return c.results(self.fun(*c.arguments(xs)))

        def rule(*flat: Any) -> list:
            n = len(c.leaves)
            avals = [x.aval for x in flat[:n]]
            primals = tuple(c.tree.unflatten(flat[:n]))
            tangents = tuple(c.tree.unflatten(_differentials(flat[n:], avals)))
            out, dot = self._checked(jvp(*static, primals, tangents))
            outs = c.results(out)
            return [*outs, *self._tangents(c, outs, dot)]

        outs = custom_jvp_call.bind(
            *c.leaves, program=Deferred(body, self.fun), rule=Deferred(rule, jvp), consts=0
        )
        return c.out.unflatten(outs)

    def _checked(self, result: Any) -> tuple:
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeRule(
                f"the derivative rule of {self.name()} must return a pair (out, tangent)",
                fix="return (out, tangent), trees of one structure",
            )
        return result

    def _tangents(self, c: _Call, outs: list, dot: Any) -> list:
        dots = flatten(dot, is_leaf=lambda x: x is None)[0]
        if len(dots) != len(outs):
            like = c.out.unflatten([0] * len(outs))
            raise TreeMismatch(
                f"the derivative rule of {self.name()} returned a tangent of another structure "
                f"than its result: {difference(like, dot)}",
                fix="return a tangent for every part of the result",
            )
        found = []
        for o, d in zip(outs, dots):
            if not o.aval.inexact:
                continue
            t = Literal(0, o.aval) if d is None or _is_float0(d) else as_value(d)
            found.append(_typed(t, o.aval, f"the derivative rule of {self.name()}", "tangent"))
        return found


def _is_float0(x: Any) -> bool:
    return getattr(x, "dtype", None) == float0


def _typed(t: Any, aval: Aval, who: str, what: str) -> Any:
    """A differential of the type of its value; Python numbers take it."""
    if t.aval.same_type(aval):
        return t
    if t.__class__ is Literal and not t.aval.ndim and not aval.ndim:
        return Literal(t.value, aval)
    if t.aval.shape == aval.shape and t.aval.weak_type and t.aval.category <= aval.category:
        return t.astype(aval.dtype)
    raise TypeRule(
        f"{who} returned a {what} of type {t.aval!r} for a value of type {aval!r}",
        fix=f"a {what} has the shape and dtype of the value it belongs to",
    )


class custom_vjp(_Function):  # noqa: N801  (a decorator)
    """A function with its own pullback, for reverse mode.

    Args:
      fun: takes and returns trees of arrays.
      nondiff_argnums: arguments that are not arrays; `bwd` is given them first.

    >>> import weft as wf
    >>> @wf.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (wf.numpy.clip(ct, -1, 1),))
    >>> wf.grad(lambda x: 5 * clip_gradient(x))(2.0)
    Array(1., dtype=float32, weak_type=True)
    """

    fwd: Callable | None = None
    bwd: Callable | None = None

    def defvjp(self, fwd: Callable, bwd: Callable) -> None:
        """Set the rules: `fwd(*args) -> (out, residuals)` and
        `bwd(*static, residuals, ct) -> a cotangent or None per argument`."""
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise self.missing("pullback", f"defvjp to define one for {self.name()}")
        c = self.call(args, kwargs)
        user_fwd, user_bwd, static = self.fwd, self.bwd, list(c.static.values())

        def body(*xs: Any) -> list:
            return c.results(self.fun(*c.arguments(xs)))

        def fwd(*xs: Any) -> tuple[list, list, Deferred]:
            pair = user_fwd(*c.arguments(xs))
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TypeRule(
                    f"fwd of {self.name()} must return a pair (out, residuals)",
                    fix="return (out, residuals)",
                )
            outs = c.results(pair[0])
            residuals, tree = flatten(pair[1])
            in_avals, out_avals, out_tree = [x.aval for x in xs], [o.aval for o in outs], c.out

            def bwd(*vs: Any) -> list:
                res = tree.unflatten(vs[: len(residuals)])
                cts = _differentials(vs[len(residuals) :], out_avals)
                got = user_bwd(*static, res, out_tree.unflatten(cts))
                return self._cotangents(c, got, in_avals)

            return outs, [as_value(r) for r in residuals], Deferred(bwd, user_bwd)

        outs = custom_vjp_call.bind(
            *c.leaves,
            program=Deferred(body, self.fun),
            fwd=Deferred(fwd, user_fwd),
            bwd=Deferred(fwd, user_bwd),  # made by fwd, whose residuals it takes
            consts=0,
        )
        return c.out.unflatten(outs)

    def _cotangents(self, c: _Call, got: Any, avals: list[Aval]) -> list:
        """Flat cotangents of the inexact arguments; None stands for zeros of a whole argument."""
        like = c.tree.unflatten(list(range(len(avals))))
        if not isinstance(got, tuple | list) or len(got) != len(like):
            count = len(got) if isinstance(got, tuple | list) else 1
            raise TreeMismatch(
                f"bwd of {self.name()} must return a tuple of {len(like)} cotangents, one for "
                f"each argument, and returned {count}",
                fix="return a tuple, with None for arguments without derivative",
            )
        flat: list = []
        for a, t in zip(like, got):
            places, kind = flatten(a)
            if t is None:
                flat += [None] * len(places)
                continue
            try:
                flat += kind.flatten_up_to(t) if kind.num_leaves else []
            except (ValueError, TypeError):
                raise TreeMismatch(
                    f"bwd of {self.name()} returned a cotangent of another structure than the "
                    f"argument: {difference(a, t)}",
                    fix="return a cotangent for every part of the argument, or None for all",
                ) from None
        out = []
        for ct, aval in zip(flat, avals, strict=True):
            if not aval.inexact:
                continue
            v = Literal(0, aval) if ct is None or _is_float0(ct) else self._value(ct, aval)
            out.append(_typed(v, aval, f"bwd of {self.name()}", "cotangent"))
        return out

    def _value(self, ct: Any, aval: Aval) -> Any:
        try:
            return as_value(ct)
        except TypeRule:
            raise TreeMismatch(
                f"bwd of {self.name()} returned {type(ct).__name__} as the cotangent of an "
                f"argument of type {aval!r}",
                fix="return a cotangent for every part of the argument, or None for all",
            ) from None

