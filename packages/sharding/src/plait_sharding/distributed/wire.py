"""Messages between processes: lines of JSON on a socket.

Invariant: data from the network becomes numbers, strings, lists and dictionaries, and is never
executed.  A line that is not a message, or is too long, ends its connection.
"""

import json
import socket
from typing import Any

__all__ = ["COORDINATOR", "LONGEST", "Garbled", "Lines", "connected", "is_own_echo", "packed"]

COORDINATOR = -1
"""The number of the coordinator among the processes."""
LONGEST = 1 << 26
"""The largest size of a message, in bytes."""
_SHORT = 1 << 16
"""The largest size of a message, in bytes, on a connection that has not greeted yet."""


class Garbled(Exception):
    """Bytes that are not a message."""


def packed(message: dict[str, Any]) -> bytes:
    """Return a message as the bytes of its line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Lines:
    """A parser that collects bytes and returns complete messages."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self.longest = _SHORT

    def messages(self, data: bytes) -> list[dict[str, Any]]:
        """Return the messages that these bytes complete; raises Garbled."""
        *lines, rest = (bytes(self._rest) + data).split(b"\n")
        self._rest = bytearray(rest)
        if len(rest) > self.longest or any(len(line) > self.longest for line in lines):
            raise Garbled(f"a message of more than {self.longest} bytes")
        out = []
        for line in filter(None, lines):
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):  # the parser recurses at each bracket
                raise Garbled("a line that is no JSON") from None
            if not isinstance(message, dict):
                raise Garbled("a line that is not a message")
            out.append(message)
        return out


def connected(host: str, port: int, timeout: float) -> socket.socket:
    """Return a connection to a listener; OSError if there is none.

    A connection to a port of the ephemeral range on this machine can meet itself, since its own end
    may get that port.  That also counts as no listener.
    """
    sock = socket.create_connection((host, port), timeout=timeout)
    if is_own_echo(sock):
        sock.close()
        raise ConnectionRefusedError(111, "nobody listens there")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def is_own_echo(sock: socket.socket) -> bool:
    """Return whether a connection is one with itself."""
    return sock.getsockname() == sock.getpeername()
