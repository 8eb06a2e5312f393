"""A small process that says for another one that it lives, however long that holds its lock.

    python -I pulse.py HOST PORT NUMBER SECONDS

It needs nothing but Python, and is run as a script.  It ends with the process that started it,
which it knows by its standard input.

Invariant: it says nothing while that process is stopped, and nothing after its end.
"""

import os
import select
import socket
import sys

_STILL = "TtZX"
"""States of processes that do not run, and will not by themselves."""


def runs(pid: int) -> bool:
    """Whether a process runs, or could; where the system does not tell, it does."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode("ascii", "replace")
    except OSError:
        return True
    return text.rpartition(")")[2].split()[0] not in _STILL


def beat(host: str, port: int, number: int, seconds: float) -> None:
    """Say that the parent lives, until it does not, or nobody listens."""
    parent = os.getppid()
    with socket.create_connection((host, port), timeout=30) as sock:
        sock.sendall(b'{"pulse":%d}\n' % number)
        while True:
            readable, _, _ = select.select([sys.stdin, sock], [], [], seconds)
            if readable or os.getppid() != parent:
                return
            if runs(parent):
                sock.sendall(b"\n")


if __name__ == "__main__":
    try:
        beat(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    except OSError:  # the coordinator is gone, which the parent hears by itself
        pass
