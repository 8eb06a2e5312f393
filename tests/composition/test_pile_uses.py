"""Three models of variable-length data, as one writes them: texts, graphs, particles and series.

Invariant: the other side is numpy, or the same function of one example; programs are those that
`plait.events` counts.
"""

import numpy as np

import plait
import plait.numpy as pnp
from plait import Capacities, Pile, lax, nn, pile_axis, vmap

VOCABULARY, WIDTH, HEADS = 12, 8, 2


# ---- texts -------------------------------------------------------------------------------------


def logits(w, tokens):
    """Return the scores of two classes, of one text: one block of attention."""
    x = w["embedding"][tokens]
    n = tokens.shape[0]
    x = x + pnp.sin(pnp.arange(n)[:, None] / 10.0 ** pnp.arange(WIDTH))
    q, k, v = ((x @ w[name]).reshape(n, HEADS, -1) for name in ("queries", "keys", "values"))
    x = x + nn.dot_product_attention(q, k, v).reshape(n, WIDTH) @ w["out"]
    return nn.standardize(x).mean(0) @ w["classes"]


def text_loss(w, texts, labels):
    scores = nn.log_softmax(vmap(logits, (None, pile_axis))(w, texts))
    return -pnp.take_along_axis(scores, labels[:, None], 1).mean()


def test_a_classifier_of_texts_is_trained_by_one_program():
    r = np.random.default_rng(0)
    shapes = {"embedding": (VOCABULARY, WIDTH), "classes": (WIDTH, 2)}
    shapes |= dict.fromkeys(("queries", "keys", "values", "out"), (WIDTH, WIDTH))
    w = {k: (r.standard_normal(s) / np.sqrt(s[0])).astype("float32") for k, s in shapes.items()}

    @plait.jit
    def step(w, moments, texts, labels):
        loss, g = plait.value_and_grad(text_loss)(w, texts, labels)
        moments = plait.tree.map(lambda m, g: 0.9 * m + g, moments, g)
        return plait.tree.map(lambda w, m: w - 0.05 * m, w, moments), moments, loss

    moments, losses = plait.tree.map(np.zeros_like, w), []
    with Capacities(rows=16 * 20, longest=20), plait.events.counting() as n:
        for _ in range(40):
            texts = [r.integers(0, VOCABULARY, r.integers(1, 20)) for _ in range(16)]
            labels = np.array([int(7 in t) for t in texts])
            w, moments, loss = step(w, moments, Pile.from_list(texts), labels)
            losses.append(float(loss))
    assert n["lower"] == 1, dict(n)
    assert np.mean(losses[-10:]) < np.mean(losses[:10])
    got = vmap(logits, (None, pile_axis))(w, Pile.from_list(texts))
    want = [logits(w, pnp.asarray(t)) for t in texts]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


# ---- graphs ------------------------------------------------------------------------------------


def of_graph(w, graph):
    """Return a number for a graph: weighted sums over the edges into each node, twice."""
    x, edges = graph["nodes"], graph["edges"]
    for _ in range(2):
        strength = pnp.exp(graph["lengths"] * w["edge"])
        total = plait.ops.segment_sum(strength, edges[:, 1], num_segments=x.shape[0])
        share = strength / total[edges[:, 1]]
        into = plait.ops.segment_sum(
            share[:, None] * x[edges[:, 0]], edges[:, 1], num_segments=x.shape[0]
        )
        x = x + pnp.tanh(into @ w["node"])
    return x.sum()


def of_graph_by_numpy(w, graph):
    x, edges = graph["nodes"], graph["edges"]
    for _ in range(2):
        strength = np.exp(graph["lengths"] * w["edge"])
        total, into = np.zeros(len(x)), np.zeros_like(x)
        np.add.at(total, edges[:, 1], strength)
        np.add.at(into, edges[:, 1], (strength / total[edges[:, 1]])[:, None] * x[edges[:, 0]])
        x = x + np.tanh(into @ w["node"])
    return x.sum()


def random_graph(r):
    n = r.integers(1, 9)
    m = r.integers(0, 2 * n + 1)
    return {
        "nodes": r.standard_normal((n, 3)),
        "edges": r.integers(0, n, (m, 2)),
        "lengths": r.random(m),
    }


