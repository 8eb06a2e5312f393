"""Membership in a computation of several processes: its beginning and its end.

Invariant: between `initialize` and the end of the process there is one `World`.  Its end is
reported to the others, as orderly or with the exception that ended it.
"""

import atexit
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from plait.ext.errors import ArgumentError, border, watch_display
from plait.ext.processes import started

from .failures import LOST_CODE, DistributedError, PeerLost, expect_posix
from .joining import bracketed, come_in, connect, make_devices, split_address, start_coordinator_at
from .launchers import ADDRESS, COUNT, INDEX, LAUNCHED, Told, accelerators, detect
from .world import World, worlds

__all__ = ["end_by", "initialize", "is_initialized", "shutdown"]


def is_initialized() -> bool:
    """Return whether this process takes part in a computation of several.

    >>> import plait
    >>> plait.distributed.is_initialized()
    False
    """
    return bool(worlds) and worlds[0].open


@border
def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    *,
    coordinator_bind_address: str | None = None,
    initialization_timeout: float = 300,
    heartbeat_timeout_seconds: float = 60,
    shutdown_timeout_seconds: float = 300,
    meeting_timeout_seconds: float = 600,
    on_loss: str = "raise",
) -> None:
    """Join a computation of several processes, which run the same program.

    From then on `plait.devices()` are the devices of all, numbered alike everywhere, and arrays
    may be spread over them.  Call it once, after changing settings and before making any array.
    Missing arguments are taken from the environment: our own variables
    (`PLAIT_COORDINATOR_ADDRESS`, `PLAIT_NUM_PROCESSES`, `PLAIT_PROCESS_ID`), JAX's, those of
    torchrun, Open MPI, other MPIs, SLURM, GKE's TPU slices, Kubeflow, or an indexed Job of
    Kubernetes.

    Args:
      coordinator_address: "host:port", the same in all processes.  Process 0, on that host, starts
        a small process that listens there.
      num_processes: the number of processes.
      process_id: the number of this process, from 0.
      local_device_ids: the accelerators of this machine that it drives.  The default is all or, if
        a launcher starts several processes on a machine, the one of its number there.  CPUs have
        none.
      coordinator_bind_address: the address where the coordinator listens, if it is another one.
      initialization_timeout: seconds within which all must have come.
      heartbeat_timeout_seconds: seconds without a sign of life after which a process is lost.
      shutdown_timeout_seconds: seconds for which process 0 waits at its end for the others'.
      meeting_timeout_seconds: seconds for which processes wait for each other where they meet:
        when a program is compiled, an array spread, at `sync_global_devices`.
      on_loss: "raise": code that waits for a lost process raises PeerLost at the line where it
        waits; "exit": this process ends at once, with code 70.

    Raises DistributedError if processes do not fit together (number, versions, settings), if one
    is missing, or if the port is taken; ArgumentError for invalid arguments.
    """
    expect_posix()
    if worlds:
        raise DistributedError(
            "plait.distributed.initialize() was called before in this process",
            fix="call it once; after shutdown() start a new process",
        )
    if on_loss not in ("raise", "exit"):
        raise ArgumentError(f"on_loss is {on_loss!r}", fix='write "raise" or "exit"')
    for name, seconds in (
        ("initialization_timeout", initialization_timeout),
        ("heartbeat_timeout_seconds", heartbeat_timeout_seconds),
        ("shutdown_timeout_seconds", shutdown_timeout_seconds),
        ("meeting_timeout_seconds", meeting_timeout_seconds),
    ):
        if not isinstance(seconds, int | float) or not seconds > 0:
            raise ArgumentError(f"{name} is {seconds!r}", fix="give a number of seconds")
    end = time.monotonic() + initialization_timeout
    told = _told(coordinator_address, num_processes, process_id, initialization_timeout)
    assert told.address is not None and told.processes is not None and told.number is not None
    host, port = split_address(told.address)
    if started():
        raise DistributedError(
            "the devices of this process exist already, and it cannot share them any more",
            fix="call plait.distributed.initialize() before the first array is made and before "
            "plait.devices() is asked for",
        )
    coordinator = None
    if told.number == 0 and LAUNCHED not in os.environ:
        coordinator = start_coordinator_at(
            coordinator_bind_address, host, port, told.processes, initialization_timeout
        )
    line = connect(
        host,
        port,
        told,
        end,
        initialization_timeout,
        heartbeat_timeout_seconds,
        _end_at_once if on_loss == "exit" else _nothing,
    )
    come_in(line, told, end, initialization_timeout)
    ids = [local_device_ids] if isinstance(local_device_ids, int) else local_device_ids
    made = World(
        told.number,
        told.processes,
        line,
        accelerators(told) if ids is None else ids,
    )
    made.coordinator, made.farewell = coordinator, shutdown_timeout_seconds
    made.patience = meeting_timeout_seconds
    left = max(1, int(end - time.monotonic()))
    _enter(made, f"{bracketed(line.sock.getpeername()[0])}:{line.service}", left)


