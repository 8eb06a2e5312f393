"""The traced values that Python functions close over.

Invariant: functions are inspected, never called.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from ..tree import children
from .handles import Handle
from .interpreter import Tracer, current, is_above
from .staging import entered


def tracers_of(*functions: Callable[..., Any] | str | None) -> list[Tracer]:
    """Return the traced values in closures, defaults, bound arguments and instances of functions
    that may be used under the current interpreter.

    A custom rule is staged long after the call it belongs to, when the interpreters around that
    call are closed.  So the values that it closes over must be found at the call, without running
    it, and become operands there.  Staging shows which of them it uses.  The rule may read the type
    of any tracer, also of one of an inner interpreter, whose value it could not use.
    """
    here = current()
    found: dict[int, Tracer] = {}
    for x in _reachable(functions):
        if isinstance(x, Handle):  # reading one too late raises by itself
            continue
        usable = not x.by.closed and (is_above(x.by, here) or x.by.thread != here.thread)
        if usable or entered(x, here) is not None:
            found.setdefault(id(x), x)
    return list(found.values())


def _reachable(roots: tuple[Any, ...]) -> Iterator[Tracer]:
    """Yield the tracers that can be reached from functions; cycles are walked once."""
    seen: set[int] = set()
    todo = list(roots)
    while todo:
        x = todo.pop()
        if id(x) in seen or x is None or isinstance(x, type):
            continue
        seen.add(id(x))
        if isinstance(x, Tracer):
            yield x
        elif isinstance(x, functools.partial):
            todo += [x.func, *x.args, *x.keywords.values()]
        elif hasattr(x, "__code__"):
            todo += _cells(x)
        elif hasattr(x, "__func__"):
            bound = getattr(x, "__self__", None)
            todo += [x.__func__, bound, *getattr(bound, "__dict__", {}).values()]
        elif isinstance(x, dict):  # not by `children`, which needs keys that can be ordered
            todo += x.values()
        elif isinstance(x, list | tuple | set | frozenset):
            todo += x
        elif (parts := children(x)) is not None:
            todo += parts
        elif hasattr(x, "__wrapped__") or callable(x):
            todo += [getattr(x, "__wrapped__", None), *getattr(x, "__dict__", {}).values()]


def _cells(f: Callable[..., Any]) -> list[Any]:
    out = [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
    for cell in f.__closure__ or ():
        try:
            out.append(cell.cell_contents)
        except ValueError:  # a recursive function whose own name is not bound yet
            continue
    return [*out, getattr(f, "__wrapped__", None)]
