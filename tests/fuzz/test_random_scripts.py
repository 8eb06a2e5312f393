"""Random programs over rows and random chains, in the full tier, for some seeds.

Invariant: the seeds do not change, so a failure comes again.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = {"random_rows": (4, 120, "240 programs"), "random_chains": (2, 300, "300 chains")}
"""For each script: the count of seeds, the programs of each, and how it reports them."""


@pytest.mark.wide
@pytest.mark.parametrize(
    ("script", "seed"), [(s, i) for s, (seeds, _, _) in SCRIPTS.items() for i in range(seeds)]
)
def test_programs(script, seed):
    _, count, text = SCRIPTS[script]
    command = [sys.executable, "-m", f"tests.fuzz.{script}", "--seed", str(1000 * seed)]
    done = subprocess.run(
        [*command, "--count", str(count), "--minutes", "5"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{text}: 0 differ" in done.stdout
