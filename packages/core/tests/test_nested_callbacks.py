"""Callbacks that call compiled functions: they return, or say why they cannot.

Invariant: each case runs in a process of its own, which must end in time.
"""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
import plait

depth, kind, level = int(sys.argv[1]), sys.argv[2], [0]
like = plait.ShapeDtypeStruct((3,), np.float32)
call = dict(
    pure=lambda x: plait.pure_callback(back, like, x),
    io=lambda x: plait.io_callback(back, like, x),
    ordered=lambda x: plait.io_callback(back, like, x, ordered=True),
)[kind]

def back(x):
    level[0] += 1
    return np.asarray(x) if level[0] >= depth else np.asarray(f(np.asarray(x)))

f = plait.jit(lambda x: call(x) + 1.0)
for _ in range(2):  # the second time shows that the first left nothing behind
    level[0] = 0
    try:
        print(float(f(np.zeros(3, np.float32))[0]))
    except plait.PlaitError as e:
        print("refused" if "nested" in str(e) else e)
"""


@pytest.mark.parametrize("kind", ["pure", "io", "ordered"])
@pytest.mark.parametrize(("depth", "told"), [(3, "3.0"), (20, "20.0"), (40, "refused")])
def test_nested_callbacks(depth, told, kind):
    """Below the number of the runtime's threads they return, and beyond it they are refused."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(depth), kind],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.split("\n")[:2] == [told, told]
