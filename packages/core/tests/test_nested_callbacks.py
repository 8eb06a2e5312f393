"""Callbacks that call compiled functions: they return, or say why they cannot.

Invariant: each case runs in a process of its own, which must end in time.
"""

import subprocess
import sys

import pytest

CALL = """
import sys, threading
import numpy as np
import plait

kind, way, n = sys.argv[1], sys.argv[2], int(sys.argv[3])

def call(x):
    like = plait.ShapeDtypeStruct(x.shape, x.dtype)
    if kind == "pure":
        return plait.pure_callback(back, like, x)
    if kind in ("io", "ordered"):
        return plait.io_callback(back, like, x, ordered=kind == "ordered")
    plait.debug.callback(back, x)
    return x

def apart(f):
    def run():
        try:
            out.append(np.asarray(f()))
        except plait.PlaitError as e:
            print("refused" if "nested" in str(e) else e)
    out = []
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return out[0] if out else np.float32(0)

def shown(f, x):
    try:
        print(float(f(x)[0]))
    except (plait.PlaitError, KeyError) as e:
        print("refused" if "nested" in str(e) else repr(e))
"""
NESTED = """
level = [0]

def back(x):
    level[0] += 1
    x = np.asarray(x)
    if level[0] >= n:
        return x
    if way == "thread":
        return np.broadcast_to(apart(lambda: f(x)), x.shape)
    return np.asarray((f if way == "same" else plait.jit(lambda y: call(y) + 1.0))(x))

f = plait.jit(lambda x: call(x) + 1.0)
for _ in range(1 if way == "thread" and n > 30 else 2):  # the first must leave nothing behind
    level[0] = 0
    shown(f, np.zeros(3, np.float32))
"""


def lines(*program, args):
    """Return what a program prints, which must end within a minute."""
    done = subprocess.run(
        [sys.executable, "-c", "".join(program), *map(str, args)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.sampled(16)
@pytest.mark.parametrize("kind", ["pure", "io", "ordered", "debug"])
@pytest.mark.parametrize("way", ["same", "other", "thread"])
@pytest.mark.parametrize("depth", [3, 20])
def test_nested_callbacks(depth, way, kind):
    """Below the number of the runtime's threads they return."""
    expected = str(float(1 if kind == "debug" else depth))
    assert lines(CALL, NESTED, args=(kind, way, depth)) == [expected] * 2


@pytest.mark.sampled(16)
@pytest.mark.parametrize("kind", ["pure", "io", "ordered", "debug"])
@pytest.mark.parametrize("way", ["same", "other"])
def test_nested_callbacks_too_deep(way, kind):
    assert lines(CALL, NESTED, args=(kind, way, 40)) == ["refused"] * 2


@pytest.mark.sampled(16)
@pytest.mark.parametrize("kind", ["pure", "io", "ordered", "debug"])
def test_callbacks_that_wait_for_threads_too_deep(kind):
    """The innermost thread is refused, and its callback goes on."""
    assert lines(CALL, NESTED, args=(kind, "thread", 40))[0] == "refused"
