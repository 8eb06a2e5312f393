"""The surroundings of a call: values by name, of this thread or task alone.

A plugin surrounds the calls of a block with a value that functions may read while they are traced
(plait-sharding: the mesh of `with mesh:`).  Settings are for the whole process; these are context
variables, which other threads and tasks do not see.

A cache of the results of a call must detect whether the call read its surroundings: compare
`last_asked()` before and after.  If it did, `around()` is part of the cache key, and a hit must
call `ask()`.

Invariant: values are read by `surrounding` alone, which calls `ask`.  So calls that read nothing
are the same for all surroundings, and cost nothing more.
"""

from collections.abc import Callable, Hashable
from contextvars import ContextVar

__all__ = ["Surroundings", "around", "ask", "last_asked", "surround", "surrounding"]

Surroundings = tuple[tuple[str, Hashable], ...]

_around: ContextVar[Surroundings] = ContextVar("plait.surroundings", default=())
_last = object()

around: Callable[[], Surroundings] = _around.get
"""Return all names and values, as a key; `()` where there are none."""


def ask() -> None:
    """Record that the computation under way depends on its surroundings."""
    global _last
    _last = object()


def last_asked() -> object:
    """Return an object that changes each time that surroundings are read.

    All threads and tasks share it: a function that is traced may run an event loop, whose tasks
    read surroundings.  Counting another thread's read as one's own does no harm.
    """
    return _last


def surrounding(name: str) -> Hashable:
    """Return the surrounding value of that name; None without one."""
    ask()
    return next((value for known, value in _around.get() if known == name), None)


def surround(name: str, value: Hashable) -> None:
    """Surround later calls in this thread or task with this value; None removes it."""
    rest = [(known, v) for known, v in _around.get() if known != name]
    _around.set(tuple(sorted([*rest, (name, value)] if value is not None else rest, key=_first)))


def _first(item: tuple[str, Hashable]) -> str:
    return item[0]