def test_a_network_over_graphs_has_its_derivatives():
    """A graph is a tree of arrays of two sizes, with integers among them."""
    r = np.random.default_rng(1)
    w = {"node": r.standard_normal((3, 3)) / 3, "edge": 0.5}
    over = vmap(of_graph, (None, pile_axis))
    loss = lambda w, graphs: (over(w, graphs) ** 2).mean()
    by_numpy = lambda w, graphs: np.mean([of_graph_by_numpy(w, g) ** 2 for g in graphs])
    step = plait.jit(plait.value_and_grad(loss))
    with Capacities(rows=160, longest=32), plait.events.counting() as n:
        for _ in range(6):
            graphs = [random_graph(r) for _ in range(8)]
            value, g = step(w, Pile.from_list(graphs))
            np.testing.assert_allclose(value, by_numpy(w, graphs), rtol=1e-6)
    assert n["lower"] == 1, dict(n)
    eps = 1e-6
    up, down = (by_numpy({**w, "edge": 0.5 + e}, graphs) for e in (eps, -eps))
    np.testing.assert_allclose(g["edge"], (up - down) / (2 * eps), rtol=1e-4)
    moved = [w["node"] + e * np.eye(3)[:, :1] * np.eye(3)[1] for e in (eps, -eps)]
    up, down = (by_numpy({**w, "node": m}, graphs) for m in moved)
    np.testing.assert_allclose(g["node"][0, 1], (up - down) / (2 * eps), rtol=1e-4)


# ---- particles and series ----------------------------------------------------------------------


def energy(x):
    apart = ((x[:, None] - x) ** 2).sum(-1)
    return ((1 - pnp.eye(x.shape[0])) * pnp.exp(-apart)).sum() / 2 + (x**2).sum() / 20


def force_by_numpy(x):
    d = x[:, None] - x
    near = np.exp(-(d**2).sum(-1))[..., None] * d
    return 2 * near.sum(1) - x / 10


def test_particles_move_in_a_loop_whose_carry_is_a_pile():
    r = np.random.default_rng(2)
    xs = [r.standard_normal((n, 3)) for n in (4, 1, 6, 0)]
    push = vmap(plait.grad(energy), pile_axis, pile_axis)

    @plait.jit
    def moved(x):
        def step(state, _):
            x, v = state
            v = v - 0.01 * push(x)
            return (x + 0.01 * v, v), None

        return lax.scan(step, (x, pnp.zeros_like(x)), None, length=20)[0]

    position, speed = moved(Pile.from_list(xs))
    for x, got, v_got in zip(xs, position.to_list(), speed.to_list(), strict=True):
        v = np.zeros_like(x)
        for _ in range(20):
            v = v + 0.01 * force_by_numpy(x)
            x = x + 0.01 * v
        np.testing.assert_allclose(got, x, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(v_got, v, rtol=1e-6, atol=1e-9)


def test_nearest_neighbours_of_sets_that_have_fewer():
    """Each example takes as many as it has."""
    r = np.random.default_rng(3)
    xs = [r.standard_normal((n, 2)) for n in (5, 2, 1, 7)]

    def mean_of_nearest(x):
        apart = ((x[:, None] - x) ** 2).sum(-1)
        nearest = lax.top_k(-apart, plait.core.min_dim(3, x.shape[0]))[1]
        return x[nearest].mean(1)

    got = plait.jit(vmap(mean_of_nearest, pile_axis, pile_axis))(Pile.from_list(xs))
    for y, x in zip(got.to_list(), xs, strict=True):
        apart = ((x[:, None] - x) ** 2).sum(-1)
        want = x[np.argsort(apart, 1)[:, :3]].mean(1)
        np.testing.assert_allclose(y, want, rtol=1e-6)


def test_series_with_missing_values_keep_their_state():
    r = np.random.default_rng(4)
    series = [{"x": r.standard_normal((n, 2)), "there": r.random(n) > 0.3} for n in (7, 3, 0, 12)]
    w = r.standard_normal((4, 6))

    def states(s):
        def cell(h, row):
            h = pnp.where(row["there"], pnp.tanh(w @ pnp.concatenate([h, row["x"]])), h)
            return h, h

        return lax.scan(cell, np.zeros(4), s)[1]

    got = plait.jit(vmap(states, pile_axis, pile_axis))(Pile.from_list(series))
    for y, s in zip(got.to_list(), series, strict=True):
        h, want = np.zeros(4), np.zeros((len(s["x"]), 4))
        for i, (x, there) in enumerate(zip(s["x"], s["there"])):
            h = np.tanh(w @ np.concatenate([h, x])) if there else h
            want[i] = h
        np.testing.assert_allclose(y, want, rtol=1e-6)
