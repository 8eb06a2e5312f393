"""Several processes that compute together: which one this is, and how it waits for the others.

A process is alone unless a plugin gives it a `Membership` before its devices exist.  From then on
programs that run on devices of several processes are *flights*: one at a time, each watched by a
thread, so that whoever waits for results waits in Python and can be told that they will not come.
In native code such a wait ends when the operating system says so, or never.

Invariant: a process that is alone asks for nothing here when it dispatches a call; membership
changes what is wrapped around executables when they are bound, and how arrays are waited for.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

from .._base.errors import PlaitError

__all__ = [
    "Flight",
    "Membership",
    "await_ready",
    "expect_present",
    "explained",
    "finish_flights",
    "in_flight",
    "join",
    "member",
    "member_here",
]


class Membership(ABC):
    """What a plugin says of the processes that compute together, and of this one among them.

    Attributes:
      index: the number of this process.
      count: how many there are.
      lost: why each process that ended before its time did, by number; it only grows.
    """

    index: int
    count: int
    lost: dict[int, str]

    @abstractmethod
    def client_options(self, platform: str) -> dict[str, Any]:
        """How the runtime's client of a platform ("cpu", "cuda", ...) takes part."""

    @abstractmethod
    def agree(self, code: bytes, name: str, owners: tuple[int, ...]) -> None:
        """Raise unless all `owners` are about to run this program, each as its next one."""

    @abstractmethod
    def launches(self, code: bytes, name: str, owners: tuple[int, ...]) -> Callable[[], None]:
        """Return what is called each time that this program begins to run; it must not wait."""

    @abstractmethod
    def agree_on_values(self, values: Any, what: str, owners: tuple[int, ...]) -> None:
        """Raise unless all `owners` spread this numpy array, `what` in words, with these values."""

    @abstractmethod
    def loss(self, owners: Iterable[int], waited: float) -> PlaitError | None:
        """Return the error for those of these processes that will not do their part; None while
        they may.  `waited`: how many seconds they were waited for."""

    @abstractmethod
    def explain(self, failure: Exception) -> PlaitError | None:
        """Return the error for a failure of the runtime that the end of a process caused."""


_member: list[Membership] = []
member_here = _member
"""The membership, in a list that is empty while the process is alone."""


def member() -> Membership | None:
    """The membership of this process; None if it is alone."""
    return _member[0] if _member else None


def join(as_member: Membership) -> None:
    """Take part in a computation of several processes, from before the devices exist until the
    process ends."""
    _member[:] = [as_member]


# ---- waiting ---------------------------------------------------------------------------------

_FIRST, _LONGEST = 2e-5, 2e-3
"""Seconds between two looks at an array that is waited for; they grow from one to the other."""
_GRACE = 0.5
"""Seconds in which a flight may still fail by itself after one of its processes was lost: then
this process's devices are free again."""


class Flight:
    """One run of a program on devices of these processes, until it is through."""

    def __init__(self, owners: frozenset[int], wait: Callable[[], Any]):
        self.owners, self.began = owners, time.monotonic()
        self.landed = Event()
        self.error: BaseException | None = None
        self._lost_since: float | None = None
        _watch(self, wait)

    def loss(self) -> PlaitError | None:
        """The error for a flight that will not end; None while it may, and after it has."""
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
        """Wait until it is through, whether it failed or not; raise if it never will be."""
        while not self.landed.wait(0.02):
            found = self.loss()
            if found is not None:
                raise found


in_flight: list[Flight] = []
"""The last flight, if nobody has waited for it yet."""


def finish_flights() -> None:
    """Wait until what runs on several processes is through; raise if it never will be."""
    for flight in list(in_flight):
        flight.finish()


def _watch(flight: Flight, wait: Callable[[], Any]) -> None:
    """Let a thread call `wait()`, which returns or raises when the flight is through.

    A thread that waits for what never comes stays behind; the next flight finds another one.
    """
    if not _idle:
        _Watcher().start()
    _idle.pop().put((flight, wait))


_idle: list[SimpleQueue] = []
"""Where threads that have nothing to do are given something."""


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
            except BaseException as e:  # of a callback, too: who waits raises it
                flight.error = e
            _idle.append(self.jobs)
            flight.landed.set()
            del flight, wait  # a token would keep what it is of


def await_ready(buf: Any) -> None:
    """Return when the array is computed, or its computation has failed; raise if neither will be,
    since a process has ended that was to compute a part of it, or of what it comes after."""
    pause = _FIRST
    while not buf.is_ready():
        for flight in in_flight:
            found = flight.loss()
            if found is not None:
                raise found
        time.sleep(pause)
        pause = min(1.5 * pause, _LONGEST)


def explained(failure: Exception) -> PlaitError | None:
    """Return the error for a failure of the runtime, if another process has caused it."""
    return _member[0].explain(failure) if _member else None


def expect_present(owners: frozenset[int]) -> None:
    """Raise if one of these processes is lost, so that a program on them can not run."""
    found = _member[0].loss(owners, 0.0)
    if found is not None:
        raise found
