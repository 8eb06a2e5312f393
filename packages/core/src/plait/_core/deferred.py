"""Functions and rules of the user that are staged late, or not at all.

Applied at once, the user's Python runs on values, and may branch on them.  Under staging a rule
becomes a program only when a transformation needs it.  A rule often calls the function that it
serves, and staging both together would never end.

Invariant: facts about a call are stored with the call and not with the function.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from .._base.wrapping import name_of
from .._types.avals import Aval
from .axis_names import Binding, bound_axes
from .closures import tracers_of
from .interpreter import GROUND, current
from .ir import Program, Thunk, Var
from .staging import Stage, stage

__all__ = ["Deferred", "rule_thunk", "settled"]


class Deferred:
    """A flat Python function, values to values, that is not staged yet.

    Args:
      f: the function of values.
      user: the user's function that `f` calls.
      symbolic: True for a rule whose first argument marks the values that are known to be zero and
        are therefore left out.
      static: arguments of the user's function that are not values of `f`; they may be traced, or
        contain traced values.
    """

    __slots__ = ("f", "name", "user", "symbolic", "static")
    f: Callable[..., Any]
    name: str
    user: Callable[..., Any]
    symbolic: bool
    static: tuple[Any, ...]

    def __init__(
        self,
        f: Callable[..., Any],
        user: Callable[..., Any],
        symbolic: bool = False,
        static: Sequence[Any] = (),
    ):
        self.f, self.user, self.symbolic, self.static = f, user, symbolic, tuple(static)
        self.name = name_of(user, "f")

    def __repr__(self) -> str:
        return f"<function {self.name}>"

    def tracers(self) -> list[Any]:
        """Return the traced values in its closure and static arguments that may be used here."""
        # A static argument need not be a tree, so its attributes are searched as well.
        held = [getattr(x, "__dict__", None) for x in self.static]
        return tracers_of(self.user, *self.static, *held)


class _Rule(Stage):
    """A stage for a rule, with the named axes bound as they were where its function was called."""

    def __init__(self, user: Callable[..., Any], axes: dict[Any, Binding]):
        super().__init__(None, "rule", user)
        self.axes = axes
        self.sizes = {n: b.size for n, b in axes.items()}  # type: ignore[misc]
        self.typed_axes = frozenset([n for n, b in axes.items() if b.typed])
        self.lacks_elements = not all(b.complete for b in axes.values())

    def joins(self, name: str) -> Hashable:
        return self.axes[name].joins


def rule_thunk(
    f: Deferred,
    captured: Sequence[Any],
    avals: Callable[[], Sequence[Aval]],
    check: Callable[[list[Aval]], None] | None = None,
) -> Thunk:
    """Return a rule that is staged when it is first needed.

    Args:
      f: the rule.
      captured: values that the call captured: the first inputs of its program.
        avals: returns the types of the other inputs; it is called when the rule is staged.
        check: receives the types of the results.
    """
    axes = bound_axes()  # of the call: the bindings may differ when the rule is staged
    maps = current().maps

    def make() -> Program:
        s = _Rule(f.user, axes)
        s.maps = maps  # type: ignore[misc]
        # The stage has no parent, so it cannot capture anything.  The values that the call
        # captured are entered beforehand, in the order in which the call passes them.
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
    """Return (the function staged on the arguments, the values that it and its rules close over).

    The program's inputs are the captured values, then the arguments.
    """
    made, captured = stage(program.f, [a.aval for a in args], program.name)
    known = {id(c) for c in captured}
    reached = {id(t): t for r in rules for t in r.tracers()}
    extra = [t for i, t in reached.items() if i not in known]
    if extra:
        # Only rules captured these values.  The program takes them too, as inputs that it does not
        # read, so that it and all its rules take the same operands.
        unused: list[Var] = []
        for t in extra:
            v = Var()
            v.by, v.aval, v.where = GROUND, t.aval, None
            unused.append(v)
        made = made.with_inputs([*unused, *made.inputs])
    return made, [*extra, *captured]
