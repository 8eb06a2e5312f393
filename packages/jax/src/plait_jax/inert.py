"""Names of JAX behind which nothing has to happen: nothing is lost if nothing does.

What is recorded for monitoring has no listeners; annotations of profiles annotate none; frames of
libraries that ask to be hidden from tracebacks stay visible.

Invariant: nothing here changes what a program computes.
"""

import functools
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from plait import lax

from .finder import VERSION

__all__ = [
    "EXCLUDED",
    "VERSION_INFO",
    "TypedNdArray",
    "annotation",
    "debug_info",
    "include_frame",
    "nothing",
    "register_exclusion",
    "scan",
    "unchanged",
]

VERSION_INFO = tuple(map(int, VERSION.split(".")))

EXCLUDED: list[str] = []
"""Where JAX keeps the paths that its tracebacks leave out."""


class TypedNdArray:
    """For `isinstance` only: numpy arrays inside programs are `plait.Array` here."""


def nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing."""


def debug_info(*args: Any, **kwargs: Any) -> None:
    """Return what JAX keeps beside functions for its messages: nothing here."""


def register_exclusion(path: str) -> None:
    """Note a path whose frames tracebacks are to leave out."""
    EXCLUDED.append(path)


def include_frame(frame: Any) -> bool:
    """Return whether tracebacks show a frame."""
    return True


def unchanged(fun: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorator, with or without options, that returns the function as it is."""
    return fun if fun is not None else lambda f: f


@contextmanager
def annotation(*args: Any, **kwargs: Any):
    """Mark what a profile would show."""
    yield


@functools.wraps(lax.scan)
def scan(*args: Any, _split_transpose: bool = False, **options: Any) -> tuple[Any, Any]:
    # how its transpose may be divided is nothing that it could be told
    return lax.scan(*args, **options)
