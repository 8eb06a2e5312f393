"""Taking part in a computation of several processes: joining, agreeing, leaving.

Invariant: between `initialize` and the end of the process there is one `World`; what it waits for
ends within a limit, by an error that names who is missing.
"""

import atexit
import hashlib
import os
import platform as machine
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from threading import Lock, Thread
from typing import Any, NoReturn

import numpy as np

import plait
from plait.errors import PlaitError
from plait.ext.errors import ArgumentError, border, watch_display
from plait.ext.lower import JAXLIB_VERSION
from plait.ext.processes import (
    Membership,
    RuntimeFailure,
    distributed_client,
    finish_flights,
    gloo,
    join,
    started,
)

from .failures import DistributedError, PeerLost, ProgramsDiffer
from .launchers import ADDRESS, COUNT, INDEX, LAUNCHED, Told, detect
from .lifeline import Lifeline
from .wire import COORDINATOR, connected

__all__ = ["World", "initialize", "is_initialized", "shutdown", "world"]

LOST_CODE = 70
"""The exit code of a process that has lost another one (EX_SOFTWARE of sysexits.h)."""
_AFTER_LEAVING = 10.0
"""Seconds for which results may still come that a process had a part in which has left in order."""
_NEWS = 3.0
"""Seconds in which the end of a process is heard of after the runtime has noticed it."""
_NOTICE = 30.0
"""Seconds after which it is said on standard error what is waited for."""
_SETTINGS = (
    "default_float",
    "default_int",
    "x64",
    "platform",
    "default_prng_impl",
    "default_matmul_precision",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
)
"""Settings by which the same program becomes another one."""


