"""A server that runs an artifact for programs on the same machine.

    GET /     facts about the artifact, as JSON
    POST /    arguments -> results, as JSON (application/json) or as numpy's npz (any other type)

Invariant: the server listens on the loopback device only and reads at most the allowed number of
bytes.  It refuses requests with a foreign Host or any Origin header, so that a web page cannot use
a browser to reach it.
"""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer

from plait.ext.errors import ArgumentError, PlaitError

from .opened import Opened, arrays_of, file_of, text_of, values_of

HOST = "127.0.0.1"
_PATIENCE = 30.0
"""Seconds within which a request must arrive."""


def server_of(opened: Opened, port: int, largest: int) -> HTTPServer:
    """Return a server that is bound to a port but not running yet.

    Args:
      opened: the artifact to serve.
      port: a port of the loopback device; 0 for any free one.
      largest: the number of bytes that a request may have, and its arrays.

    Raises ArgumentError if the port cannot be bound, for example because it is taken.
    """

    class Handler(_Handler):
        timeout = _PATIENCE

    Handler.opened, Handler.largest = opened, largest
    try:
        return HTTPServer((HOST, port), Handler)
    except OSError as e:
        raise ArgumentError(
            f"nothing can listen at port {port} of {HOST}: {e.strerror or e}",
            fix="take another port, or --port 0 for any that is free",
        ) from None


class _Handler(BaseHTTPRequestHandler):
    opened: Opened
    largest: int

    def do_GET(self) -> None:
        if self._is_for_us():
            facts = self.opened.facts._asdict()
            named = {"arguments": self.opened.arguments, "results": self.opened.results}
            self._answer(200, json.dumps({**facts, **named}).encode(), "application/json")

    def do_POST(self) -> None:
        if not self._is_for_us():
            return
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            return self._refuse(411, "the length of the request is not said")
        if len(length) > 18 or int(length) > self.largest:
            self.close_connection = True
            return self._refuse(413, f"a request has {self.largest} bytes at most")
        data = self.rfile.read(int(length))
        as_json = self.headers.get_content_type() == "application/json"
        try:
            given = values_of(data) if as_json else arrays_of(data, self.largest)
            found = self.opened.call(given)
            answer = text_of(found) if as_json else file_of(found)
        except PlaitError as e:
            return self._refuse(400, f"{e.what}; {e.fix}" if e.fix else e.what)
        except (MemoryError, RecursionError) as e:
            return self._refuse(500, f"it could not be computed: {type(e).__name__}")
        self._answer(200, answer, "application/json" if as_json else "application/x-npz")

    def _is_for_us(self) -> bool:
        """Return whether a request is local and for "/"; answer it with an error otherwise."""
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if host not in (HOST, "localhost") or self.headers.get("Origin"):
            self._refuse(403, "this service is for programs on this machine")
        elif self.path != "/":
            self._refuse(404, "there is nothing but /")
        else:
            return True
        return False

    def _refuse(self, status: int, why: str) -> None:
        self._answer(status, json.dumps({"error": why}).encode(), "application/json")

    def _answer(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Suppress the default log line of each request."""
