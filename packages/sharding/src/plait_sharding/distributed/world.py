"""This process as one of several: the interface that core uses, and meetings of processes.

Invariant: every wait here ends within a limit, by an error that names the missing processes.
"""

import hashlib
import os
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from plait.errors import PlaitError
from plait.ext.processes import Membership, finish_flights, gloo

from .failures import DistributedError, PeerLost, ProgramsDiffer
from .lifeline import Lifeline
from .wire import COORDINATOR

__all__ = ["World", "current_world", "worlds"]

_AFTER_LEAVING = 10.0
"""Seconds to wait for results that depend on a process which has ended in order."""
_NEWS = 3.0
"""Seconds to wait for the coordinator's report after the runtime has noticed a lost process."""
_NOTICE = 30.0
"""Seconds of waiting after which standard error gets a message with the reason."""


class World(Membership):
    """This process among the processes of one computation."""

    def __init__(
        self, index: int, count: int, line: Lifeline, local_device_ids: Sequence[int] | None
    ):
        self.index, self.count, self.line = index, count, line
        self.local_device_ids, self.lost = local_device_ids, line.lost
        self.pid, self.uncaught, self.open = os.getpid(), "", True
        self.broken: str | None = None
        self.stuck = False
        self.client: Any = None
        self.coordinator: subprocess.Popen[Any] | None = None
        self.patience, self.farewell = 600.0, 300.0
        self._meetings: dict[tuple[int, ...], int] = {}
        self._counting = Lock()

    # -- for core ----------------------------------------------------------------------------

    def client_options(self, platform: str) -> dict[str, Any]:
        options = {
            "distributed_client": self.client,
            "node_id": self.index,
            "num_nodes": self.count,
        }
        if platform == "cpu":
            return {**options, "collectives": gloo(self.client, self.line.own_host())}
        if platform not in ("cuda", "rocm"):  # other platforms number processes themselves
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
            f"{'; '.join(told)}. What this process computes with it cannot be finished",
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
    ) -> dict[int, list[Any]]:
        """Wait until all processes of a group are here; return [kind, name, value] of each.

        The meetings of a group are numbered.  If processes come to the same number for different
        things, they have diverged, and each of them raises ProgramsDiffer.  Raises PeerLost if an
        awaited process is lost or has left; DistributedError if one does not come in time.
        """
        group = tuple(sorted(group))
        seconds = self.patience if seconds is None else seconds
        line = self.line
        found = self.loss(group, 0.0)
        if found is not None:
            raise found
        with self._counting:  # messages must be sent in the order of their numbers
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
        """Wait for the others of the group; raise if one is lost or has left, or is late."""
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
        """Return the last known place of each other process, as text."""
        answer = self.answer({"where": self.index}, 2.0)
        if answer is None:
            return "the coordinator does not answer"
        said = [f"process {i} was last at {at}" for i, at in sorted(answer["value"].items())]
        return "; ".join(s for s in said if not s.startswith(f"process {self.index} "))

    def answer(self, question: dict[str, Any], seconds: float) -> dict[str, Any] | None:
        """Send the coordinator a question; return its answer, or None if it comes too late."""
        line = self.line
        number = line.ask(question)
        line.wait(lambda: number in line.got or COORDINATOR in line.lost, seconds)
        return line.got.pop(number, None)

    # -- the end -----------------------------------------------------------------------------

    def leave(self) -> None:
        """Leave in order, after finishing everything that runs on several processes."""
        if not self.open:
            return
        if not self.uncaught and not self.lost and not self.stuck:
            try:
                finish_flights()
            except PlaitError:  # the program has raised it already
                self.stuck = True
        self.open = False
        if self.lost or self.uncaught or self.stuck:
            self.line.close(self.uncaught)
            return
        self.client.shutdown()  # first, since the service may end with our connection
        self.line.close("")
        self.line.end()
        if self.coordinator is not None:
            self._see_others_off()

    def _see_others_off(self) -> None:
        """Wait until the others have left: if this process is all of a container, the coordinator
        ends with it."""
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

worlds: list[World] = []
"""The world of this process, unless it computes alone.  There is at most one, which stays here
after it has been left."""


def current_world() -> World:
    """Return the processes that this one computes with; DistributedError if it computes alone."""
    if not worlds or not worlds[0].open:
        raise DistributedError(
            "this process computes alone",
            fix="call plait.distributed.initialize() first, before any array is made",
        )
    return worlds[0]
