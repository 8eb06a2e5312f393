"""Bytes that strangers and broken processes send to the coordinator: only their connection ends.

Invariant: after each of them, the coordinator serves a process that behaves.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from plait_sharding.distributed.coordinator import Coordinator

HELLO = {"hello": 0, "count": 2, "name": "a", "facts": {}, "silence": 60.0}
GREETINGS = [
    b"[" * 60_000,
    b'{"hello":' + b"[" * 60_000,
    b'{"hello": Infinity, "count": 2, "name": "a", "facts": {}, "silence": 60}',
    b'{"hello": NaN, "count": 2, "name": "a", "facts": {}, "silence": 60}',
    b'{"hello": 1e999, "count": 2, "name": "a", "facts": {}, "silence": 60}',
    *[json.dumps({**HELLO, "hello": n}).encode() for n in (-1, 2, 10**30, 0.5, True, "0", [0])],
    *[b'{"hello": 0, "count": 2, "name": "a", "facts": {}, "silence": %s}' % s
      for s in (b"NaN", b"-1", b"0", b"Infinity", b"1e999")],
    *[b'{"pulse": %s}' % n for n in (b"Infinity", b"-1", b"2", b"null", b"[]", b"true")],
    b"\xff\xfe", b"null", b"{}", b"[1]", b'"' + b"\\ud800" * 9 + b'"',
]  # fmt: skip
ORDERS = [
    {"at": 0, "group": [0, 7], "kind": "a", "name": "b", "value": 1},
    {"at": 0, "group": [0, 0], "kind": "a", "name": "b", "value": 1},
    {"at": 0, "group": [[0]], "kind": "a", "name": "b", "value": 1},
    {"at": float("inf"), "group": [0], "kind": "a", "name": "b", "value": 1},
    {"at": 0, "group": 10**9},
    {"ran": [[1]], "group": [0, 1]},
    {"ran": 3, "group": [0, 1]},
    {"ran": [[[], "f"]], "group": [-1]},
    {"where": 0},
]


def served(coordinator, rounds=6):
    for _ in range(rounds):
        for key, ready in coordinator.selector.select(0.02):
            if key.data is None:
                coordinator._accept()
                continue
            if ready & 1:
                coordinator._read(key.data, 0.0)
            if ready & 2 and key.data in coordinator.peers:
                coordinator._write(key.data)


def connected(listener, lines):
    sock = socket.create_connection(listener.getsockname())
    sock.sendall(b"".join(line + b"\n" for line in lines))
    sock.settimeout(10)
    return sock


def joins(coordinator, listener):
    """Assert that two processes that behave are welcomed."""
    socks = [connected(listener, [json.dumps({**HELLO, "hello": i}).encode()]) for i in (0, 1)]
    served(coordinator)
    told = [s.recv(1 << 16) for s in socks]
    for s in socks:
        s.close()
    return all(b'"welcome"' in text for text in told)


@contextmanager
def coordinated():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        coordinator = Coordinator(listener, 2, 60.0, 1)
        try:
            yield coordinator, listener
        finally:
            for peer in coordinator.peers:
                peer.sock.close()
            coordinator.selector.close()


@pytest.mark.parametrize("number", range(len(GREETINGS)))
def test_greetings(number):
    """A connection that does not greet as it should is closed, and counts as no process."""
    with coordinated() as (coordinator, listener):
        sock = connected(listener, [GREETINGS[number]])
        served(coordinator)
        assert not coordinator.members
        assert not coordinator.came
        sock.close()
        assert joins(coordinator, listener)


@pytest.mark.parametrize("number", range(len(ORDERS)))
def test_orders(number):
    """A process that sends nonsense after its greeting is lost; the coordinator goes on."""
    with coordinated() as (coordinator, listener):
        lines = [json.dumps(HELLO).encode(), json.dumps(ORDERS[number]).encode()]
        sock = connected(listener, lines)
        served(coordinator)
        assert coordinator.came == {0}
        assert not coordinator.members
        sock.close()


def test_random_messages():
    """Random JSON, before and after a greeting, ends no coordinator."""
    rng = np.random.default_rng(0)
    keys = ["hello", "count", "pulse", "at", "group", "kind", "ran", "id", "bye", "value",
            "name", "where", "facts", "silence"]  # fmt: skip
    values = [0, 1, -1, 2, True, None, "a", [], {}, [0], [[0]], [0, 1], {"a": 1}, 1e308 * 10, 0.5]
    for _ in range(60):
        with coordinated() as (coordinator, listener):
            lines = [json.dumps(HELLO).encode()] if rng.random() < 0.5 else []
            for _ in range(3):
                chosen = rng.choice(len(keys), 5, replace=False)
                message = {keys[k]: values[rng.integers(len(values))] for k in chosen}
                lines.append(json.dumps(message).encode())
            sock = connected(listener, lines)
            served(coordinator, 3)
            assert set(coordinator.members) <= {0, 1}
            sock.close()


START = """
import socket
from plait_sharding.distributed.joining import start_coordinator
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(start_coordinator(listener, 2, 600.0).pid, flush=True)
"""


def test_pipes_end_with_their_process():
    """A pipe that reads what process 0 prints ends, although its coordinator lives on."""
    process = subprocess.Popen(
        [sys.executable, "-c", START], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        out, _ = process.communicate(timeout=90)
    finally:
        process.kill()
    os.kill(int(out), signal.SIGKILL)  # it was still there
