"""Threads of the library that computes LAPACK's functions, while programs decompose stacks.

The runtime divides a stack of matrices among its threads.  The library, OpenBLAS, would divide each
matrix once more.  Its threads then wait for each other and for the runtime's, without rest: QR
decompositions of 128 matrices of size 128 take five times as long on two processors, and much
longer beside other processes.  So the library computes on the thread that calls it while a program
with stacks runs.

Invariant: when no such program runs, the library has the number of threads that it had before.
"""

import ctypes
import glob
import math
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import Any

from .._base import jaxlib_api
from .._base.jaxlib_api import LAPACK, IrOperation
from . import mlir

SMALLEST = 32
"""The rows of the smallest matrices that the library divides."""
LEAST = 1e6
"""Operations of a program for which it pays to set the number of threads."""


def with_stacks(run: Callable, code: bytes, done: bool) -> Callable:
    """Return `run` of a module for one CPU, which takes threads from the library if it pays.

    Args:
      run: the function of buffers.
      code: the module.
      done: whether `run` returns only when the program is complete.
    """
    if _library() is None or not _is_of_stacks(code):
        return run

    def finished(bufs: list[Any]) -> Any:
        _begin()
        try:
            return run(bufs)
        finally:
            _end()

    def started(bufs: list[Any]) -> Any:
        _begin()
        try:
            results = run(bufs, with_tokens=True)
            token = results.consume_token()
        except BaseException:
            _end()
            raise
        _end_after(token)
        return results

    return finished if done else started


# ---- programs in flight --------------------------------------------------------------------

_lock = Lock()
_running = 0
_usual = 1
"""The number of threads that the library has when no program with stacks runs."""


def _begin() -> None:
    global _running, _usual
    library = _library()
    with _lock:
        if not _running:
            _usual = library.get()
            library.set(1)
        _running += 1


def _end() -> None:
    global _running
    with _lock:
        _running -= 1
        if not _running:
            _library().set(_usual)


@cache
def _waiter() -> ThreadPoolExecutor:
    """Return the thread that waits for runs; the process waits for it at exit.

    A thread that is in native code then could not return to Python.
    """
    return ThreadPoolExecutor(1, "plait stacks")


def _end_after(token: object) -> None:
    """Count a run as ended when its token is there."""
    try:
        _waiter().submit(_wait, token)
    except RuntimeError:  # the interpreter is about to exit
        _wait(token)


def _wait(token: Any) -> None:
    try:
        token.block_until_ready()
    except jaxlib_api.RuntimeFailure:  # reading the results raises it
        pass
    _end()


# ---- the library ---------------------------------------------------------------------------


class _Library:
    """`get()` and `set(number)` of threads."""

    def __init__(self, loaded: ctypes.CDLL, prefix: str, suffix: str) -> None:
        self.get = getattr(loaded, f"{prefix}openblas_get_num_threads{suffix}")
        self.set = getattr(loaded, f"{prefix}openblas_set_num_threads{suffix}")


@cache
def _library() -> Any:
    """Return scipy's OpenBLAS, which the runtime calls; None if scipy has another library.

    Returns None too if there is one processor.
    """
    scipy = sys.modules.get("scipy")
    if scipy is None or jaxlib_api.processors() == 1:
        return None
    folder = os.path.dirname(scipy.__file__ or "")
    for path in glob.glob(os.path.join(folder, "..", "scipy.libs", "*openblas*")):
        try:
            loaded = ctypes.CDLL(path)
        except OSError:
            continue
        for prefix in ("scipy_", ""):
            for suffix in ("", "64_"):
                if hasattr(loaded, f"{prefix}openblas_set_num_threads{suffix}"):
                    return _Library(loaded, prefix, suffix)
    return None


# ---- what a module computes ----------------------------------------------------------------


def _is_of_stacks(code: bytes) -> bool:
    """Return whether a module does most work of LAPACK on matrices that are enough for all
    processors."""
    m, work = mlir.bindings().ir, 0.0

    def look(op: IrOperation) -> Any:
        nonlocal work
        if op.name == "stablehlo.custom_call":
            work += _work(op)
        return m.WalkResult.ADVANCE

    with jaxlib_api.lock:
        mlir.parse(code).operation.walk(look)
    return work > LEAST


def _work(call: IrOperation) -> float:
    """Return the work of a kernel, as a negative number if the library should divide it."""
    named = mlir.word(call, "call_target_name")
    if not named.startswith(LAPACK) or not len(call.operands):
        return 0.0
    t: Any = call.operands[0].type
    if not t.has_static_shape or t.rank < 2 or min(t.shape[-2:]) < SMALLEST:
        return 0.0
    count = math.prod(t.shape[:-2])
    each = float(math.prod(t.shape[-2:])) * min(t.shape[-2:])
    return count * each if count >= jaxlib_api.processors() else -count * each
