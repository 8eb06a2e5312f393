"""An inspectable stage: Python code may read values while its function is staged.

Python may branch on a value during staging if the values of the arguments are known.  The value is
then computed from these, beside the staging.

Invariant: reading a value does not change the program.  Code that keeps the program for other
arguments must check `looked` first.
"""

from collections.abc import Callable
from typing import Any

from plait.ext.ir import Eqn, Var
from plait.ext.trace import GROUND, Stage, Tracer, use
from plait.ext.tree import flatten
from plait.ext.values import as_value


class InspectableStage(Stage):
    """Stages `f` on arguments that may have values.

    Args:
      parent: the current interpreter.
      of: the function that is staged.
      args, kwargs: its arguments; their leaves become the inputs, in order.
    """

    looked = False
    """True once Python has read a value."""

    def __init__(self, parent: Any, of: Callable[..., Any], args: Any, kwargs: Any):
        super().__init__(parent, "checkpoint", of)
        self.given: Any = args, kwargs
        self.seen: dict[Any, Any] = {}

    def concrete(self, x: Tracer) -> Any:
        self.looked = True
        with use(GROUND):
            for e in self._before(x):
                ins = [self._seen(a) for a in e.inputs]
                out = GROUND.apply(e.prim, ins, e.params)
                self.seen.update(zip(e.outputs, out if e.prim.many else [out], strict=True))
            return self._seen(x)

    def _before(self, x: Any) -> list[Eqn]:
        """Return the equations that lead to `x` and have not been computed."""
        needed, found = {x}, []
        for e in reversed(self.eqns):
            if any(o in needed and o not in self.seen for o in e.outputs):
                found.append(e)
                needed.update([a for a in e.inputs if a.__class__ is Var])
        found.reverse()
        return found

    def _seen(self, a: Any) -> Any:
        """Return the value of an operand of an equation; raise an error if it has none."""
        if a.__class__ is not Var:
            return a
        if a not in self.seen:
            self.seen[a] = self._outside(a).concrete()
        return self.seen[a]

    def _outside(self, v: Any) -> Any:
        """Return the outer value of an input, a captured value or a constant."""
        for own, x in zip(self.inputs, flatten(self.given)[0]):
            if own is v:
                return as_value(x)
        for own, x in (*self.captured.values(), *self.consts.values()):
            if own is v:
                return x
        return super().concrete(v)

    def abandon(self) -> None:
        super().abandon()
        self.given, self.seen = None, {}
