"""Counts of events behind a call: traces, lowerings, compilations, transfers.

An executable that is found on disk is loaded ("load") and not compiled.

    with events.counting() as n:
        f(x)
    n["compile"]

    with events.counting_of("trace") as n:
        f(x)
    n[f]

Invariant: without listeners, an event costs one test of an empty list.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ._base.lazy import advise as _advise
from ._base.tracebacks import explained_calls as _explained_calls

__all__ = ["NAMES", "counting", "counting_of", "listening"]

NAMES = ("trace", "lower", "compile", "load", "transfer")
_listeners: list[Callable[[str, object], None]] = []


def happened(name: str, what: object = None) -> None:
    """Call all listeners with an event."""
    for listener in _listeners:
        listener(name, what)


@contextmanager
def listening(listener: Callable[[str, object], None]) -> Iterator[None]:
    """Call `listener(name, what)` for every event of the process within the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def counting() -> Iterator[Counter]:
    """Count how often each event happens in the block."""
    counts: Counter = Counter()
    with listening(lambda name, _: counts.update((name,))):
        yield counts


@contextmanager
def counting_of(event: str = "trace") -> Iterator[Counter]:
    """Count how often an event happens in the block, by its subject.

    The subject of a trace is the function as its user wrote it; the count is found by its jit, too.

    >>> import plait
    >>> f = plait.jit(lambda x: x * 2)
    >>> with plait.events.counting_of("trace") as n:
    ...     _ = f(1.0), f(2.0), f(3)
    >>> n[f]
    2
    """
    counts = _OfFunctions()

    def listener(name: str, what: object) -> None:
        if name == event:
            counts.update((_plain(what),))

    with listening(listener):
        yield counts


class _OfFunctions(Counter):
    """A counter that finds a function by its wrappers, too."""

    def __missing__(self, key: object) -> int:
        plain = _plain(key)
        return 0 if plain is key else self[plain]


def _plain(what: object) -> object:
    """Return the function behind wrappers; for an object without a hash, its repr."""
    inner = inspect.unwrap(what) if callable(what) else what
    return inner if type(inner).__hash__ is not None else repr(inner)


_explained_calls(globals())
_advise("plait.events", globals())
