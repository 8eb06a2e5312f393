"""Functions and rules of the user that are staged late, or not at all.

Applied at once, the user's Python runs on values, and may branch on them.  Staged, a rule becomes
a program when somebody asks for it, for it may well call the function it serves.

Invariant: what is known about a call belongs to the call and not to the function.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .._types.avals import Aval
from .closures import tracers_of
from .interpreter import GROUND, named_axes
from .ir import Program, Thunk, Var
from .staging import Stage, stage

__all__ = ["Deferred", "rule_thunk", "settled"]


class Deferred:
    """A flat Python function, not staged yet: values in, values out.

    symbolic: it is a rule that is told, in front of its values, which of them are known to be
    zero and not there.
    """

    __slots__ = ("f", "name", "user", "symbolic")

    def __init__(self, f: Callable[..., Any], user: Any, symbolic: bool = False):
        self.f, self.user, self.symbolic = f, user, symbolic
        self.name = getattr(user, "__name__", "f")

    def __repr__(self) -> str:
        return f"<function {self.name}>"


def rule_thunk(
    f: Deferred,
    captured: Sequence[Any],
    avals: Callable[[], Sequence[Aval]],
    check: Callable[[list[Aval]], None] | None = None,
) -> Thunk:
    """A rule to be staged later, on what the call captured and then on `avals()`; `check` is told
    the types of its results.  It sees the named axes that the call sees."""
    axes = named_axes()

    def make() -> Program:
        s = Stage(None, "rule", f.user)
        s.sizes = axes  # type: ignore[misc]
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
    """(the function staged on the arguments, what it and its rules close over).

    The program's inputs are the captured values, then the arguments.
    """
    made, captured = stage(program.f, [a.aval for a in args], program.name)
    known = {id(c) for c in captured}
    extra = [t for t in tracers_of(*(r.user for r in rules)) if id(t) not in known]
    if extra:
        unused = []
        for t in extra:
            v = Var()
            v.by, v.aval, v.where = GROUND, t.aval, None
            unused.append(v)
        made = made.with_inputs([*unused, *made.inputs])
    return made, [*extra, *captured]
