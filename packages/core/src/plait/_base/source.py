"""Where in the user's code something happened.

A location is an opaque token taken in a third of a microsecond (`here`) and made readable only
when somebody asks.  Frames of Plait and of installed plugins are hidden: `hide` says which.

Invariant: a frame is hidden only if its file lies below a hidden folder; a folder whose name
merely begins like one (`plait_user` beside `plait`) is the user's.
"""

import os
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

from . import jaxlib_api

__all__ = [
    "Frame", "Named", "Outline", "asked_by_us", "below_hidden", "here", "hidden", "hide",
    "of_standard_library", "outline", "user_frames", "user_line", "warn", "where_defined",
]  # fmt: skip


here: Callable[[], Any] = jaxlib_api.take_traceback


class Frame(NamedTuple):
    """One frame of user code: a file, a line and the name of the function."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ({self.function})"


class Named(NamedTuple):
    """A location in a part of a program that the user named (`named_scope`)."""

    name: str
    """Names, outermost first, with slashes between them."""
    at: Any

    @property
    def frames(self) -> Any:
        """The frames of the location itself."""
        return self.at.frames if self.at is not None else ()


_roots: list[str] = []
_STANDARD = os.path.join(os.path.dirname(os.__file__), "")
_INSTALLED = tuple(os.path.join(_STANDARD, name, "") for name in ("site-packages", "dist-packages"))
_told: set[tuple[type[Warning], str]] = set()
_shown: dict[Any, Any] = {}
"""What Python keeps of warnings, to show each once for a line."""


def hide(folder: str) -> None:
    """Hide frames of files below `folder` from now on: they are not the user's."""
    root = os.path.join(os.path.abspath(folder), "")
    if root not in _roots:
        _roots.append(root)


def below_hidden(file: str) -> bool:
    """Return whether code of this file is ours: of a hidden folder, or a text that we wrote."""
    return file.startswith("<plait ") or file.startswith(tuple(_roots))


def hidden(file: str) -> bool:
    """Return whether frames of this file are left out of messages."""
    return file.startswith("<") or file.startswith(tuple(_roots))


def of_standard_library(file: str) -> bool:
    """Return whether a file is one of Python's own library."""
    return file.startswith(_STANDARD) and not file.startswith(_INSTALLED)


def asked_by_us(frame: FrameType | None) -> bool:
    """Return whether code of ours asked, seen past Python's library.

    The file is that of the function's module: what `dataclass` writes for a class of ours has none.
    """
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<"):
            file = file if file.startswith("<plait ") else frame.f_globals.get("__file__") or file
        if not of_standard_library(file):
            return below_hidden(file)
        frame = frame.f_back
    return False


def user_frames(where: Any, limit: int = 5) -> list[Frame]:
    """Return up to `limit` frames of user code at the location `where`, innermost first.

    Python's own library calls us for the user (`contextlib` does, where a `with` begins): it is
    named only where nobody else called.
    """
    found: list[Frame] = []
    between: list[Frame] = []
    for f in where.frames if where is not None and limit > 0 else ():
        if hidden(f.file_name):
            continue
        frame = Frame(f.file_name, f.line_num, f.function_name)
        if not found and of_standard_library(f.file_name):
            between.append(frame)
            continue
        found.append(frame)
        if len(found) == limit:
            break
    return found or between[:limit]


def warn(text: str, kind: type[Warning] = UserWarning, once: bool = False) -> None:
    """Warn, at the user's line; with `once`, of the same thing once in a process."""
    if once:
        if (kind, text) in _told:
            return
        _told.add((kind, text))
    frames = user_frames(here(), 1)
    file, line = (frames[0].file, frames[0].line) if frames else ("<unknown>", 0)
    warnings.warn_explicit(text, kind, file, line, registry=_shown)


def user_line(where: Any) -> str:
    """Return `file:line` of the innermost frame of user code at the location `where`."""
    frames = user_frames(where, 1)
    return f"{frames[0].file}:{frames[0].line}" if frames else "<unknown>"


def where_defined(f: Any) -> str:
    """Return `name at file:line` of a function, or its name alone if it has no code."""
    o = outline(f)
    code = o.__code__
    return f"{o.__name__} at {code.co_filename}:{code.co_firstlineno}" if code else o.__name__


class Outline:
    """The name and the code of a function, for messages: it does not keep the function alive."""

    __slots__ = ("__name__", "__code__")


def outline(f: Any) -> "Outline | None":
    """Return the outline of a function, of the innermost one that decorators wrap."""
    if f is None or f.__class__ is Outline:
        return f
    while hasattr(f, "__wrapped__"):
        f = f.__wrapped__
    f = getattr(f, "func", f)
    o = Outline()
    o.__name__ = getattr(f, "__name__", None) or type(f).__name__
    o.__code__ = getattr(f, "__code__", None) or getattr(
        getattr(type(f), "__call__", None), "__code__", None
    )
    return o


hide(os.path.dirname(os.path.dirname(__file__)))  # all of core
