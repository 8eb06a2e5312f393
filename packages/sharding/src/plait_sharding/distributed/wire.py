"""Messages between processes: lines of JSON on a socket.

Invariant: what is read from the network becomes numbers, strings, lists and dictionaries, and is
never run; a line that is no message, or too long, ends the connection it came by.
"""

import json
import socket
from typing import Any

__all__ = ["COORDINATOR", "LONGEST", "Garbled", "Lines", "connected", "is_own_echo", "packed"]

COORDINATOR = -1
"""The number by which the coordinator is spoken of among the processes."""
LONGEST = 1 << 26
"""The most bytes of one message."""
_SHORT = 1 << 16
"""The most bytes of a message of somebody who has not said who he is."""


class Garbled(Exception):
    """Bytes that are no message."""


def packed(message: dict[str, Any]) -> bytes:
    """Return a message as the bytes of its line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Lines:
    """Takes bytes as they come, and gives whole messages."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self.longest = _SHORT

    def messages(self, data: bytes) -> list[dict[str, Any]]:
        """Return the messages that are whole with these bytes; raises Garbled."""
        *lines, rest = (bytes(self._rest) + data).split(b"\n")
        self._rest = bytearray(rest)
        if len(rest) > self.longest or any(len(line) > self.longest for line in lines):
            raise Garbled(f"a message of more than {self.longest} bytes")
        out = []
        for line in filter(None, lines):
            try:
                message = json.loads(line)
            except ValueError:
                raise Garbled("a line that is no JSON") from None
            if not isinstance(message, dict):
                raise Garbled("a line that is no message")
            out.append(message)
        return out


def connected(host: str, port: int, timeout: float) -> socket.socket:
    """Return a connection to who listens there; OSError if nobody does.

    On a port of the range that connections take theirs from, a machine that looks for a listener
    on itself can meet its own connection: that is nobody.
    """
    sock = socket.create_connection((host, port), timeout=timeout)
    if is_own_echo(sock):
        sock.close()
        raise ConnectionRefusedError(111, "nobody listens there")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def is_own_echo(sock: socket.socket) -> bool:
    """Whether a connection is one with itself."""
    return sock.getsockname() == sock.getpeername()
