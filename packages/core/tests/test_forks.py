"""Processes that are forked after the runtime started: they read arrays, and compute nothing.

Invariant: each child ends, or its test fails.
"""

import json
import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
import json, os, signal, sys, warnings
import numpy as np
import plait
from plait import lax, ops

def told(f):
    "What f() returns or raises in a child; None if it has not ended after ten seconds."
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(10)
        try:
            out = f()
        except Exception as e:
            out = type(e).__name__, str(e)
        os.write(write, json.dumps(out).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as f:
        text = f.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None

f, large = plait.jit(lambda x: x * 2.0), plait.jit(lambda x: lax.dot(x, x))
{before}
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    found = {{name: told(call) for name, call in {calls}.items()}}
kinds = [w.category.__name__ for w in seen if "forked" in str(w.message)]
print(json.dumps([found, kinds]))
"""
STARTED = """
x, y = f(1.0), f(np.ones((256, 256), np.float32))
large(y)
compiled = f.lower(1.0).compile()
compiled(1.0)
"""
READS = """dict(
    numpy=lambda: float(y.numpy().sum()), text=lambda: repr(x), size=lambda: y.shape,
    trace=lambda: len(plait.make_program(lambda x: x * 3.0)(1.0).eqns), item=lambda: x.item(),
)"""
COMPUTES = """dict(
    cached=lambda: f(1.0).item(), large=lambda: large(y).shape, eager=lambda: (x + x).item(),
    literal=lambda: (x + 1.0).item(), compile=lambda: plait.jit(lambda x: x + 5.0)(1.0).item(),
    executable=lambda: compiled(1.0).item(),
    index=lambda: y[0].shape, loop=lambda: lax.fori_loop(0, 3, lambda i, c: c * 2.0, x).item(),
    transfer=lambda: f(np.ones(3)).shape,
)"""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def run(before, calls):
    code = PROGRAM.format(before=textwrap.dedent(before), calls=calls)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=True
    )
    return json.loads(done.stdout)


def test_children_read():
    """A child reads arrays and traces; the fork is warned of, once."""
    found, kinds = run(STARTED, READS)
    assert found == {
        "numpy": 131072.0,
        "text": "Array(2., dtype=float32, weak_type=True)",
        "size": [256, 256],
        "trace": 1,
        "item": 2.0,
    }
    assert kinds == ["RuntimeWarning"]


def test_children_are_refused():
    """Whatever needs the runtime is refused, in each way to call it."""
    found, _ = run(STARTED, COMPUTES)
    wrong = {k: v for k, v in found.items() if not v or v[0] != "RuntimeFailure"}
    assert not wrong
    assert all("spawn" in text for _, text in found.values())


def test_before_the_runtime():
    """A fork before the first array is an ordinary process."""
    found, kinds = run("", "dict(call=lambda: f(1.0).item())")
    assert found == {"call": 2.0}
    assert kinds == []
