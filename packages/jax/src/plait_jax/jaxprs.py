"""Programs as jaxprs: the classes with which JAX code reads, changes and evaluates programs.

A `Jaxpr` is made from a Program on request, and converted back when it runs.  Its variables are
the Program's own, its equations have JAX's names for primitives and parameters, and its constants
are the arrays that were closed over.

Invariant: the conversions preserve the computation.  Objects that a jaxpr cannot hold (a rule that
is staged late) are passed through unchanged.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import plait
from plait import tree_util
from plait.ext import Aval, Program, as_value, current, evaluate, expand_rules
from plait.ext import Literal as Constant
from plait.ext.errors import where_defined
from plait.ext.ir import Eqn, derived, effects_of
from plait.ext.ir import Var as Variable
from plait.ext.ops.control_flow import map_axes
from plait.ext.trace import shapes_only, trace
from plait.ext.values import solid

from .primitives import Named, Primitive, free, view_of
from .source_info import SourceInfo
from .tracing import valid_jaxtype
from .vocabulary import spelling

__all__ = [
    "ClosedJaxpr", "DebugInfo", "Jaxpr", "JaxprEqn", "Literal", "Var", "closed_jaxpr",
    "eval_jaxpr", "jaxpr_as_fun", "jaxprs_in_params", "make_jaxpr", "subjaxprs",
]  # fmt: skip


# ---- atoms -----------------------------------------------------------------------------------


class _Variables(type):
    """The metaclass by which Plait's variables are instances of Var, and `Var(aval)` makes one.

    Var also equals their class, because JAX code compares `type(v)` with it.
    """

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is Variable

    def __hash__(cls) -> int:
        return hash(Variable)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Variable)

    def __call__(cls, aval: Aval, *rest: object, **options: object) -> Any:
        made = Variable()
        made.by, made.aval, made.where = current(), aval, None
        return made


class Var(metaclass=_Variables):
    """A variable of a program: it has a type, `aval`."""


class Literal:
    """A constant scalar in a program.

    Attributes:
      val: the number.
      aval: its type.
    """

    __slots__ = ("val", "aval")

    def __init__(self, val: object, aval: Aval | None = None):
        self.val = val
        self.aval = as_value(val).aval if aval is None else aval

    def __repr__(self) -> str:
        return repr(self.val)


def _atom(a: Any) -> Any:
    """Return an atom of Plait's equations as JAX's."""
    if a.__class__ is not Constant:
        return a
    shaped = a.aval.shape or not a.aval.weak_type
    return Literal(a.numpy()[()] if shaped else a.value, a.aval)


def _back(a: Any) -> Any:
    """Return an atom of JAX's equations as Plait's."""
    if a.__class__ is not Literal:
        return a
    value = a.val.item() if hasattr(a.val, "item") and not a.aval.shape else a.val
    return Constant(value, a.aval) if not a.aval.shape else as_value(a.val)


# ---- equations -------------------------------------------------------------------------------


class JaxprEqn:
    """One application of a primitive.

    Attributes:
      invars: variables and literals.
      outvars: variables.
      primitive: an object that JAX code can compare: `eqn.primitive is jax.lax.add_p`.
      params: parameters; programs are ClosedJaxprs.
      effects: the effects beside the computation.
      source_info: the line of the user's code, and the names of blocks around it.
    """

    __slots__ = ("invars", "outvars", "primitive", "params", "effects", "source_info", "ctx")

    def __init__(
        self,
        invars: Sequence[Any],
        outvars: Sequence[Any],
        primitive: Named | Primitive,
        params: dict[str, Any],
        effects: frozenset[Any] = frozenset(),
        source_info: SourceInfo | None = None,
        ctx: Any = None,
    ):
        self.invars, self.outvars = list(invars), list(outvars)
        self.primitive, self.params = primitive, params
        self.effects, self.ctx = effects, ctx
        self.source_info = SourceInfo() if source_info is None else source_info

    def replace(self, **changes: object) -> "JaxprEqn":
        """Return an equation with some attributes changed."""
        old = {name: getattr(self, name) for name in self.__slots__}
        return JaxprEqn(**{**old, **changes})

    def __repr__(self) -> str:
        outs = " ".join(f"{v.aval}" for v in self.outvars)
        return f"{outs} = {self.primitive}[{', '.join(self.params)}]({len(self.invars)} operands)"


def _equation(e: Eqn) -> JaxprEqn:
    """Return an equation of Plait as JAX's."""
    row = spelling(e.prim.name)
    params = {row.params.get(k, k): _param(v) for k, v in row.out(free(dict(e.params))).items()}
    ins = list(map(_atom, e.inputs))
    if row.order is not None:
        ins = [ins[i] for i in row.order]
    acts = effects_of(e.prim, e.params) if e.prim.effect or e.prim.higher else frozenset()
    return JaxprEqn(ins, e.outputs, view_of(e.prim), params, acts, SourceInfo.of(e.where))


