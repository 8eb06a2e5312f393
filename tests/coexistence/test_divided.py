"""A hundred programs over eight devices: Plait has no more sent, and no more bytes kept, than JAX.

The programs are in `divided_programs.py`, which each library runs in a process of its own.  JAX is
told to compute checkpointed functions again, as it does on accelerators: on the CPU its compiler
drops the barriers that are to make it, and keeps all values after all.

Invariant: what is compared is read from what the compiler made for each, by the same few lines.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="run by `nox -s coexistence`")

PROGRAMS = Path(__file__).with_name("divided_programs.py")
BARRIERS = "--xla_disable_hlo_passes=cse_barrier_expander,small-while-loop-hoisting"

# Where ours has other collectives, as many: what JAX gathers to compare it, ours reduces.
INSTEAD = {"maximum where it is": {"all-reduce": "all-gather"}}
# Where more than a twentieth is added, and how much of what.
MORE = {
    "running sum": ("results", 2.0),  # whole on every device, as it is there in a temporary
    "gradient of a running sum": ("results", 2.0),
    # The divisor of each element, which the compiler must not join with what it divides; and the
    # two quotients, each divided once, where JAX's program divides again.
    "gradient of softmax": ("temporaries", 3.3),
    "gradient of a norm": ("temporaries", 2.1),
    "step, tensors": ("temporaries", 1.08),  # the same buffers, which the compiler packs worse
    "step, parts of all": ("temporaries", 1.06),
    "descent, data and tensors": ("temporaries", 1.08),
}
ROOM = {"pmax": 1024}
"""Bytes of temporaries for numbers that JAX's program does not compute: a nan in one piece is the
greatest of all, so pieces are sent in an order in which it is; JAX loses it."""


def started(*args: str, **env: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, str(PROGRAMS), *args],
        env={**os.environ, "JAX_PLATFORMS": "cpu", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen) -> dict:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return json.loads(out)


@pytest.fixture(scope="module")
def both() -> tuple[dict, dict]:
    """Of each program what JAX and Plait make of it."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {BARRIERS}"
    theirs, ours = started(XLA_FLAGS=flags), started("plait")
    return said(theirs), said(ours)


def worse(name: str, theirs: list, ours: list) -> list[str]:
    """What Plait has more of in one program."""
    found = []
    (sent, sizes, _), (our_sent, our_sizes, _) = theirs, ours
    for op, count in our_sent.items():
        if count > sent.get(INSTEAD.get(name, {}).get(op, op), 0):
            found.append(f"{name}: {count} {op} where JAX has {sent}")
    for what, a, b in zip(("arguments", "results", "temporaries"), sizes, our_sizes, strict=True):
        more = dict([MORE[name]]).get(what, 1.05) if name in MORE else 1.05
        room = ROOM.get(name, 0) if what == "temporaries" else 0
        if b > a * more + room:
            found.append(f"{name}: {b} bytes of {what} where JAX has {a}")
    return found


def test_what_is_sent_and_kept(both):
    theirs, ours = both
    assert theirs.keys() == ours.keys() and len(ours) >= 100
    assert sum(bool(r[0]) for r in ours.values()) > 80  # that something is sent at all
    assert [w for name in ours for w in worse(name, theirs[name], ours[name])] == []


def test_numbers(both):
    theirs, ours = both
    for name, (_, _, sums) in theirs.items():
        assert ours[name][2] == pytest.approx(sums, rel=1e-4, abs=1e-5), name
