"""Callbacks of programs on several devices that call functions on several devices, or raise.

Invariant: each program runs in a process of its own, which must end in time.
"""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import plait
from plait.sharding import NamedSharding, PartitionSpec as P

plait.config.cpu_devices = 2
lies = NamedSharding(plait.make_mesh((2,), ("d",)), P("d"))
like = plait.ShapeDtypeStruct((4,), np.float32)
double = plait.jit(lambda x: x * 2.0)
calls = plait.jit(lambda x, f: plait.pure_callback(f, like, x) + 1.0, static_argnums=1)

def inside(x):
    return np.asarray(calls(plait.device_put(x, lies), lambda y: y))

x = plait.device_put(np.ones(4, np.float32), lies)
print(calls(x, lambda y: np.asarray(double(np.asarray(y)))).numpy())  # on one device
try:
    calls(x, inside)
except plait.PlaitError as e:
    print("several devices" in str(e))
print(calls(x, lambda y: y).numpy())
"""


def test_calls_in_callbacks():
    """On one device they return; on several, where they would wait for ever, they are refused."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split("\n")[:3] == ["[3. 3. 3. 3.]", "True", "[2. 2. 2. 2.]"]


KINDS = """
import sys, threading
import numpy as np
import plait
from plait.sharding import NamedSharding, PartitionSpec as P, make_mesh

kind, way = sys.argv[1:]

def call(x):
    like = plait.ShapeDtypeStruct(x.shape, x.dtype)
    if kind == "pure":
        return plait.pure_callback(back, like, x)
    if kind in ("io", "ordered"):
        return plait.io_callback(back, like, x, ordered=kind == "ordered")
    plait.debug.callback(back, x)
    return x

def shown(f):
    try:
        return f(there).numpy()[:1].tolist()
    except (plait.PlaitError, KeyError) as e:
        return "refused" if "on several devices" in str(e) else repr(e)

def back(x):
    if way == "raise":
        raise KeyError("mine")
    if way == "call":
        return np.asarray(g(there))
    thread = threading.Thread(target=lambda: print(shown(g)))
    thread.start()
    thread.join()
    return np.asarray(x)

there = plait.device_put(np.zeros(4, np.float32), NamedSharding(make_mesh((4,), ("i",)), P("i")))
g = plait.jit(lambda x: x + x.sum())
f = plait.jit(lambda x: call(x) + x.sum() + 1.0)
for _ in range(1 if way == "thread" else 2):
    print(shown(f))
print(shown(g))
"""


@pytest.mark.sampled(16)
@pytest.mark.parametrize("kind", ["pure", "io", "ordered", "debug"])
@pytest.mark.parametrize("way", ["raise", "call", "thread"])
def test_failing_callbacks(way, kind):
    """No device waits for one whose callback failed, and later programs run."""
    done = subprocess.run(
        [sys.executable, "-c", KINDS, kind, way],
        capture_output=True, text=True, timeout=60, check=True,
        env=os.environ | {"PLAIT_CPU_DEVICES": "4"},
    )  # fmt: skip
    found = done.stdout.splitlines()
    assert found[-1] == "[0.0]"
    expected = "KeyError('mine')" if way == "raise" else "refused"
    if way == "thread":
        assert expected in found and found[-2] == "[1.0]"
    else:
        assert found[:-1] == [expected] * 2
