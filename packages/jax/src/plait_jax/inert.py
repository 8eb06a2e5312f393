"""Names of JAX that need no implementation: doing nothing loses nothing.

Recordings for monitoring have no listeners, and frames that libraries exclude from tracebacks stay
visible.

Invariant: nothing here changes the result of a program.
"""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from plait import lax

from .finder import VERSION

__all__ = [
    "EXCLUDED", "VERSION_INFO", "TypedNdArray", "TYPES_OF_VALUES", "debug_info", "include_frame",
    "nothing", "register_exclusion", "scan", "scheduling_group", "set_xla_metadata", "unchanged",
]  # fmt: skip

VERSION_INFO = tuple(map(int, VERSION.split(".")))

EXCLUDED: list[str] = []
"""The list in which JAX keeps the paths that its tracebacks leave out."""


TYPES_OF_VALUES: dict[type, Any] = {np.ndarray: np.ndarray}
"""The dict in which libraries register value classes; here any class with `__array__` is one."""


class TypedNdArray:
    """A placeholder for `isinstance`: numpy arrays inside programs are `plait.Array` here."""


def nothing(*args: object, **kwargs: object) -> None:
    """Do nothing."""


def debug_info(*args: object, **kwargs: object) -> None:
    """Return nothing in place of the information that JAX keeps about functions for messages."""


def register_exclusion(path: str) -> None:
    """Record a path whose frames tracebacks should leave out."""
    EXCLUDED.append(path)


def include_frame(frame: object) -> bool:
    """Return whether tracebacks show a frame."""
    return True


def unchanged(fun: Callable[..., Any] | None = None, **options: object) -> Any:
    """Return the function unchanged; works as a decorator with or without options."""
    return fun if fun is not None else lambda f: f


def scheduling_group(name: str) -> Callable[[Any], Any]:
    """Return a decorator that changes nothing: groups are hints to schedulers of accelerators."""
    return unchanged()


def set_xla_metadata(x: object = None, **metadata: object) -> Any:
    """Return `x`, or a block if it is left out.  Metadata are hints, which are not passed on."""
    return contextlib.nullcontext() if x is None else x


@functools.wraps(lax.scan)
def scan(*args: Any, _split_transpose: bool = False, **options: Any) -> tuple[Any, Any]:
    # The option is ignored: Plait's scan has no choice of how its transpose is divided.
    return lax.scan(*args, **options)
