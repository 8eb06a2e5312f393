"""Several processes that compute together: which one this is, and how it waits for the others.

A process is alone unless a plugin gives it a `Membership` before its devices exist.  From then on
programs that run on devices of several processes are *flights*: one at a time, each watched by a
thread.  So a caller waits for results in Python, and can get an error if they will not come. In
native code such a wait ends when the operating system ends it, or never.

Invariant: dispatching a call calls nothing here while the process is alone.  Membership changes the
wrappers of executables, which are made when they are bound, and the wait for arrays.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

from .._base.errors import PlaitError

__all__ = [
    "Flight", "Membership", "await_ready", "expect_present", "explained", "finish_flights",
    "in_flight", "join", "member", "member_here",
]  # fmt: skip


class Membership(ABC):
    """The view that one process has of the processes that compute together; a plugin defines it.

    Attributes:
      index: the number of this process.
      count: the number of processes.
      client: the client of the runtime's service, with its keys and barriers; None before it is
        connected.
      lost: {number: reason} of processes that ended before their time; it only grows.
    """

    client: Any = None
    index: int
    count: int
    lost: dict[int, str]

    @abstractmethod
    def client_options(self, platform: str) -> dict[str, Any]:
        """Return the options with which the runtime's client of a platform ("cpu", ...) takes
        part."""

    @abstractmethod
    def agree(self, code: bytes, name: str, owners: tuple[int, ...]) -> None:
        """Raise unless all `owners` are about to run this program, each as its next one."""

    @abstractmethod
    def launches(self, code: bytes, name: str, owners: tuple[int, ...]) -> Callable[[], None]:
        """Return a function to call each time that this program begins to run; it must not wait."""

    @abstractmethod
    def agree_on_values(self, values: object, what: str, owners: tuple[int, ...]) -> None:
        """Raise unless all `owners` distribute this numpy array, named `what`, with these
        values."""

    @abstractmethod
    def loss(self, owners: Iterable[int], waited: float) -> PlaitError | None:
        """Return the error if some of these processes will not do their part; None while they may.

        `waited` is the number of seconds that this process has waited for them.
        """

    @abstractmethod
    def explain(self, failure: Exception) -> PlaitError | None:
        """Return the error for a failure of the runtime that the end of a process caused."""


_member: list[Membership] = []
member_here = _member
"""The membership, in a list that is empty while the process is alone."""


def member() -> Membership | None:
    """Return the membership of this process; None if it is alone."""
    return _member[0] if _member else None


def join(as_member: Membership) -> None:
    """Join a computation of several processes, before the devices exist and until the process
    ends."""
    _member[:] = [as_member]


# ---- waiting ---------------------------------------------------------------------------------

_FIRST, _LONGEST = 2e-5, 2e-3
"""Seconds between two looks at an awaited array; they grow from the first to the second."""
_GRACE = 0.5
"""Seconds that a flight gets to fail by itself after one of its processes was lost: a flight that
fails leaves this process's devices free."""


class Flight:
    """One run of a program on devices of these processes, until it ends or fails."""

    def __init__(self, owners: frozenset[int], wait: Callable[[], Any]):
        self.owners, self.began = owners, time.monotonic()
        self.landed = Event()
        self.error: BaseException | None = None
        self._lost_since: float | None = None
        _watch(self, wait)

    def loss(self) -> PlaitError | None:
        """Return the error for a flight that will not end; None while it may, and after it has."""
        if self.landed.is_set():
            return None
        now = time.monotonic()
        found = _member[0].loss(self.owners, now - self.began)
        if found is None:
            return None
        if self._lost_since is None:
            self._lost_since = now
        return found if now - self._lost_since > _GRACE else None

    def finish(self) -> None:
        """Wait until it has ended or failed; raise if it never will."""
        while not self.landed.wait(0.02):
            found = self.loss()
            if found is not None:
                raise found


in_flight: list[Flight] = []
"""The last flight, unless it has been waited for."""


def finish_flights() -> None:
    """Wait until the flights of this process have ended or failed; raise if one never will."""
    for flight in list(in_flight):
        flight.finish()


def _watch(flight: Flight, wait: Callable[[], Any]) -> None:
    """Let a thread call `wait()`, which returns or raises when the flight is through.

    A thread whose `wait()` never returns is abandoned; the next flight uses another one.
    """
    if not _idle:
        _Watcher().start()
    _idle.pop().put((flight, wait))


_idle: list[SimpleQueue] = []
"""Job queues of the threads that are idle."""


class _Watcher(Thread):
    def __init__(self) -> None:
        super().__init__(name="plait flight", daemon=True)
        self.jobs: SimpleQueue = SimpleQueue()
        _idle.append(self.jobs)

    def run(self) -> None:
        while True:
            flight, wait = self.jobs.get()
            try:
                wait()
            except BaseException as e:  # of a callback, too; kept for the waiting caller
                flight.error = e
            _idle.append(self.jobs)
            flight.landed.set()
            del flight, wait  # this loop must not keep the program and its results alive


def await_ready(buf: Any) -> None:
    """Return when the array is computed, or its computation has failed.

    Raise if neither will happen, since a process has ended that had to compute a part of it, or of
    its operands.
    """
    pause = _FIRST
    while not buf.is_ready():
        for flight in in_flight:
            found = flight.loss()
            if found is not None:
                raise found
        time.sleep(pause)
        pause = min(1.5 * pause, _LONGEST)


def explained(failure: Exception) -> PlaitError | None:
    """Return the error for a failure of the runtime, if another process caused it."""
    return _member[0].explain(failure) if _member else None


def expect_present(owners: frozenset[int]) -> None:
    """Raise if one of these processes is lost, so that a program on them cannot run."""
    found = _member[0].loss(owners, 0.0)
    if found is not None:
        raise found
