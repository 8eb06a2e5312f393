"""Start the processes of one computation on this machine, or on others by ssh.

    python -m plait_sharding.launch -n 4 script.py arguments
    python -m plait_sharding.launch -n 4 -m package.module arguments
    python -m plait_sharding.launch --hosts a,b,c script.py arguments

The script calls `plait.distributed.initialize()` without arguments.  The output of the processes is
passed on; with `--tag`, each line begins with the number of its process.

Invariant: when `run_processes` returns, no process that it started is running.  Its exit code is 0
if all of theirs are, else that of the first that failed by itself.
"""

import argparse
import contextlib
import os
import random
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import IO, Any

from plait.ext.errors import ArgumentError, PlaitError

from .distributed.failures import LOST_CODE, DistributedError
from .distributed.joining import bracketed, start_coordinator
from .distributed.launchers import ADDRESS, COUNT, INDEX, LAUNCHED, LOCAL_IDS

__all__ = ["main", "run_on_hosts", "run_processes"]

_PATIENCE = 300.0
_PORTS = range(10240, 26624)
"""Where a coordinator on another machine listens: below the ports of outgoing connections."""
_FAREWELL = 10.0
"""Seconds in which a process on another machine ends after its input has closed."""
_SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30")
_CARRIED = ("PLAIT_", "XLA_", "NCCL_", "PYTHON")
"""Beginnings of the names of variables that processes on other machines get, too."""


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
    _check(command, processes, devices)
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        port = listener.getsockname()[1]
        coordinator = start_coordinator(listener, processes, _PATIENCE)
    told = {ADDRESS: f"127.0.0.1:{port}", COUNT: str(processes), LAUNCHED: "1"}
    running: list[subprocess.Popen] = []
    try:
        for i in range(processes):
            mine = os.environ | told | _place(i, i if processes > 1 else None, devices)
            running.append(_started(command, i, tag, env=mine))
        code = _ended(running, [f"process {i}" for i in range(processes)], grace)
        if code == 0 and processes > 1 and _waits(coordinator):
            _say(f"all {processes} processes ended, and they did not join: each computed alone; "
                 "call plait.distributed.initialize() at the beginning of the script")  # fmt: skip
        return code
    finally:
        _stop(running)
        coordinator.terminate()
        coordinator.wait()


