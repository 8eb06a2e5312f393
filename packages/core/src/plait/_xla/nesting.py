"""Callbacks that call compiled functions, and the calls among these that would never return.

A callback occupies a thread of the runtime until it returns.  If it calls a program with callbacks
itself, that needs another thread, and there are 32.  On several devices it needs its turn, which
the program around it has.

Invariant: a call that would wait for itself raises an error; other calls are unchanged.
"""

from collections.abc import Callable
from threading import Lock, local
from typing import Any

from .._base.errors import PlaitError

MOST = 24
"""The most callbacks that wait at the same time for programs with callbacks."""


class _Callback:
    """A callback that runs; `waits` once it has called a program with callbacks."""

    __slots__ = ("divided", "waits")

    def __init__(self, divided: bool):
        self.divided, self.waits = divided, False


class _Here(local):
    callback: _Callback | None = None


_here = _Here()
_lock = Lock()
_waiting = [0]


def as_callback(f: Callable[..., Any], divided: bool) -> Callable[..., Any]:
    """Return `f` as the callback of a program, on several devices if `divided`."""

    def called(*xs: Any) -> Any:
        before, _here.callback = _here.callback, _Callback(divided)
        try:
            return f(*xs)
        finally:
            if _here.callback.waits:
                with _lock:
                    _waiting[0] -= 1
            _here.callback = before

    return called


def limited(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return `run`, of a program with callbacks, which refuses to be nested too deep."""

    def taken(bufs: list[Any], **how: Any) -> Any:
        callback = _here.callback
        if callback is not None and not callback.waits:
            with _lock:
                if _waiting[0] >= MOST:
                    raise PlaitError(
                        f"callbacks that call functions with callbacks are nested {MOST} deep, and "
                        "each occupies a thread of the runtime until it returns",
                        fix="write the recursion in Python within one callback",
                    )
                _waiting[0] += 1
                callback.waits = True
        return run(bufs, **how)

    return taken


def expect_turn() -> None:
    """Raise PlaitError in a callback of a program on several devices."""
    if _here.callback is not None and _here.callback.divided:
        raise PlaitError(
            "a callback of a program on several devices calls a function on several devices, which "
            "waits until that program has ended",
            fix="compute with numpy or on one device in the callback, or call the function after "
            "the program",
        )
