"""Programs: closed, typed, first-order.

A Program takes inputs, applies equations in order and returns outputs.  Sub-programs are parameters
of higher-order primitives.  Arrays that a staged function closed over are its constants; values of
other interpreters became inputs.

Invariant: an equation reads inputs, constants, literals and results of earlier equations only.
Variables are the tracers they were staged as.  Other modules keep values derived from a program on
it (`derived`), and these die with it.
"""

import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from .._base.errors import PlaitError
from .._base.lazy import later
from .._plugins.metadata import page_of
from .._types.avals import Aval
from .._types.dims import Dim
from .interpreter import Location, Operation, Params, Tracer, current, with_lines

T = TypeVar("T")


class Var(Tracer):
    """A value of a program under construction, later its variable; `by` is the Stage."""

    __slots__ = ()


# Python names the class where it refuses a traced value, as in "Object of type Tracer is not JSON
# serializable"; users know these values by this name.
Var.__name__ = "Tracer"


class Eqn:
    """One application of a primitive to atoms; `where` is a source location."""

    __slots__ = ("prim", "inputs", "outputs", "params", "where")
    prim: Any
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    params: Params
    where: Location

    def __init__(
        self,
        prim: Any,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        params: Params,
        where: Location,
    ):
        self.prim, self.inputs, self.outputs = prim, inputs, outputs
        self.params, self.where = params, where


class Effect(NamedTuple):
    """A side effect of an equation.

    `ordered`: all effects of this name happen in program order.  `repeatable`: the effect may
    happen again where the equation is computed again.
    """

    name: str
    ordered: bool = False
    repeatable: bool = False


class Program:
    """Inputs, constants, equations and outputs.

    Attributes:
      inputs: variables.
        consts: (variable, Array) pairs.  In a program for inspection only (`make_program`) the
          value may also belong to a transformation under way.
      eqns: equations in order.
      outputs: variables and literals.
      name: the name of the function it was staged from.
      axes: names of axes that its equations use and do not bind.
      effects: side effects of running it.
      derivations: values derived from it; see `derived`.
    """

    __slots__ = (
        "inputs", "consts", "eqns", "outputs", "name", "axes", "effects", "derivations",
        "_constants", "_dims", "__weakref__",
    )  # fmt: skip
    inputs: list[Var]
    consts: list[tuple[Var, Any]]
    eqns: list[Eqn]
    outputs: list[Any]
    name: str
    axes: frozenset[Any]
    effects: frozenset[Effect]

    def __init__(
        self,
        inputs: Iterable[Var],
        eqns: list[Eqn],
        outputs: Iterable[Any],
        name: str = "program",
        consts: Iterable[tuple[Var, Any]] = (),
    ):
        self.inputs, self.eqns, self.outputs = list(inputs), eqns, list(outputs)
        self.name, self.consts = name, list(consts)
        self.derivations: dict[Any, Any] = {}
        self._constants: dict[int, Any] | None = None
        self._dims: frozenset[str] | None = None
        named: set[Any] = set()
        does: set[Effect] = set()
        for e in eqns:
            p = e.prim
            if p.ambient is not None or p.higher is not None:
                named |= ambient_of(p, e.params)
            if p.effect is not None or p.higher is not None:
                does |= effects_of(p, e.params)
        self.axes, self.effects = frozenset(named), frozenset(does)

    def __str__(self) -> str:
        return later("text").show(self)

    def _repr_html_(self) -> str | None:
        return page_of("program", self)

    def __repr__(self) -> str:
        ins, outs = len(self.inputs), len(self.outputs)
        return f"<Program {self.name}: {ins} -> {outs}, {len(self.eqns)} equations>"

    @property
    def in_avals(self) -> list[Aval]:
        """The types of the inputs."""
        return [v.aval for v in self.inputs]

    @property
    def out_avals(self) -> list[Aval]:
        """The types of the outputs."""
        return [v.aval for v in self.outputs]

    @property
    def constants(self) -> dict[int, Any]:
        """All constant arrays here and in sub-programs, by identity."""
        if self._constants is None:
            found = {id(x): x for _, x in self.consts}
            for e in self.eqns:
                if e.prim.higher is not None:
                    for p in programs_in(e.params):
                        found.update(p.constants)
            self._constants = found
        return self._constants

    @property
    def dims(self) -> frozenset[str]:
        """The variables of the symbolic sizes in its types and parameters."""
        if self._dims is None:
            found = set(dims_of([self.in_avals, self.out_avals]))
            for e in self.eqns:
                found |= dims_of([[a.aval for a in (*e.inputs, *e.outputs)], *e.params.values()])
            self._dims = frozenset(found)
        return self._dims

    def with_inputs(self, inputs: Iterable[Var]) -> "Program":
        """Return a program of the same equations with inputs reordered, or unused ones added."""
        return Program(inputs, self.eqns, self.outputs, self.name, self.consts)