class World(Membership):
    """This process among the others."""

    def __init__(
        self, index: int, count: int, line: Lifeline, local_device_ids: Sequence[int] | None
    ):
        self.index, self.count, self.line = index, count, line
        self.local_device_ids, self.lost = local_device_ids, line.lost
        self.pid, self.uncaught, self.open = os.getpid(), "", True
        self.broken: str | None = None
        self.stuck = False
        self.client: Any = None
        self.coordinator: subprocess.Popen | None = None
        self.patience, self.farewell = 600.0, 300.0
        self._meetings: dict[tuple[int, ...], int] = {}
        self._counting = Lock()

    # -- as core asks ------------------------------------------------------------------------

    def client_options(self, platform: str) -> dict[str, Any]:
        options = {
            "distributed_client": self.client,
            "node_id": self.index,
            "num_nodes": self.count,
        }
        if platform == "cpu":  # the others know this machine by the address we reached them from
            hostname = self.line.sock.getsockname()[0]
            return {**options, "collectives": gloo(self.client, hostname)}
        if platform not in ("cuda", "rocm"):  # others know from their own network who they are
            return {"distributed_client": self.client}
        if self.local_device_ids is not None:
            options["visible_devices"] = list(self.local_device_ids)
        return options

    def agree(self, code: bytes, name: str, owners: tuple[int, ...]) -> None:
        digest = hashlib.sha256(code).hexdigest()
        each = self.meet("program", name, digest, owners)
        differing = {i: brought for i, brought in each.items() if brought[2] != digest}
        if differing:
            raise ProgramsDiffer(
                f"process {self.index} is about to run {name!r}, and "
                + ", ".join(
                    f"process {i} {'another program of that name' if n == name else repr(n)}"
                    for i, (_, n, _) in differing.items()
                ),
                fix="call the same functions in the same order, with the same shapes, dtypes and "
                "shardings, in every process; constants must be the same, too",
            )

    def launches(self, code: bytes, name: str, owners: tuple[int, ...]) -> Callable[[], None]:
        log = self.line.launched.setdefault(owners, deque())
        entry = [hashlib.sha256(code).hexdigest()[:16], name]
        return lambda: log.append(entry)

    def agree_on_values(self, values: Any, what: str, owners: tuple[int, ...]) -> None:
        digest = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
        each = self.meet("array", what, digest, owners)
        differing = [i for i, brought in each.items() if brought[2] != digest]
        if differing:
            raise ProgramsDiffer(
                f"process {self.index} spreads {what} over devices of several processes, and its "
                f"values are others than those of process {', '.join(map(str, differing))}",
                fix="give the same values everywhere (multihost_utils.broadcast_one_to_all), or "
                "plait.make_array_from_process_local_data what each process has",
            )

    def loss(self, owners: Iterable[int], waited: float) -> PlaitError | None:
        if not self.open:
            return DistributedError(
                "plait.distributed.shutdown() was called, and an array or a program is over "
                "several processes",
                fix="call it when nothing is left to do together",
            )
        line = self.line
        gone = [i for i in line.lost if i == COORDINATOR or i in owners or i == self.index]
        if gone:
            return self._lost(gone)
        if line.differs is not None:
            self.stuck = True
            return ProgramsDiffer(
                line.differs,
                fix="call the same functions in the same order in every process, and start again "
                "from a checkpoint: what was computed since is of no use",
            )
        if self.broken is not None:
            return DistributedError(
                f"an earlier program on several processes failed: {self.broken}",
                fix="start again from a checkpoint",
            )
        if line.left and waited > _AFTER_LEAVING:
            left = [i for i in line.left if i in owners]
            if left:
                return self._left(left)
        return None

    def explain(self, failure: Exception) -> PlaitError | None:
        text = str(failure)
        if not any(word in text for word in ("Gloo", "gloo", "NCCL")):
            return None
        self.line.wait(lambda: self.line.lost or self.line.left, _NEWS)
        if self.line.lost:
            return self._lost(list(self.line.lost))
        if self.line.left:
            return self._left(list(self.line.left))
        self.broken = text.splitlines()[0][:300]
        return None

    def _lost(self, gone: list[int]) -> PeerLost:
        self.stuck = True
        told = [self.line.lost[i] for i in sorted(gone)]
        return PeerLost(
            f"{'; '.join(told)}. What this process computes with it can not be finished",
            fix="save what is here (numpy arrays, x.addressable_shards of arrays that are "
            "computed), and start all processes again from a checkpoint",
            peers=sorted(gone),
            names=told,
        )

    def _left(self, left: list[int]) -> PeerLost:
        self.stuck = True
        told = [f"{self.line.names.get(i, f'process {i}')}: it has ended" for i in sorted(left)]
        return PeerLost(
            f"{'; '.join(told)}, and this process still computes with it",
            fix="call the same functions equally often in every process",
            peers=sorted(left),
            names=told,
        )

    # -- meetings ----------------------------------------------------------------------------

    def meet(
        self, kind: str, name: str, value: Any, group: Iterable[int], seconds: float | None = None
    ) -> dict[int, list]:
        """Wait until all processes of a group are here; return [kind, name, value] of each.

        Meetings of a group are counted: processes that come to the same one for different things
        have diverged, which is ProgramsDiffer in each of them.  Raises PeerLost if one that is
        waited for is lost or has left, DistributedError if one does not come in time.
        """
        group = tuple(sorted(group))
        seconds = self.patience if seconds is None else seconds
        line = self.line
        found = self.loss(group, 0.0)
        if found is not None:
            raise found
        with self._counting:  # numbers are sent in their order
            number = self._meetings[group] = self._meetings.get(group, -1) + 1
            message = {"at": number, "group": group, "kind": kind, "name": name, "value": value}
            line.say(message)
        key = group, number
        here = f"{_SAID[kind]} {name!r}"
        self._await(lambda: key in line.met, group, here, seconds)
        each = line.met.pop(key)
        others = {
            i: b for i, b in each.items() if b[0] != kind or (b[1] != name and kind != "program")
        }
        if others:
            raise ProgramsDiffer(
                f"process {self.index} is at {here}, and "
                + ", ".join(f"process {i} at {_SAID[k]} {n!r}" for i, (k, n, _) in others.items()),
                fix="let every process come to the same points in the same order",
            )
        return each

    def _await(
        self, there: Callable[[], bool], group: tuple[int, ...], here: str, seconds: float
    ) -> None:
        """Wait for what others of the group must do; raise if they will not, or not in time."""
        line, end, told = self.line, time.monotonic() + seconds, False
        notice = time.monotonic() + _NOTICE

        def decided() -> bool:
            return there() or bool(self._absent(group))

        while True:
            left = min(end, end if told else notice) - time.monotonic()
            line.wait(decided, max(left, 0.0))
            if there():
                return
            absent = self._absent(group)
            if absent:
                gone = [i for i in absent if i in line.lost]
                raise self._lost(gone) if gone else self._left(absent)
            if time.monotonic() >= end:
                raise DistributedError(
                    f"process {self.index} waited {seconds:.0f} s at {here}: {self._elsewhere()}",
                    fix="let every process come to the same points in the same order, or give a "
                    "longer time",
                )
            if not told and time.monotonic() >= notice:
                told = True
                said = f"plait: process {self.index} waits at {here}: {self._elsewhere()}\n"
                os.write(2, said.encode(errors="replace"))

    def _absent(self, group: tuple[int, ...]) -> list[int]:
        line = self.line
        return [
            i
            for i in (COORDINATOR, *group)
            if i in line.lost or (i in line.left and i != self.index)
        ]

    def _elsewhere(self) -> str:
        """Where the others are, in words."""
        answer = self.answer({"where": self.index}, 2.0)
        if answer is None:
            return "the coordinator does not answer"
        said = [f"process {i} was last at {at}" for i, at in sorted(answer["value"].items())]
        return "; ".join(s for s in said if not s.startswith(f"process {self.index} "))

    def answer(self, question: dict, seconds: float) -> dict | None:
        """Ask the coordinator; None if it does not answer in time."""
        line = self.line
        number = line.ask(question)
        line.wait(lambda: number in line.got or COORDINATOR in line.lost, seconds)
        return line.got.pop(number, None)

    # -- the end -----------------------------------------------------------------------------

    def leave(self) -> None:
        """Say goodbye when everything that runs on several processes is through."""
        if not self.open:
            return
        if not self.uncaught and not self.lost and not self.stuck:
            try:
                finish_flights()
            except PlaitError:  # it is told already
                self.stuck = True
        self.open = False
        if self.lost or self.uncaught or self.stuck:
            self.line.close(self.uncaught)
            return
        self.client.shutdown()  # first: the service that it is connected to may end with us
        self.line.close("")
        self.line.end()
        if self.coordinator is not None:
            self._see_others_off()

    def _see_others_off(self) -> None:
        """Wait until the others have left: where this process is all of a container, the
        coordinator ends with it."""
        end = time.monotonic() + self.farewell
        assert self.coordinator is not None
        while self.coordinator.poll() is None and time.monotonic() < end:
            time.sleep(0.02)


