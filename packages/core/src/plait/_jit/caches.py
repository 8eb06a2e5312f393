"""The caches of functions: tables of limited size, traces, compiled calls.

Each function keeps its own traces, for as long as it lives.

Invariant: traces are found by the identity of the function, never by equality.  No table here keeps
a function alive, or grows beyond `MOST` entries.  The key of a compiled call holds the structure of
the arguments, the dispatch keys of their leaves (interned types and placements), and which parts
are one (`same_parts`).  Compiled calls are dropped when a setting changes, and those of a temporary
tier when the better one is ready.
"""

import weakref
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from .._base import code_memory
from .._base.config import config
from .._base.living import Living
from .._core.fitting import Fit, chosen, fit_of, static_parts
from ..tree import TreeDef

if TYPE_CHECKING:
    from .._xla.tiers import Options
    from .compiling import CompiledCall

T = TypeVar("T")

MOST = 2048
"""The most traces of a function, and the most sets of static values, that are kept.  Without this
limit, calls that differ each time in a size or a static number would fill memory."""


def is_full(table: dict[Any, Any]) -> bool:
    """Return whether a table has as many entries as may be kept."""
    return len(table) >= MOST


def make_room(table: dict[Any, Any]) -> bool:
    """Drop the older half of a full table; return whether it was full."""
    if not is_full(table):
        return False
    for key in list(table)[: MOST // 2]:
        table.pop(key, None)
    return True


def forgetting(tables: Iterable[dict[Any, Any]]) -> Callable[[], None]:
    """Return a function that empties these tables; the settings call it when one changes.

    The settings hold it weakly: the caller keeps it for as long as the tables.
    """

    def forget() -> None:
        for table in tables:
            table.clear()

    config.watch(forget)
    return forget


# ---- traces ----------------------------------------------------------------------------------


class Traces(dict[tuple[Any, ...], Any]):
    """Traces of one function, by types and trees of arguments."""

    __slots__ = ("owner", "_shared", "__weakref__")
    owner: Callable[[], Any]
    _shared: dict[Any, Any]

    def __init__(self) -> None:
        self._shared, self.owner = {}, _nobody

    def under(self, key: tuple[str | tuple[Any, ...], ...]) -> dict[Any, Any]:
        """Return the table of the traces for a set of static values."""
        if key not in self:
            make_room(self)
        return self.setdefault(key, {})

    def shared(
        self, f: Callable[..., Any], key: "tuple[bool | Options, ...]", make: Callable[[], T]
    ) -> T:
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

    def __reduce__(self) -> tuple[object, ...]:
        return Traces, ()  # a function that is pickled by its contents leaves its traces behind


def _nobody() -> None:
    """Return None: traces that were pickled with a function belong to no function."""


_ATTRIBUTE = "__plait_traces__"
_kept: dict[int, Traces] = {}
_all: Living[Traces] = Living()


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
    _all.add(traces)
    return traces


@code_memory.emptied_by
def kept_traces_cleared() -> None:
    """Drop the traces of all functions."""
    for traces in _all.each():
        traces.clear()


# ---- compiled calls --------------------------------------------------------------------------


class CompiledCalls:
    """The compiled calls of a function, with one set of static values.

    Attributes:
      every: all compiled calls, by `Signature.call_key`.
      one: those with one array, by its dispatch key.
      flat: those with several arrays, by their dispatch keys.
      staged: calls with flat values under a transformation, by their types.
      structures: the structure that serves another one, where they hold capacities.
      fits: how calls get the capacities of the structure that serves theirs.
      forget: drops them all.
    """

    __slots__ = (
        "every", "one", "flat", "staged", "structures", "fits", "forget",
        "__weakref__",
    )  # fmt: skip

    def __init__(self) -> None:
        self.structures: dict[tuple[Any, ...], TreeDef] = {}
        self.fits: dict[tuple[Any, ...], Fit] = {}
        self.every: dict[tuple[Any, ...], Any] = {}
        self.one: dict[Any, Any] = {}
        self.flat: dict[Any, Any] = {}
        self.staged: dict[Any, Any] = {}
        self.forget = forgetting(
            (self.every, self.one, self.flat, self.staged, self.structures, self.fits)
        )

    def serving(self, tree: TreeDef) -> TreeDef:
        """Return the structure that calls of this structure are performed with.

        Where structures hold capacities, calls of similar ones share a program."""
        key = *static_parts(tree), tree
        found = self.structures.get(key)
        if found is None:
            make_room(self.structures)
            found = chosen(tree, dict.fromkeys(self.structures.values()))
            self.structures[key] = found
        return found

    def keep_fit(self, tree: object, want: TreeDef) -> None:
        """Keep how calls with trees like this one get the capacities of a structure."""
        found = fit_of(tree, want)
        if found is not None:
            make_room(self.fits)
            self.fits[found[0]] = found[1]

    def keep(self, key: tuple[Any, ...], call: "CompiledCall") -> None:
        """Keep a compiled call."""
        if make_room(self.every):
            self.forget()  # other tables may lead to the dropped calls
        self.every[key] = call
        self._forget_with(call)

    def keep_flat(self, keys: tuple[Any, ...], call: "CompiledCall") -> None:
        """Keep a compiled call with flat arrays by their dispatch keys alone."""
        self.flat[keys] = call[:4]
        if len(keys) == 1:
            self.one[keys[0]] = call[:4]
        self._forget_with(call)

    def _forget_with(self, call: "CompiledCall") -> None:
        # After the call is in the table: if the other tier arrived in between, it would stay there.
        if call.swap is not None:
            call.swap.tell(self.forget)
