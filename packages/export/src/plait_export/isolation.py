"""Reading in a process of its own: what hostile bytes do to the reader is done to that alone.

jaxlib's reader of StableHLO trusts what it reads: some changes of a module, with checksums that are
right, end the process or never come to an end.  A child process, with limits of time and memory,
reads and verifies the file (`isolated_reader`), and writes it anew, out of what it understood.
Only what the child wrote is read here.

Invariant: of the bytes that were given nothing reaches jaxlib in this process; the outcome is an
artifact that the child verified and wrote, or an ArtifactError, within the limits.
"""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from threading import Timer
from typing import Any, NamedTuple

from plait.ext.errors import ArgumentError

from .errors import ArtifactError


class Limits(NamedTuple):
    """What reading in a process of its own may take.

    Attributes:
      seconds: of time, on the clock, after the process has started.
      memory: bytes, besides those that Python and jaxlib take; held where the system can hold a
        process to it, as Linux can.
    """

    seconds: float = 10.0
    memory: int = 2 << 30


_STARTING = 120.0
"""Seconds in which a process starts, also where many do."""

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from plait_export.isolated_reader import serve; serve()"
)
READY = b"+"
"""What the child writes first: the time of reading begins."""

_HOSTILE = "do not use it: get it again from those who made it, and ask them what it is"


def limits_of(isolated: Any) -> Limits | None:
    """The limits that `isolated` stands for; None to read in this process.

    Raises ArgumentError for what stands for none.
    """
    if isolated is True:
        return Limits()
    if isolated is False or isolated is None:
        return None
    if not isinstance(isolated, Limits):
        raise ArgumentError(
            f"isolated is {isolated!r}, and is True, False or Limits",
            fix="write isolated=plait.export.Limits(seconds=10, memory=2 << 30)",
        )
    good = isinstance(isolated.memory, int) and isinstance(isolated.seconds, int | float)
    if not good or not (isolated.memory > 0 and 0 < isolated.seconds < math.inf):
        raise ArgumentError(
            f"{isolated!r} are no limits", fix="give a number of seconds, and of bytes, above 0"
        )
    return isolated


def read_apart(blob: bytes, reader: str, allowed: Iterable[str], limits: Limits) -> bytes:
    """The artifact that a child process made of some bytes: verified, with trees that are flat.

    Args:
      blob: what somebody gave.
      reader: "deserialize" or "import_jax".
      allowed: functions outside StableHLO that it may call.
      limits: of time and memory.

    Raises ArtifactError: what the child found, or that it ended before it had an answer.
    """
    request = {"reader": reader, "allowed": sorted(allowed), **limits._asdict()}
    child = _started()
    with child:
        try:
            answer, _ = child.communicate(
                json.dumps(request).encode() + b"\n" + blob, timeout=limits.seconds
            )
        except subprocess.TimeoutExpired:
            child.kill()
            raise ArtifactError(
                f"these {len(blob)} bytes were not read within {limits.seconds:g} seconds: they "
                "are damaged, or made to keep their reader busy",
                fix=f"{_HOSTILE}; of one that is large, read it with "
                "isolated=plait.export.Limits(seconds=...)",
            ) from None
        finally:
            if child.poll() is None:
                child.kill()
    return _understood(answer, len(blob), child.returncode)


def _started() -> "subprocess.Popen[bytes]":
    """The child, when it waits for what it is to read."""
    if not sys.executable:
        raise ArgumentError(
            "a process of its own is made by Python's interpreter, and this process has none",
            fix="read it with isolated=False, in a process that may be lost",
        )
    child = subprocess.Popen(
        [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path)],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PLAIT_CACHE_DIR": ""},
    )
    assert child.stdout is not None
    timer = Timer(_STARTING, child.kill)
    timer.start()
    try:
        found = child.stdout.read(len(READY))
    finally:
        timer.cancel()
    if found == READY:
        return child
    with child:
        child.kill()
        _, said = child.communicate()
    last = said.decode(errors="replace").strip().splitlines()[-1:] or ["nothing was said"]
    raise ArtifactError(
        f"the process that was to read the artifact did not start: {last[0]}",
        fix=f"see what {sys.executable} -I -c 'import plait_export' says",
    )


def _understood(answer: bytes, length: int, code: int) -> bytes:
    head, _, made = answer.partition(b"\n")
    try:
        said = json.loads(head) if code == 0 else {}
    except (ValueError, RecursionError):
        said = {}
    if said == {"bytes": len(made)}:
        return made
    what, fix = (said.get("what"), said.get("fix")) if isinstance(said, dict) else (None, None)
    if isinstance(what, str) and isinstance(fix, str):
        raise ArtifactError(what, fix=fix)
    raise ArtifactError(
        f"these {length} bytes ended the process that read them, {_ending(code)}: they are "
        "damaged, or made to do so",
        fix=_HOSTILE,
    )


def _ending(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"with the status {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"
