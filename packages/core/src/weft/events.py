"""Counting what happens behind a call: traces, lowerings, compilations, transfers.

    with events.counting() as n:
        f(x)
    n["compile"]

Invariant: an event costs one test of an empty list when nobody listens.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NAMES = ("trace", "lower", "compile", "transfer")
_listeners: list[Callable[[str, object], None]] = []


def happened(name: str, what: object = None) -> None:
    """Tell all listeners."""
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
    """How often each event happened in the block, so far."""
    counts: Counter = Counter()
    with listening(lambda name, _: counts.update((name,))):
        yield counts