def _param(v: Any) -> Any:
    """Return a parameter as in JAX."""
    if v.__class__ is Program:
        return closed_jaxpr(v)
    if v.__class__ is tuple and any(x.__class__ is Program for x in v):
        return tuple(map(_param, v))
    return v


def _apply(eqn: JaxprEqn, ins: Sequence[Any]) -> list[Any]:
    """Apply an equation to operands."""
    out = eqn.primitive.bind(*ins, **eqn.params)
    return list(out) if eqn.primitive.multiple_results else [out]


# ---- programs --------------------------------------------------------------------------------


class DebugInfo(NamedTuple):
    """The function that a program was made of.

    Attributes:
      traced_for: the transformation that traced it.
      func_src_info: its name, and the line of its definition.
      arg_names: a name for each input, or None if unknown.
      result_paths: a path for each output, or None if unknown.
    """

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None

    @property
    def func_name(self) -> str:
        """The name of the function."""
        return self.func_src_info.partition(" at ")[0]

    def safe_arg_names(self, count: int) -> tuple[str, ...]:
        """Return as many names of inputs; they are empty if unknown."""
        known = self.arg_names
        return known if known is not None and len(known) == count else ("",) * count

    def safe_result_paths(self, count: int) -> tuple[str, ...]:
        """Return as many paths of outputs; they are empty if unknown."""
        known = self.result_paths
        return known if known is not None and len(known) == count else ("",) * count


class _Readable:
    """The parts of a jaxpr that are read from others."""

    __slots__ = ()
    is_high = False
    """True if values in it consist of several arrays; here none do."""
    jaxpr: Any

    @property
    def in_avals(self) -> list[Aval]:
        """Types of the inputs."""
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[Aval]:
        """Types of the outputs."""
        return [v.aval for v in self.jaxpr.outvars]

    @property
    def in_aval_qdds(self) -> list[Aval]:
        """Types of the inputs, under another of JAX's names."""
        return self.in_avals

    def pretty_print(self, **options: object) -> str:
        """Return it as text."""
        return str(self)


class Jaxpr(_Readable):
    """A program with its constants as inputs.

    Attributes:
      constvars: variables for constants, which come first.
      invars, outvars: as of an equation.
      eqns: in the order of evaluation.
      effects: the effects of the Program it was made from; by default none.
      debug_info: a DebugInfo.
    """

    __slots__ = ("constvars", "invars", "outvars", "_eqns", "_of", "effects", "debug_info", "name",
                 "__weakref__")  # fmt: skip

    def __init__(
        self,
        constvars: Sequence[Any],
        invars: Sequence[Any],
        outvars: Sequence[Any],
        eqns: Sequence[JaxprEqn],
        effects: frozenset[Any] = frozenset(),
        debug_info: "DebugInfo | None" = None,
        is_high: bool = False,
    ):
        self.constvars, self.invars = list(constvars), list(invars)
        self.outvars = list(outvars)
        self._eqns: list[JaxprEqn] | None = list(eqns)
        self._of: Program | None = None
        self.effects, self.name = effects, "jaxpr"
        self.debug_info = DebugInfo("jit", self.name) if debug_info is None else debug_info

    @staticmethod
    def of(program: Program) -> "Jaxpr":
        """Return a Program as a Jaxpr."""
        consts = [v for v, _ in program.consts]
        outs = list(map(_atom, program.outputs))
        made = Jaxpr(
            consts, program.inputs, outs, (), program.effects, DebugInfo("jit", program.name)
        )
        made._eqns, made._of, made.name = None, program, program.name
        return made

    @property
    def eqns(self) -> list[JaxprEqn]:
        """The equations."""
        if self._eqns is None:
            assert self._of is not None
            self._eqns = list(map(_equation, self._of.eqns))
        return self._eqns

    @property
    def jaxpr(self) -> "Jaxpr":  # pyright: ignore[reportIncompatibleVariableOverride]
        """The jaxpr itself."""
        return self

    def replace(self, **changes: object) -> "Jaxpr":
        """Return a jaxpr with some of constvars, invars, outvars, eqns, effects changed."""
        names = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")
        return Jaxpr(**{**{name: getattr(self, name) for name in names}, **changes})

    @property
    def as_param(self) -> Program:
        """The Program that a primitive of Plait takes in its place; constants must be closed."""
        return ClosedJaxpr(self, []).as_param

    def __str__(self) -> str:
        return str(self._of) if self._of is not None else repr(self)

    def __repr__(self) -> str:
        if self._of is not None:
            return str(self._of)
        return f"<Jaxpr {len(self.invars)} -> {len(self.outvars)}, {len(self.eqns)} equations>"