def _told(address: str | None, count: int | None, index: int | None, seconds: float) -> Told:
    """Return the place of this process among all, from its arguments, else from its launcher."""
    given = Told(address, count, index, source="its arguments")
    found = given if given.whole else detect()
    told = given.filled(found)
    _check(told, "" if found.source == "nothing" else f", that of {found.source},")
    if told.address is None and told.meet is not None:
        told = told._replace(address=told.meet(seconds))
    _check(told, f", that of {found.source},", whole=True)
    return told


def _check(told: Told, read: str, whole: bool = False) -> None:
    """Raise an error unless the numbers fit together and, if `whole`, nothing is missing."""
    absent = [
        name
        for name, value in zip(("coordinator_address", "num_processes", "process_id"), told)
        if value is None and (whole or name != "coordinator_address" or told.meet is None)
    ]
    if absent:
        raise DistributedError(
            f"{', '.join(absent)} were not given, and the environment{read} does not tell them",
            fix=f"give them, or set {ADDRESS}, {COUNT} and {INDEX}; on one machine "
            "`python -m plait_sharding.launch -n 4 script.py` does it",
        )
    for name, number, least in (
        ("num_processes", told.processes, 1),
        ("process_id", told.number, 0),
    ):
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise ArgumentError(f"{name} is {number!r}", fix=f"give an integer from {least} on")
    assert told.processes is not None and told.number is not None
    if told.number >= told.processes:
        raise ArgumentError(
            f"process_id is {told.number}, and there are {told.processes} processes",
            fix="count them from 0 to num_processes - 1",
        )


def _enter(made: World, service: str, seconds: int) -> None:
    """Connect the runtime, and make the devices together with all processes."""
    made.line.beat_beside(made.index)
    worlds.append(made)
    _install(made)
    try:
        make_devices(made, service, seconds)
    except BaseException as e:
        made.stuck, made.open = True, False  # a thread of the runtime may wait forever
        made.line.close(f"{type(e).__name__} at its beginning")
        raise


# ---- leaving ---------------------------------------------------------------------------------


@border
def shutdown() -> None:
    """Leave the computation; this is the last joint action of its processes.

    It is called automatically when the process ends.  Process 0 then waits for the others.
    """
    if worlds:
        worlds[0].leave()


def _install(made: World) -> None:
    """Register hooks that report the end of this process, with the exception that caused it."""
    watch_display()
    shown = sys.excepthook

    def noted(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
        if os.getpid() == made.pid and made.open:
            end_by(made, error)
        shown(kind, error, traceback)

    sys.excepthook = noted
    atexit.register(_at_exit, made)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=made.line.forget)


def end_by(made: World, error: BaseException) -> None:
    """Report to the others the exception that ends the work of this process."""
    first = (str(error).splitlines() or [""])[0]
    # The others get reports of the lost processes themselves, so numbers suffice.
    if isinstance(error, PeerLost):
        first = f"it had lost process {' and '.join(map(str, error.peers))}"
    made.uncaught = f"{type(error).__name__}: {first}"[:300]
    made.line.close(made.uncaught)


def _at_exit(made: World) -> None:
    """Leave; if threads of the runtime may wait forever, end the process without them."""
    if os.getpid() != made.pid:
        return
    made.leave()
    if made.uncaught or made.lost or made.stuck:
        atexit.unregister(_at_exit)
        atexit._run_exitfuncs()  # other handlers, which `os._exit` would skip
        _end(1 if made.uncaught else LOST_CODE)


def _end_at_once(text: str) -> None:
    """End the process, for on_loss="exit"; the loss is on standard error already."""
    os._exit(LOST_CODE)


def _nothing(text: str) -> None:
    """Do nothing, for on_loss="raise": a wait for the lost process raises."""


def _end(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # the stream is closed, or does not exist
            pass
    os._exit(code)