_SAID = {
    "program": "the program",
    "array": "the array",
    "sync": "the point",
    "values": "the values",
    "barrier": "the barrier",
}
_worlds: list[World] = []


def world() -> World:
    """The processes that this one computes with; DistributedError if it computes alone."""
    if not _worlds or not _worlds[0].open:
        raise DistributedError(
            "this process computes alone",
            fix="call plait.distributed.initialize() first, before any array is made",
        )
    return _worlds[0]


def is_initialized() -> bool:
    """Whether this process takes part in a computation of several.

    >>> import plait
    >>> plait.distributed.is_initialized()
    False
    """
    return bool(_worlds) and _worlds[0].open


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
    """Take part in a computation of several processes, which run the same program.

    From then on `plait.devices()` are the devices of all, numbered alike everywhere, and arrays
    may be spread over them.  It is called once, after settings are made and before any array is.
    What is not given is taken from the environment: our own variables
    (`PLAIT_COORDINATOR_ADDRESS`, `PLAIT_NUM_PROCESSES`, `PLAIT_PROCESS_ID`), those of SLURM,
    Open MPI, other MPIs, an indexed Job of Kubernetes, or torchrun.

    Args:
      coordinator_address: "host:port", the same in all processes.  Process 0, on that host, starts
        a small process that listens there.
      num_processes: how many there are.
      process_id: the number of this one, from 0.
      local_device_ids: which accelerators of this machine it drives; by default all, or, where a
        launcher numbers the processes of a machine, the one of that number.  CPUs have none.
      coordinator_bind_address: where the coordinator listens, if not at its address.
      initialization_timeout: seconds within which all must have come.
      heartbeat_timeout_seconds: seconds without a sign of life after which a process is lost.
      shutdown_timeout_seconds: seconds for which process 0 waits at its end for the others'.
      meeting_timeout_seconds: seconds for which processes wait for each other where they meet:
        when a program is compiled, an array spread, at `sync_global_devices`.
      on_loss: "raise": whoever waits for a lost process gets PeerLost at the line where it waits;
        "exit": this process ends at once, with code 70.

    Raises DistributedError if processes do not fit together (number, versions, settings), if one
    is missing, or the port is taken; ArgumentError for arguments that make no sense.
    """
    if os.name != "posix":
        raise DistributedError(
            f"several processes need a system of POSIX's kind, and this is {sys.platform}",
            fix="compute in one process here; it drives several devices, too",
        )
    if _worlds:
        raise DistributedError(
            "plait.distributed.initialize() was called before in this process",
            fix="call it once; after shutdown() start a new process",
        )
    told = _told(coordinator_address, num_processes, process_id)
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
    assert told.address is not None and told.processes is not None and told.number is not None
    host, port = _split(told.address)
    if started():
        raise DistributedError(
            "the devices of this process exist already, and it can not share them any more",
            fix="call plait.distributed.initialize() before the first array is made and before "
            "plait.devices() is asked for",
        )
    coordinator = None
    if told.number == 0 and LAUNCHED not in os.environ:
        coordinator = _start_coordinator(
            coordinator_bind_address, host, port, told.processes, initialization_timeout
        )
    end = time.monotonic() + initialization_timeout
    line = _connect(
        host, port, told, end, initialization_timeout, heartbeat_timeout_seconds, on_loss
    )
    _join(line, told, end, initialization_timeout)
    ids = [local_device_ids] if isinstance(local_device_ids, int) else local_device_ids
    made = World(
        told.number,
        told.processes,
        line,
        ids if ids is not None or told.local is None else [told.local],
    )
    made.coordinator, made.farewell = coordinator, shutdown_timeout_seconds
    made.patience = meeting_timeout_seconds
    left = max(1, int(end - time.monotonic()))
    _enter(made, f"{_bracketed(line.sock.getpeername()[0])}:{line.service}", left)