_ITSELF: Any = object()
"""Stands for a program among its own derivations: a cycle would keep its constants in memory."""


def keep_itself(program: Program, key: Hashable) -> None:
    """Keep a program as the value that is derived from it under `key`."""
    program.derivations[key] = _ITSELF


def derived(
    program: Program, key: Hashable, make: Callable[[], T], others: Sequence[Program] = ()
) -> T:
    """Return `make()`, kept on the program under `key`.

    A derived value lives and dies with its program: a table of programs elsewhere would keep each
    of them alive.  `others` are further programs that it was made of (the other branches of a
    `cond`).  They are part of the key by identity, and held weakly: otherwise values for
    short-lived partners would accumulate on a long-lived program.
    """
    store = program.derivations
    if not others:
        itself: Any = program
        try:
            out = store[key]
        except KeyError:
            out = make()
            store[key] = _ITSELF if out is program else out
            return out
        return itself if out is _ITSELF else out
    key = key, tuple([id(o) for o in others])
    hit = store.get(key)
    # A new program may have the id of a dead one, so a hit counts only if these very programs are
    # still alive.
    if hit is not None and all(r() is o for r, o in zip(hit[0], others)):
        return hit[1]
    out = make()

    def forget(_: object) -> None:
        store.pop(key, None)

    store[key] = [weakref.ref(o, forget) for o in others], out
    return out


class Thunk:
    """A program that is made when it is first needed.

    Custom rules are thunks: a rule often calls the function that it serves, and staging one with
    the other would never end.

    Args:
      make: returns the program, or (the program, the forms of a lifted rule's residuals).

    Attributes:
      lifted: rules made of this one, for as long as programs hold them.  They hold this one to be
        made, so holding them here would make a cycle.
      rest: the forms of a lifted rule's residuals, once it is made.
    """

    __slots__ = ("make", "made", "lifted", "rest", "__weakref__")

    def __init__(self, make: Callable[[], Program | tuple[Program, tuple[Any, ...]]]):
        self.make: Callable[[], Any] | None = make
        self.made: Program | None = None
        self.lifted: weakref.WeakValueDictionary[Any, Thunk] = weakref.WeakValueDictionary()
        self.rest: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return "<rule>"

    def get(self) -> Program:
        """Return the program; make it at the first call."""
        if self.made is None:
            assert self.make is not None
            made = self.make()
            program: Program = made
            if made.__class__ is tuple:
                program, self.rest = made
            self.made = program
            self.make = None  # releases the user's function, which it held
        return self.made


def programs_in(params: Params) -> list[Program]:
    """Return the sub-programs among parameters, in order."""
    found: list[Program] = []
    for v in params.values():
        if v.__class__ is Program:
            found.append(v)
        elif v.__class__ is tuple:
            found.extend([p for p in v if p.__class__ is Program])
    return found


def ambient_of(prim: Operation, params: Params) -> frozenset[Any]:
    """Return the axis names that an equation uses without binding them."""
    if prim.higher is None:
        return frozenset(prim.ambient(params)) if prim.ambient is not None else frozenset()
    named: frozenset[Any] = frozenset()
    for p in programs_in(params):
        named |= p.axes
    return named - prim.higher.binds(params) if named else named


