"""Names of JAX that need no implementation: doing nothing loses nothing.

Recordings for monitoring have no listeners, annotations of profiles mark nothing, and frames that
libraries exclude from tracebacks stay visible.

Invariant: nothing here changes the result of a program.
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
    "EXCLUDED", "VERSION_INFO", "TypedNdArray", "TYPES_OF_VALUES", "annotation", "debug_info",
    "global_state", "include_frame", "nothing", "register_exclusion", "scan", "unchanged",
]  # fmt: skip

VERSION_INFO = tuple(map(int, VERSION.split(".")))

EXCLUDED: list[str] = []
"""The list in which JAX keeps the paths that its tracebacks leave out."""


TYPES_OF_VALUES: dict[type, Any] = {np.ndarray: np.ndarray}
"""The dict in which libraries register value classes; here any class with `__array__` is one."""

global_state = SimpleNamespace(
    client=None, service=None, process_id=0, num_processes=1, preemption_sync_manager=None
)
"""JAX's own connection of processes: none, even if processes are connected in another way."""


class TypedNdArray:
    """A placeholder for `isinstance`: numpy arrays inside programs are `plait.Array` here."""


def nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing."""


def debug_info(*args: Any, **kwargs: Any) -> None:
    """Return nothing in place of the information that JAX keeps about functions for messages."""


def register_exclusion(path: str) -> None:
    """Record a path whose frames tracebacks should leave out."""
    EXCLUDED.append(path)


def include_frame(frame: Any) -> bool:
    """Return whether tracebacks show a frame."""
    return True


def unchanged(fun: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Return the function unchanged; works as a decorator with or without options."""
    return fun if fun is not None else lambda f: f


@contextmanager
def annotation(*args: Any, **kwargs: Any):
    """Enter a block that a profile would mark; do nothing."""
    yield


@functools.wraps(lax.scan)
def scan(*args: Any, _split_transpose: bool = False, **options: Any) -> tuple[Any, Any]:
    # The option is ignored: Plait's scan has no choice of how its transpose is divided.
    return lax.scan(*args, **options)
