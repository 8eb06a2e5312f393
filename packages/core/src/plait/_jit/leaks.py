"""A search for traced values that outlive the transformation they belong to.

Usually such a value is found when something uses it.  This search finds it where it is kept, with
the line that made it and the objects that keep it.

Invariant: transformations take no part in this.  The objects of the process are searched when the
block ends, so it costs nothing outside of such blocks.
"""

import gc
import sys
from collections.abc import Iterable
from contextlib import ContextDecorator
from functools import cache
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any
from weakref import ref

from .._base.errors import UnexpectedTracerError
from .._base.source import hidden, user_line
from .._core.interpreter import Tracer
from .._core.ir import Program

__all__ = ["checking_leaks"]

_CONTAINERS = (list, tuple, dict, set, frozenset, CellType)
_MOST = 10
"""Leaks that a message shows."""
_LINKS = 5
"""The links of a chain that a message shows."""


class checking_leaks(ContextDecorator):  # noqa: N801 - used as a function is
    """A context manager that raises an error if traced values are still kept after the block.  It
    decorates functions, too: each call is such a block.

    Raises UnexpectedTracerError, which lists values whose transformation began in the block and has
    ended.  It names the line that made each value, and the chain of objects that keeps it.

    >>> import plait
    >>> kept = []
    >>> def f(x):
    ...     kept.append(x * 2)
    ...     return x
    >>> try:
    ...     with plait.debug.checking_leaks():
    ...         _ = plait.jit(f)(1.0)
    ... except plait.errors.UnexpectedTracerError as error:
    ...     print(error.what.splitlines()[0])
    Leaked values of transformations that have ended:
    """

    __slots__ = ("_before",)

    def _recreate_cm(self) -> "checking_leaks":
        return checking_leaks()  # calls of a decorated function may be nested

    def __enter__(self) -> None:
        self._before = {id(x): ref(x) for x in _tracers()}

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is not None:
            return
        gc.collect()
        known = self._before
        new = [x for x in _tracers() if id(x) not in known or known[id(x)]() is not x]
        told = _told(new)
        if told:
            raise UnexpectedTracerError(
                "Leaked values of transformations that have ended:\n" + "\n".join(told),
                fix="return them from the transformed function instead of keeping them elsewhere",
            )


def _tracers() -> list[Tracer]:
    """Return all traced values in the process whose transformation has ended."""
    return [x for x in gc.get_objects() if isinstance(x, Tracer) and _ended(x)]


def _ended(x: Tracer) -> bool:
    """Return whether the transformation that a traced value belongs to has ended."""
    by = getattr(x, "by", None)
    return by is not None and by.closed


def _told(candidates: list[Tracer]) -> list[str]:
    """Return a paragraph for each of the first leaks, given values that may have leaked.

    A value has leaked if an object other than the library's own objects and frames keeps it.
    """
    if not candidates:
        return []
    everything = gc.get_objects()
    ours = _held_by_us(everything) | _needed_later(everything)
    wanted = {id(x) for x in candidates}
    ignored = {id(everything), id(candidates), id(ours), id(wanted)}
    holders: dict[int, Any] = {}
    running = _running()
    for o in everything:
        if isinstance(o, Tracer) or id(o) in ours or id(o) in ignored or _is_ours(o):
            continue
        if isinstance(o, FrameType) and id(o) not in running:
            continue  # it has ended, and a traceback keeps it
        for x in gc.get_referents(o):
            if id(x) in wanted:
                holders.setdefault(id(x), o)
    leaked = [x for x in candidates if id(x) in holders]
    out = []
    for x in leaked[:_MOST]:
        chain = _chain(holders[id(x)], {*ignored, id(holders), id(leaked)})
        out.append(
            f"  {x!r}, created on line {user_line(x.where)}, of {x.by.title()}\n"
            f"    kept by {', of '.join(chain)}"
        )
    return out + ([f"  and {len(leaked) - _MOST} more"] if len(leaked) > _MOST else [])


# ---- owners of leaked values ---------------------------------------------------------------


