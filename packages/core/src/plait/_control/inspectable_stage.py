"""An inspectable stage: Python code may read values while its function is staged.

Python may branch on a value during staging if what it depends on is known: values of arguments, if
the stage is given them, and values from outside.  It is then computed beside the staging.

Invariant: reading a value does not change the program.  Code that keeps the program for other
arguments must check `looked` first.
"""

from collections.abc import Callable
from typing import Any

from .._core.array import as_value
from .._core.interpreter import GROUND, Tracer, Value, use
from .._core.ir import Eqn, Var, swept
from .._core.staging import Stage
from .._simplify.deadcode import narrowed
from ..tree import flatten


class InspectableStage(Stage):
    """Stages `f` on arguments that may have values.

    Args:
      parent: the current interpreter.
      does: the transformation, for messages.
      of: the function that is staged.
      args, kwargs: its arguments, if their values are known; their leaves become the inputs, in
        order.
    """

    looked = False
    """True once Python has read a value."""

    def __init__(
        self,
        parent: Any,
        does: str,
        of: Callable[..., Any],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | dict[str, int] | None = None,
    ):
        super().__init__(parent, does, of)
        self.given: Any = args, kwargs or {}
        self.seen: dict[Any, Any] = {}

    def concrete(self, x: Tracer) -> Any:
        self.looked = True
        with use(GROUND):
            for e in self._before(x, self.seen):
                ins = [self._seen(a, x) for a in e.inputs]
                out = GROUND.apply(e.prim, ins, e.params)
                self.seen.update(zip(e.outputs, out if e.prim.many else [out], strict=True))
            return self._seen(x, x)

    @property
    def kind(self) -> type[Stage]:
        return Stage

    def outside(self, x: Tracer) -> Any:
        """Return the array that `x` stands for, if it depends on no argument, and on nothing that
        is transformed outside; else `x`."""
        needed = {x, *(a for e in self._before(x, ()) for a in e.inputs if a.__class__ is Var)}
        if not needed.isdisjoint(self.inputs):
            return x
        for own, outer in self.captured.values():
            if own in needed and isinstance(outer, Tracer):
                if outer.by.closed or isinstance(outer.by.outside(outer), Tracer):
                    return x
        return self.concrete(x)

    def _before(self, x: Any, seen: object) -> list[Eqn]:
        """Return what the equations that lead from the values seen to `x` compute of it."""
        needed, found = {x}, []
        for e in reversed(self.eqns):
            if any(o in needed and o not in seen for o in e.outputs):
                found.append(e)
                needed.update([a for a in e.inputs if a.__class__ is Var])
        found.reverse()
        return swept(found, [x], narrowed)[0]

    def _seen(self, a: Value, wanted: Tracer) -> Any:
        """Return the value of an operand of an equation; raise an error if it has none."""
        if a.__class__ is not Var:
            return a
        if a not in self.seen:
            self.seen[a] = self._outside(a, wanted).concrete()
        return self.seen[a]

    def _outside(self, v: Value, wanted: Tracer) -> Any:
        """Return the outer value of an input, a captured value or a constant."""
        for own, x in zip(self.inputs, flatten(self.given)[0]):
            if own is v:
                return as_value(x)
        for own, x in (*self.captured.values(), *self.consts.values()):
            if own is v:
                return x
        return super().concrete(wanted)

    def abandon(self) -> None:
        super().abandon()
        self.given, self.seen = None, {}
