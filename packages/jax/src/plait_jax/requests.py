"""JAX names that Plait lacks: placeholders, and a record of requests for them.

Invariant: a missing name does not prevent the import of a library that mentions it.  Using it
raises MissingName, and each request is recorded with its source line.
"""

import functools
import sys
from abc import ABCMeta
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from plait import tree_util
from plait.errors import PlaitError
from plait.ext.errors import hide
from plait.ext.trace import Value

__all__ = ["MissingName", "Report", "Request", "asked", "placeholder", "remember", "user_level"]

HERE = str(Path(__file__).parent)
hide(HERE)  # so that the user's line is never one of this package


class MissingName(PlaitError, AttributeError):
    """The error for the use of a JAX name that Plait lacks."""


class Request(NamedTuple):
    """A missing name, the place of the request, and whether the name was used there."""

    name: str
    place: str
    used: bool


class Report(NamedTuple):
    """Requests for missing names, in the order in which they came."""

    requests: tuple[Request, ...]

    @property
    def names(self) -> list[str]:
        """The names, sorted."""
        return sorted({r.name for r in self.requests})

    def __str__(self) -> str:
        lines = []
        for name in self.names:
            mine = [r for r in self.requests if r.name == name]
            how = "used" if any(r.used for r in mine) else "asked for"
            places = list(dict.fromkeys(r.place for r in mine))
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            lines.append(f"{name}  {how} at {places[0]}{more}")
        return "\n".join(lines) or "no name of JAX was missing"


_requests: list[Request] = []


def asked() -> tuple[Request, ...]:
    """Return the requests so far."""
    return tuple(_requests)


def user_level() -> int:
    """Return the `stacklevel` at which a warning of the caller names the user's line."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HERE):
        frame, level = frame.f_back, level + 1
    return level


def remember(name: str, used: bool) -> None:
    """Record a request for a missing name."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((HERE, "<frozen importlib")):
        frame = frame.f_back
    place = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "?"
    request = Request(name, place, used)
    if request not in _requests:
        _requests.append(request)


def missing(name: str, why: str = "") -> Exception:
    """Return the error for a name that is missing."""
    remember(name, True)
    return MissingName(
        f"Plait has nothing for {name}" + (f": {why}" if why else ""),
        fix="plait_jax.report() lists what was asked for; docs/libraries.md says what is left out",
    )


class Placeholder(ABCMeta):
    """The metaclass of placeholders for missing names: classes without instances of their own.

    A library may use a placeholder as libraries do at their import: inherit from it, read
    attributes, decorate functions with it, give it options by keywords, register something in it.
    """

    _missing: str
    _why: str

    def __call__(cls, *args: Any, **kwargs: object) -> Any:
        if "_missing" not in cls.__dict__:  # a class of the library that inherits a placeholder
            return super().__call__(*args, **kwargs)
        name, why = cls._missing, cls._why
        if name.rpartition(".")[2].startswith("register"):
            return _unchanged(*args, **kwargs)
        computes = any(map(_computed, tree_util.tree_leaves((args, kwargs))))
        if args and callable(args[0]) and not computes:
            return Decorated(args[0], name, why)
        if not args and kwargs and not computes:
            return cls  # options of a decorator
        raise missing(name, why)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return placeholder(f"{cls._missing}.{name}", cls._why)

    def __getitem__(cls, item: object) -> Any:
        return cls  # in annotations

    def __setitem__(cls, item: object, value: Any) -> None:
        """Accept an entry of a registry, which nothing reads."""

    def __or__(cls, other: Any) -> Any:
        return other

    __ror__ = __or__

    def __repr__(cls) -> str:
        return f"<missing {cls._missing}>"


def _refuse(cls: Placeholder, *args: object) -> Any:
    """Raise the error for the use of a placeholder as a value."""
    raise missing(cls._missing, cls._why)


_OPERATIONS = """
iter contains len enter exit neg abs add radd sub rsub mul rmul truediv rtruediv matmul rmatmul
pow rpow lt gt le ge float int index
"""
# Python would replace a missing __iter__ by calls of __getitem__ without end.
for _operation in _OPERATIONS.split():
    setattr(Placeholder, f"__{_operation}__", _refuse)


class Decorated:
    """A function to which a missing decorator was applied; calling it raises MissingName."""

    def __init__(self, fun: Callable[..., Any], name: str, why: str):
        functools.update_wrapper(self, fun, updated=())
        self._name, self._why = name, why

    def __call__(self, *args: Any, **kwargs: object) -> Any:
        raise missing(self._name, self._why)

    def __get__(self, owner: object, cls: type | None = None) -> "Decorated":
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("def", "register")):  # rules are attached, and never needed
            return _unchanged
        raise AttributeError(name)


def _unchanged(
    fun: Callable[..., Any] | None = None, *rest: Callable[..., Any] | str, **options: object
) -> Any:
    """Return a function unchanged, or a decorator that does."""
    return fun if callable(fun) and not rest and not options else _unchanged


def _computed(x: object) -> bool:
    """Return whether an argument is an array, so that something is to be computed with it."""
    return isinstance(x, Value | np.ndarray | np.generic | complex | float)


_made: dict[str, Placeholder] = {}


def placeholder(name: str, why: str = "") -> Placeholder:
    """Return the placeholder for a missing name, which raises when it is computed with."""
    remember(name, False)
    if name not in _made:
        names = {"_missing": name, "_why": why, "__module__": name.rpartition(".")[0]}
        _made[name] = Placeholder(name.rpartition(".")[2], (), names)
    return _made[name]
