"""custom_vjp: functions with a pullback of their own.

A staged call is an operation that carries the function and both rules.  So it survives jit, scan
and every transformation that commutes with differentiation.

Invariant: the tree of residuals is kept with the residuals.  The forward rule returns the
function's results besides residuals.  So where no residual is used the function replaces the rule,
and the rule runs only where its residuals are needed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from plait.errors import UnexpectedTracerError
from plait.ext.errors import (
    ArgumentError,
    MissingRule,
    PlaitError,
    TreeMismatch,
    border,
    names_of_arguments,
)
from plait.ext.ir import Primitive, Program, Thunk, effects_of, evaluate
from plait.ext.lower import IrValue
from plait.ext.ops.control_flow import call, expect
from plait.ext.rules import eager_rules, lower_rules
from plait.ext.trace import (
    Call,
    Carrier,
    Deferred,
    Ends,
    Function,
    Handle,
    Interpreter,
    Slots,
    Value,
    Wiring,
    admitted,
    rule_thunk,
    settled,
    use,
)
from plait.ext.tree import difference, flatten, key_paths
from plait.ext.types import Aval
from plait.ext.values import as_value
from plait.typing import Array

from ..adable import kept_parts
from ..forward import JVP, ZERO, instantiate, jvp_rules
from ..split import split_rules
from ..transpose import transpose_rules
from .functions import (
    DERIVATIVE,
    CustomWiring,
    along_input,
    applied,
    body,
    closed_over,
    lowered,
    promised,
    transposed,
    varying,
)
from .linear import custom_lin, linear_map
from .symbolic_zeros import CustomPrimal, differential, differentials
from .variants import Present, Variants, as_function

if TYPE_CHECKING:
    from plait.ext.lower import Emitter

P = ParamSpec("P")
R = TypeVar("R")

# ---- the operation -------------------------------------------------------------------------


class _Vjp(CustomWiring):
    """fwd: captured, xs -> outs, residuals.

    bwd: captured, residuals, cotangents of inexact outs -> cotangents of inexact xs.
    Both may be variants, for each pattern of varying xs and of given cotangents.
    """

    names = ("fwd", "bwd")

    def ends(self, params: dict, ins: range, outs: range) -> list[Ends]:
        p, k = params["program"], params["consts"]
        cts = varying(p.out_avals, outs)
        grads = varying(p.in_avals[k:], ins[k:])
        return [
            Ends(params["fwd"], tuple(ins), (*outs, ...)),
            Ends(params["bwd"], (*ins[:k], ..., *cts), grads, cts, along_input),
        ]

    def settle(self, params: dict, args: Sequence[Any]) -> tuple[Sequence[Any], dict]:
        args = [as_value(a) for a in args]
        f, fwd, bwd = params["program"], params["fwd"], params["bwd"]
        program, captured = settled(f, [fwd, bwd], args)
        rules = _Rules(fwd, bwd, [a.aval for a in args], program.out_avals, captured)
        if fwd.symbolic:
            first: Any = Variants(lambda key: rules.of(key[0])[0], fwd.name)
            second: Any = Variants(lambda key: rules.backward(*key), bwd.name)
        else:
            first, second = rules.of(None)[0], rules.backward(None, None)
        new = {"program": program, "fwd": first, "bwd": second, "consts": len(captured)}
        return [*captured, *args], new


class _Rules:
    """The rules of one call, staged when they are needed.

    The forward rule makes the backward rule, which takes its residuals.
    """

    def __init__(
        self,
        fwd: Deferred,
        bwd: Deferred,
        avals: list[Aval],
        want: list[Aval],
        captured: list[Value],
    ):
        self.fwd, self.bwd, self.captured = fwd, bwd, captured
        self.avals: list[Aval] = avals
        self.want: list[Aval] = want
        self.made: dict[Any, tuple[Thunk, dict]] = {}

    def of(self, perturbed: Present | None) -> tuple[Thunk, dict]:
        """Return (the forward rule, the dict in which it puts the backward rule)."""
        if perturbed not in self.made:
            fwd, want = self.fwd, self.want
            found: dict[str, Any] = {}

            def forward(*xs: Value) -> list:
                key = () if perturbed is None else (perturbed,)
                outs, residuals, found["bwd"] = fwd.f(*key, *xs)
                as_function(f"the forward rule {fwd.name}", want, [o.aval for o in outs])
                return [*outs, *residuals]

            f = Deferred(forward, fwd.user, static=fwd.static)
            avals = self.avals  # the rule must not hold this object, which holds the rule
            self.made[perturbed] = rule_thunk(f, self.captured, lambda: avals), found
        return self.made[perturbed]

    def backward(self, perturbed: Present | None, present: Present | None) -> Thunk:
        """Return the backward rule."""
        first, found = self.of(perturbed)
        m = len(self.want)

        def types() -> list[Aval]:
            outs = first.get().out_avals
            cts = [a.tangent_type for a in outs[:m] if a.varies]
            if present is not None:
                cts = [a for a, there in zip(cts, present) if there]
            return [*outs[m:], *cts]

        def backward(*vs: Value) -> list:
            first.get()
            key = () if present is None else (present,)
            return found["bwd"].f(*key, *vs)

        f = Deferred(backward, self.bwd.user, static=self.bwd.static)
        return rule_thunk(f, self.captured, types)


custom_vjp_call = Primitive("autodiff.custom_vjp_call", body, many=True, higher=_Vjp())
lower_rules.rule(custom_vjp_call)(lowered)
eager_rules.rule(custom_vjp_call)(applied)


@transpose_rules.rule(custom_vjp_call)
def _(cts, *args, program, consts: object, fwd: object, bwd: object):
    return transposed(cts, args, program)


# ---- the forward rule, as an operation -----------------------------------------------------


class _Forward(Wiring):
    """Operands -> results, residuals; the function returns the results, its rule both."""

    custom, hint = DERIVATIVE, True

    def slots(self, params: dict) -> Slots:
        p, fwd = params["program"], params["fwd"]
        n, m = len(fwd.inputs), len(fwd.outputs)
        ins, outs = range(n), range(n, n + m)
        return Slots(ins, outs, [(p, ins, outs[: len(p.outputs)]), (fwd, ins, outs)], n + m)

    def rebuild(
        self,
        params: dict[str, Any],
        programs: list[Program],
        parts: list[tuple[Any, ...]],
        operands: list[Value],
        extra: list[Any],
    ):
        return [*extra, *operands], {"program": programs[0], "fwd": programs[1]}

    def erase(self, prim: object, params: dict) -> tuple[Any, dict]:
        return call, {"program": params["fwd"]}

    def fewer(self, params: dict, used: Sequence[bool]) -> tuple[Any, dict, int] | None:
        m = len(params["program"].outputs)
        if any(used[m:]) or effects_of(forward_call, params):
            return None
        return call, {"program": params["program"]}, m


def _forward(*xs: Aval, program: Program, fwd: Program) -> list[Aval]:
    """Apply the forward rule of a function; if its residuals are unused, the function."""
    expect(f"custom function {program.name}", fwd.in_avals, xs)
    return fwd.out_avals


forward_call = Primitive("autodiff.forward_call", _forward, many=True, higher=_Forward())


@lower_rules.rule(forward_call)
def _(
    e: "Emitter",
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    program: Program,
    fwd: Program,
):
    return e.call(fwd, xs)


@jvp_rules.rule(forward_call)
def _(jvp: Carrier, args: list[Value], params: dict[str, Any]):
    return _spelled_out(jvp, args, params)


@split_rules.rule(forward_call)
def _(split: Interpreter, args, params: dict[str, Any]):
    return _spelled_out(split, args, params)


def _spelled_out(by: Any, args: Sequence[Any], params: dict) -> list:
    with use(by):
        return evaluate(params["fwd"], args)


# ---- its derivative ------------------------------------------------------------------------


@jvp_rules.rule(custom_vjp_call)
def _(jvp: JVP, args: Sequence[Array], params):
    program, fwd, consts = params["program"], params["fwd"], params["consts"]
    xs, ts = jvp.halves(args)
    symbolic = getattr(fwd, "symbolic", False)
    perturbed = tuple([t is not ZERO for t in ts[consts:]]) if symbolic else None
    if isinstance(fwd, Deferred):
        outs, residuals, bwd = _in_python(params, xs, perturbed)
    else:
        closed_over(args, ts, consts, program, _all_present(params, perturbed))
        outs, residuals, bwd = _as_program(params, xs, perturbed)
    given = zip(ts[consts:], xs[consts:], strict=True)
    tangents = [instantiate(t, x) for t, x in given if x.aval.varies]
    return duals_by_pullback(jvp, outs, residuals, tangents, bwd)


def duals_by_pullback(
    jvp: Any, outs: Sequence[Any], residuals: Sequence[Any], tangents: Sequence[Any], bwd: object
) -> list[Any]:
    """Return duals of `outs`, whose pullback maps residuals and cotangents by `bwd`."""
    operands, params = linear_map(residuals, tangents, bwd, outs)
    dots = iter(custom_lin.bind(*operands, **params))
    return jvp.duals(outs, [next(dots) if o.aval.varies else ZERO for o in outs])


def _all_present(params: dict, perturbed: Present | None) -> list[Thunk]:
    """Return the rules; the backward one is for cotangents of all results."""
    fwd, bwd = params["fwd"], params["bwd"]
    if perturbed is None:
        return [fwd, bwd]
    every = (True,) * sum(a.varies for a in params["program"].out_avals)
    return [fwd.on((perturbed, ())), bwd.on((perturbed, every))]


def _in_python(params: dict, xs: Sequence[Any], perturbed: Present | None) -> tuple:
    fwd = params["fwd"]
    want = promised(params["program"], xs)
    key = () if perturbed is None else (perturbed,)
    outs, residuals, bwd = fwd.f(*key, *xs)
    if want is not None:
        as_function(f"the forward rule {fwd.name}", want, [o.aval for o in outs])
    return outs, residuals, bwd


def _as_program(params: dict, xs: Sequence[Any], perturbed: Present | None) -> tuple:
    fwd, bwd, program = params["fwd"], params["bwd"], params["program"]
    if perturbed is not None:
        fwd, bwd = fwd.on((perturbed, ())), bwd.given(perturbed)
    results = forward_call.bind(*xs, program=program, fwd=fwd.get())
    m = len(program.outputs)
    return results[:m], [*xs[: params["consts"]], *results[m:]], bwd


# ---- the user's interface ------------------------------------------------------------------


class custom_vjp(Function[P, R]):  # noqa: N801  (a decorator)
    """A function with its own pullback, for reverse mode.

    Forward mode transposes the pullback if that is linear in cotangents; otherwise it raises an
    error.

    Args:
      fun: takes and returns trees of arrays.
      nondiff_argnums, nondiff_argnames: arguments that are not arrays, by position or by name;
        `bwd` takes them first, in their order.

    An argument may be a reference of `plait.new_ref`, which `fwd` may return among its residuals
    and `bwd` may write: so values of the backward pass reach the caller.

    >>> import plait
    >>> @plait.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (plait.numpy.clip(ct, -1, 1),))
    >>> plait.grad(lambda x: 5 * clip_gradient(x))(2.0)
    Array(1., dtype=float32, weak_type=True)
    """

    fwd: Callable | None = None
    bwd: Callable | None = None
    symbolic_zeros: bool = False

    def defvjp(
        self,
        fwd: Callable,
        bwd: Callable,
        symbolic_zeros: bool = False,
        optimize_remat: bool = True,
    ) -> None:
        """Set the rules: `fwd(*args) -> (out, residuals)` and
        `bwd(*static, residuals, ct) -> a cotangent or None per argument`.

        With `symbolic_zeros`, `fwd` takes a `CustomPrimal(value, perturbed)` for every array, and
        `bwd` a `SymbolicZero` for every cotangent that is zero.  Under `checkpoint` the function
        is applied where residuals are not needed, and `fwd` once where they are.  This is always
        so, and `optimize_remat` changes nothing.

        Raises TypeRule if a rule cannot be called with its arguments.
        """
        del optimize_remat
        self.expect_rule("defvjp", fwd, "what the function takes, as its forward rule", 0, True)
        self.expect_rule("defvjp", bwd, "static arguments, residuals and a cotangent", 2)
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    @border
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.fwd is None or self.bwd is None:
            raise self.missing("VJP", "custom_vjp", "defvjp")
        c = self.call(args, kwargs, apart=True)

        def function(*xs: Value) -> list:
            return c.results(self.fun(*c.arguments(xs)))

        rules = _UserRules(self, c)
        fwd = rules.told if self.symbolic_zeros else rules.forward
        outs = custom_vjp_call.bind(
            *c.leaves,
            program=Deferred(function, self.fun),
            fwd=Deferred(fwd, self.fwd, self.symbolic_zeros, rules.static),
            # The forward rule makes the backward rule, which takes its residuals.
            bwd=Deferred(fwd, self.bwd, static=rules.static),
            consts=0,
        )
        return c.out.unflatten(outs)


_NUMBERS = (bool, int, float, complex)


class _UserRules:
    """The rules of one call, as functions from flat values to flat values."""

    def __init__(self, function: custom_vjp, c: Call):
        self.fwd, self.bwd, self.fun = function.fwd, function.bwd, function.fun
        self.call, self.name = c, function.name()
        self.static = list(c.static.values())

    def forward(self, *xs: Value) -> tuple[list, list, Deferred]:
        """Run the forward rule; return (results, residuals, the backward rule)."""
        return self._split(xs, self.call.arguments(xs), False)

    def told(self, perturbed: Present, *xs: Value) -> tuple[list, list, Deferred]:
        """Do the same for a rule with symbolic zeros; `perturbed` marks the values that vary."""
        given = [CustomPrimal(x, p) for x, p in zip(xs, perturbed, strict=True)]
        return self._split(xs, self.call.arguments(given), True)

    def _split(self, xs: Sequence[Any], arguments: list, symbolic: bool) -> tuple:
        assert self.fwd is not None
        with self._reaching_references(self.fwd):
            pair = self.fwd(*arguments)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ArgumentError(
                f"fwd of {self.name} must return a pair (out, residuals), and returned {pair!r}",
                fix="return (out, residuals)",
            ).defined(self.fwd)
        outs = self.call.results(pair[0])
        leaves, tree = flatten(pair[1])
        # A Python number stays one: rules branch on numbers that they kept, and index with them.
        kept = [r if type(r) in _NUMBERS or isinstance(r, Handle) else None for r in leaves]
        self._expect_arguments(kept)
        residuals = [admitted(r) for r, number in zip(leaves, kept) if number is None]
        parts, first = kept_parts(pair[0], self.call.out), len(residuals)
        residuals += [outs[i] for i in parts]
        in_avals = [x.aval for x in self.call.all_leaves(xs)]
        out_avals = [o.aval for o in outs]
        out_tree, n, bwd = self.call.out, len(residuals), self.bwd
        assert bwd is not None

        def told(present: Present | None, *vs: Value) -> list:
            values = iter(vs)
            given = tree.unflatten([next(values) if k is None else k for k in kept])
            dots = differentials(vs[n:], out_avals, present)
            for i, x in zip(parts, vs[first:n], strict=True):
                dots[i] = x
            cts = out_tree.unflatten(dots)
            with self._reaching_references(bwd):
                got = bwd(*self.static, given, cts)
            return self._cotangents(got, in_avals)

        back = told if symbolic else lambda *vs: told(None, *vs)
        return outs, residuals, Deferred(back, bwd, symbolic, self.static)

    @contextmanager
    def _reaching_references(self, rule: Callable[..., Any]) -> Iterator[None]:
        """Run a rule; if a reference that it was given cannot be used there, say why.

        A rule of a staged call is staged apart from it, and has no references among its operands.
        """
        try:
            yield
        except (UnexpectedTracerError, MissingRule):
            ref = next(iter(self.call.handles.values()), None)
            if ref is None:
                raise
            raise ArgumentError(
                f"{self.name} takes a reference, {ref!r}, and is differentiated where its rules "
                "are recorded before they run: through a jitted function, a loop or checkpoint",
                fix="differentiate inside of jit, jit(grad(f)) for grad(jit(f)), write the loop in "
                "Python, or return the value: has_aux=True",
            ).defined(rule) from None

    def _expect_arguments(self, kept: Sequence[Any]) -> None:
        """Raise ArgumentError if a reference among residuals is not an argument of the call."""
        own = self.call.handles.values()
        for r in kept:
            if isinstance(r, Handle) and not any(r is h for h in own):
                raise ArgumentError(
                    f"fwd of {self.name} keeps a reference, {r!r}, that is not one of its "
                    "arguments",
                    fix="pass it as an argument: a backward rule writes references that the "
                    "function was given",
                ).defined(self.fwd)

    def _cotangents(self, got: Value | tuple[Any, ...], avals: list[Aval]) -> list:
        """Return flat cotangents of the inexact arguments; None is zero for a whole argument."""
        try:
            return flat_cotangents(f"bwd of {self.name}", self.call.tree, got, avals, self.fun)
        except PlaitError as e:
            e.defined(self.bwd)
            raise


def flat_cotangents(
    who: str,
    tree: Any,
    got: Value | tuple[Any, ...],
    avals: list[Aval],
    fun: Callable[..., Any] | None = None,
) -> list[Any]:
    """Return the cotangents of the inexact arguments of `fun`, given a rule's result for all
    arguments."""
    like = tree.unflatten(list(range(len(avals))))
    if not isinstance(got, tuple | list) or len(got) != len(like):
        count = len(got) if isinstance(got, tuple | list) else 1
        raise TreeMismatch(
            f"{who} must return a tuple of {len(like)} cotangents, one for each argument, and "
            f"returned {count}",
            fix="return a tuple, with None for arguments without derivative",
        )
    flat: list = []
    for n, (a, t) in enumerate(zip(like, got)):
        positions, kind = flatten(a)
        if t is None:
            flat += [None] * len(positions)
            continue
        try:
            flat += kind.flatten_up_to(t) if kind.num_leaves else []
        except (ValueError, TypeError):
            raise TreeMismatch(
                f"{who} returned a cotangent of another structure than "
                f"{names_of_arguments(fun)(f'[{n}]')}: {difference(a, t)}",
                fix="return a cotangent for every part of the argument, or None for all",
            ) from None
    out = []
    for i, (ct, aval) in enumerate(zip(flat, avals, strict=True)):
        if aval.varies:
            try:
                out.append(differential(who, ct, aval.tangent_type, "cotangent"))
            except PlaitError as e:
                raise e.of(names_of_arguments(fun)(key_paths(like)[i])) from None
    return out
