"""How long the compiler may take: the full tier, the fast one, or the fast one now and the full one
later, compiled by a thread.

The fast tier leaves out most of what LLVM does for loops, and the emitters whose code takes it
longest: compiling takes a third of the time or less, and programs take one to three times as long.

Invariant: what a tier changes is time, and the rounding of results; a full compilation that fails
in the thread gives a warning and nothing else.  The thread is gone before the interpreter is: it is
waited for at exit, since native code that compiles while the process is torn down would crash.
"""

import atexit
import threading
import weakref
from collections import deque
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from .._base.config import config
from .._base.errors import ArgumentError
from .._base.source import warn
from .._core.buffers import platform
from .._core.ir import Program
from .._types.avals import COMPLEX, FLOATING, OPAQUE

TIERS = ("full", "fast", "both")


class Options(NamedTuple):
    """What is asked of the compiler: names and values of its flags, and the tier; None: that of the
    setting."""

    flags: tuple[tuple[str, Any], ...] = ()
    tier: str | None = None

    def resolved(self) -> "Options":
        """The same with a tier."""
        return self if self.tier is not None else Options(self.flags, config.tier)

    @property
    def tier_now(self) -> str:
        """The tier; that of the setting, if none was asked for."""
        return str(self.resolved().tier)

    def single(self) -> "Options":
        """The same with a tier, of which there is one: "both" is the full one."""
        asked = self.resolved()
        return asked.at("full") if asked.tier == "both" else asked

    def at(self, tier: str) -> "Options":
        """The same flags in another tier."""
        return Options(self.flags, tier)


USUAL = Options()
FAST = Options((), "fast")


def expect_tier(tier: Any) -> str | None:
    """Return the tier that was given, or None; ArgumentError if there is none of this name."""
    if tier is not None and tier not in TIERS:
        raise ArgumentError(
            f"there is no tier {tier!r} of the compiler",
            fix='write "full", "fast", "both", or leave it out for that of plait.config.tier',
        )
    return tier


# ---- single operations -----------------------------------------------------------------------

_MOVING = """
bitcast broadcast_in_dim concatenate convert dynamic_slice dynamic_update_slice gather iota pad
reshape rev scatter select slice squeeze transpose
"""
_ROUNDING = """
abs add and ceil div eq floor ge gt is_finite le lt maximum minimum mul ne neg not or round_away
round_even shift_left shift_right_arithmetic shift_right_logical sign sqrt sub xor
"""
_MOVED, _ROUNDED = frozenset(_MOVING.split()), frozenset(_ROUNDING.split())
_SMALL = 4096


def of_operation(program: Program) -> Options:
    """Return how to compile an operation outside of jit: fast, if that changes no bit of it.

    So it is where elements are moved and at most once rounded, as IEEE 754 says; other functions
    (tanh) are computed otherwise in loops of vectors, and two roundings may be fused to one.
    Beyond some thousands of elements, running them takes longer than what was saved.
    """
    if platform() != "cpu":
        return USUAL
    rounded = 0
    for e in program.eqns:
        space, _, name = e.prim.name.partition(".")
        if space != "core" or name not in _MOVED | _ROUNDED:
            return USUAL
        rounded += name in _ROUNDED and e.outputs[0].aval.category == FLOATING
    if rounded > 1:
        return USUAL
    for a in (
        *program.in_avals,
        *program.out_avals,
        *(v.aval for e in program.eqns for v in e.outputs),
    ):
        if a.category in (COMPLEX, OPAQUE) or not all(isinstance(d, int) for d in a.shape):
            return USUAL
        if prod(a.shape) > _SMALL:
            return USUAL
    return FAST


# ---- from one tier to the next ---------------------------------------------------------------


class Swap:
    """The wait for a better tier of a program that runs already.

    Whoever has put an executable into a table says afterwards how the table forgets it: in this
    order nobody is left with it for ever.
    """

    __slots__ = ("_lock", "_waiting", "_done")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: weakref.WeakSet[Callable[[], None]] = weakref.WeakSet()
        self._done = False

    def tell(self, forget: Callable[[], None]) -> None:
        """Call `forget()` when the better tier is there: now, if it is.  It is held weakly."""
        with self._lock:
            if not self._done:
                self._waiting.add(forget)
                return
        forget()

    def finish(self) -> None:
        """Call all that wait."""
        with self._lock:
            self._done = True
            waiting = list(self._waiting)
            self._waiting.clear()
        for forget in waiting:
            forget()


# ---- the thread ------------------------------------------------------------------------------

_lock = threading.Lock()
_jobs: deque[Callable[[], None]] = deque()
_thread: threading.Thread | None = None
_closing = False


def later(job: Callable[[], None]) -> None:
    """Do a job in the thread, after those that were given before; at exit it is dropped."""
    global _thread
    with _lock:
        if _closing:
            return
        _jobs.append(job)
        if _thread is None or not _thread.is_alive():  # in a forked process it is not
            _thread = threading.Thread(target=_work, name="plait full tier", daemon=True)
            try:
                _thread.start()
            except RuntimeError:  # the interpreter is about to exit
                _thread = None
                _jobs.clear()


def wait() -> None:
    """Wait until the thread has nothing to do."""
    while True:
        thread = _thread
        if thread is None or not thread.is_alive():
            return
        thread.join()


def _work() -> None:
    global _thread
    while True:
        with _lock:
            if not _jobs:
                _thread = None
                return
            job = _jobs.popleft()
        try:
            job()
        except Exception as e:
            _tell(e)


def _tell(error: Exception) -> None:
    """Warn of what the thread could not do, once of the same."""
    text = (str(error).splitlines() or [type(error).__name__])[0]
    said = f"the full tier could not be compiled, and the fast one stays: {text}"
    try:
        warn(said, RuntimeWarning, once=True)
    except RuntimeWarning as e:  # warnings are errors here: Python shows it as it does in threads
        shown = (type(e), e, e.__traceback__, threading.current_thread())
        threading.excepthook(threading.ExceptHookArgs(shown))


@atexit.register
def _close() -> None:
    """Drop what was not begun, and wait for the compilation that was."""
    global _closing
    with _lock:
        _closing = True
        _jobs.clear()
    wait()