def run_on_hosts(
    command: list[str], hosts: Sequence[str], processes: int | None = None,
    devices: int | None = None, tag: bool = False, grace: float = 30.0,
    remote: Sequence[str] = _SSH,
) -> int:  # fmt: skip
    """Run a command as processes on several machines; return the exit code.

    Each machine has the same files at the same paths: the interpreter, the working directory.  The
    first listens for the others, at the name or address that is given here.

    Args:
      command: the command to run, for instance [sys.executable, "script.py"].
      hosts: names or addresses of the machines.
      processes: the number of processes, a multiple of the number of hosts; by default one on each,
        which drives all accelerators there.
      devices: virtual CPU devices of each process; by default the environment decides.
      tag: whether lines of output begin with the number of their process.
      grace: seconds that the other processes have to end after one has failed.
      remote: the command that runs another one on a machine, without the machine.
    """
    _check(command, processes, devices)
    each = _each(hosts, processes)
    if not remote:
        raise ArgumentError(
            "expected a command that runs another one on a machine, got nothing",
            fix="leave it out, or write for instance ssh -p 2222",
        )
    head = hosts[0].rpartition("@")[2]  # of user@host
    told = {k: v for k, v in os.environ.items() if k.startswith(_CARRIED) and k != LAUNCHED}
    told[ADDRESS] = f"{bracketed(head)}:{random.choice(_PORTS)}"
    told[COUNT] = str(each * len(hosts))
    running: list[subprocess.Popen] = []
    try:
        for i in range(each * len(hosts)):
            mine = told | _place(i, i % each if each > 1 else None, devices)
            there = [*remote, hosts[i // each], _tied(command, mine)]
            running.append(_started(there, i, tag, stdin=subprocess.PIPE))
        names = [f"process {i} on {hosts[i // each]}" for i in range(each * len(hosts))]
        return _ended(running, names, grace)
    finally:
        _stop(running)


def _check(command: Sequence[str], processes: int | None, devices: int | None) -> None:
    """Refuse a command or numbers that cannot be meant."""
    if not command:
        raise ArgumentError(
            "command is empty", fix='write for instance [sys.executable, "script.py"]'
        )
    for name, number in (("processes", processes), ("devices", devices)):
        whole = isinstance(number, int) and not isinstance(number, bool)
        if number is not None and not (whole and number > 0):
            raise ArgumentError(f"{name} is {number!r}", fix="give an integer from 1 on")


def _each(hosts: Sequence[str], processes: int | None) -> int:
    """Return the number of processes on each machine."""
    if isinstance(hosts, str) or not hosts or not all(hosts):
        raise ArgumentError(
            f"hosts is {hosts!r}, which names no machine" if not hosts else f"hosts is {hosts!r}",
            fix="give names or addresses of machines: --hosts a,b",
        )
    twice = sorted({host for host in hosts if list(hosts).count(host) > 1})
    if twice:
        raise ArgumentError(
            f"hosts names {', '.join(twice)} more than once",
            fix=f"name each machine once, with -n {len(hosts)} for several processes on each",
        )
    if (processes or len(hosts)) % len(hosts):
        raise ArgumentError(
            f"processes is {processes}, and there are {len(hosts)} hosts",
            fix="give a multiple of the number of hosts",
        )
    return (processes or len(hosts)) // len(hosts)


def _waits(coordinator: subprocess.Popen) -> bool:
    """Return whether a coordinator still waits for processes when all have ended."""
    try:
        coordinator.wait(3.0)
    except subprocess.TimeoutExpired:
        return True
    return False


def _say(text: str) -> None:
    print(f"plait: {text}", file=sys.stderr, flush=True)


def _place(index: int, local: int | None, devices: int | None) -> dict[str, str]:
    """Return the variables of one process; `local` is its number among several on its machine."""
    told = {INDEX: str(index)}
    if local is not None and LOCAL_IDS not in os.environ:
        told[LOCAL_IDS] = str(local)
    return told if devices is None else told | {"PLAIT_CPU_DEVICES": str(devices)}


def _tied(command: list[str], variables: dict[str, str]) -> str:
    """Return a line for a shell elsewhere, whose command ends when its input does.

    The input closes with the connection, so nothing stays there when this process is killed.
    """
    settings = " ".join(f"{k}={shlex.quote(v)}" for k, v in variables.items())
    return (
        f"cd {shlex.quote(os.getcwd())} || exit 1; exec 3<&0; "
        f"env {settings} {shlex.join(command)} </dev/null 3<&- & p=$!; "
        "{ cat <&3; kill $p; sleep 5; kill -9 $p; } >/dev/null 2>&1 & w=$!; "
        "wait $p; c=$?; kill $w 2>/dev/null; exit $c"
    )


def _started(command: list[str], index: int, tag: bool, **options: Any) -> subprocess.Popen:
    """Start a process, whose lines of output are numbered if `tag`."""
    pipe = subprocess.PIPE if tag else None
    try:
        child = subprocess.Popen(command, stdout=pipe, stderr=pipe, **options)
    except OSError as e:
        raise DistributedError(
            f"{command[0]} cannot be run here: {e.strerror or e}",
            fix="install it, or give the path of the command",
        ) from None
    for source, target in ((child.stdout, sys.stdout), (child.stderr, sys.stderr)):
        if source is not None:
            Thread(target=_pass_on, args=(source, target, index), daemon=True).start()
    return child


def _stop(running: list[subprocess.Popen]) -> None:
    """Kill the processes that still run; those on other machines end as their input closes."""
    for child in running:
        if child.stdin is not None:
            child.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_FAREWELL)
        if child.poll() is None:
            child.kill()
        child.wait()


def _pass_on(source: IO[bytes], target: Any, index: int) -> None:
    for line in source:
        target.write(f"[{index}] {line.decode(errors='replace')}")
        target.flush()


def _ended(running: list[subprocess.Popen], names: list[str], grace: float) -> int:
    """Wait for all processes; after the first failure the others have `grace` seconds to end."""
    failed, end = 0, float("inf")
    while any(child.poll() is None for child in running):
        for child, name in zip(running, names):
            if not failed and child.poll():
                failed, end = child.returncode, time.monotonic() + grace
                if len(running) > 1:
                    _say(f"{name} ended first, with code {failed}; the others are ended, too, "
                         f"within {grace:.0f} s")  # fmt: skip
        if time.monotonic() > end:
            for child in running:
                if child.poll() is None:
                    _stop([child])
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
        description="Start the processes of one computation, on this machine or on others.",
    )
    parser.add_argument("-n", "--processes", type=int, help="how many; one per host by default")
    parser.add_argument("--hosts", help="names of machines, with commas between")
    parser.add_argument("--ssh", default=shlex.join(_SSH), help="what runs a command there")
    parser.add_argument("--devices", type=int, help="virtual CPU devices of each process")
    parser.add_argument("--tag", action="store_true", help="number the lines of output")
    parser.add_argument("-m", dest="module", action="store_true", help="run a module")
    parser.add_argument("program", help="a script, or with -m a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    told = parser.parse_args(arguments)
    hosts = [name.strip() for name in (told.hosts or "").split(",") if name.strip()]
    if told.hosts is not None and not hosts:
        parser.error(f"--hosts {told.hosts!r} names no machine: write for instance --hosts a,b")
    if told.processes is None and not hosts:
        parser.error("give -n, the number of processes, or --hosts")
    how = ["-m"] if told.module else []
    command = [sys.executable, *how, told.program, *told.arguments]
    try:
        if hosts:
            remote = shlex.split(told.ssh)
            return run_on_hosts(
                command, hosts, told.processes, told.devices, told.tag, remote=remote
            )
        if not told.module and not Path(told.program).exists():
            parser.error(f"{told.program}: this script does not exist here")
        return run_processes(command, told.processes or 0, told.devices, told.tag)
    except KeyboardInterrupt:
        return 130
    except PlaitError as e:
        parser.error(f"{e.what}: {e.fix}")


if __name__ == "__main__":
    sys.exit(main())
