"""Joining a computation: start, find and greet the coordinator, then make devices together.

Invariant: nothing here waits longer than its limit; errors name the missing processes.
"""

import os
import platform as machine
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from threading import Thread
from typing import Any

import plait
from plait.ext.errors import ArgumentError
from plait.ext.lower import JAXLIB_VERSION
from plait.ext.processes import RuntimeFailure, distributed_client, join

from .failures import DistributedError, expect_posix
from .launchers import Told
from .lifeline import Lifeline
from .wire import connected
from .world import World

__all__ = [
    "bracketed", "come_in", "connect", "make_devices", "split_address", "start_coordinator",
    "start_coordinator_at",
]  # fmt: skip

_SETTINGS = (
    "default_float",
    "default_int",
    "x64",
    "platform",
    "default_prng_impl",
    "default_matmul_precision",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "numpy_scalars",
    "check_static_indices",
)
"""Settings that change the program which a function compiles to."""


# ---- addresses -------------------------------------------------------------------------------


def split_address(address: str) -> tuple[str, int]:
    """Return the host and the port of "host:port" or "[host]:port"."""
    host, _, port = str(address).rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ArgumentError(
            f"coordinator_address is {address!r}",
            fix='write a host and a port: "10.0.0.1:12345"',
        )
    return host, int(port)


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


# ---- the coordinator -------------------------------------------------------------------------


def start_coordinator_at(
    bind: str | None, host: str, port: int, count: int, patience: float
) -> subprocess.Popen[Any]:
    """Start the coordinator on a new listening socket, which the others can connect to at once."""
    listener = _listening(bind, host, port)
    with listener:
        return start_coordinator(listener, count, patience)


def start_coordinator(
    listener: socket.socket, count: int, patience: float
) -> subprocess.Popen[Any]:
    """Start the coordinator on a listening socket, which it inherits."""
    expect_posix()
    number = listener.fileno()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path),
        "TF_CPP_MIN_LOG_LEVEL": "3",  # the processes themselves report the end of others
    }
    return subprocess.Popen(
        [sys.executable, "-m", "plait_sharding.distributed.coordinator", str(number), str(count),
         str(patience)],
        pass_fds=[number],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # it must not get the signals of this process's group
        env=environment,
    )  # fmt: skip


def _listening(bind: str | None, host: str, port: int) -> socket.socket:
    """Return a socket that listens at the coordinator's address."""
    where, at = (host, port) if bind is None else split_address(bind)
    try:
        return _server(where if bind else _open(where), at)
    except OSError as e:
        if e.errno == 98 or "in use" in str(e):
            raise DistributedError(
                f"the port {at} of {where}, where the coordinator was to listen, is taken",
                fix="choose another one for coordinator_address, in all processes, or end who has "
                "it: perhaps processes of an earlier start",
            ) from None
        raise DistributedError(
            f"process 0 cannot listen at {where}:{at}: {e}",
            fix="coordinator_address is an address of the machine of process 0; if others know it "
            "by another one, say where to listen: coordinator_bind_address",
        ) from None


def _open(host: str) -> str:
    """Return the host to listen at for those who know this machine by a name.

    Debian gives a machine's own name the address 127.0.1.1, where only itself would find it.
    """
    resolved = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0]
    local = host in ("localhost", "localhost.localdomain") or host == resolved
    return "0.0.0.0" if str(resolved).startswith("127.") and not local else host


def _server(host: str, port: int) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(1024)
    except OSError:
        sock.close()
        raise
    return sock


# ---- the others ------------------------------------------------------------------------------


def _facts() -> dict[str, str]:
    """Return the versions and settings that must be the same in all processes."""
    facts = {
        "plait": plait.__version__,
        "jaxlib": JAXLIB_VERSION,
        "python": ".".join(machine.python_version_tuple()[:2]),
    }
    return facts | {name: str(getattr(plait.config, name)) for name in _SETTINGS}


def connect(
    host: str,
    port: int,
    told: Told,
    end: float,
    patience: float,
    silence: float,
    on_loss: Callable[[str], None],
) -> Lifeline:
    """Return a connection to the coordinator, once it listens."""
    while True:
        try:
            sock = connected(host, port, max(0.1, min(5.0, end - time.monotonic())))
            break
        except OSError as e:
            if time.monotonic() > end:
                raise DistributedError(
                    f"process {told.number} found no coordinator at {host}:{port} in "
                    f"{patience:.0f} s: {e.strerror or e}",
                    fix="start process 0 with the same coordinator_address, on that host; it must "
                    "be reachable from here",
                ) from None
            time.sleep(0.05)
    return Lifeline(sock, silence, on_loss)


def come_in(line: Lifeline, told: Told, end: float, patience: float) -> None:
    """Greet the coordinator, and wait until all processes have come."""
    name = f"process {told.number} ({socket.gethostname()}, pid {os.getpid()})"
    greeting = {"hello": told.number, "count": told.processes, "name": name, "facts": _facts()}
    line.say({**greeting, "silence": line.silence})

    def decided() -> bool:
        return bool(line.refused or line.lost or line.service is not None)

    try:
        line.wait(decided, max(0.0, end - time.monotonic()))
    except BaseException:
        line.close("an exception while it waited for the others")
        raise
    if line.service is not None:
        return
    line.close(f"it waited {patience:.0f} s")
    if line.refused is not None:
        raise DistributedError(line.refused[0], fix=line.refused[1])
    if line.lost:
        raise DistributedError(
            f"process {told.number} lost {'; '.join(line.lost.values())}, before all had come",
            fix="see what process 0 says, and whether something else listens at that address",
        )
    refusals = "".join(f"; {text}" for text in line.refusals)
    missing = " and ".join(map(str, line.missing)) or "some"
    raise DistributedError(
        f"process {told.number} waited {patience:.0f} s for {told.processes} processes: number "
        f"{missing} did not come{refusals}",
        fix="start all of them within that time, with the same coordinator_address and "
        "num_processes, each with a process_id of its own; or give initialization_timeout",
    )


def make_devices(made: World, service: str, seconds: int) -> None:
    """Make the devices in a thread, so that the loss of a process can end the wait."""
    line = made.line
    failed: list[BaseException] = []

    def make() -> None:
        try:
            made.client = distributed_client(service, made.index, seconds)
            join(made)
            plait.devices()
        except BaseException as e:
            failed.append(e)

    thread = Thread(target=make, name="plait devices", daemon=True)
    thread.start()
    end = time.monotonic() + seconds
    while thread.is_alive():
        thread.join(0.02)
        if line.lost:
            raise made._lost(list(line.lost))
        if time.monotonic() > end:
            raise DistributedError(
                f"process {made.index} waited {seconds} s for the devices of the others",
                fix="see whether they are at plait.distributed.initialize(), too",
            )
    if failed:
        error = failed[0]
        if isinstance(error, RuntimeFailure):
            raise DistributedError(
                f"the runtime of process {made.index} could not join the others: "
                f"{str(error).splitlines()[0]}",
                fix="see whether the machines can reach each other on all ports",
            ) from None
        raise error
