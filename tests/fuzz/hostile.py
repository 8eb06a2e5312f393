"""Changed artifacts in great number, read apart: `--count N`; `--seed S --count 1` for one again.

Half of them have the checksums of what they were changed to (`test_changed_artifacts.mutant`).  The
processes that read are copies of one that has read an artifact which nobody changed: a process that
starts anew imports for a quarter of a second, and reads for some thousandths.  A copy costs more
than what it reads, too, so that it is given many files, and answers each; the product gives it one.
That is harder on who asks, for a file may have damaged what the next ones are read with.  What ends
a copy that has read others is read again by one that has not, whose end is counted.

Invariant: the process that is copied has one thread, and has seen no file of strangers; the one
that gives files to be read sees what the copies write, and nothing else.
"""

import argparse
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time

from test_changed_artifacts import mutant, originals, outcome

from plait_export import isolated_reader, isolation, structure

_BYTES = 8
LONGEST = 10.0
"""Seconds in which there is an answer."""
REPORTED = 10_000
"""Files, after which it is said how far it is."""
TURNS = 200
"""Files that a copy reads, if it lives."""


def copied(link: socket.socket) -> None:
    """Read what is given; then, for each socket that is sent, make a copy that serves it, say its
    number, and how it ended."""
    isolated_reader._answer(sys.stdin.buffer.read(), "deserialize", set())
    assert len(os.listdir("/proc/self/task")) == 1  # others would be missing from copies
    while True:
        _, sent, _, _ = socket.recv_fds(link, 1, 1)
        if not sent:
            return
        (served,) = sent
        number = os.fork()
        if not number:
            link.close()
            os.dup2(2, 1)
            answer_all(socket.socket(fileno=served))
        os.close(served)
        link.sendall(number.to_bytes(_BYTES, "little"))
        _, status = os.waitpid(number, 0)
        code = os.waitstatus_to_exitcode(status)
        link.sendall(code.to_bytes(_BYTES, "little", signed=True))


def answer_all(link: socket.socket) -> None:
    """Answer file by file, as `isolated_reader.serve` does, until there are no more."""
    structure.take_any_class()
    held = False
    while data := taken(link):
        request, _, blob = data.partition(b"\n")
        asked = json.loads(request)
        if not held:  # they cannot be raised again; the files are of about one size
            isolated_reader.hold_to(asked["seconds"] * TURNS, asked["memory"])
            held = True
        given(link, isolated_reader.answered(asked, blob))
    os._exit(0)


def given(link: socket.socket, data: bytes) -> None:
    """Send some bytes, and how many they are."""
    link.sendall(len(data).to_bytes(_BYTES, "little") + data)


def taken(link: socket.socket, end: float | None = None) -> bytes:
    """What `given` sent; nothing where the other one has ended.  TimeoutError after `end`."""
    found, wanted = b"", _BYTES
    while len(found) < wanted:
        if end is not None:
            link.settimeout(max(1e-3, end - time.monotonic()))
        part = link.recv(1 << 20)
        if not part:
            return b""
        found += part
        if wanted == _BYTES <= len(found):
            wanted += int.from_bytes(found[:_BYTES], "little")
    return found[_BYTES:]


class Copy:
    """A process that reads files, until it ends."""

    server: socket.socket

    def __init__(self) -> None:
        self.link, there = socket.socketpair()
        socket.send_fds(self.server, [b"+"], [there.fileno()])
        there.close()
        self._number = int.from_bytes(self.server.recv(_BYTES), "little")
        self.read = 0

    def asked(self, data: bytes, end: float) -> bytes:
        """Its answer; nothing where it ended."""
        try:
            given(self.link, data)
            return taken(self.link, end)
        except ConnectionError:
            return b""

    def ended(self, by_force: bool = False) -> int:
        """How it ended: it has its number until `copied` has said so."""
        if by_force:
            os.kill(self._number, signal.SIGKILL)
        self.link.close()
        return int.from_bytes(self.server.recv(_BYTES), "little", signed=True)


class Turn:
    """One file that a copy reads, as far as `isolation` asks a Popen."""

    copy: Copy | None = None

    def __init__(self) -> None:
        self.returncode: int | None = None

    def communicate(self, data: bytes, timeout: float) -> tuple[bytes, None]:
        """The answer to one request."""
        while True:
            copy = Turn.copy = Turn.copy or Copy()
            try:
                answer = copy.asked(data, time.monotonic() + timeout)
            except TimeoutError:
                self.returncode, Turn.copy = copy.ended(by_force=True), None
                raise subprocess.TimeoutExpired("a copy", timeout) from None
            copy.read += 1
            if not answer or copy.read == TURNS:
                self.returncode, Turn.copy = copy.ended(), None
            if answer or copy.read == 1:
                self.returncode = 0 if answer else self.returncode
                return answer, None

    def poll(self) -> int | None:
        """How it ended, if it did."""
        return self.returncode

    def kill(self) -> None:
        """It has been done where it was needed."""

    def __enter__(self) -> "Turn":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def instead_of_new_ones(artifact: bytes) -> None:
    """From now on, what is read apart is read by copies of a process that has read an artifact."""
    Copy.server, there = socket.socketpair()
    server = subprocess.Popen(
        [sys.executable, __file__, "--copied", str(there.fileno())],
        pass_fds=[there.fileno()],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    there.close()
    assert server.stdin is not None
    with server.stdin as told:
        told.write(artifact)
    isolation._started = Turn


def report(files: int, counts: dict[str, int], slowest: float) -> None:
    """Say how far it is, and how much memory is held where files are given to be read."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{files} files, {counts}, the slowest {slowest:.1f} s, {most:.0f} MiB here", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    parser.add_argument("--copied", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.copied is not None:
        return copied(socket.socket(fileno=asked.copied))
    print(f"changed artifacts, from --seed {asked.seed}", flush=True)
    instead_of_new_ones(originals()[0][0])
    counts: dict[str, int] = {}
    slowest = 0.0
    for done in range(asked.count):
        seed, start = asked.seed + done, time.monotonic()
        try:
            said, _ = outcome(mutant(seed)[0])
            took = time.monotonic() - start
            assert took < LONGEST, f"it took {took:.1f} s"
        except BaseException:
            print(f"--seed {seed} --count 1", flush=True)
            raise
        slowest = max(slowest, took)
        counts[said] = counts.get(said, 0) + 1
        if done % REPORTED == REPORTED - 1:
            report(done + 1, counts, slowest)
    report(asked.count, counts, slowest)


if __name__ == "__main__":
    main()
