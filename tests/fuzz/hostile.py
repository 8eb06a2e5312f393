"""Changed artifacts in great number, each read in a process of its own: `--count N`, and `--seed S
--count 1` for one again.

Half of them have the checksums of what they were changed to (`test_changed_artifacts.mutant`).  The
processes are copies of one that has read an artifact which nobody changed.  A process that starts
anew imports for a quarter of a second, and reads for some thousandths.  Copies read as alone as
that one does, by the same code: nothing that a file does to its reader is seen by the next one.

Invariant: the process that is copied has one thread, and has seen no file of strangers; the one
that gives files to be read sees what the copies write, and nothing else.
"""

import argparse
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time

from test_changed_artifacts import mutant, originals, outcome

from plait_export import isolated_reader, isolation

_BYTES = 8
LONGEST = 10.0
"""Seconds in which there is an answer."""
REPORTED = 10_000
"""Files, after which it is said how far it is."""


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
            for stream in (0, 1):
                os.dup2(served, stream)
            os.close(served)
            isolated_reader.serve()
        os.close(served)
        link.sendall(number.to_bytes(_BYTES, "little"))
        _, status = os.waitpid(number, 0)
        code = os.waitstatus_to_exitcode(status)
        link.sendall(code.to_bytes(_BYTES, "little", signed=True))


class Reader:
    """A copy, as far as `isolation` asks a Popen."""

    server: socket.socket
    returncode: int

    def __init__(self) -> None:
        self._link, there = socket.socketpair()
        socket.send_fds(self.server, [b"+"], [there.fileno()])
        there.close()
        self._number = int.from_bytes(self.server.recv(_BYTES), "little")
        self._ended = False
        ready = self._link.recv(len(isolation.READY))
        assert ready == isolation.READY, "the process that was to read did not start"

    def communicate(self, data: bytes, timeout: float) -> tuple[bytes, None]:
        """The answer, which ends with the process."""
        end, parts = time.monotonic() + timeout, [b"start"]
        try:
            self._link.sendall(data)
            self._link.shutdown(socket.SHUT_WR)
            while parts[-1]:
                self._link.settimeout(max(1e-3, end - time.monotonic()))
                parts.append(self._link.recv(1 << 20))
        except TimeoutError:
            raise subprocess.TimeoutExpired("a copy", timeout) from None
        except OSError:  # it ended before it had read all
            pass
        self._wait()
        return b"".join(parts[1:]), None

    def poll(self) -> int | None:
        """How it ended; None if that has not been asked for."""
        return self.returncode if self._ended else None

    def kill(self) -> None:
        """End it: it has its number until `copied` has said how it ended."""
        if not self._ended:
            os.kill(self._number, signal.SIGKILL)

    def _wait(self) -> None:
        if not self._ended:
            said = self.server.recv(_BYTES)
            self.returncode, self._ended = int.from_bytes(said, "little", signed=True), True

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._wait()
        self._link.close()


def instead_of_new_ones(artifact: bytes) -> None:
    """From now on, what is read apart is read by copies of a process that has read an artifact."""
    Reader.server, there = socket.socketpair()
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
    isolation._started = Reader


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