def dims_of(xs: Iterable[Any]) -> frozenset[str]:
    """Return the variables of symbolic sizes in types, sizes, programs, and sequences of them."""
    found: frozenset[str] = frozenset()
    for x in xs:
        kind = x.__class__
        if kind is Dim:
            found |= x.variables
        elif kind is Aval:
            if x.dims:
                found |= x.dims
        elif kind is Program:
            found |= x.dims
        elif isinstance(x, tuple | list):
            found |= dims_of(x)  # type: ignore[misc]
    return found


def speaks_of(names: frozenset[str], values: Iterable[Any], params: Params) -> bool:
    """Return whether types of values, or parameters, of an operation contain such a size."""
    for v in values:
        dims = v.aval.dims
        if dims and not names.isdisjoint(dims):
            return True
    return bool(params) and not names.isdisjoint(dims_of(params.values()))


def effects_of(prim: Operation, params: Params) -> frozenset[Effect]:
    """Return the side effects of an equation."""
    if prim.effect is not None:
        effect = prim.effect(params)
        return frozenset() if effect is None else frozenset((effect,))
    does: frozenset[Effect] = frozenset()
    if prim.higher is not None:
        for p in programs_in(params):
            does |= p.effects
    return does


def ordered(programs: Iterable[Program]) -> tuple[Effect, ...]:
    """Return the ordered effects of programs, in the order in which their tokens are passed.

    They are sorted, since the functions of one module must agree on the order, and a set has none.
    """
    return tuple(sorted({e for p in programs for e in p.effects if e.ordered}))


def evaluate(program: Program, args: Sequence[Any]) -> list[Any]:
    """Apply the equations, one by one, under the current interpreter; return the outputs.

    Equations that are recorded meanwhile keep the source locations of those that are applied. The
    user wrote those lines, while Python's frames would name the caller of the transformation.
    Errors without a location of their own get the equation's.
    """
    env: dict[Any, Any] = dict(zip(program.inputs, args, strict=True))
    env.update(program.consts)
    apply = current().apply
    with with_lines() as recorders:
        for e in program.eqns:
            for p in recorders:
                p.where = e.where
            ins = [env[a] if a.__class__ is Var else a for a in e.inputs]
            try:
                out = apply(e.prim, ins, e.params)
            except PlaitError as error:
                error.about(e.where)
                raise
            if e.prim.many:
                env.update(zip(e.outputs, out, strict=True))
            else:
                env[e.outputs[0]] = out
    return [env[a] if a.__class__ is Var else a for a in program.outputs]


def fewer(e: Eqn, live: set[Any]) -> Eqn:
    """Return an operation with programs in its cheaper form, if that has all live results;
    otherwise return the equation itself."""
    used = [o in live for o in e.outputs]
    found = None if all(used) else e.prim.higher.fewer(e.params, used)
    if found is None:
        return e
    prim, params, n = found
    return Eqn(prim, e.inputs, list(e.outputs)[:n], params, e.where)


def swept(
    eqns: Sequence[Eqn], outputs: Iterable[Any], reduced: Callable[[Eqn, set[Any]], Eqn] = fewer
) -> tuple[list[Eqn], set[Any]]:
    """Return (the equations that `outputs` or side effects need, the variables that are read).

    Each operation with programs is replaced by `reduced(equation, live variables)`.
    """
    # Backwards, since an equation is needed only by those after it.
    live = {a for a in outputs if a.__class__ is Var}
    kept: list[Eqn] = []
    for e in reversed(eqns):
        for o in e.outputs:
            if o in live:
                break
        else:
            p = e.prim
            if (p.effect is None and p.higher is None) or not effects_of(p, e.params):
                continue
        if e.prim.higher is not None:
            e = reduced(e, live)
        kept.append(e)
        live.update([a for a in e.inputs if a.__class__ is Var])
    kept.reverse()
    return kept, live


def live_equations(eqns: Sequence[Eqn], outputs: Iterable[Any]) -> list[Eqn]:
    """Return the equations that `outputs` or side effects need."""
    return swept(eqns, outputs)[0]
