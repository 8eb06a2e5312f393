"""Functions and rules of the user that are staged late, or not at all.

Applied at once, the user's Python runs on values, and may branch on them.  Under staging a rule
becomes a program only when somebody asks for it: a rule often calls the function that it serves,
and staging it with that function would never end.

Invariant: what is known about a call belongs to the call and not to the function.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .._types.avals import Aval
from .axis_names import named_axes
from .closures import tracers_of
from .interpreter import GROUND, current
from .ir import Program, Thunk, Var
from .staging import Stage, stage

__all__ = ["Deferred", "rule_thunk", "settled"]


class Deferred:
    """A flat Python function, values to values, that is not staged yet.

    symbolic: it is a rule whose first argument says which of its values are known to be zero, and
    are therefore left out.
    static: arguments that the user's function is given and that are no values of `f`; they may be
    traced, or hold what is.
    """

    __slots__ = ("f", "name", "user", "symbolic", "static")

    def __init__(
        self, f: Callable[..., Any], user: Any, symbolic: bool = False, static: Sequence[Any] = ()
    ):
        self.f, self.user, self.symbolic, self.static = f, user, symbolic, tuple(static)
        self.name = getattr(user, "__name__", "f")

    def __repr__(self) -> str:
        return f"<function {self.name}>"

    def tracers(self) -> list[Any]:
        """Return the traced values that it closes over, or has among its static arguments, as far
        as they may be used here."""
        held = [getattr(x, "__dict__", None) for x in self.static]  # an object that is no tree
        return tracers_of(self.user, *self.static, *held)


def rule_thunk(
    f: Deferred,
    captured: Sequence[Any],
    avals: Callable[[], Sequence[Aval]],
    check: Callable[[list[Aval]], None] | None = None,
) -> Thunk:
    """Return a rule that is staged when it is first asked for.

    Args:
      f: the rule.
      captured: values that the call captured: the first inputs of its program.
      avals: returns the types of the other inputs; it is asked when the rule is staged.
      check: is given the types of the results.
    """
    axes = named_axes()  # of the call: they may be unbound, or others, when the rule is staged
    maps = current().maps

    def make() -> Program:
        s = Stage(None, "rule", f.user)
        s.sizes, s.maps = axes, maps  # type: ignore[misc]
        # The stage has no parent, so nothing can be captured any more.  What the call captured is
        # entered beforehand, in order: the program then takes it as the call passes it.
        for x in captured:
            s.captured[id(x)] = s.var(x.aval, getattr(x, "where", None)), x
        program, found = stage(f.f, avals(), f.name, on=s)
        assert len(found) == len(captured)
        if check is not None:
            check(program.out_avals)
        return program

    return Thunk(make)


def settled(
    program: Deferred, rules: Sequence[Deferred], args: Sequence[Any]
) -> tuple[Program, list[Any]]:
    """Return (the function staged on the arguments, what it and its rules close over).

    The program's inputs are the captured values, then the arguments.
    """
    made, captured = stage(program.f, [a.aval for a in args], program.name)
    known = {id(c) for c in captured}
    reached = {id(t): t for r in rules for t in r.tracers()}
    extra = [t for i, t in reached.items() if i not in known]
    if extra:
        # Captured by rules alone.  The program takes them too, as inputs that it does not read, so
        # that it and all its rules take the same operands.
        unused: list[Var] = []
        for t in extra:
            v = Var()
            v.by, v.aval, v.where = GROUND, t.aval, None
            unused.append(v)
        made = made.with_inputs([*unused, *made.inputs])
    return made, [*extra, *captured]