class ClosedJaxpr(_Readable):
    """A program with the values of its constants.

    Attributes:
      jaxpr: the program.
      consts: a value for each of `jaxpr.constvars`.
    """

    __slots__ = ("jaxpr", "consts", "_program", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        self.jaxpr, self.consts = jaxpr, list(consts)
        self._program: Program | None = None

    @property
    def eqns(self) -> list[JaxprEqn]:
        """The equations."""
        return self.jaxpr.eqns

    @property
    def literals(self) -> list[Any]:
        """The constants."""
        return self.consts

    @property
    def invars(self) -> list[Any]:
        """The variables of the inputs."""
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Any]:
        """The variables and literals that are returned."""
        return self.jaxpr.outvars

    @property
    def constvars(self) -> list[Any]:
        """The variables of the constants."""
        return self.jaxpr.constvars

    @property
    def debug_info(self) -> Any:
        """The function that it was made of."""
        return self.jaxpr.debug_info

    @property
    def effects(self) -> Any:
        """The effects beside the computation."""
        return self.jaxpr.effects

    def replace(self, **changes: object) -> "ClosedJaxpr":
        """Return one with another jaxpr or other constants."""
        return ClosedJaxpr(**{"jaxpr": self.jaxpr, "consts": self.consts, **changes})

    def map_jaxpr(self, f: Callable[[Jaxpr], Jaxpr]) -> "ClosedJaxpr":
        """Return a copy with `f` applied to the jaxpr."""
        return ClosedJaxpr(f(self.jaxpr), self.consts)

    @property
    def as_param(self) -> Program:
        """The Program that a primitive of Plait takes in its place."""
        if self._program is None:
            avals, name = tuple(self.in_avals), self.jaxpr.name
            call = trace(lambda *xs: eval_jaxpr(self.jaxpr, self.consts, *xs),
                         list(map(_shape, avals)), {}, name, avals=avals)  # fmt: skip
            self._program = call.program
        return self._program

    def __str__(self) -> str:
        return str(self.jaxpr)

    def __repr__(self) -> str:
        return repr(self.jaxpr)


def _shape(aval: Aval) -> Any:
    """Return an argument of a type, without contents."""
    return shapes_only(plait.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type))


def closed_jaxpr(program: Program) -> ClosedJaxpr:
    """Return a Program as a ClosedJaxpr; one object for one Program."""
    return derived(program, "jaxpr", lambda: _new_closed(program))


def _new_closed(program: Program) -> ClosedJaxpr:
    shown = _spelled_out(program)
    made = ClosedJaxpr(Jaxpr.of(shown), [x for _, x in shown.consts])
    made._program = program
    return made


def _mapped(e: Eqn) -> bool:
    """Return whether this is an operation on every row, for which JAX has no primitive.

    One with a free axis name stays as it is: the code that holds the whole program binds the name.
    """
    return e.prim is map_axes and not e.params["program"].axes


