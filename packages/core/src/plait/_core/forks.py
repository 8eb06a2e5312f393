"""Children of a fork: they read arrays and trace, and are refused whatever needs the runtime.

A child has a copy of the memory of its parent and none of its threads.  The compiler and larger
programs wait for these threads, so a child that computes would hang without a word.

Invariant: calls do not look whether this is a child.  A child begins by emptying the tables of
executables and devices; filling them again is refused.
"""

import os
import warnings
from collections.abc import Callable
from threading import RLock

from .._base import code_memory, jaxlib_api
from .._base.config import config
from .._base.errors import RuntimeFailure

_emptied: list[Callable[[], None]] = []
_is_child = _is_watched = _is_told = False


def empty_in_child(forget: Callable[[], None]) -> Callable[[], None]:
    """Let `forget()` be called in children, before anything else runs there; return it."""
    _emptied.append(forget)
    return forget


def watch() -> None:
    """Watch forks of this process from now on: the runtime has started its threads."""
    global _is_watched
    if not _is_watched and hasattr(os, "register_at_fork"):
        _is_watched = True
        os.register_at_fork(before=_warn, after_in_child=_enter)


def expect_runtime() -> None:
    """Raise RuntimeFailure in a child of a process whose runtime had started."""
    if _is_child:
        raise RuntimeFailure(
            "this process was forked after Plait had started its threads, which exist in the "
            "parent only: it can read arrays, and cannot compute",
            fix='start processes that compute with multiprocessing.get_context("spawn"), or fork '
            "before the first array is made",
        )


def _warn() -> None:
    global _is_told
    if _is_told or _is_child:
        return
    _is_told = True
    warnings.warn(
        "this process is forked, and Plait has started its threads, which the child will not have: "
        'it must not compute\n  fix: use multiprocessing.get_context("spawn") for processes that '
        "compute",
        RuntimeWarning,
        stacklevel=2,
    )


def _enter() -> None:
    global _is_child
    _is_child = True
    jaxlib_api.lock = RLock()  # another thread of the parent may hold the old one
    for forget in _emptied:
        forget()
    code_memory.forget_all()
    config.notify()
