"""Random chains, in the full tier: what `random_chains` does, for some seeds.

Invariant: the seeds do not change, so a failure comes again.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.wide
@pytest.mark.parametrize("seed", range(2))
def test_chains(seed):
    command = [sys.executable, "-m", "tests.fuzz.random_chains"]
    done = subprocess.run(
        [*command, "--seed", str(1000 * seed), "--count", "300", "--minutes", "5"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "300 chains: 0 differ" in done.stdout
