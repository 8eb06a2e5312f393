"""Main program of the process that reads one file for another process (`isolation`).

Invariant: the answer is an artifact that this process verified and wrote itself, operation by
operation, or an error message.  This process imports no classes of users and runs none of their
code.  Of the trees it verifies only that they have as many leaves as there are types.
"""

import json
import math
import os
import sys
from functools import partial
from typing import Any

from plait.ext.errors import PlaitError
from plait.ext.tree import flatten

from . import jax_artifacts, loading, portable, structure
from .artifact import Exported
from .errors import AGAIN, expecting
from .isolation import READY

try:
    import resource
except ImportError:  # on Windows the parent's clock is the only limit
    resource = None

_READERS = {"deserialize": partial(loading.read, elsewhere=True), "import_jax": jax_artifacts.read}


def serve() -> None:
    """Answer one request: read it from standard input, and write to standard output."""
    out = os.dup(1)
    os.dup2(2, 1)  # keeps what libraries print out of the answer
    _write(out, READY)
    request, _, blob = sys.stdin.buffer.read().partition(b"\n")
    asked = json.loads(request)
    hold_to(asked["seconds"], asked["memory"])
    structure.take_any_class()
    _write(out, answered(asked, blob))
    os._exit(0)  # skips the teardown of Python and of libraries


def answered(asked: dict[str, Any], blob: bytes) -> bytes:
    """Return the answer for some bytes: a line of JSON, and then the artifact written anew."""
    try:
        made = _answer(blob, asked["reader"], {*asked["allowed"]})
        head = {"bytes": len(made)}
    except PlaitError as e:
        full = isinstance(e.__cause__, MemoryError)
        what, fix = (_FULL, _MORE) if full else (e.what, e.fix or AGAIN)
        made, head = b"", {"what": what, "fix": fix}
    return json.dumps(head).encode() + b"\n" + made


_FULL = "reading the artifact takes more memory than is allowed"
_MORE = "do not use it, or allow more: isolated=plait.export.Limits(memory=...)"


def _answer(blob: bytes, reader: str, allowed: set[str]) -> bytes:
    with expecting("the artifact is damaged"):
        found = _READERS[reader](blob, allowed)
        chain = [found]
        while chain[-1].has_vjp():
            chain.append(chain[-1].vjp())
        order = len(chain) - 1
        again = None
        for each in reversed(chain):
            again = _written(each, again)
        assert again is not None
        return again.serialize(order)


def _written(of: Exported, derivative: Exported | None) -> Exported:
    """Return the same function with flat trees and with its module written by this process."""
    written, calls = portable.rewritten(of.mlir_module_serialized, of.division is not None)
    args, results = (0,) * len(of.in_avals), (0,) * len(of.out_avals)
    return Exported(
        of.fun_name, of.in_avals, flatten((args, {}))[1], of.out_avals, flatten(results)[1],
        of.platforms, of.scope, written, calls, of.by_argument,
        None if derivative is None else lambda: derivative, of.linear_from, of.custom_rules,
        of.held, of.division,
    )  # fmt: skip


def _write(out: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(out, view) :]


def hold_to(seconds: float, memory: int) -> None:
    """Have the system end this process after `seconds` of processor time or `memory` more bytes."""
    if resource is None:
        return
    _lower(resource.RLIMIT_CORE, 0)
    used = resource.getrusage(resource.RUSAGE_SELF)
    _lower(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + seconds) + 1)
    report = "/proc/self/statm"
    if os.path.exists(report):  # other systems do not report the mapped memory
        with open(report) as pages:
            mapped = int(pages.read().split()[0]) * resource.getpagesize()
        _lower(resource.RLIMIT_AS, mapped + memory)


def _lower(what: int, most: int) -> None:
    held: Any = resource
    _, hard = held.getrlimit(what)
    most = most if hard == held.RLIM_INFINITY else min(most, hard)
    held.setrlimit(what, (most, most))
