"""Tracebacks that end at the user's line, without frames of Plait.

A *border* is a public function that user code calls, or that calls user code.  The traceback of an
exception that leaves a border is pruned there to frames of user code, including those inside of
transformed functions.  A border is a `try` around the function's body, which costs nothing while
nothing is raised.  Thin functions without one (of `plait.lax`, say) are pruned when the interpreter
prints an uncaught exception.  That hook is installed at Plait's first error, unless another package
has replaced the interpreter's own.

With the setting `traceback="full"` no frame is removed.

Invariant: an exception keeps every frame of user code, its class, its text and its cause.  Of the
exceptions in its context, those that were raised and caught within Plait are left out.
"""

import contextlib
import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, TracebackType
from typing import Any, TypeVar, cast

import numpy

from .jaxlib_api import JAXLIB_FOLDER, ml_dtypes
from .lazy import later
from .source import below_hidden, of_standard_library

__all__ = [
    "border",
    "explained_call",
    "explained_calls",
    "leaving",
    "refused_call",
    "show_all",
    "watch_display",
]

F = TypeVar("F", bound=Callable[..., Any])

_full = False
_LIBRARIES = tuple(
    os.path.join(folder, "") for folder in (*numpy.__path__, *ml_dtypes.__path__, JAXLIB_FOLDER)
)
"""Folders of libraries that Plait calls and that may raise: their frames are shown only if the
user's code called them."""
_MISTAKES = (AssertionError, AttributeError, NameError, KeyError)
"""Classes that Plait does not raise on purpose, except as errors of its own (with a `fix`)."""
_NOTE = "raised inside of Plait, by a mistake of its own; PLAIT_TRACEBACK=full shows where"


def show_all(full: bool) -> None:
    """Set whether tracebacks keep frames of Plait; the setting `traceback` is stored here."""
    global _full
    _full = full


def leaving(error: BaseException) -> None:
    """Remove frames of Plait from the traceback of an exception that leaves for user code, and
    exceptions that were caught within Plait from its context.

    Call it in an `except` clause that ends with a bare `raise`, which adds no frame.
    """
    if _full:
        return
    getattr(error, "what", None)  # an error of Plait finds names in the frames
    entries = list(_entries(error.__traceback__))
    if entries and _is_ours(entries[-1]) and isinstance(error, _MISTAKES):
        answers = entries[-1].tb_frame.f_code.co_name == "__getattr__" or hasattr(error, "fix")
        if not answers and _NOTE not in getattr(error, "__notes__", ()):
            error.add_note(_NOTE)
    seen: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        e = rest.pop()
        if e is None or id(e) in seen:
            continue
        seen.add(id(e))
        e.__traceback__ = _pruned(e.__traceback__)
        context = e.__context__
        while context is not None and id(context) not in seen and _is_internal(context):
            context = context.__context__
        if context is not e.__context__:
            suppressed = e.__suppress_context__
            e.__context__ = context
            e.__suppress_context__ = suppressed
        rest += e.__cause__, context


def border(f: F) -> F:
    """Decorate `f` so that exceptions leave it with frames of user code only.

    Classes of batches may bring their own version of it; see `overriding`.

    The decorator costs a call of Python; functions that must be as fast as possible contain the
    `try` themselves.
    """

    @functools.wraps(f)
    def function(*args: object, **kwargs: object) -> Any:
        try:
            return f(*args, **kwargs)
        except BaseException as e:
            out = later("_base.overriding").overridden(e, this(), args, kwargs)
            if out is not NotImplemented:
                return out
            refusal = refused_call(f, e) if _does_not_fit(e) else None
            if refusal is None:
                leaving(e)
                raise
        # Raised outside of the handler, the error does not carry Python's as its context.
        leaving(refusal)
        raise refusal

    _EXPLAINING.add(cast(FunctionType, function).__code__)
    # A function that transformations make must not refer to itself: residuals that it holds would
    # stay until the collector runs.
    this = weakref.ref(function)
    # If `f` wraps the user's function, the attribute must be that function.
    function.__wrapped__ = getattr(f, "__wrapped__", f)
    return function  # type: ignore[return-value]


def refused_call(f: Callable[..., Any], error: BaseException, kind: Any = None) -> Any:
    """Return the error, of class `kind` or TypeRule, for a call of `f` that `error` refused.

    Its fix is the signature of `f`, after the parameter that an unknown keyword resembles.
    """
    return later("_base.signatures").error_of_call(f, error, kind)


