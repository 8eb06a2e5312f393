"""Names of JAX behind which nothing has to happen: nothing is lost if nothing does.

What is recorded for monitoring has no listeners; annotations of profiles annotate none; frames of
libraries that ask to be hidden from tracebacks stay visible.

Invariant: nothing here changes what a program computes.
"""

import functools
from collections.abc import Callable
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from plait import lax

from .finder import VERSION

__all__ = [
    "EXCLUDED",
    "VERSION_INFO",
    "TypedNdArray",
    "TYPES_OF_VALUES",
    "annotation",
    "debug_info",
    "global_state",
    "include_frame",
    "nothing",
    "register_exclusion",
    "scan",
    "unchanged",
]

VERSION_INFO = tuple(map(int, VERSION.split(".")))

EXCLUDED: list[str] = []
"""Where JAX keeps the paths that its tracebacks leave out."""


TYPES_OF_VALUES: dict[type, Any] = {np.ndarray: np.ndarray}
"""Where libraries add classes of values to JAX: what has `__array__` is a value here anyway."""

global_state = SimpleNamespace(
    client=None, service=None, process_id=0, num_processes=1, preemption_sync_manager=None
)
"""JAX's own connection of processes: there is none, whoever else connects them."""


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
