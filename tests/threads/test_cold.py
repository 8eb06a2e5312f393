"""Many threads at once, from the very first use, in processes of their own.

What is imported, looked up, registered or initialised at first use is met by all of them in the
same moment; a race there shows in some runs only, so there are several.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COLD = Path(__file__).parent / "cold.py"
HAMMER = Path(__file__).parent / "hammer.py"
RUNS = 20 if os.environ.get("PLAIT_ALL") else 3


@pytest.mark.sampled(8)
@pytest.mark.parametrize("run", range(RUNS))
def test_cold_start(run):
    """Sixteen threads use everything at once in a fresh process: no crash, right numbers.

    `PLAIT_ALL=1` does it twenty times in a row.
    """
    switch = ["", "import sys; sys.setswitchinterval(1e-5)", "import plait"][run % 3]
    start = f"{switch}\nimport runpy; runpy.run_path({str(COLD)!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", start], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    assert done.stdout.strip() == "right"


def test_tables_are_filled_by_many(tmp_path):
    """Sixteen threads register rules, trace, dispatch, and write to one cache on disk."""
    done = subprocess.run(
        [sys.executable, HAMMER, tmp_path / "cache"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    assert done.stdout.strip() == "right"
    assert [*(tmp_path / "cache").rglob("*")]
