"""The coordinator: a small separate process to which all others are connected.

    python -m plait_sharding.distributed.coordinator SOCKET COUNT PATIENCE

Processes find each other through it, and it reports the end of one to the others.  They also meet
there: before they run a program, and at barriers.  It holds the service of the runtime, whose end
would end every process that is connected to it.  It ends with the last of them.

Invariant: nothing here waits for one process: reading and writing never block, and a process that
is silent for too long is dropped.
"""

import math
import os
import selectors
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from plait.ext.processes import RuntimeFailure, distributed_service

from .wire import LONGEST, Garbled, Lines, packed

__all__ = ["Coordinator", "main", "service_beside"]

_REMEMBERED = 1 << 16
"""The largest lag between processes, in runs, at which their runs are still compared."""
_ALONE = 2.0
"""Seconds for which the coordinator stays when all have left before all had come."""


class Peer:
    """One connection: that of a process, or that of its pulse."""

    def __init__(self, sock: socket.socket):
        self.sock, self.lines, self.out = sock, Lines(), bytearray()
        self.index: int | None = None
        self.name, self.at = "", "nowhere yet"
        self.facts: dict[str, Any] = {}
        self.pulse, self.closing = False, False
        self.heard = time.monotonic()


class Coordinator:
    """A server for `count` processes on a listening socket, until the last is gone."""

    def __init__(self, listener: socket.socket, count: int, patience: float, service: int):
        self.count, self.patience, self.service = count, patience, service
        self.silence, self._told = 60.0, 0.0  # until a process gives its limit of silence
        self.members: dict[int, Peer] = {}
        self.came: set[int] = set()
        self.gone: dict[int, str] = {}
        self.complete = False
        self.refusals: list[str] = []
        self.meetings: dict[tuple[Any, ...], dict[int, list[Any]]] = {}
        self.runs: dict[tuple[Any, ...], dict[int, list[Any]]] = {}
        self.counts: dict[tuple[Any, ...], int] = {}
        self.differing: set[tuple[Any, ...]] = set()
        self.listener, self.peers = listener, set[Peer]()
        self.selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self.selector.register(listener, selectors.EVENT_READ, None)
        self.orders: dict[str, Callable[[Peer, dict[str, Any]], None]] = {
            "at": self._met,
            "where": self._where,
            "ran": self._ran,
            "bye": self._bye,
        }

    def serve(self) -> None:
        """Serve until the last process is gone, or until none has come in time."""
        begun = alone = last = time.monotonic()
        while True:
            step = max(0.05, min(self.silence / 6, 5.0))
            events = self.selector.select(step)
            now = time.monotonic()
            if now - last > self.silence / 2:  # this process itself was suspended
                for peer in self.peers:
                    peer.heard = now
            last = now
            for key, ready in events:
                if key.data is None:
                    self._accept()
                    continue
                if ready & selectors.EVENT_READ:
                    self._read(key.data, now)
                if ready & selectors.EVENT_WRITE:
                    self._write(key.data)
            self._beat(now, step)
            if self.peers:
                alone = now
            elif self.complete or now - (alone if self.came else begun) > (
                _ALONE if self.came else self.patience
            ):
                return

    # -- connections -------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            sock, _ = self.listener.accept()
        except OSError:
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(sock)
        self.peers.add(peer)
        self.selector.register(sock, selectors.EVENT_READ, peer)

    def _read(self, peer: Peer, now: float) -> None:
        try:
            data = peer.sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(peer, "its connection closed")
            return
        peer.heard = now
        try:
            for message in peer.lines.messages(data):
                self._take(peer, message)
        except Exception as e:  # of any kind: one process must not end the others' coordinator
            self._drop(peer, f"it sent what is not a message ({type(e).__name__}: {e})")

    def _write(self, peer: Peer) -> None:
        try:
            sent = peer.sock.send(peer.out)
        except BlockingIOError:
            return
        except OSError:
            self._drop(peer, "its connection closed")
            return
        del peer.out[:sent]
        if not peer.out:
            if peer.closing:
                self._close(peer)
            else:
                self.selector.modify(peer.sock, selectors.EVENT_READ, peer)

    def _send(self, peer: Peer, message: dict) -> None:
        if peer not in self.peers:
            return
        peer.out += packed(message)
        self.selector.modify(peer.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)
        if len(peer.out) > 2 * LONGEST:
            self._drop(peer, "it reads nothing any more")

    def _tell(self, message: dict) -> None:
        for peer in list(self.members.values()):
            self._send(peer, message)

    def _close(self, peer: Peer) -> None:
        if peer in self.peers:
            self.peers.discard(peer)
            self.selector.unregister(peer.sock)
            peer.sock.close()

    def _drop(self, peer: Peer, why: str) -> None:
        """Close a connection; if its process has not said goodbye, that process is lost."""
        self._close(peer)
        if peer.index is None or peer.pulse or self.members.get(peer.index) is not peer:
            return
        del self.members[peer.index]
        self._lost(peer, why)

    def _lost(self, peer: Peer, why: str) -> None:
        assert peer.index is not None
        self.gone[peer.index] = why
        if self.complete:
            self._tell({"lost": peer.index, "name": peer.name, "why": why})
            return
        missing = [str(i) for i in range(self.count) if i not in self.came]
        without = f" (number {' and '.join(missing)} did not)" if missing else ""
        for other in list(self.members.values()):
            self._refuse(
                other,
                f"{peer.name} ended before all {self.count} processes had come{without}: {why}",
                "see what it says itself, and start all processes again",
            )

    def _beat(self, now: float, step: float) -> None:
        alive = {p.index: p.heard for p in self.peers if p.pulse}
        for peer in list(self.peers):
            heard = max(peer.heard, alive.get(peer.index, 0.0) if not peer.pulse else 0.0)
            if now - heard <= self.silence:
                continue
            why = f"it has said nothing for {now - heard:.0f} s"
            if peer.index is not None and not peer.pulse and self.members.get(peer.index) is peer:
                self._send(peer, {"lost": peer.index, "name": peer.name, "why": why})
                self._write(peer)  # the process reads this if it resumes
            self._drop(peer, why)
        if now - self._told > step:
            self._told = now
            self._tell({"beat": 1})

    # -- arrivals and departures -------------------------------------------------------------

    def _take(self, peer: Peer, message: dict) -> None:
        if peer.closing:  # it has not read its refusal yet
            return
        if peer.index is not None:
            for order, do in self.orders.items():
                if order in message:
                    do(peer, message)
                    return
        elif "pulse" in message:
            peer.index, peer.pulse = self._number(message["pulse"]), True
        elif "hello" in message:
            self._hello(peer, message)
        else:
            raise Garbled("no greeting")

    def _number(self, given: Any) -> int:
        """Return the number of a process; raise Garbled unless there is one of that number."""
        if given.__class__ is not int or not 0 <= given < self.count:
            raise Garbled(f"{given!r} is not the number of one of {self.count} processes")
        return given

    def _hello(self, peer: Peer, message: dict) -> None:
        index, count, silence = message["hello"], message["count"], float(message["silence"])
        if count == self.count:
            index = self._number(index)
        if not (math.isfinite(silence) and silence > 0):
            raise Garbled(f"{silence} seconds of silence")
        peer.name, peer.facts = str(message["name"]), dict(message["facts"])
        wrong = self._misfit(peer, index, count)
        if wrong is not None:
            self.refusals.append(wrong[0])
            self._refuse(peer, *wrong)
            self._say_who_is_missing()
            return
        peer.index, peer.lines.longest = index, LONGEST
        self.silence = min(self.silence if self.came else 1e9, silence)
        self.members[index] = peer
        self.came.add(index)
        if len(self.members) < self.count:
            self._say_who_is_missing()
            return
        self.complete = True
        names = {i: p.name for i, p in self.members.items()}
        hosts = {i: _host(p.sock) for i, p in self.members.items()}
        self._tell({"welcome": names, "hosts": hosts, "service": self.service})

    def _misfit(self, peer: Peer, index: int, count: int) -> tuple[str, str] | None:
        """Return the reason why a process may not join, and a fix; None if it may."""
        if count != self.count:
            return (
                f"{peer.name} was started for {count} processes, and process 0 for {self.count}",
                "give all of them the same num_processes",
            )
        if index in self.came:
            first = self.members.get(index)
            return (
                f"{peer.name} came when there was already {first.name if first else 'one'} with "
                "the same number",
                "give each process a process_id of its own, from 0 to num_processes - 1",
            )
        for other in self.members.values():
            differing = [k for k, v in peer.facts.items() if other.facts.get(k) != v]
            if differing:
                said = ", ".join(
                    f"{k} ({peer.facts[k]!r} and {other.facts.get(k)!r})" for k in differing
                )
                return (
                    f"{peer.name} and {other.name} differ in {said}",
                    "install the same versions and make the same settings everywhere",
                )
        return None

    def _refuse(self, peer: Peer, what: str, fix: str) -> None:
        if peer.index is not None:
            self.members.pop(peer.index, None)
            peer.index = None
        peer.closing = True
        self._send(peer, {"refused": what, "fix": fix})

    def _say_who_is_missing(self) -> None:
        missing = [i for i in range(self.count) if i not in self.members]
        self._tell({"missing": missing, "refusals": self.refusals})

    def _bye(self, peer: Peer, message: dict) -> None:
        assert peer.index is not None
        self.members.pop(peer.index, None)
        why, index = str(message["bye"]), peer.index
        if why:
            self._lost(peer, f"it ended by {why}")
        else:
            self.gone[index] = ""
            self._tell({"left": index})
        # The connection stays open until the process closes it: the runtime's service ends with the
        # last connection, and would end a process that is about to leave.

    # -- meetings ----------------------------------------------------------------------------

    def _group(self, message: dict) -> tuple[int, ...]:
        """Return the numbers of the processes that a message is about."""
        group = tuple([self._number(i) for i in message["group"]])
        if not group or len(set(group)) < len(group):
            raise Garbled(f"{group} is not a group of processes")
        return group

    def _met(self, peer: Peer, message: dict) -> None:
        """Record a process at a meeting; when all are there, send the values of all to each."""
        group, number = self._group(message), int(message["at"])
        peer.at = f"{message['kind']} {message['name']!r}"
        key = group, number
        there = self.meetings.setdefault(key, {})
        assert peer.index is not None
        there[peer.index] = [message["kind"], message["name"], message["value"]]
        if len(there) < len(group):
            return
        del self.meetings[key]
        for i in group:
            if i in self.members:
                self._send(
                    self.members[i],
                    {"met": list(group), "number": number, "each": dict(sorted(there.items()))},
                )

    def _ran(self, peer: Peer, message: dict) -> None:
        """Compare the programs that a process has begun to run with those of its group."""
        group, me = self._group(message), peer.index
        table = self.runs.setdefault(group, {})
        number = self.counts.get((group, me), 0)
        for mark, name in message["ran"]:
            known = table.setdefault(number, [mark, name, me, 0])
            known[3] += 1
            if known[0] != mark and group not in self.differing:
                self.differing.add(group)
                text = f"process {known[2]} runs {known[1]!r}, and process {me} {name!r}"
                text += " (another program of that name)" if name == known[1] else ""
                self._tell({"differ": text})
            if known[3] == len(group):
                del table[number]
            number += 1
        self.counts[group, me] = number
        while len(table) > _REMEMBERED:  # the runs that the slowest process lacks are not compared
            del table[next(iter(table))]

    def _where(self, peer: Peer, message: dict) -> None:
        """Send a process the last known place of each process."""
        said = {i: p.at for i, p in self.members.items()}
        self._send(peer, {"got": message["id"], "value": said})


