"""A graph network: count the triangles of graphs of different sizes.

    python examples/graphs.py

Nodes and edges of a batch are two piles.  The network is written for one graph, and every batch has
one compiled program.

Invariant: the error that is printed is that of graphs that training has not seen.
"""

import numpy as np

import plait
import plait.numpy as pnp
from plait import Capacities, Pile, pile_axis, vmap

NODES = Capacities(rows=512, longest=16, count=32)
EDGES = Capacities(rows=4096, longest=128, count=32)
COMPILED: list[str] = []


def graph(r):
    """Return (edges in both directions, number of nodes, number of triangles) of a random graph."""
    n = int(r.integers(4, 13))
    a = np.triu(r.random((n, n)) < r.uniform(0.2, 0.6), 1)
    a = a | a.T
    triangles = np.trace(np.linalg.matrix_power(a.astype(int), 3)) / 6
    return np.argwhere(a).astype("int32"), n, triangles


def batch(r):
    """Return nodes and edges of 32 graphs, and their numbers of triangles."""
    graphs = [graph(r) for _ in range(32)]
    marks = [r.standard_normal((n, 8)).astype("float32") for _, n, _ in graphs]
    nodes = Pile.from_list(marks, capacity=NODES)
    edges = Pile.from_list([e for e, _, _ in graphs], capacity=EDGES)
    return nodes, edges, np.array([t for _, _, t in graphs], "float32")


def gathered(x, edges):
    """Return the sum of the neighbours of each node."""
    return plait.ops.segment_sum(x[edges[:, 0]], edges[:, 1], num_segments=x.shape[0])


def triangles(w, marks, edges):
    """Estimate the number of triangles: a message that is back after three steps closes one.

    The marks are random: products of the marks of different nodes are zero on average.
    """
    x = marks
    for _ in range(3):
        x = gathered(x, edges)
    closed = (x * marks).mean(axis=1).sum() / 6
    degrees = gathered(pnp.ones((marks.shape[0], 1)), edges)
    powers = [(degrees**k).sum() / 8**k for k in (1, 2, 3)]
    features = pnp.array([closed, *powers])
    return pnp.tanh(features @ w["in"]) @ w["out"] + features @ w["direct"]


estimates = vmap(triangles, (None, pile_axis, pile_axis))


def loss(w, nodes, edges, want):
    """Return the mean square error."""
    return ((estimates(w, nodes, edges) - want) ** 2).mean()


@plait.jit
def step(w, speed, nodes, edges, want):
    """Return weights and their speeds after one step with momentum."""
    COMPILED.append("a program")  # Python runs when a program is made, not for each batch
    g = plait.grad(loss)(w, nodes, edges, want)
    speed = plait.tree.map(lambda v, d: 0.9 * v - 0.002 * pnp.clip(d, -5, 5), speed, g)
    return plait.tree.map(pnp.add, w, speed), speed


def main() -> None:
    """Train, and print the error beside that of the mean."""
    r = np.random.default_rng(0)
    a, b = plait.random.split(plait.random.key(0))
    w = {
        "in": plait.random.normal(a, (4, 16)) * 0.2,
        "out": plait.random.normal(b, (16,)) * 0.2,
        "direct": pnp.zeros(4),
    }
    speed = plait.tree.map(pnp.zeros_like, w)
    for _ in range(300):
        w, speed = step(w, speed, *batch(r))
    nodes, edges, want = batch(np.random.default_rng(1))
    error = np.abs(np.asarray(estimates(w, nodes, edges)) - want).mean()
    usual = np.abs(want - want.mean()).mean()
    print(f"mean error: {error:.2f} triangles; of the mean: {usual:.2f}")
    print(f"programs for training: {len(COMPILED)}")


if __name__ == "__main__":
    main()
