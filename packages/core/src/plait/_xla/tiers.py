"""Compilation tiers: the full tier, the fast tier, or both (the fast one first, and the full one
later, on a thread).

The fast tier leaves out most of LLVM's loop passes, and the emitters whose code takes longest to
compile.  Equal layers are rolled into scans (`_simplify/rerolling.py`).  Compiling takes a third of
the time or less, and programs take one to three times as long.

Invariant: a tier changes only time and the rounding of results.  A full compilation that fails on
the thread gives a warning and nothing else.  The process waits for the thread at exit: native code
that compiles while the process is torn down would crash.
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
    """Options of one compilation: names and values of compiler flags; the tier; and whether the
    executable carries source lines.  None is what the setting says."""

    flags: tuple[tuple[str, Any], ...] = ()
    tier: str | None = None
    lines: bool | None = None

    def resolved(self) -> "Options":
        """Return the same options with what settings say filled in."""
        if self.tier is not None and self.lines is not None:
            return self
        lines = config.source_lines if self.lines is None else self.lines
        return Options(self.flags, self.tier or config.tier, lines)

    @property
    def tier_now(self) -> str:
        """The tier, or that of the setting if none is given."""
        return str(self.resolved().tier)

    @property
    def lines_now(self) -> bool:
        """True if the executable carries source lines."""
        return bool(self.resolved().lines)

    def single(self) -> "Options":
        """Return the same options with one tier: "both" becomes the full one."""
        asked = self.resolved()
        return asked.at("full") if asked.tier == "both" else asked

    def at(self, tier: str) -> "Options":
        """Return the same flags with another tier."""
        return Options(self.flags, tier, self.lines)


USUAL = Options()
_OF_OPERATION = Options((), None, False)  # one serves the calls of many lines
FAST = Options((), "fast", False)


def expect_tier(tier: str | None) -> str | None:
    """Return the tier, which may be None; raise ArgumentError if no tier has this name."""
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
    """Return the options for an operation outside of jit: fast, if that changes no bit of it.

    This holds for operations that move elements and round at most once, as IEEE 754 defines.  Other
    functions (tanh) are computed differently in vector loops, and two roundings may be fused.
    Beyond some thousands of elements, running takes longer than compiling saved.
    """
    if platform() != "cpu":
        return _OF_OPERATION
    rounded = 0
    for e in program.eqns:
        space, _, name = e.prim.name.partition(".")
        if space != "core" or name not in _MOVED | _ROUNDED:
            return _OF_OPERATION
        rounded += name in _ROUNDED and e.outputs[0].aval.category == FLOATING
    if rounded > 1:
        return _OF_OPERATION
    for a in (
        *program.in_avals,
        *program.out_avals,
        *(v.aval for e in program.eqns for v in e.outputs),
    ):
        if a.category in (COMPLEX, OPAQUE) or not all(isinstance(d, int) for d in a.shape):
            return _OF_OPERATION
        if prod(a.shape) > _SMALL:
            return _OF_OPERATION
    return FAST


# ---- from one tier to the next ---------------------------------------------------------------


class Swap:
    """The wait for a better tier of a program that runs already.

    A caller first puts its executable into a table, and then calls `tell` with the function that
    removes it.  In this order, no table keeps the executable of the fast tier forever.
    """

    __slots__ = ("_lock", "_waiting", "_done")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: weakref.WeakSet[Callable[[], None]] = weakref.WeakSet()
        self._done = False

    def tell(self, forget: Callable[[], None]) -> None:
        """Call `forget()` when the better tier is ready, at once if it is.  It is held weakly."""
        with self._lock:
            if not self._done:
                self._waiting.add(forget)
                return
        forget()

    def finish(self) -> None:
        """Call all functions that wait."""
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
    """Run a job on the thread, after the earlier ones; at exit, jobs not begun are dropped."""
    global _thread
    with _lock:
        if _closing:
            return
        _jobs.append(job)
        if _thread is None or not _thread.is_alive():  # a forked process has no such thread
            _thread = threading.Thread(target=_work, name="plait full tier", daemon=True)
            try:
                _thread.start()
            except RuntimeError:  # the interpreter is about to exit
                _thread = None
                _jobs.clear()


def wait() -> None:
    """Wait until the thread has no jobs left."""
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
    """Warn of a job that failed on the thread, once for each text."""
    text = (str(error).splitlines() or [type(error).__name__])[0]
    said = f"the full tier could not be compiled, and the fast one stays: {text}"
    try:
        warn(said, RuntimeWarning, once=True)
    except RuntimeWarning as e:  # warnings are errors here; Python shows errors of threads so
        shown = (type(e), e, e.__traceback__, threading.current_thread())
        threading.excepthook(threading.ExceptHookArgs(shown))


@atexit.register
def _close() -> None:
    """Drop the jobs that have not begun, and wait for the one that has."""
    global _closing
    with _lock:
        _closing = True
        _jobs.clear()
    wait()
