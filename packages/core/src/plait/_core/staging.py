"""Staging: run Python once, keep the primitives it applied as a Program.

Invariant: every equation is well typed when it is recorded, and a stage is closed however its
function ends.  Arrays that were closed over become the program's constants; values of enclosing
interpreters are captured: they become its leading inputs, and come back beside it.  Neither is
ever dropped silently.
"""

import gc
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, ClassVar

from .._base.argument_names import Namer
from .._base.config import config
from .._base.errors import NotAnArrayError
from .._base.source import here, outline
from .._types.avals import NOWHERE, OPAQUE, Aval
from ..tree import key_paths
from .array import Array, Literal, as_value
from .check import check
from .handles import Handle, apply_through, as_handle, handle_among
from .interpreter import (
    Interpreter,
    Location,
    Operation,
    Params,
    Tracer,
    Value,
    admitted_sizes,
    current,
    enter,
    escaped,
    inverted,
    is_above,
    leave,
    open_under,
)
from .ir import Eqn, Program, Var, swept


class Stage(Interpreter):
    """An interpreter that records equations; its tracers are the variables of its Program."""

    settles = True
    """True if Python functions in parameters are staged when their operation is recorded, although
    the operation could wait (`Wiring.waits`)."""
    pvary: ClassVar[Operation | None] = None
    """The primitive that returns its operand with a type that varies along `axes`."""

    def __init__(
        self,
        parent: Interpreter | None = None,
        does: str = "jit",
        of: Callable[..., Any] | None = None,
    ):
        open_under(self, parent)
        self.staging = True
        self.does, self.of = does, of
        self.inputs: list[Var] = []
        self.eqns: list[Eqn] = []
        self.consts: dict[int, tuple[Var, Array]] = {}
        self.captured: dict[int, tuple[Var, Any]] = {}
        self.where: Location = None

    @property
    def recorders(self) -> tuple[Any, ...]:
        return (self,)

    def var(self, aval: Aval, where: Location = None) -> Var:
        """Return a new variable."""
        v = Var()
        v.by = self
        v.aval = aval
        v.where = where
        return v

    def input(self, aval: Aval) -> Any:
        """Return a new input: a variable, or the handle for one."""
        v = self.var(aval, self.where or here())
        self.inputs.append(v)
        return v if aval.category != OPAQUE else as_handle(v)

    def apply(self, prim: Operation, args: Sequence[Any], params: Params) -> Any:
        where = self.where or here()
        inputs = args
        for a in args:
            if (a.__class__ is not Var or a.by is not self) and a.__class__ is not Literal:
                inputs = [self.atom(a) for a in args]
                break
        # Most equations are elementwise, without parameters.  Their type is a look-up in the memo
        # of the primitive.  The rest is written out, since a comprehension costs as much as all of
        # it.
        if not params and not self.closed:
            n = len(inputs)
            if n == 1:
                key = (inputs[0].aval,)
            elif n == 2:
                key = (inputs[0].aval, inputs[1].aval)
            else:
                key = tuple([a.aval for a in inputs])
            t = prim.memo.get(key)
            if t is not None and not prim.many:
                v = Var()
                v.by = self
                v.aval = t
                v.where = where
                self.eqns.append(Eqn(prim, inputs, (v,), params, where))
                return v
        return self.record(prim, inputs, params, where)

    def record(
        self, prim: Operation, inputs: Sequence[Any], params: Params, where: Location
    ) -> Any:
        """Append an equation on atoms of this stage; return its variables."""
        if params and self.maps:
            params = {k: admitted_sizes(v) for k, v in params.items()}
        if self.closed:
            raise escaped(self.var(inputs[0].aval if inputs else Aval((), bool)), repr(prim), None)
        higher = prim.higher
        if higher is not None and (self.settles or not higher.waits) and higher.pending(params):
            args, params = higher.settle(params, inputs)
            handle = handle_among(args)
            if handle is not None:
                return apply_through(self, handle, prim, args, params)
            inputs = [self.atom(a) for a in args]
        t = prim.infer(tuple([a.aval for a in inputs]), params)
        if higher is not None:
            inputs, params = prim.conformed(self, inputs, params, t)
        if prim.many:
            outs = [self.var(a, where) for a in t]
            self.eqns.append(Eqn(prim, inputs, outs, params, where))
            return outs
        v = self.var(t, where)
        self.eqns.append(Eqn(prim, inputs, (v,), params, where))
        return v

    @classmethod
    def vary_by(cls, prim: Operation) -> None:
        """Set the primitive `pvary`."""
        cls.pvary = prim

    def varied(self, x: Any, axes: frozenset[str]) -> Any:
        """Return an atom of this stage whose type also varies along these axes of a mesh."""
        missing = axes - x.aval.vma
        if not missing:
            return x
        if x.__class__ is Literal:
            return Literal(x.value, x.aval.with_vma(x.aval.vma | missing))
        assert self.pvary is not None
        where = self.where or x.where
        return self.record(self.pvary, [x], {"axes": tuple(sorted(missing))}, where)

    def atom(self, x: Any) -> Any:
        """Return the atom by which equations of this stage read a value.

        A literal and a variable of this stage stand for themselves.  An array becomes a constant,
        so that its contents are not printed into the module.  A value of an enclosing interpreter
        becomes an input, once, and is captured: the caller that closes the stage passes it as an
        operand.  Any other tracer is an error.
        """
        if x.__class__ is Literal or (x.__class__ is Var and x.by is self):
            return x
        # By id, since values compare elementwise.  Captured values are kept, so no id is reused.
        hit = self.captured.get(id(x))
        if hit is not None:
            return hit[0]
        if x.__class__ is Array:
            hit = self.consts.get(id(x))
            if hit is None:
                x.buffer()  # a deleted array is refused on the line that uses it
                hit = self.consts[id(x)] = self.var(x.aval), x
            return hit[0]
        if not isinstance(x, Tracer):
            return self.atom(as_value(x))
        if isinstance(x, Handle):
            own = x.atom(self)
            if own is not None:
                return own
        if x.by.closed or not (is_above(x.by, self.parent) or self.from_outside(x)):
            given = entered(x, self.parent)
            if given is not None:
                return self.atom(given)
            if x.by.closed:
                raise escaped(x, self.title(), None)
            raise inverted(x, "a traced function", self.title())
        v = self.var(x.aval.with_vma(x.aval.vma | apart_from(x, self.parent)), x.where)
        self.captured[id(x)] = v, x
        return v

    def from_outside(self, x: Tracer) -> bool:
        """Return whether a value belongs to a transformation of another thread.

        A thread that was started within a transformation may use its values, although the
        transformation is not among the thread's interpreters.  Operations on them run in the
        transformation, by `stray`."""
        return self.parent is not None and x.by.thread != self.thread

    def close(
        self, outs: Sequence[Any], name: str = "program", prune: bool = False
    ) -> tuple[Program, list[Any]]:
        """End with a program; return (program, captured values).

        Its inputs are the captured values, then the declared ones.  All captured values are
        returned: a caller that dropped one would make a program with another number of operands
        than it has. With `prune` those that no live equation reads are left out, of program and
        values alike.
        """
        handle = handle_among(outs)
        if handle is not None:
            raise handle.refused(f"the results of a function under {self.does}")
        atoms = [self.atom(o) for o in outs]
        self.closed = True
        eqns = self.eqns
        consts, captured = list(self.consts.values()), list(self.captured.values())
        if prune:
            eqns, live = swept(eqns, atoms)
            consts = [c for c in consts if c[0] in live]
            captured = [c for c in captured if c[0] in live]
        inputs = [*(v for v, _ in captured), *self.inputs]
        program = Program(inputs, eqns, atoms, name, consts)
        self.abandon()
        if config.checks:
            check(program)
        return program, [x for _, x in captured]

    def abandon(self) -> None:
        """End without a program; using tracers that were made here is an error from now on.

        The variables of a program refer to its stage for as long as the program lives, and programs
        are kept on functions.  So the stage releases the functions, captured values and
        interpreters that it holds.  An outline of the function stays for messages.
        """
        self.closed = True
        self.of = outline(self.of)  # type: ignore[assignment]
        self.captured, self.consts, self.eqns, self.inputs = {}, {}, [], []
        self.parent = None