# ---- who -------------------------------------------------------------------------------------


def _told(address: str | None, count: int | None, index: int | None) -> Told:
    """Who this process is, by its arguments, else by its launcher."""
    found = Told() if None not in (address, count, index) else detect()
    told = Told(
        found.address if address is None else address,
        found.processes if count is None else count,
        found.number if index is None else index,
        found.local,
        found.source,
    )
    absent = [
        name
        for name, value in zip(("coordinator_address", "num_processes", "process_id"), told)
        if value is None
    ]
    if absent:
        read = "" if found.source == "nothing" else f", that of {found.source},"
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
    return told


def _split(address: str) -> tuple[str, int]:
    """The host and the port of "host:port" or "[host]:port"."""
    host, _, port = str(address).rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ArgumentError(
            f"coordinator_address is {address!r}",
            fix='write a host and a port: "10.0.0.1:12345"',
        )
    return host, int(port)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _facts() -> dict[str, str]:
    """What must be the same in all processes."""
    facts = {
        "plait": plait.__version__,
        "jaxlib": JAXLIB_VERSION,
        "python": ".".join(machine.python_version_tuple()[:2]),
    }
    return facts | {name: str(getattr(plait.config, name)) for name in _SETTINGS}


# ---- joining ---------------------------------------------------------------------------------