def _spelled_out(program: Program) -> Program:
    """Return the program with operations on rows rewritten as operations on arrays, or loops."""
    if not any(map(_mapped, program.eqns)):
        return program
    eqns: list[Eqn] = []
    consts, known = list(program.consts), {}

    def read(atoms: Sequence[Any]) -> list[Any]:
        return [known.get(a, a) if a.__class__ is Variable else a for a in atoms]

    for e in program.eqns:
        if not _mapped(e):
            eqns.append(Eqn(e.prim, read(e.inputs), e.outputs, e.params, e.where))
            continue
        rows = _of_rows(e)
        consts += rows.consts
        known.update(zip(rows.inputs, read(e.inputs)))
        eqns += [Eqn(r.prim, read(r.inputs), r.outputs, r.params, e.where) for r in rows.eqns]
        known.update(zip(e.outputs, read(rows.outputs)))
    return Program(program.inputs, eqns, read(program.outputs), program.name, consts)


def _of_rows(e: Eqn) -> Program:
    """Return the expansion of an operation on every row."""
    expand: Any = expand_rules.find(map_axes)
    avals = tuple([a.aval for a in e.inputs])
    traced = trace(lambda *xs: expand(*xs, **e.params), list(map(_shape, avals)), {},
                   e.params["program"].name, avals=avals)  # fmt: skip
    return _spelled_out(traced.program)


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: object, **options: object) -> list[Any]:
    """Apply a jaxpr to values of its constants and inputs; return its results.

    The constants may differ from those with which it was made.

    >>> closed = make_jaxpr(lambda x: x * 2.0)(1.0)
    >>> eval_jaxpr(closed.jaxpr, closed.consts, 3.0)
    [Array(6., dtype=float32)]
    """
    jaxpr = jaxpr.jaxpr  # a closed one, too
    program = jaxpr._of
    values = list(map(as_value, [*consts, *args]))
    if program is not None:
        inputs = [*jaxpr.constvars, *jaxpr.invars]
        whole = Program(inputs, program.eqns, program.outputs, program.name)
        return list(map(solid, evaluate(whole, values)))
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], values, strict=True))

    def read(a: "Literal") -> Any:
        return _back(a) if a.__class__ is Literal else env[a]

    for eqn in jaxpr.eqns:
        env.update(zip(eqn.outvars, _apply(eqn, list(map(read, eqn.invars))), strict=True))
    return [solid(read(a)) for a in jaxpr.outvars]


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """Return a closed jaxpr as a function."""
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """Yield the programs among the parameters of an equation."""
    for value in params.values():
        for v in value if isinstance(value, tuple | list) else (value,):
            if isinstance(v, Jaxpr | ClosedJaxpr):
                yield v.jaxpr


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Yield the programs in the equations of a jaxpr."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


# ---- jaxprs of functions ---------------------------------------------------------------------


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
    **options: object,
) -> Callable[..., Any]:
    """Return a function that returns the ClosedJaxpr of `fun` for its arguments.

    If `fun` closes over values of surrounding transformations, these are constants of the jaxpr,
    before its arrays.

    Args:
      fun: takes and returns trees of arrays.
      static_argnums: positions of arguments that are not arrays.
      axis_env: names and sizes of axes that will be bound around it.
      return_shape: whether to return (jaxpr, tree of ShapeDtypeStructs of the results).

    >>> [eqn.primitive.name for eqn in make_jaxpr(lambda x: plait.lax.sin(x) * x)(1.0).eqns]
    ['sin', 'mul']
    """
    make = plait.make_program(fun, static_argnums, axis_env, True)

    def jaxpr_of(*args: object, **kwargs: object) -> Any:
        program, shape = make(*args, **kwargs)
        made = closed_jaxpr(program)
        made.jaxpr.debug_info = _debug_info(fun, args, kwargs, shape)
        return (made, shape) if return_shape else made

    for attribute in ("__name__", "__qualname__"):
        setattr(jaxpr_of, attribute, f"make_jaxpr({getattr(fun, attribute, repr(fun))})")
    jaxpr_of.__module__ = "jax"
    return jaxpr_of


def _debug_info(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], shape: object
) -> DebugInfo:
    """Return the names of a function's arguments and results."""
    try:
        given = inspect.signature(fun).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # it has no signature
        given = {"args": args, "kwargs": kwargs}
    names = [
        name + tree_util.keystr(path)
        for name, value in given.items()
        for path, leaf in tree_util.tree_leaves_with_path(value)
        if valid_jaxtype(leaf)
    ]
    paths = ["result" + tree_util.keystr(p) for p, _ in tree_util.tree_leaves_with_path(shape)]
    return DebugInfo("jit", where_defined(fun), tuple(names), tuple(paths))
