"""Train on a stream of batches of power-law lengths: piles, padded arrays, or nested tensors.

    python benchmarks/ragged_stream.py plait --batches 1000
    python benchmarks/ragged_stream.py jax --batches 1000      # in an environment with jax
    python benchmarks/ragged_stream.py torch --batches 1000    # in an environment with torch

Each trains the same model on the same rows, from the start of the stream to its end, compilation
included, and prints one line of JSON: seconds, seconds of all processors, which other work on the
machine changes little, programs, rows, peak memory, the last loss.  The
padded arrays are as long as the smallest of eight sizes that fits the batch; the sizes are
quantiles of the longest lengths, so that each is used equally often.  torch has no gradient of a
mean over a nested tensor's rows, so these are padded for it, after the layer.

Invariant: the losses agree, since padding takes no part in any.
"""

import argparse
import importlib
import json
import resource
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

EXAMPLES, WIDTH, HIDDEN, LONGEST = 64, 32, 64, 2000


def lengths(r: np.random.Generator) -> np.ndarray:
    """Return lengths of a batch: many short examples, and a few long ones."""
    return np.minimum(LONGEST, r.pareto(1.1, EXAMPLES) * 5 + 1).astype(np.int32)


def batches(count: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield (rows of all examples, their lengths, labels)."""
    r = np.random.default_rng(0)
    truth = r.standard_normal(WIDTH).astype(np.float32)
    for _ in range(count):
        n = lengths(r)
        rows = r.standard_normal((int(n.sum()), WIDTH), np.float32)
        means = np.add.reduceat(rows @ truth, np.cumsum(n) - n) / n
        yield rows, n, (means > 0).astype(np.float32)


def weights() -> dict[str, np.ndarray]:
    r = np.random.default_rng(1)
    return {
        "in": (r.standard_normal((WIDTH, HIDDEN)) * 0.2).astype(np.float32),
        "out": (r.standard_normal(HIDDEN) * 0.2).astype(np.float32),
    }


def with_piles(count: int) -> tuple[float, int]:
    """Train on piles; return the last loss and the number of programs."""
    plait: Any = importlib.import_module("plait")
    pnp: Any = importlib.import_module("plait.numpy")
    plait.config.cache_dir = None  # no executables of earlier processes
    sizes = plait.Capacities(rows=8192, longest=LONGEST, count=EXAMPLES)
    made = []

    def loss(w, p, labels):
        score = lambda x: pnp.tanh(x @ w["in"]).mean(0) @ w["out"]  # noqa: E731
        z = plait.vmap(score, plait.pile_axis)(p)
        return (plait.nn.softplus(z) - labels * z).mean()

    @plait.jit
    def step(w, p, labels):
        made.append(0)
        value, g = plait.value_and_grad(loss)(w, p, labels)
        return value, plait.tree.map(lambda a, b: a - 0.1 * b, w, g)

    w, value = weights(), 0.0
    for rows, n, labels in batches(count):
        capacity = sizes if len(rows) <= sizes.rows else None
        value, w = step(w, plait.Pile(rows, n, capacity=capacity), labels)
    return float(value), len(made)


def with_padding(count: int) -> tuple[float, int]:
    """Train on padded arrays and masks; return the last loss and the number of programs."""
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")
    r = np.random.default_rng(2)
    longest = [lengths(r).max() for _ in range(1000)]
    edges = [int(np.quantile(longest, q)) for q in np.linspace(0.125, 0.875, 7)] + [LONGEST]
    made = []

    def loss(w, x, mask, labels):
        h = jnp.tanh(x @ w["in"]) * mask[..., None]
        z = (h.sum(1) / mask.sum(1)[:, None]) @ w["out"]
        return (jax.nn.softplus(z) - labels * z).mean()

    @jax.jit
    def step(w, x, mask, labels):
        made.append(0)
        value, g = jax.value_and_grad(loss)(w, x, mask, labels)
        return value, jax.tree.map(lambda a, b: a - 0.1 * b, w, g)

    w, value = weights(), 0.0
    for rows, n, labels in batches(count):
        size = next(e for e in edges if e >= n.max())
        x = np.zeros((EXAMPLES, size, WIDTH), np.float32)
        mask = np.arange(size) < n[:, None]
        x[mask] = rows
        value, w = step(w, x, mask.astype(np.float32), labels)
    return float(value), len(made)


def with_nested(count: int) -> tuple[float, int]:
    """Train on torch's nested tensors; nothing is compiled."""
    torch: Any = importlib.import_module("torch")
    w = {k: torch.tensor(v, requires_grad=True) for k, v in weights().items()}
    value = 0.0
    for rows, n, labels in batches(count):
        ends = torch.from_numpy(np.concatenate([[0], np.cumsum(n)]))
        x = torch.nested.nested_tensor_from_jagged(torch.from_numpy(rows), ends)
        h = torch.tanh(x @ w["in"]).to_padded_tensor(0.0)
        z = (h.sum(1) / torch.from_numpy(n)[:, None]) @ w["out"]
        loss = (torch.nn.functional.softplus(z) - torch.from_numpy(labels) * z).mean()
        grads = torch.autograd.grad(loss, [*w.values()])
        with torch.no_grad():
            for v, g in zip(w.values(), grads):
                v -= 0.1 * g
        value = float(loss)
    return value, 0


def now() -> np.ndarray:
    """Return the seconds that went by, and those of processors."""
    return np.array([time.perf_counter(), time.process_time()])


KINDS = {"plait": with_piles, "jax": with_padding, "torch": with_nested}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--batches", type=int, default=1000)
    given = parser.parse_args()
    rows = sum(len(r) for r, _, _ in batches(given.batches))
    started = now()
    value, programs = KINDS[given.kind](given.batches)
    trained = now()
    for _ in batches(given.batches):  # the time of making the data is that of none
        pass
    made = now()
    seconds, processor = 2 * trained - started - made
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes
    found = {
        "kind": given.kind, "batches": given.batches, "rows": rows, "seconds": round(seconds, 2),
        "processor_seconds": round(processor, 2), "programs": programs, "megabytes": most // 1024,
        "loss": round(value, 6),
    }  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main()