class Apart(Interpreter):
    """An interpreter around operations that devices along some axes of a mesh do not do alike.

    Examples are a branch that each device chooses, and a loop with its own number of turns.  Values
    captured inside vary along these axes.

    The cotangent of a value that is the same on all devices is summed over them, also by the user's
    own rules for derivatives.  Inside, not all devices would take part in that sum.
    """

    def __init__(self, axes: frozenset[str], parent: Interpreter):
        open_under(self, parent)
        self.axes, self.does = axes, parent.does

    def apply(self, prim: Operation, args: Sequence[Any], params: Params) -> Any:
        assert self.parent is not None
        return self.parent.apply(prim, args, params)


def apart_from(x: Tracer | Value | None, by: Interpreter | None = None) -> frozenset[str]:
    """Return the axes of a mesh along which devices do not act alike between here (or `by`) and the
    interpreter that the value `x` belongs to; None and arrays belong outside of all
    interpreters."""
    home = x.by if isinstance(x, Tracer) else None
    by, axes = current() if by is None else by, NOWHERE
    while by is not None and by is not home:
        if isinstance(by, Apart):
            axes = axes | by.axes
        by = by.parent
    return axes


def entered(x: Tracer, start: Interpreter | None) -> Var | None:
    """Return the input through which `start`, or a stage around it, was given a value beforehand.

    A rule that is staged after its call reads the values captured by the call from its inputs.
    """
    while start is not None:
        hit = start.captured.get(id(x)) if isinstance(start, Stage) else None
        if hit is not None:
            return hit[0]
        start = start.parent
    return None


