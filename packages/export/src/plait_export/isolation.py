"""Reading in a separate process, so that hostile bytes can harm that process only.

jaxlib's reader of StableHLO trusts its input: some changes of a module, even with correct
checksums, crash the process or make it run forever.  A child process with limits of time and memory
reads and verifies the file (`isolated_reader`), and writes it anew from the parsed contents.  This
process reads only the child's output.

Invariant: none of the given bytes reaches jaxlib in this process; the outcome is an artifact that
the child verified and wrote, or an ArtifactError, within the limits.
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
    """Limits of reading in a separate process.

    Attributes:
      seconds: wall-clock seconds after the process has started.
      memory: bytes beyond those that Python and jaxlib use; enforced where the system can limit the
        memory of a process, as Linux can.
    """

    seconds: float = 10.0
    memory: int = 2 << 30


_STARTING = 120.0
"""Seconds that a process may take to start, even if many start at once."""

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from plait_export.isolated_reader import serve; serve()"
)
READY = b"+"
"""The first bytes that the child writes; the limit of seconds starts then."""

_HOSTILE = "do not use it: get it again from those who made it, and ask them what it is"


def limits_of(isolated: Any) -> Limits | None:
    """Return the limits that `isolated` stands for; None to read in this process.

    Raises ArgumentError for values other than a bool, None, or valid Limits.
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
            f"{isolated!r} are not limits", fix="give a number of seconds, and of bytes, above 0"
        )
    return isolated


def read_apart(blob: bytes, reader: str, allowed: Iterable[str], limits: Limits) -> bytes:
    """Have a child process verify some bytes; return the artifact that it wrote, with flat trees.

    Args:
      blob: untrusted bytes.
      reader: "deserialize" or "import_jax".
      allowed: functions outside StableHLO that it may call.
      limits: of time and memory.

    Raises ArtifactError with the child's message, or if the child ended without an answer.
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
    """Start the child; return it once it waits for its input."""
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
    """Describe an exit code in words."""
    if code >= 0:
        return f"with the status {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"
