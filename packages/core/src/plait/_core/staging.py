"""Staging: run Python once, keep the primitives it applied as a Program.

Invariant: every equation is well typed when it is recorded, and a stage is closed however its
function ends.  Arrays that were closed over become the program's constants; values of enclosing
interpreters are captured: they become its leading inputs, and come back beside it.  Neither is
ever dropped silently.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._base.config import config
from .._base.source import here, outline
from .._types.avals import Aval
from .array import Array, Literal, as_value
from .check import check
from .interpreter import (
    Interpreter,
    Tracer,
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
    """Records equations; its tracers are the variables of the Program it becomes."""

    settles = True
    """Whether functions in parameters become programs when they are recorded."""

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
        self.where: Any = None

    @property
    def recorders(self) -> tuple[Any, ...]:
        return (self,)

    def var(self, aval: Aval, where: Any = None) -> Var:
        """A new variable."""
        v = Var()
        v.by = self
        v.aval = aval
        v.where = where
        return v

    def input(self, aval: Aval) -> Var:
        """A new input."""
        v = self.var(aval, self.where or here())
        self.inputs.append(v)
        return v

    def apply(self, prim: Any, args: Any, params: dict[str, Any]) -> Any:
        where = self.where or here()
        inputs = args
        for a in args:
            if (a.__class__ is not Var or a.by is not self) and a.__class__ is not Literal:
                inputs = [self.atom(a) for a in args]
                break
        if not params and not self.closed:  # elementwise, mostly: nothing but a look-up
            n = len(inputs)  # spelt out, since a comprehension costs as much as all the rest
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

    def record(self, prim: Any, inputs: list[Any], params: dict[str, Any], where: Any) -> Any:
        """Append an equation on atoms of ours."""
        if self.closed:
            raise escaped(self.var(inputs[0].aval if inputs else Aval((), bool)), repr(prim), None)
        if prim.higher is not None and self.settles and prim.higher.pending(params):
            args, params = prim.higher.settle(params, inputs)
            inputs = [self.atom(a) for a in args]
        t = prim.infer(tuple([a.aval for a in inputs]), params)
        if prim.many:
            outs = [self.var(a, where) for a in t]
            self.eqns.append(Eqn(prim, inputs, outs, params, where))
            return outs
        v = self.var(t, where)
        self.eqns.append(Eqn(prim, inputs, (v,), params, where))
        return v

    def atom(self, x: Any) -> Any:
        """A value as something an equation of ours can read."""
        if x.__class__ is Literal or (x.__class__ is Var and x.by is self):
            return x
        hit = self.captured.get(id(x))
        if hit is not None:
            return hit[0]
        if x.__class__ is Array:
            hit = self.consts.get(id(x))
            if hit is None:
                x.buffer()
                hit = self.consts[id(x)] = self.var(x.aval), x
            return hit[0]
        if not isinstance(x, Tracer):
            return self.atom(as_value(x))
        if x.by.closed:
            raise escaped(x, self.title(), None)
        if not is_above(x.by, self.parent) and not self.from_outside(x):
            raise inverted(x, "a traced function", self.title())
        v = self.var(x.aval, x.where)
        self.captured[id(x)] = v, x
        return v

    def from_outside(self, x: Tracer) -> bool:
        """Whether a value is of a transformation that the thread we run in was started in: what
        is computed with it is computed there."""
        return self.parent is not None and x.by.thread != self.thread

    def close(
        self, outs: Sequence[Any], name: str = "program", prune: bool = False
    ) -> tuple[Program, list[Any]]:
        """(program, captured values): its inputs are the captured ones, then the declared."""
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
        """End without a program: what was made here has escaped if it is used again.

        The variables of a program refer to its stage: that must not keep the user's function.
        """
        self.closed = True
        self.of = outline(self.of)  # type: ignore[assignment]
        self.captured, self.consts, self.eqns, self.inputs = {}, {}, [], []
        self.parent = None


@contextmanager
def collector_paused() -> Iterator[None]:
    """Tracing makes many objects and no garbage: looking for some would take most of the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def stage(
    f: Callable[..., Sequence[Any]],
    avals: Sequence[Aval],
    name: str = "program",
    prune: bool = False,
    on: Stage | None = None,
) -> tuple[Program, list[Any]]:
    """`f(*tracers) -> values`, as (Program, captured values).

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
    finally:
        s.abandon()


def staged(
    f: Callable[..., Sequence[Any]],
    avals: Sequence[Aval],
    name: str = "program",
    prune: bool = False,
) -> Program:
    """As `stage`, for functions that close over nothing but arrays."""
    program, captured = stage(f, avals, name, prune, Stage(None, name))
    assert not captured, captured  # a Stage without parent captures nothing
    return program
