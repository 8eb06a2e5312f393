"""Objects that are held weakly and listed, while other threads add some.

A WeakSet or WeakValueDictionary raises RuntimeError when another thread adds to it meanwhile.

Invariant: no object is held, and listing them needs no lock: the list of a dictionary's values is
made in one step of the interpreter.
"""

import weakref
from typing import Generic, TypeVar

T = TypeVar("T")


class Living(Generic[T]):
    """Those of the objects that were added which still exist, in the order in which they came.

    >>> of = Living()
    >>> function = lambda: 0
    >>> of.add(function)
    >>> of.each() == [function]
    True
    >>> del function
    >>> of.each()
    []
    """

    def __init__(self) -> None:
        self._found: dict[int, weakref.ref[T]] = {}

    def add(self, x: T) -> None:
        """Add an object, if it is not there."""
        key, found = id(x), self._found
        if key not in found:
            found[key] = weakref.ref(x, lambda _: found.pop(key, None))

    def each(self) -> list[T]:
        """Return all objects that exist."""
        return [x for ref in list(self._found.values()) if (x := ref()) is not None]
