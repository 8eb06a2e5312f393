"""The connection of a process to the coordinator, and the news that arrive on it.

A thread reads it.  It writes the end of other processes to standard error at once, since the
program may be in a call that no exception reaches.

Invariant: the thread calls nothing that waits for another process, and uses neither arrays nor
programs.  It only adds to its records, under one lock.
"""

import os
import select
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import Any

from .wire import COORDINATOR, LONGEST, Garbled, Lines, packed

__all__ = ["Lifeline"]

_REPORT = 0.2
"""Seconds between two reports of the programs that were run."""
_PULSE = Path(__file__).with_name("pulse.py")


class Lifeline:
    """One socket to the coordinator; if it closes without a goodbye, this process counts as lost.

    Attributes:
      names: machine and process id of the processes, by number.
      hosts: the addresses from which the coordinator sees them, by number.
      lost: the cause of the loss of each lost process, by number; -1 is the coordinator.
      left: the processes that have ended in order.
      missing: the processes that have not come yet.
      refusals: the coordinator's messages to processes that may not take part.
      refused: (what, fix) if this process may not take part.
      service: the port of the runtime's service, once all have come.
      got: the coordinator's answers, by the number of the question.
      launched: digests and names of the programs that each group began to run, for the coordinator
        to compare; they are sent several times a second.
      differs: the coordinator's message if processes run different programs.
      met: the values that the processes of a group brought to a meeting, by (group, number).
    """

    def __init__(self, sock: socket.socket, silence: float, on_loss: Callable[[str], None]):
        self.sock, self.silence, self._on_loss = sock, silence, on_loss
        self.names: dict[int, str] = {}
        self.hosts: dict[int, str] = {}
        self.lost: dict[int, str] = {}
        self.left: set[int] = set()
        self.missing: list[int] = []
        self.refusals: list[str] = []
        self.refused: tuple[str, str] | None = None
        self.service: int | None = None
        self.met: dict[tuple[tuple[int, ...], int], dict[int, list[Any]]] = {}
        self.got: dict[int, dict[str, Any]] = {}
        self.launched: dict[tuple[int, ...], deque[list[str]]] = {}
        self.differs: str | None = None
        self.changed = Condition()
        self.closed = False
        self._asked = 0
        self._saying = Lock()
        self._pulse: subprocess.Popen | None = None
        self.sock.settimeout(max(silence, 1.0))
        self._thread = Thread(target=self._listen, name="plait lifeline", daemon=True)
        self._thread.start()

    # -- sending -----------------------------------------------------------------------------

    def say(self, message: dict[str, Any]) -> None:
        """Send a message.  Failures are ignored, since the thread notices a closed connection."""
        try:
            with self._saying:
                self.sock.sendall(packed(message))
        except OSError:
            pass

    def ask(self, message: dict[str, Any]) -> int:
        """Send a question; return the number under which its answer will be in `got`."""
        with self.changed:
            self._asked += 1
            number = self._asked
        self.say({**message, "id": number})
        return number

    def wait(self, enough: Callable[[], Any], seconds: float) -> bool:
        """Wait until `enough()` is true, checking it after each message; return whether it is."""
        with self.changed:
            return bool(self.changed.wait_for(enough, seconds))

    def beat_beside(self, index: int) -> None:
        """Start the small process that reports that this one lives.

        It reports even while one call into native code holds Python's lock for longer than the
        others' limit of silence.
        """
        host, port = self.sock.getpeername()[:2]
        self._pulse = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_PULSE), host, str(port), str(index),
             str(max(0.1, self.silence / 6))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def own_host(self) -> str:
        """Return the address at which the other processes can reach this one.

        It is the one from which this process reached the coordinator.  That of process 0 may be a
        loopback address, since the coordinator is beside it, while others are elsewhere.
        """
        mine = self.sock.getsockname()[0]
        away = [h for h in self.hosts.values() if h and not h.startswith(("127.", "::1"))]
        if not mine.startswith(("127.", "::1")) or not away:
            return mine
        family = socket.AF_INET6 if ":" in away[0] else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((away[0], 9))  # no packet is sent
            return probe.getsockname()[0]

    def close(self, why: str) -> None:
        """Send a goodbye: in order if `why` is empty, else because of the error that it names."""
        if self.closed:
            return
        self.closed = True  # first, since the answer may be that the connection closes
        self.say({"bye": why})
        with self.changed:
            self.changed.notify_all()

    def forget(self) -> None:
        """Close the copies of the sockets in a forked child, so that they do not delay our end."""
        self.closed = True
        self.sock.close()
        if self._pulse is not None and self._pulse.stdin is not None:
            self._pulse.stdin.close()

    def end(self) -> None:
        """Close the connection, and end the small process that reports for this one."""
        self.closed = True
        try:
            self.sock.shutdown(socket.SHUT_RDWR)  # this also wakes the thread
        except OSError:
            pass
        self._thread.join(5.0)
        self.sock.close()
        if self._pulse is not None:
            assert self._pulse.stdin is not None
            self._pulse.stdin.close()
            try:
                self._pulse.wait(5.0)
            except subprocess.TimeoutExpired:
                self._pulse.kill()
                self._pulse.wait()

    # -- receiving ---------------------------------------------------------------------------

    def _listen(self) -> None:
        lines, step = Lines(), max(0.05, min(self.silence / 6, 5.0))
        lines.longest = LONGEST
        heard = said = last = reported = time.monotonic()
        while True:
            try:
                ready, _, _ = select.select([self.sock], [], [], min(step, _REPORT))
            except (OSError, ValueError):  # this process has closed the socket
                return
            now = time.monotonic()
            if now - last > self.silence / 2:  # this process itself was suspended
                heard = now
            last = now
            if now - said > step and not self.closed:
                self.say({"beat": 1})
                said = now
            if now - reported > _REPORT and not self.closed:
                self._report()
                reported = now
            if ready:
                heard = now
                if not self._heard(lines):
                    return
            elif now - heard > self.silence:
                self._gone(
                    COORDINATOR, "the coordinator", f"it says nothing for {now - heard:.0f} s"
                )
                return

    def _report(self) -> None:
        """Send the coordinator the programs that were run since the last report."""
        for group, log in list(self.launched.items()):
            some = [log.popleft() for _ in range(len(log))]
            if some:
                self.say({"ran": some, "group": group})

    def _heard(self, lines: Lines) -> bool:
        """Read the messages that have come; return whether the connection is still open."""
        try:
            data = self.sock.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            if self.refused is None and not self.closed:
                self._gone(COORDINATOR, "the coordinator", "its connection closed")
            return False
        try:
            for message in lines.messages(data):
                self._take(message)
        except (Garbled, KeyError, TypeError, ValueError) as e:
            self._gone(COORDINATOR, "what answers there", f"it is not a coordinator of ours ({e})")
            return False
        return True

    def _take(self, message: dict[str, Any]) -> None:
        if "lost" in message:
            self._gone(int(message["lost"]), message["name"], message["why"])
            return
        with self.changed:
            if "met" in message:
                each = {int(i): brought for i, brought in message["each"].items()}
                self.met[tuple(message["met"]), message["number"]] = each
            elif "got" in message:
                self.got[message["got"]] = message
            elif "left" in message:
                self.left.add(message["left"])
            elif "differ" in message:
                if self.differs is None:
                    self.differs = str(message["differ"])
                    os.write(2, f"plait: {self.differs}\n".encode(errors="replace"))
            elif "missing" in message:
                self.missing, self.refusals = message["missing"], message["refusals"]
            elif "refused" in message:
                self.refused = message["refused"], message["fix"]
            elif "welcome" in message:
                self.names = {int(i): name for i, name in message["welcome"].items()}
                self.hosts = {int(i): str(host) for i, host in message["hosts"].items()}
                self.missing, self.service = [], message["service"]
            else:
                return
            self.changed.notify_all()

    def _gone(self, index: int, name: str, why: str) -> None:
        if self.closed or index in self.lost:
            return
        text = f"{name}: {why}"
        if self.service is not None or index != COORDINATOR:
            os.write(2, f"plait: lost {text}\n".encode(errors="replace"))
            # First, since `_on_loss` may end the process: no waiter may see the loss before that.
            self._on_loss(text)
        with self.changed:
            self.lost[index] = text
            self.changed.notify_all()