def explained_calls(scope: dict[str, Any]) -> None:
    """Let the public functions of a module refuse calls that do not fit their signature in three
    parts; those with a border already do.

    Args:
      scope: the globals of a module that has all public names in its `__all__`.
    """
    made: dict[Any, Any] = {}
    for name in scope["__all__"]:
        f: Any = scope.get(name)
        if f.__class__ is FunctionType:
            made[f] = made.get(f) or explained_call(f, scope["__name__"], name)
            scope[name] = made[f]


def explained_call(f: F, module: str, name: str) -> F:
    """Return a function so that it refuses calls that do not fit its signature in three parts.

    Everything else that it raises passes unchanged: use this where a `border` would cost too much,
    or would look for the version of a class of batches a second time.

    Args:
      f: the function; other callables, and functions that explain calls already, are returned.
      module, name: where users find it, and pickle, too.
    """
    if f.__class__ is not FunctionType or f.__code__ in _EXPLAINING:
        return f

    @functools.wraps(f)
    def function(*args: object, **kwargs: object) -> Any:
        try:
            return f(*args, **kwargs)
        except TypeError as e:
            if not _does_not_fit(e):
                raise
            refusal = refused_call(f, e)
        # Raised outside of the handler, the error does not carry Python's as its context.
        leaving(refusal)
        raise refusal

    _EXPLAINING.add(cast(FunctionType, function).__code__)
    function.__module__, function.__qualname__ = module, name
    return function  # type: ignore[return-value]


_EXPLAINING: set[CodeType] = set()
"""The code of functions that explain refused calls."""


_UNFIT = (
    "unexpected keyword",
    "required",
    "positional argument",
    "multiple values",
    "positional-only",
)
"""Parts of Python's texts for calls that do not fit a signature."""


def _does_not_fit(error: BaseException) -> bool:
    """Return whether a call raised this before the function began: its arguments do not fit.

    A context manager of `contextlib` calls its function within a frame or two of its own.
    """
    if error.__class__ is not TypeError or error.__traceback__ is None:
        return False
    inner = [*_entries(error.__traceback__)][1:]
    if any(entry.tb_frame.f_code.co_filename != contextlib.__file__ for entry in inner):
        return False
    return any(part in str(error) for part in _UNFIT)


# ---- frames of Plait and of users --------------------------------------------------------------


def _entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_ours(entry: TracebackType) -> bool:
    return below_hidden(entry.tb_frame.f_code.co_filename)


def _is_library(entry: TracebackType) -> bool:
    file = entry.tb_frame.f_code.co_filename
    if file.startswith(_LIBRARIES) or file.startswith("<frozen "):
        return True
    return of_standard_library(file)


def _users(trace: TracebackType | None) -> list[TracebackType]:
    """Return the entries of user code: neither Plait's, nor of libraries that Plait called."""
    kept: list[TracebackType] = []
    called_by_us = False
    for entry in _entries(trace):
        if _is_ours(entry):
            called_by_us = True
        elif not (called_by_us and _is_library(entry)):
            called_by_us = False
            kept.append(entry)
    return kept


def _pruned(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback with its entries of user code only."""
    kept = _users(trace)
    found: TracebackType | None = None
    for entry in reversed(kept):
        found = TracebackType(found, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return found


def _is_internal(error: BaseException) -> bool:
    """Return whether an exception was raised and caught within Plait, without user code."""
    return error.__traceback__ is not None and not _users(error.__traceback__)


# ---- uncaught exceptions -----------------------------------------------------------------------


def watch_display() -> None:
    """Make the interpreter print uncaught exceptions with frames of user code only; do nothing if
    another package has replaced its hooks."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _shown
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _shown_of_thread


def _shown(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    with contextlib.suppress(Exception):  # an error here must not hide the one that is shown
        if _users(error.__traceback__):
            leaving(error)
            trace = error.__traceback__
    sys.__excepthook__(kind, error, trace)


def _shown_of_thread(given: Any) -> None:
    with contextlib.suppress(Exception):
        if given.exc_value is not None:
            leaving(given.exc_value)
            given = threading.ExceptHookArgs(
                (given.exc_type, given.exc_value, given.exc_value.__traceback__, given.thread)
            )
    threading.__excepthook__(given)