def _start_coordinator(
    bind: str | None, host: str, port: int, count: int, patience: float
) -> subprocess.Popen:
    """Start the process that the others connect to, on a socket that listens already."""
    listener = _listening(bind, host, port)
    with listener:
        return start_coordinator(listener, count, patience)


def start_coordinator(listener: socket.socket, count: int, patience: float) -> subprocess.Popen:
    """Start the coordinator on a socket that listens."""
    number = listener.fileno()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path),
        "TF_CPP_MIN_LOG_LEVEL": "3",  # what ends, the processes say themselves
    }
    return subprocess.Popen(
        [sys.executable, "-m", "plait_sharding.distributed.coordinator", str(number), str(count),
         str(patience)],
        pass_fds=[number],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # signals to this process's group are not for it
        env=environment,
    )  # fmt: skip


def _listening(bind: str | None, host: str, port: int) -> socket.socket:
    """A socket that listens at the coordinator's address."""
    where, at = (host, port) if bind is None else _split(bind)
    try:
        return _server(where, at)
    except OSError as e:
        if e.errno == 98 or "in use" in str(e):
            raise DistributedError(
                f"the port {at} of {where}, where the coordinator was to listen, is taken",
                fix="choose another one for coordinator_address, in all processes, or end who has "
                "it: perhaps processes of an earlier start",
            ) from None
        raise DistributedError(
            f"process 0 can not listen at {where}:{at}: {e}",
            fix="coordinator_address is an address of the machine of process 0; if others know it "
            "by another one, say where to listen: coordinator_bind_address",
        ) from None


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


def _connect(
    host: str, port: int, told: Told, end: float, patience: float, silence: float, on_loss: str
) -> Lifeline:
    """The connection to the coordinator, when it listens."""
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
    return Lifeline(sock, silence, _end_at_once if on_loss == "exit" else _nothing)


def _join(line: Lifeline, told: Told, end: float, patience: float) -> None:
    """Come in, and wait until all have."""
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


def _enter(made: World, service: str, seconds: int) -> None:
    """Connect the runtime, and make the devices, which all do together."""
    made.line.beat_beside(made.index)
    _worlds.append(made)
    _install(made)
    try:
        _make_devices(made, service, seconds)
    except BaseException as e:
        made.stuck, made.open = True, False  # a thread of the runtime may wait for ever
        made.line.close(f"{type(e).__name__} at its beginning")
        raise


def _make_devices(made: World, service: str, seconds: int) -> None:
    """Make the devices in a thread, for as long as nobody is lost."""
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


# ---- leaving ---------------------------------------------------------------------------------


@border
def shutdown() -> None:
    """Leave the computation; the last thing that is done together.

    It is called by itself when the process ends.  Process 0 waits for the others then.
    """
    if _worlds:
        _worlds[0].leave()


def _install(made: World) -> None:
    """Have the end of this process told: in order, or by an exception, which is named."""
    watch_display()
    shown = sys.excepthook

    def noted(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
        if os.getpid() == made.pid and made.open:
            first = (str(error).splitlines() or [""])[0]
            made.uncaught = f"{kind.__name__}: {first}"[:300]
            made.line.close(made.uncaught)
        shown(kind, error, traceback)

    sys.excepthook = noted
    atexit.register(_at_exit, made)
    os.register_at_fork(after_in_child=made.line.forget)


def _at_exit(made: World) -> None:
    """Leave; where threads of the runtime wait for ever, end without them."""
    if os.getpid() != made.pid:
        return
    made.leave()
    if made.uncaught or made.lost or made.stuck:
        atexit.unregister(_at_exit)
        atexit._run_exitfuncs()  # those of others, which would not be run any more
        _end(1 if made.uncaught else LOST_CODE)


def _end_at_once(text: str) -> None:
    """on_loss="exit": the loss is told already."""
    os._exit(LOST_CODE)


def _nothing(text: str) -> None:
    """on_loss="raise": whoever waits finds out."""


def _end(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # closed, or there is none
            pass
    os._exit(code)
