"""JAX names that Plait lacks: placeholders, and a record of requests for them.

Invariant: a missing name does not prevent the import of a library that mentions it.  Using it
raises MissingName, and each request is recorded with its source line.
"""

import sys
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from plait.errors import PlaitError
from plait.ext.errors import hide

__all__ = ["MissingName", "Report", "Request", "asked", "placeholder", "remember"]

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


class Placeholder(type):
    """The metaclass of placeholders for missing names: classes without instances."""

    _missing: str
    _why: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if "_missing" not in cls.__dict__:  # a class of the library that inherits a placeholder
            return super().__call__(*args, **kwargs)
        raise missing(cls._missing, cls._why)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise missing(f"{cls._missing}.{name}", cls._why)

    def __instancecheck__(cls, instance: Any) -> bool:
        return False

    def __getitem__(cls, item: Any) -> Any:
        return cls  # in annotations

    def __iter__(cls) -> Any:
        # Without this method, Python would call __getitem__ with 0, 1, 2, ... without end.
        raise missing(cls._missing, cls._why)

    def __contains__(cls, item: Any) -> bool:
        raise missing(cls._missing, cls._why)

    def __setitem__(cls, item: Any, value: Any) -> None:
        raise missing(cls._missing, cls._why)

    def __or__(cls, other: Any) -> Any:
        return other

    __ror__ = __or__

    def __repr__(cls) -> str:
        return f"<missing {cls._missing}>"


def placeholder(name: str, why: str = "") -> Placeholder:
    """Return a placeholder for a missing name, which raises when it is used."""
    remember(name, False)
    names = {"_missing": name, "_why": why, "__module__": name.rpartition(".")[0]}
    return Placeholder(name.rpartition(".")[2], (), names)
