"""custom_vmap: functions with their own rule for being mapped.

Called eagerly, the user's Python runs on values.  When staged, the call becomes an operation that
holds the function and its rule, through jit, loops and (if plait_autodiff is installed)
derivatives.

Invariant: a rule is staged for each axis size and pattern of stacked arguments; stacked values have
the mapped axis in front.
"""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

import plait
from plait import config
from plait.ext.errors import (
    ArgumentError,
    ShapeError,
    TreeMismatch,
    UndefinedRule,
    border,
    where_defined,
)
from plait.ext.ir import Primitive, Program, Thunk, evaluate
from plait.ext.ops.control_flow import call, expect
from plait.ext.ops.shape import materialise_at_ground
from plait.ext.rules import eager_rules, lower_rules
from plait.ext.trace import (
    Call,
    Deferred,
    Ends,
    Function,
    Slots,
    Value,
    Wiring,
    enclosed,
    rule_thunk,
    settled,
    stage,
    width,
)
from plait.ext.tree import flatten, spread
from plait.ext.types import Aval
from plait.ext.values import as_value

from .components import on_components
from .interpreter import Batch, batching_rules

P = ParamSpec("P")
R = TypeVar("R")

Flags = tuple[bool, ...]


class Stacked:
    """A mapping rule, staged and cached for each size and pattern of stacked inputs.

    `at(size, flags)` returns the program on stacks, and which of its results are stacks.

    Args:
      make: makes what `at` returns.
      in_avals: the types of the function that the rule maps.  The rule refers to no program of
        that function, which may hold results that are cached by the rule.
      user: the user's rule, from which this one is made or derived.
    """

    __slots__ = ("make", "made", "in_avals", "user", "lifted", "__weakref__")

    def __init__(
        self,
        make: Callable[[Any, Flags], tuple[Program, Flags]],
        in_avals: Sequence[Aval],
        user: Callable[..., Any],
    ):
        self.make, self.in_avals, self.user = make, tuple(in_avals), user
        self.made: dict[Any, tuple[Program, Flags]] = {}
        # Weak, since a lifted rule refers to this one.
        self.lifted: WeakValueDictionary[Any, Stacked] = WeakValueDictionary()

    def __repr__(self) -> str:
        return "<rule>"

    def at(self, size: int, flags: Flags) -> tuple[Program, Flags]:
        """Return (the program, which of its results are stacks)."""
        key = size, flags
        if key not in self.made:
            self.made[key] = self.make(size, flags)
        return self.made[key]

    def lift(self, carrier: Any, ends: Ends, forms: list[Any], before: object) -> "Stacked":
        """Return the rule on components, of a transformation that commutes with mapping."""
        given = tuple([forms[s] for s in ends.inputs])  # type: ignore[index]
        wanted = tuple([forms[s] for s in ends.outputs])  # type: ignore[index]
        key = carrier.key(), tuple([v.aval for v in carrier.ambient]), given, wanted
        found = self.lifted.get(key)
        if found is None:
            # The rule outlives the carrier of this call; see `lift_rule`.
            over = carrier.under(None, carrier.ambient)
            found = self.lifted[key] = on_components(self, over, given, wanted)
        return found


