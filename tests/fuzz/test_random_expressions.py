"""A few of the random expressions at extreme values; `nox -s fuzz` goes on with others.

Invariant: they run in a process of their own, for which the compiler rounds products and sums
apart.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from .random_expressions import ENVIRONMENT, Batch, differs


def test_compiled_expressions_return_what_their_operations_do():
    command = [sys.executable, "-m", "tests.fuzz.random_expressions", "--tier", "fast"]
    done = subprocess.run(
        [*command, "--seed", "14", "--count", "100"],
        env={**os.environ, **ENVIRONMENT, "PLAIT_TIER": "fast"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "100 expressions: 0 differ" in done.stdout


@pytest.mark.parametrize(
    ("got", "want", "same"),
    [
        (0.0, -0.0, False),
        (np.nan, -np.nan, True),
        (np.inf, 3e38, False),
        (1.0, 1 + 2**-23, False),
        (1e-39, 0.0, True),
    ],
)
def test_what_counts_as_equal(got, want, same):
    assert differs(np.float32([got]), np.float32([want])).any() != same


def test_a_batch_follows_from_its_seed():
    assert Batch(3, 20).expressions == Batch(3, 20).expressions != Batch(4, 20).expressions
