"""Four ways of dividing a network over devices: Plait sends what JAX sends, or less often.

Invariant: the same text runs by both libraries, each in a process of its own; what they send is
counted in the compiled modules, whose loops say how often they turn.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="run by `nox -s coexistence`")

PROGRAM = Path(__file__).with_name("dividing_ways.py")
WAYS = ["data parallel", "fully sharded", "tensor parallel", "pipeline"]
MAY = {"reduce-scatter", "all-gather", "collective-permute", "all-reduce"}


@pytest.fixture(scope="module")
def both() -> list[dict]:
    """Return what each library sends in each way, JAX first."""
    running = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), library],
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for library in ("jax", "plait")
    ]
    said = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    return [json.loads(out) for out, _ in said]


@pytest.mark.parametrize("way", WAYS)
def test_the_gradient_is_that_of_jax(both, way):
    theirs, ours = (told[way]["gradient"] for told in both)
    assert theirs.keys() == ours.keys() and all(len(v) > 40 for v in ours.values())
    for name, values in theirs.items():
        assert ours[name] == pytest.approx(values, rel=1e-4, abs=1e-6), name


@pytest.mark.parametrize("way", WAYS)
def test_as_many_bytes_are_sent(both, way):
    theirs, ours = (told[way]["sent"] for told in both)
    assert ours and set(ours) <= MAY
    assert {op: size for op, (_, size) in ours.items()} == {
        op: size for op, (_, size) in theirs.items()
    }


@pytest.mark.parametrize("way", WAYS)
def test_no_more_arrays_are_sent(both, way):
    theirs, ours = (told[way]["sent"] for told in both)
    assert all(ours[op][0] <= theirs[op][0] for op in ours), (theirs, ours)