class _Custom(Wiring):
    """Wiring of custom_vmap_call: (captured values, arguments) -> results.

    `erase` drops the rule for transformations that do not handle mapping rules."""

    custom = "mapping"

    def pending(self, params: dict) -> bool:
        return isinstance(params["program"], Deferred)

    def settle(self, params: dict, args: Sequence[Any]) -> tuple[Sequence[Any], dict]:
        args = [as_value(a) for a in args]
        rule = params["rule"]
        program, captured = settled(params["program"], [rule], args)
        k, avals, want = len(captured), [a.aval for a in args], program.out_avals

        def make(size: int, flags: Flags) -> tuple[Program, Flags]:
            found: list[Flags] = []

            def stacks(*xs: Value) -> list:
                outs, out_flags = rule.f(size, flags[k:], *xs)
                found.append(out_flags)
                return outs

            types = [a.with_shape((size, *a.shape)) if f else a for a, f in zip(avals, flags[k:])]
            made: Thunk = rule_thunk(Deferred(stacks, rule.user), captured, lambda: types)
            got = made.get().out_avals
            _as_said(rule.name, want, got, size, found[0])
            return made.get(), found[0]

        new = {"program": program, "rule": Stacked(make, program.in_avals, rule.user), "consts": k}
        return [*captured, *args], new

    def slots(self, params: dict) -> Slots:
        p = params["program"]
        n, m = len(p.inputs), len(p.outputs)
        ins, outs = range(n), range(n, n + m)
        ends = Ends(params["rule"], tuple(ins), tuple(outs))
        return Slots(ins, outs, [(p, ins, outs)], n + m, rules=[ends])

    def rebuild(self, params: dict, programs, parts, operands, extra):
        consts = width(parts[: params["consts"]]) + len(extra)
        return [*extra, *operands], {"program": programs[0], "rule": programs[1], "consts": consts}

    def erase(self, prim: object, params: dict) -> tuple[Any, dict]:
        return call, {"program": params["program"]}


def _as_said(name: str, want: Sequence[Aval], got: Sequence[Aval], size: int, flags: Flags) -> None:
    """Raise ShapeError unless the rule's results are stacks of the function's results."""
    types = [w.with_shape((size, *w.shape)) if f else w for w, f in zip(want, flags)]
    if len(got) != len(want) or not all(t.same_type(g) for t, g in zip(types, got)):
        raise ShapeError(
            f"the mapping rule {name} returned {list(got)}, mapped as {list(flags)}, "
            f"where {types} are expected",
            fix="return stacks of what the function returns, the mapped axis in front",
        )


def _rule(*xs: Aval, program: Program, rule: Any, consts: int) -> list[Aval]:
    """Infer the types of the function's results; a map applies the rule instead."""
    expect(f"custom function {program.name}", program.in_avals, xs)
    return program.out_avals


custom_vmap_call = Primitive("batching.custom_vmap_call", _rule, many=True, higher=_Custom())


@lower_rules.rule(custom_vmap_call)
def _(e, xs, ins: object, outs: object, program, rule: object, consts: object):
    return e.call(program, xs)


@eager_rules.rule(custom_vmap_call)
def _(args: tuple[Value, ...], params: dict[str, Any]):
    program = params["program"]
    if not isinstance(program, Deferred):
        return None
    return [materialise_at_ground(o) for o in program.f(*args)]


@batching_rules.rule(custom_vmap_call)
def _(batch: Batch, args: Sequence[Value], params: dict[str, Any]):
    if config.checks and isinstance(params["program"], Deferred):
        args, params = custom_vmap_call.higher.settle(params, args)  # type: ignore[union-attr]
    program, rule, consts = params["program"], params["rule"], params["consts"]
    halves = [batch.split(a) for a in args]
    flags = tuple([dim is not None for dim, _ in halves])
    for x, flag in zip(args[:consts], flags):
        if flag:
            raise enclosed(x, f"the custom_vmap function {program.name}", batch.heeds["mapping"])
    xs = [batch.move(parts[0], dim, 0) if f else parts[0] for (dim, parts), f in zip(halves, flags)]
    if not any(flags):
        return custom_vmap_call.bind(*xs, **params)
    if isinstance(rule, Deferred):
        outs, out_flags = rule.f(batch.size, flags, *xs)
        outs = [as_value(o) for o in outs]
    else:
        made, out_flags = rule.at(batch.size, flags)
        outs = evaluate(made, xs)
    return [batch.wrap(o, 0 if f else None) for o, f in zip(outs, out_flags, strict=True)]


# ---- user interface ------------------------------------------------------------------------


