"""Runs a program of `process_programs.py`, or another script, in several processes of one machine.

Invariant: no process outlives the call: each has a limit of time, and is killed at its end.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from plait_sharding.distributed.joining import start_coordinator
from plait_sharding.distributed.launchers import ADDRESS, COUNT, INDEX, LAUNCHED

PROGRAMS = Path(__file__).with_name("process_programs.py")
TOLD = "told "
LIMIT = 120.0
"""Seconds that a run may take on a machine that does much else."""


class Ended(NamedTuple):
    """One process after its end: its exit code, what it told, and what it wrote."""

    code: int | None
    told: dict
    out: str
    err: str


_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 8
# Nobody listens yet while the processes start, so no other worker may find the same port free.
_ports = iter(range(11000 + os.getpid() % 9000 // 8 * 8 + _WORKER, 32000, 8))


def free_port():
    """A port where nobody listens, below those that connections take by themselves."""
    for port in _ports:
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")


def run_together(
    *arguments, n=2, devices=2, script=PROGRAMS, env=None, each=None, address=None, frozen=()
):
    """Run a script with these arguments in `n` processes; return how each ended.

    Args:
      env: variables for all of them; `each`: a list of such dictionaries, one per process.
      address: where process 0 starts the coordinator itself; by default it runs already.
      frozen: numbers of those that will stop without ending; they are killed after the others.
    """
    coordinator = None
    variables = dict(env or {})
    if address is None:
        with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
            address = f"127.0.0.1:{listener.getsockname()[1]}"
            coordinator = start_coordinator(listener, n, LIMIT)
        variables[LAUNCHED] = "1"
    children, files = [], []
    try:
        for i in range(n):
            files.append([tempfile.TemporaryFile("w+") for _ in range(2)])  # noqa: SIM115
            mine = {
                **os.environ, "PLAIT_CPU_DEVICES": str(devices), ADDRESS: address, COUNT: str(n),
                INDEX: str(i), **variables, **(each[i] if each else {}),
            }  # fmt: skip
            mine = {k: v for k, v in mine.items() if v is not None}
            command = [sys.executable, str(script), *map(str, arguments)]
            out, err = files[-1]
            children.append(subprocess.Popen(command, env=mine, stdout=out, stderr=err))
        end = time.monotonic() + LIMIT
        waited = [c for i, c in enumerate(children) if i not in frozen]
        while any(c.poll() is None for c in waited) and time.monotonic() < end:
            time.sleep(0.02)
        codes = [c.poll() for c in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
        if coordinator is not None:
            coordinator.kill()
            coordinator.wait()
    return [_ended(code, *pair) for code, pair in zip(codes, files)]


def _ended(code, out, err):
    texts = []
    for file in (out, err):
        file.seek(0)
        texts.append(file.read())
        file.close()
    told = {}
    for line in texts[0].splitlines():
        if TOLD in line:  # the runtime may have begun the line, and may end it
            told.update(json.JSONDecoder().raw_decode(line.partition(TOLD)[2])[0])
    return Ended(code, told, *texts)
