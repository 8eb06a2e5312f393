"""Start the processes of one computation on this machine.

    python -m plait_sharding.launch -n 4 script.py arguments
    python -m plait_sharding.launch -n 4 -m package.module arguments

The script calls `plait.distributed.initialize()` without arguments.  The output of the processes is
passed on; with `--tag`, each line begins with the number of its process.

Invariant: when `run_processes` returns, no process that it started is running.  Its exit code is 0
if all of theirs are, else that of the first that failed by itself.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from threading import Thread
from typing import IO, Any

from .distributed.failures import LOST_CODE
from .distributed.joining import start_coordinator
from .distributed.launchers import ADDRESS, COUNT, INDEX, LAUNCHED

__all__ = ["main", "run_processes"]

_PATIENCE = 300.0


def run_processes(
    command: list[str], processes: int, devices: int | None = None, tag: bool = False,
    grace: float = 30.0,
) -> int:  # fmt: skip
    """Run a command as the processes of one computation; return the exit code.

    Args:
      command: the command to run, for instance [sys.executable, "script.py"].
      processes: the number of processes.
      devices: virtual CPU devices of each process; by default the environment decides.
      tag: whether lines of output begin with the number of their process.
      grace: seconds that the other processes have to end after one has failed.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        port = listener.getsockname()[1]
        coordinator = start_coordinator(listener, processes, _PATIENCE)
    running: list[subprocess.Popen] = []
    try:
        for index in range(processes):
            running.append(_started(command, index, processes, port, devices, tag))
        return _ended(running, grace)
    finally:
        for child in running:
            if child.poll() is None:
                child.kill()
            child.wait()
        coordinator.terminate()
        coordinator.wait()


def _started(
    command: list[str], index: int, processes: int, port: int, devices: int | None, tag: bool
) -> subprocess.Popen:
    environment = {
        **os.environ,
        ADDRESS: f"127.0.0.1:{port}",
        COUNT: str(processes),
        INDEX: str(index),
        LAUNCHED: "1",
    }
    if devices is not None:
        environment["PLAIT_CPU_DEVICES"] = str(devices)
    pipe = subprocess.PIPE if tag else None
    child = subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe)
    for source, target in ((child.stdout, sys.stdout), (child.stderr, sys.stderr)):
        if source is not None:
            Thread(target=_pass_on, args=(source, target, index), daemon=True).start()
    return child


def _pass_on(source: IO[bytes], target: Any, index: int) -> None:
    for line in source:
        target.write(f"[{index}] {line.decode(errors='replace')}")
        target.flush()


def _ended(running: list[subprocess.Popen], grace: float) -> int:
    """Wait for all processes; after the first failure the others have `grace` seconds to end."""
    failed, end = 0, float("inf")
    while any(child.poll() is None for child in running):
        for child in running:
            if not failed and child.poll():
                failed, end = child.returncode, time.monotonic() + grace
        if time.monotonic() > end:
            for child in running:
                if child.poll() is None:
                    child.send_signal(signal.SIGKILL)
        time.sleep(0.02)
    codes = [failed, *(child.returncode for child in running)]
    # Processes with LOST_CODE ended because another one had failed; report that one's code.
    causes = [code for code in codes if code not in (0, LOST_CODE)]
    failed = next(iter(causes), failed or max(codes))
    return 128 - failed if failed < 0 else failed


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m plait_sharding.launch",
        description="Start the processes of one computation on this machine.",
    )
    parser.add_argument("-n", "--processes", type=int, required=True, help="how many")
    parser.add_argument("--devices", type=int, help="virtual CPU devices of each process")
    parser.add_argument("--tag", action="store_true", help="number the lines of output")
    parser.add_argument("-m", dest="module", action="store_true", help="run a module")
    parser.add_argument("program", help="a script, or with -m a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    told = parser.parse_args(arguments)
    if told.processes < 1:
        parser.error(f"-n {told.processes}: give at least one process")
    if told.devices is not None and told.devices < 1:
        parser.error(f"--devices {told.devices}: give at least one device")
    how = ["-m"] if told.module else []
    command = [sys.executable, *how, told.program, *told.arguments]
    try:
        return run_processes(command, told.processes, told.devices, told.tag)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
