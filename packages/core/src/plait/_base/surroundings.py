"""What surrounds a call besides its arguments: values by name, of this thread or task alone.

A plugin surrounds the calls of a block with something that functions may ask for while they are
traced (plait-sharding: the mesh of `with mesh:`).  Settings are for the whole process; these are
context variables, which other threads and tasks do not see.

Whoever keeps what a call led to must know whether it asked: compare `last_asked()` before and
after, and key what asked on `around()`.  What is taken from such a store has asked, too: `ask()`.

Invariant: a value is read by `surrounding` alone, which asks; so what did not ask is the same for
all surroundings, and calls that ask for nothing pay nothing.
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
    """Note that what goes on here depends on what surrounds it."""
    global _last
    _last = object()


def last_asked() -> object:
    """Return an object for the last time that anybody asked what surrounds calls.

    It is one for all threads and tasks: a function that is traced may run an event loop, whose
    tasks ask for it.  To take another thread's question for one's own does no harm.
    """
    return _last


def surrounding(name: str) -> Hashable:
    """Return the value of that name that surrounds us; None if there is none."""
    ask()
    return next((value for known, value in _around.get() if known == name), None)


def surround(name: str, value: Hashable) -> None:
    """Let this surround what is called from now on in this thread or task; None takes it away."""
    rest = [(known, v) for known, v in _around.get() if known != name]
    _around.set(tuple(sorted([*rest, (name, value)] if value is not None else rest, key=_first)))


def _first(item: tuple[str, Hashable]) -> str:
    return item[0]
