"""The traces of functions: each function keeps its own, for as long as it lives.

Invariant: traces are found by the identity of the function, never by equality.  No table here keeps
a function alive.
"""

import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from .tables import make_room

T = TypeVar("T")


class Traces(dict[tuple[Any, ...], Any]):
    """Traces of one function, by types and trees of arguments."""

    __slots__ = ("owner", "_shared", "__weakref__")
    owner: Callable[[], Any]
    _shared: dict[Any, Any]

    def __init__(self) -> None:
        self._shared, self.owner = {}, _nobody

    def under(self, key: Any) -> dict[Any, Any]:
        """Return the table of the traces for a set of static values."""
        if key not in self:
            make_room(self)
        return self.setdefault(key, {})

    def shared(self, f: Callable[..., Any], key: Any, make: Callable[[], T]) -> T:
        """Return the object with this key that all jits of the function `f` share; make it if it is
        not there.

        It may refer to the function by a program.  A Python function that holds it itself forms a
        cycle, which is collected.  For any other callable a table of this module would hold it, and
        it would keep the callable alive forever.  So the jits of such a callable share nothing.
        """
        if f.__class__ is not FunctionType:
            return make()
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = make()
        return found

    def __reduce__(self):
        return Traces, ()  # a function that is pickled by its contents leaves its traces behind


def _nobody() -> None:
    """Return None: traces that were pickled with a function belong to no function."""


_ATTRIBUTE = "__plait_traces__"
_kept: dict[int, Traces] = {}
_all: "weakref.WeakValueDictionary[int, Traces]" = weakref.WeakValueDictionary()


def kept(f: Callable[..., Any]) -> Traces:
    """Return the traces of `f`, which are kept for as long as `f` lives.

    They are found by identity, never by equality: two layers that compare equal may hold different
    weights, and would run each other's programs.  A function holds its traces itself, instead of a
    table of weak keys.  A program may refer to the function it was traced from (in a custom rule);
    a table would then keep both forever, while a cycle is collected.
    """
    held = f.__dict__.get(_ATTRIBUTE) if f.__class__ is FunctionType else _kept.get(id(f))
    if held is not None and held.owner() is f:  # else copied by functools.wraps, or of a dead one
        return held
    traces, k, store = Traces(), id(f), _kept

    def forget(ref: object) -> None:
        # When this is called, another object may already have the id, with its own traces.
        if k in store and store[k].owner is ref:
            del store[k]

    try:
        if f.__class__ is FunctionType:
            traces.owner = weakref.ref(f)
            f.__dict__[_ATTRIBUTE] = traces
        else:
            traces.owner = weakref.ref(f, forget)
            store[k] = traces
    except TypeError:
        return traces
    _all[id(traces)] = traces
    return traces


def kept_traces_cleared() -> None:
    """Drop the traces of all functions."""
    for traces in list(_all.values()):
        traces.clear()
