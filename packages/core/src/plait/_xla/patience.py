"""A line in the log about a compilation that takes long.

Invariant: one thread looks, twice a second while something is compiled, and sleeps otherwise.
"""

import logging
import threading
import time
from itertools import count
from typing import Any, NamedTuple

from .._base.config import config
from .._base.source import here, user_line

__all__ = ["waiting_for"]

_log = logging.getLogger("plait")
_PAUSE = 0.5
_numbers = count()
_under_way: dict[int, "_Compilation"] = {}
_some = threading.Event()
_lock = threading.Lock()
_thread: threading.Thread | None = None


class _Compilation(NamedTuple):
    """A compilation: its beginning, its program, and the location of the call."""

    began: float
    name: str
    equations: int
    where: Any


class waiting_for:  # noqa: N801 - used as a function is
    """A context manager around a compilation, which is logged if it takes longer than the setting
    `compile_notice` says."""

    __slots__ = ("number", "what")

    def __init__(self, name: str, equations: int):
        self.what = name, equations

    def __enter__(self) -> None:
        self.number = -1
        if config.compile_notice:
            self.number = next(_numbers)
            _under_way[self.number] = _Compilation(time.monotonic(), *self.what, here())
            _look()

    def __exit__(self, *error: object) -> None:
        _under_way.pop(self.number, None)


def _look() -> None:
    """Wake the thread, or start it: the first time, and in a child of a process that had one."""
    global _thread
    _some.set()
    if _thread is None or not _thread.is_alive():
        with _lock:
            if _thread is None or not _thread.is_alive():
                _thread = threading.Thread(target=_watch, name="plait patience", daemon=True)
                _thread.start()


def _watch() -> None:
    told: set[int] = set()
    while True:
        _some.wait()
        time.sleep(min(_PAUSE, config.compile_notice or _PAUSE))
        now = time.monotonic()
        for number, c in list(_under_way.items()):
            if number not in told and 0 < config.compile_notice <= now - c.began:
                told.add(number)
                _log.warning("%s", _said(c, now - c.began))
        if not _under_way:
            told.clear()
            _some.clear()
            if _under_way:  # one began in between
                _some.set()


def _said(c: _Compilation, seconds: float) -> str:
    return (
        f"{c.name}, of {c.equations} equations, called at {user_line(c.where)}, has been compiled "
        f"for {seconds:.0f} s\n"
        '  jit(f, tier="fast") compiles in a third of the time; plait.reroll(f) or lax.scan make '
        "one layer of equal ones; plait.config.compile_notice = 0 turns this off"
    )
