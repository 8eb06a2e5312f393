"""Callbacks of programs on several devices that call functions on several devices.

Invariant: the program runs in a process of its own, which must end in time.
"""

import subprocess
import sys

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
