"""The traced values that Python functions close over.

Invariant: functions are looked at, never called.
"""

import functools
from collections.abc import Iterator
from typing import Any

from ..tree import flatten
from .interpreter import Tracer


def tracers_of(*functions: Any) -> list[Tracer]:
    """Return the open tracers in closures, defaults, bound arguments and instances of functions.

    A custom rule is staged long after the call it belongs to, when the interpreters around that
    call are closed.  What it closes over must therefore be found at the call, without running it,
    and become operands there.
    """
    found: dict[int, Tracer] = {}
    for x in _reachable(functions):
        if isinstance(x, Tracer) and not x.by.closed:
            found.setdefault(id(x), x)
    return list(found.values())


def _reachable(roots: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the tracers that can be reached from functions; cycles are walked once."""
    seen: set[int] = set()
    todo = list(roots)
    while todo:
        x = todo.pop()
        if id(x) in seen or x is None or isinstance(x, type):
            continue
        seen.add(id(x))
        if isinstance(x, functools.partial):
            todo += [x.func, *x.args, *x.keywords.values()]
        elif hasattr(x, "__code__"):
            todo += _cells(x)
        elif hasattr(x, "__func__"):
            todo += [x.__func__, getattr(x, "__self__", None)]
        elif isinstance(x, Tracer):
            yield x
        else:
            leaves = flatten(x)[0]
            if len(leaves) != 1 or leaves[0] is not x:
                todo += leaves
            elif hasattr(x, "__wrapped__") or callable(x):
                todo += [getattr(x, "__wrapped__", None), *getattr(x, "__dict__", {}).values()]


def _cells(f: Any) -> list[Any]:
    out = [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
    for cell in f.__closure__ or ():
        try:
            out.append(cell.cell_contents)
        except ValueError:  # a recursive function whose own name is not bound yet
            continue
    return [*out, getattr(f, "__wrapped__", None)]
