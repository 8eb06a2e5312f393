"""A small process that reports that another one lives, even while that one holds its lock.

    python -I pulse.py HOST PORT NUMBER SECONDS

It needs only Python, and is run as a script.  It ends with the process that started it, when its
standard input closes.

Invariant: it sends nothing while that process is stopped, and nothing after its end.
"""

import os
import select
import socket
import sys

_STILL = "TtZX"
"""States of a process that does not run, and will not without outside help."""


def runs(pid: int) -> bool:
    """Return whether a process runs or could run; true if the system does not report it."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode("ascii", "replace")
    except OSError:
        return True
    return text.rpartition(")")[2].split()[0] not in _STILL


def beat(host: str, port: int, number: int, seconds: float) -> None:
    """Report that the parent lives, until the parent ends or the connection closes."""
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
    except OSError:  # the coordinator is gone, which the parent notices by itself
        pass