def _running() -> set[int]:
    """Return the `id`s of the frames of users' functions that are running, in all threads."""
    out: set[int] = set()
    for frame in sys._current_frames().values():
        inner: FrameType | None = frame
        while inner is not None:
            if not hidden(inner.f_code.co_filename):
                out.add(id(inner))
            inner = inner.f_back
    return out


@cache
def _our_module(name: str) -> bool:
    """Return whether a module of this name belongs to the library or to a plugin."""
    return hidden(getattr(sys.modules.get(name), "__file__", None) or "")


def _is_ours(o: object) -> bool:
    """Return whether `o` is an object, a function, a frame or a module of the library or of a
    plugin."""
    if isinstance(o, FunctionType):
        return hidden(o.__code__.co_filename)
    if isinstance(o, FrameType):
        return hidden(o.f_code.co_filename)
    name = o.__name__ if isinstance(o, ModuleType) else type(o).__module__
    return isinstance(name, str) and _our_module(name)


def _held_by_us(everything: Iterable[Any]) -> set[int]:
    """Return the `id`s of the lists, dictionaries, cells, ... that the library's own objects and
    modules hold: being kept there is not a leak."""
    ahead: list[Any] = []
    for o in everything:
        if not _is_ours(o):
            continue
        if isinstance(o, FunctionType):
            ahead += o.__closure__ or ()
        elif isinstance(o, ModuleType):
            ahead.append(vars(o))
        else:
            ahead += [x for x in gc.get_referents(o) if x is not type(o)]
    seen: set[int] = set()
    while ahead:
        o = ahead.pop()
        if isinstance(o, _CONTAINERS) and id(o) not in seen:
            seen.add(id(o))
            ahead += gc.get_referents(o)
    return seen


def _needed_later(everything: Iterable[Any]) -> set[int]:
    """Return the `id`s of the variables of users' functions that programs still need.

    A custom rule is staged when it is first used, so a program holds the user's function until
    then.  That function may close over values that the program computes, which is not a leak.
    """
    ahead = [o for o in everything if type(o).__module__ == Program.__module__]
    seen, cells = {id(o) for o in ahead}, set()
    while ahead:
        o = ahead.pop()
        if isinstance(o, FunctionType):
            inner = list(o.__closure__ or ())
            if not hidden(o.__code__.co_filename):
                cells.update([id(o.__closure__), *map(id, inner)])
        else:
            inner = gc.get_referents(o)
        for x in inner:
            followed = isinstance(x, (*_CONTAINERS, FunctionType)) or _is_ours(x)
            if followed and not isinstance(x, (ModuleType, type, Tracer)) and id(x) not in seen:
                if not isinstance(o, CellType) or not isinstance(x, _CONTAINERS):
                    seen.add(id(x))
                    ahead.append(x)
    return cells


def _chain(o: Any, ignored: set[int]) -> list[str]:
    """Return in words the object `o` that keeps a leaked value, what keeps `o`, and so on.

    Args:
      o: the object that keeps it.
      ignored: `id`s of objects to leave out: those of the search itself.
    """
    words = [_words(o)]
    while isinstance(o, _CONTAINERS) and len(words) < _LINKS:
        ignored.add(id(o))
        keepers = [
            k
            for k in gc.get_referrers(o)
            if id(k) not in ignored
            and not (isinstance(k, FrameType) and hidden(k.f_code.co_filename))
        ]
        ignored.add(id(keepers))
        if not keepers:
            break
        o = keepers[0]
        words.append(_words(o))
    return words


def _words(o: Any) -> str:
    """Return a description of an object, in terms of the user's program."""
    if isinstance(o, dict) and isinstance(o.get("__name__"), str) and "__builtins__" in o:
        return f"the variables of the module {o['__name__']}"
    if isinstance(o, FrameType):
        return f"a variable of {o.f_code.co_name}, which runs"
    if isinstance(o, FunctionType):
        return f"the function {o.__qualname__}"
    if isinstance(o, CellType):
        return "a variable that a function closes over"
    return f"a {type(o).__name__}" + (f" of {len(o)}" if isinstance(o, list | dict | set) else "")