def _host(sock: socket.socket) -> str:
    """Return the address from which a process has connected, or nothing if it has gone."""
    try:
        return sock.getpeername()[0]
    except OSError:
        return ""


def service_beside(host: str, port: int, count: int, patience: float) -> tuple[Any, int]:
    """Start the runtime's service on the next free port; return it and the port."""
    host = f"[{host}]" if ":" in host else host
    for candidate in [*range(port + 1, port + 64), *range(20000, 20064)]:
        if candidate > 65535 or not _free(host.strip("[]"), candidate):
            continue
        try:
            made = distributed_service(f"{host}:{candidate}", count, int(patience) + 60)
        except RuntimeFailure:  # another process took the port meanwhile
            continue
        return made, candidate
    raise SystemExit(f"the coordinator at port {port} found no free port for the runtime's service")


def _free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        try:
            sock.bind((host, port))
        except OSError:
            return False
    return True


def main(args: list[str]) -> None:
    """Serve on an inherited socket, given by its number."""
    listener = socket.socket(fileno=int(args[0]))
    count, patience = int(args[1]), float(args[2])
    host, port = listener.getsockname()[:2]
    service, beside = service_beside(host, port, count, patience)
    coordinator = Coordinator(listener, count, patience, beside)
    # A pipe that reads what process 0 prints would not end before the coordinator does.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    coordinator.serve()
    service.shutdown()


if __name__ == "__main__":
    main(sys.argv[1:])
