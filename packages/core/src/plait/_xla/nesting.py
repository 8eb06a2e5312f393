"""Callbacks that call compiled functions, and the calls among these that would never return.

A callback occupies a thread of the runtime until it returns.  If it calls a program with callbacks
itself, that needs another thread, and there are 32.  On several devices it needs its turn, which
the program around it has.  A callback may also wait for a thread of Python that makes such a call.
No record connects the two, so that thread waits until callbacks end, and raises an error if all of
them stand still.

Invariant: a call that would wait for itself raises an error; other calls are unchanged.
"""

import queue
import sys
import threading
from collections.abc import Callable
from threading import Condition, get_ident, local
from typing import Any

from .._base.errors import PlaitError

MOST = 24
"""The most callbacks that run while another program with callbacks begins."""
PATIENCE = 3.0
"""Seconds for which the callbacks stand still before a call that waits for them is refused."""


class _Callback:
    """A callback that runs; `waits` once it has called a program with callbacks."""

    __slots__ = ("divided", "thread", "waits")

    def __init__(self, divided: bool):
        self.divided, self.waits, self.thread = divided, False, get_ident()


class _Here(local):
    callback: _Callback | None = None


_here = _Here()
_changed = Condition()
"""Guards the three below; notified when a callback ends."""
_running: set[_Callback] = set()
_waiting = [0]
_ended = [0]


def as_callback(f: Callable[..., Any], divided: bool) -> Callable[..., Any]:
    """Return `f` as the callback of a program, on several devices if `divided`."""

    def called(*xs: Any) -> Any:
        before = _here.callback
        callback = _here.callback = _Callback(divided)
        with _changed:
            _running.add(callback)
        try:
            return f(*xs)
        finally:
            with _changed:
                _running.discard(callback)
                _waiting[0] -= callback.waits
                _ended[0] += 1
                _changed.notify_all()
            _here.callback = before

    return called


def limited(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return `run`, of a program with callbacks, which refuses to be nested too deep."""

    def taken(bufs: list[Any], **how: object) -> Any:
        callback = _here.callback
        if callback is None:
            if len(_running) >= MOST and not _some_end(lambda: len(_running) >= MOST):
                raise _too_deep()
        elif not callback.waits:
            with _changed:
                if _waiting[0] >= MOST:
                    raise _too_deep()
                _waiting[0] += 1
                callback.waits = True
        return run(bufs, **how)

    return taken


def _too_deep() -> PlaitError:
    return PlaitError(
        f"callbacks that call functions with callbacks are nested {MOST} deep, and "
        "each occupies a thread of the runtime until it returns",
        fix="write the recursion in Python within one callback",
    )


def expect_turn() -> None:
    """Raise PlaitError if a call on several devices would wait for a callback that waits for it."""
    callback = _here.callback
    if callback is not None and callback.divided:
        raise _no_turn("calls a function on several devices")
    if _running and callback is None and not _some_end(_divided_run):
        raise _no_turn("waits for a thread that calls a function on several devices")


def _no_turn(does: str) -> PlaitError:
    return PlaitError(
        f"a callback of a program on several devices {does}, which waits until that program has "
        "ended",
        fix="compute with numpy or on one device in the callback, or call the function after "
        "the program",
    )


def _divided_run() -> bool:
    return any(c.divided for c in _running)


def _some_end(full: Callable[[], bool]) -> bool:
    """Wait until not `full()`; return False if the callbacks stand still, each in a wait."""
    with _changed:
        while full():
            before = _ended[0], _stand()
            _changed.wait(PATIENCE)
            if before[1] is not None and before == (_ended[0], _stand()):
                return False
    return True


_WAITS = frozenset({threading.__file__, queue.__file__})


def _stand() -> dict | None:
    """Return where each callback waits for another thread; None if one of them does not."""
    frames = sys._current_frames()
    where = {}
    for callback in _running:
        frame = frames.get(callback.thread)
        if frame is not None and not (callback.waits or frame.f_code.co_filename in _WAITS):
            return None
        where[callback.thread] = frame and (id(frame), frame.f_lasti)
    return where