def admitted(x: object) -> Any:
    """Return an argument or result of a user's function as a value that may be used here.

    Primitives refuse a tracer that has outlived its transformation or is used below it.  A value
    that is only passed on meets no primitive, so transformations call this for the values they
    receive. Raises UnexpectedTracerError, and NotAnArrayError for anything that is not an array.
    """
    value = as_value(x)
    if isinstance(value, Tracer):
        here = current()
        if (value.by is not here or value.by.closed) and not _is_usable(value, here):
            if value.by.closed:
                raise escaped(value, here.title(), None)
            raise inverted(value, "a transformation", here.title())
    return value


def admitted_leaves(leaves: Sequence[Any], whole: Any, named: Callable[[], Namer]) -> list[Any]:
    """Return the leaves of `whole` as values.

    Raises NotAnArrayError, which names the leaf, for the first that is not an array.

    Args:
      leaves: the flat leaves.
      whole: their tree, or a function that returns it.
      named: returns the function that names a path in `whole`.
    """
    try:
        return [admitted(x) for x in leaves]
    except NotAnArrayError as e:
        for i, x in enumerate(leaves):
            if _is_refused(x):
                e.of(leaf_name(whole, i, named()))
                break
        raise


def leaf_name(whole: Aval | tuple[Any, ...], i: int, named: Namer) -> str:
    """Return the name of leaf `i` of `whole`."""
    return named(key_paths(whole)[i])


def _is_refused(x: object) -> bool:
    try:
        admitted(x)
    except NotAnArrayError:
        return True
    return False


def _is_usable(x: Tracer, start: Interpreter) -> bool:
    if isinstance(x, Handle):  # a reference checks its own use
        return True
    if not x.by.closed and (is_above(x.by, start) or x.by.thread != get_ident()):
        return True
    return entered(x, start) is not None


def collector_paused() -> "_Paused":
    """Pause the garbage collector for a block that stages.

    Staging makes many objects that all live on.  Searching them for garbage took more than half of
    the time for large programs.
    """
    return _Paused()


class _Paused:
    __slots__ = ("was_on",)
    was_on: bool

    def __enter__(self) -> None:
        self.was_on = gc.isenabled()
        if self.was_on:
            gc.disable()

    def __exit__(self, *_: object) -> None:
        if self.was_on:
            gc.enable()


def stage(
    f: Callable[..., Sequence[Any]],
    avals: Sequence[Aval],
    name: str = "program",
    prune: bool = False,
    on: Stage | None = None,
) -> tuple[Program, list[Any]]:
    """Run `f(*tracers) -> values` and return (Program, captured values).

    `on` is the stage to use; by default a new one under the current interpreter.
    """
    s = on or Stage(current(), name)
    try:
        with collector_paused():
            args = [s.input(a) for a in avals]
            token = enter(s)
            try:
                outs = f(*args)
            finally:
                leave(token)
            return s.close(outs, name, prune)
    finally:  # also if `f` fails: a tracer it kept must not go on recording into a dead stage
        s.abandon()


def staged(
    f: Callable[..., Sequence[Any]],
    avals: Sequence[Aval],
    name: str = "program",
    prune: bool = False,
) -> Program:
    """Stage a function that closes over nothing but arrays; return its Program."""
    program, captured = stage(f, avals, name, prune, Stage(None, name))
    assert not captured, captured  # a Stage without parent captures nothing
    return program
