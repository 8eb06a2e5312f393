"""The losses of `examples/elastic.py`, by a loop of numpy that is never interrupted.

Invariant: derivatives are written out here, in float64.
"""

import importlib.util
import json
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).parents[1] / "examples" / "elastic.py"


def example():
    """Return the example as a module."""
    spec = importlib.util.spec_from_file_location("elastic", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def losses(steps):
    """Return the losses of these many steps."""
    module = example()
    state = {k: v.astype(np.float64) for k, v in module.parameters().items()}
    velocity = dict.fromkeys(state, 0.0)
    out = []
    for k in range(steps):
        x, y = module.batch(k)
        hidden = np.tanh(x @ state["first"])
        residual = hidden @ state["second"] - y
        out.append((residual**2).mean())
        g = 2 * residual / len(y)
        grads = {
            "second": hidden.T @ g,
            "first": x.T @ (g[:, None] * state["second"] * (1 - hidden**2)),
        }
        velocity = {n: 0.9 * velocity[n] + grads[n] for n in state}
        state = {n: state[n] - 0.02 * velocity[n] for n in state}
    return out


def follows(root, curve):
    """Assert that the losses of a run are those of the curve, also of steps that were repeated.

    Return the numbers of processes, and the numbers of steps, in the order of the file.
    """
    rows = [json.loads(line) for line in (root / "losses.jsonl").read_text().splitlines()]
    assert {k for k, _, _ in rows} == set(range(len(curve)))
    for k, value, _ in rows:
        np.testing.assert_allclose(value, curve[k], rtol=2e-4)
    counts = [n for _, _, n in rows]
    changes = [n for i, n in enumerate(counts) if i == 0 or counts[i - 1] != n]
    return changes, [k for k, _, _ in rows]
