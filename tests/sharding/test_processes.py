"""Training by several processes: 2 and 4 of them take the steps that numpy takes.

Invariant: what the processes tell is compared with derivatives that are written out here.
"""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
FOLDERS = {
    "together": HERE.parents[1] / "packages" / "sharding" / "tests",
    "process_training": HERE,
}


def module(name):
    spec = importlib.util.spec_from_file_location(name, FOLDERS[name] / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.sampled(6)
@pytest.mark.feature("S18")
@pytest.mark.timeout(300)
@pytest.mark.skipif(os.name != "posix", reason="POSIX only")
@pytest.mark.parametrize("n", [2, 4])
def test_data_parallel_training(n):
    program = module("process_training")
    ended = module("together").run_together(n=n, devices=2, script=HERE / "process_training.py")
    assert [p.code for p in ended] == [0] * n, [p.err[-2000:] for p in ended]
    x, y, w = (v.astype(np.float64) for v in program.data())
    values = []
    for _ in range(program.STEPS):
        h = np.tanh(x @ w)
        values.append(((h - y) ** 2).mean())
        w = w - 0.1 * (x.T @ (2 * (h - y) * (1 - h * h) / y.size))
    for p in ended:
        np.testing.assert_allclose(p.told["divided"], w, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(p.told["manual"], w, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(p.told["values"], np.stack([values] * 2, 1), rtol=1e-5)
        np.testing.assert_allclose(p.told["each"], np.sin(2 * x), rtol=1e-4, atol=1e-5)
        assert p.told["pieces"] == [[16 // (2 * n), 4]] * 2
