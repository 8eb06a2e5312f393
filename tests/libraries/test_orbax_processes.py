"""Checkpoints of orbax over real processes: written by 3, read by 1, 2 and 5.

Invariant: each process compares the pieces that it read with numpy's, and tells the number of rows
that it has.
"""

import importlib.util
import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TOGETHER = HERE.parents[1] / "packages" / "sharding" / "tests" / "together.py"
spec = importlib.util.spec_from_file_location("together", TOGETHER)
together = importlib.util.module_from_spec(spec)
spec.loader.exec_module(together)

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(os.name != "posix", reason="POSIX only")]


def run(how, folder, n):
    """Run the program in `n` processes of one device."""
    return together.run_together(how, folder, n=n, devices=1, script=HERE / "orbax_processes.py")


def test_first_saved_by_three_and_read_by_others(tmp_path):
    """The name has `first` in it, as those that `nox -s libraries` runs."""
    saved = run("save", tmp_path, 3)
    assert [p.code for p in saved] == [0] * 3, [p.err[-2000:] for p in saved]
    for n in (1, 2, 5):
        every = run("read", tmp_path, n)
        assert [p.code for p in every] == [0] * n, [p.err[-2000:] for p in every]
        assert [p.told for p in every] == [{"step": 2, "right": True, "rows": 60 // n}] * n
    killed = run("killed", tmp_path, 3)
    assert [p.code for p in killed] == [70, -9, 70], [p.err[-2000:] for p in killed]
    (alone,) = run("read", tmp_path, 1)
    assert alone.told["right"] is True and alone.told["step"] in (2, 3)
    assert alone.told["step"] == max(int(p.name) for p in tmp_path.iterdir() if p.name.isdecimal())
