"""The examples that need nothing but Plait run; `nox -s demo` runs the one that needs more.

Invariant: an example is run as a user runs it, in a process of its own.
"""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(*command: object) -> subprocess.CompletedProcess:
    """An example, as a program."""
    return subprocess.run(
        [sys.executable, "-W", "error", *command], capture_output=True, text=True, timeout=200
    )


def test_the_tour_ends_well():
    told = run(EXAMPLES / "tour.py")
    assert told.returncode == 0, told.stderr
    assert "the loss after training, from the file:" in told.stdout


def test_the_reader_refuses_to_run_beside_transformations(tmp_path):
    answers = tmp_path / "answers.npy"
    told = run(EXAMPLES / "reader.py", tmp_path / "program", tmp_path / "images.npy", answers)
    assert told.returncode == 1 and "plait_autodiff is installed here" in told.stderr
    assert not answers.exists()
