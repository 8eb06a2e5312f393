"""Random programs over rows, in the full tier: what `random_rows` does, for some seeds.

Invariant: the seeds do not change, so a failure comes again.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.wide
@pytest.mark.parametrize("seed", range(4))
def test_programs(seed):
    command = [sys.executable, "-m", "tests.fuzz.random_rows"]
    done = subprocess.run(
        [*command, "--seed", str(1000 * seed), "--count", "120", "--minutes", "5"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "240 programs: 0 differ" in done.stdout