class custom_vmap(Function[P, R]):  # noqa: N801  (a decorator)
    """Function with its own rule for being mapped.

    Args:
      fun: takes and returns trees of arrays.

    >>> import plait
    >>> @plait.custom_vmap
    ... def f(x):
    ...     return x + 1
    >>> @f.def_vmap
    ... def f_vmap(axis_size, in_batched, xs):
    ...     return xs + 100, in_batched[0]
    >>> f(1.0), plait.vmap(f)(plait.numpy.arange(2.0))
    (Array(2., dtype=float32, weak_type=True), Array([100., 101.], dtype=float32))
    """

    rule: Callable | None = None

    def __init__(self, fun: Callable[P, R]):
        super().__init__(fun)
        self.returns: dict[Any, Any] = {}
        """The tree of the function's results for arguments of some types."""

    def def_vmap(self, rule: Callable) -> Callable:
        """Set the rule: `rule(axis_size, in_batched, *args) -> (out, out_batched)`.

        `in_batched` has one tree per argument whose leaves are True for stacks, which have the
        mapped axis in front.  `out_batched` marks the results in the same way (True or False may
        stand for a whole tree).
        """
        takes = "the size, the mapped flags, and the function's arguments"
        self.expect_rule("def_vmap", rule, takes, 2, True)
        self.rule = rule
        return rule

    @border
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        c = self.call(args, kwargs)
        if self.rule is None:
            raise UndefinedRule(
                f"the custom_vmap function {self.name()} has no mapping rule",
                fix=f"define one for {where_defined(self.fun)}: @{self.name()}.def_vmap",
            )
        user: Callable = self.rule

        def flat(*xs: Value) -> list:
            return c.results(self.fun(*c.arguments(xs)))

        def rule(size: int, flags: Flags, *xs: Value) -> tuple[list, Flags]:
            args, said = c.arguments(xs), list(c.tree.unflatten(flags))
            return self._checked(c, user(size, said, *args))

        outs = custom_vmap_call.bind(
            *c.leaves, program=Deferred(flat, self.fun), rule=Deferred(rule, user), consts=0
        )
        return c.out.unflatten(outs)

    def _checked(self, c: Call, got: tuple[Any, ...]) -> tuple[list, Flags]:
        if not isinstance(got, tuple) or len(got) != 2:
            raise ArgumentError(
                f"the mapping rule of {self.name()} must return a pair (out, out_batched), and "
                f"returned {got!r}",
                fix="return (out, out_batched)",
            )
        out, said = got
        tree = flatten(out)[1]
        # The function itself has not been called, so staging it finds the tree of its results.
        if c.out is None:
            key = c.tree, tuple(c.avals)
            if key not in self.returns:
                stage(lambda *xs: c.results(self.fun(*c.arguments(xs))), c.avals, self.name())
                self.returns[key] = c.out
            c.out = self.returns[key]
        if tree != c.out:
            raise TreeMismatch(
                f"the mapping rule of {self.name()} returned a result of structure {tree}, where "
                f"the function returns {c.out}",
                fix="return what the function returns, stacked",
            )
        outs = c.results(out)
        flags = spread(said, out, "out_batched", lambda x: isinstance(x, bool), "True or False")
        return outs, tuple(flags)


def sequential_vmap(fun: Callable[..., Any]) -> "custom_vmap[..., Any]":
    """Return a function that vmap runs in a loop, for one element after the other in order.

    Use it for functions with side effects, or whose memory suffices for one element at a time.

    Args:
      fun: takes and returns trees of arrays.

    >>> import plait
    >>> @plait.sequential_vmap
    ... def f(x):
    ...     plait.debug.print("{}", x, ordered=True)
    ...     return x + 1
    >>> plait.vmap(f)(plait.numpy.arange(2))
    0
    1
    Array([1, 2], dtype=int32)
    """
    sequential = custom_vmap(fun)

    @sequential.def_vmap
    def each(axis_size: int, in_batched: list, *args: Value | dict[str, Any]) -> tuple[Any, bool]:
        xs, tree = flatten(args)
        flags = flatten(tuple(in_batched))[0]
        rows = [x for x, f in zip(xs, flags, strict=True) if f]

        def one(_: None, row: list) -> tuple[None, Any]:
            own = iter(row)
            return None, fun(*tree.unflatten([next(own) if f else x for x, f in zip(xs, flags)]))

        return plait.lax.scan(one, None, rows, length=axis_size)[1], True

    return sequential
