"""Programs for streams of batches: how many are compiled, and which batches are taken.

Invariant: counts are those of `plait.events`; values are compared with numpy's, batch by batch.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Capacities, Pile, pile_axis, vmap
from plait.errors import ArgumentError, ShapeError


def power_law(r, count):
    return np.minimum(2000, r.pareto(1.1, count) * 5 + 1).astype(np.int32)


def rows(n, *tail):
    return np.arange(1.0, n * int(np.prod(tail)) + 1).reshape(n, *tail)


def elements(lengths, *tail):
    return np.split(rows(int(lengths.sum()), *tail), np.cumsum(lengths)[:-1])


def graph_network(nodes, edges):
    sums = plait.ops.segment_sum(nodes[edges[:, 0]], edges[:, 1], num_segments=nodes.shape[0])
    return (nodes * sums).sum()


# ---- one program for a stream --------------------------------------------------------------------

SIZES = Capacities(rows=20000, longest=2000, count=32)


def two_piles(r):
    a, b = (power_law(r, r.integers(8, 33)) for _ in range(2))
    k = min(len(a), len(b))
    a, b = elements(a[:k]), elements(b[:k])
    return (Pile.from_list(a), Pile.from_list(b)), [x.sum() * y.sum() for x, y in zip(a, b)]


def from_rows(r):
    n = power_law(r, 32)
    x = elements(n, 2)
    return (Pile(np.concatenate(x), n),), [v.sum() for v in x]


def from_padded(r):
    n = r.integers(0, 40, r.integers(8, 33))
    x = rows(len(n) * 40).reshape(len(n), 40)
    return (Pile.from_padded(x, n),), [v[:k].sum() for v, k in zip(x, n)]


def graphs(r):
    sizes = r.integers(1, 12, r.integers(8, 17))
    edges = [r.integers(0, n, (r.integers(0, 3 * n + 1), 2)).astype(np.int32) for n in sizes]
    nodes = [r.standard_normal((n, 3)) for n in sizes]
    want = []
    for x, e in zip(nodes, edges):
        sums = np.zeros_like(x)
        np.add.at(sums, e[:, 1], x[e[:, 0]])
        want.append((x * sums).sum())
    return (Pile.from_list(nodes), Pile.from_list(edges)), want


STREAMS = {
    "two piles": (two_piles, lambda x, y: x.sum() * y.sum()),
    "rows": (from_rows, lambda x: x.sum()),
    "padded": (from_padded, lambda x: x.sum()),
    "graphs": (graphs, graph_network),
}


@pytest.mark.parametrize("name", STREAMS)
def test_one_program_for_a_stream(name):
    """Whatever the lengths, and the number of examples."""
    batch, f = STREAMS[name]
    mapped = plait.jit(vmap(f, pile_axis))
    r = np.random.default_rng(3)
    with SIZES, plait.events.counting() as n:
        for _ in range(30):
            piles, want = batch(r)
            got = mapped(*piles)
            assert got.shape == (32,) and len(piles[0]) == 32
            np.testing.assert_allclose(np.asarray(got)[: len(want)], want, rtol=1e-6)
    assert n["trace"] == 1 and n["compile"] <= 1, dict(n)


AROUND = {
    "from_list": lambda xs: Pile.from_list(xs),
    "rows": lambda xs: Pile(np.concatenate(xs), [len(x) for x in xs]),
    "from_padded": lambda xs: Pile.from_padded(
        np.stack([np.pad(x, ((0, 40 - len(x)), (0, 0))) for x in xs]), [len(x) for x in xs]
    ),
    "arrays": lambda xs: Pile(pnp.asarray(np.concatenate(xs)), pnp.asarray([len(x) for x in xs])),
    "data": lambda xs: Pile.from_list(xs).data,
    "lengths": lambda xs: Pile.from_list(xs).lengths,
    "offsets": lambda xs: Pile.from_list(xs).offsets,
    "to_padded": lambda xs: Pile.from_list(xs).to_padded(fill=2),
    "to_list": lambda xs: Pile.from_list(xs).to_list(),
    "an element": lambda xs: Pile.from_list(xs)[3],
    "some elements": lambda xs: Pile.from_list(xs)[3:5],
    "shuffled": lambda xs: Pile.from_list(xs)[np.argsort([len(x) for x in xs])],
    "joined": lambda xs: pnp.concatenate([Pile.from_list(xs[:5]), Pile.from_list(xs[5:])]),
    "two axes": lambda xs: Pile.from_list([x @ x.T for x in xs], axis=(0, 1)).to_padded(),
    "piles": lambda xs: Pile.from_list([Pile.from_list(xs[:4]), Pile.from_list(xs[4:])])[1],
}


@pytest.mark.parametrize("name", AROUND)
def test_nothing_is_compiled_around_programs(name):
    """Whatever the lengths and the number of examples are."""
    r = np.random.default_rng(0)
    plait.clear_caches()
    with plait.events.counting() as n:
        for count in (16, 16, 16, 9, 31):
            AROUND[name]([rows(n, 2) for n in r.integers(0, 40, count)])
    assert not any(n[kind] for kind in ("trace", "lower", "compile", "load")), dict(n)


# ---- values of what numpy does -------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_taken_apart(axis):
    """By numpy, and by operations where the arrays are traced."""
    shapes = [(3, 2), (0, 2), (40, 2)]
    if axis == 1:
        shapes = [s[::-1] for s in shapes]
    if axis == (0, 1):
        shapes = [(3, 2), (0, 5), (40, 33)]
    xs = [rows(a * b).reshape(a, b) for a, b in shapes]
    p = Pile.from_list(xs, axis=axis)
    for got, want in zip(p.to_list(), xs, strict=True):
        np.testing.assert_array_equal(got, want)
    padded = plait.jit(lambda p: p.to_padded(-1, capacity=41))(p)
    np.testing.assert_array_equal(padded, p.to_padded(-1, capacity=41))
    for b, x in enumerate(xs):
        whole = np.full(padded.shape[1:], -1.0)
        whole[: x.shape[0], : x.shape[1]] = x
        np.testing.assert_array_equal(padded[b], whole)
    if axis == 0:
        again = Pile.from_padded(p.to_padded(), p.lengths)
        np.testing.assert_array_equal(again.data, np.concatenate(xs))


# ---- batches of one capacity are of one type -----------------------------------------------------

LONG = [rows(9), rows(13), rows(0)]
SHORT = [rows(1), rows(0), rows(3)]


def pair():
    return tuple(Pile.from_list(x, capacity=(64, 16)) for x in (SHORT, LONG))


total = plait.jit(vmap(lambda x: x.sum(), pile_axis))
USES = {
    "compiled": lambda p, q: total.lower(p).compile()(q),
    "exported": lambda p, q: plait.export.export(total)(p).call(q),
    "cond": lambda p, q: total(plait.jit(lambda k: plait.lax.cond(k, lambda: p, lambda: q))(False)),
    "scan": lambda p, q: plait.lax.scan(
        lambda c, p: (c, total(p)), 0, plait.tree.map(lambda *a: pnp.stack(a), p, q)
    )[1][1],
    "shuffled": lambda p, q: total.lower(p).compile()(q[[2, 1, 0]])[::-1],
}


@pytest.mark.parametrize("name", USES)
def test_batches_of_one_capacity(name):
    np.testing.assert_allclose(USES[name](*pair()), [x.sum() for x in LONG])


def test_traced_lengths_plan_for_the_capacity():
    """Attention takes the memory of the capacity, not of one element that has all rows."""

    def attention(p):
        return vmap(lambda x: (plait.nn.softmax(x @ x.T) @ x).sum(), pile_axis)(p)

    def memory(*capacity):
        f = plait.jit(lambda d, n: attention(Pile(d, n, *capacity)))
        compiled = f.lower(np.ones((1024, 4), "float32"), np.full(16, 64)).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert memory(0, (1024, 64)) < 1.5e6 < memory() < 3e7


# ---- refused -------------------------------------------------------------------------------------

REFUSED = {
    "rows": (ShapeError, "has 9 rows in all, and its capacity is 8", lambda: Pile(
        np.ones(9), [5, 4], capacity=(8, 5))),
    "longest": (ShapeError, "6 rows in one element", lambda: Pile.from_list(
        [np.ones(6)], capacity=(8, 5))),
    "count": (ShapeError, "3 elements, and its capacity is 2", lambda: Pile.from_list(
        [np.ones(1)] * 3, capacity=(8, 5, 2))),
    "padded": (ShapeError, "4 rows in one element", lambda: Pile.from_padded(
        np.ones((2, 6)), [4, 1], capacity=Capacities(8, 3))),
    "no capacity": (ArgumentError, "got 5", lambda: Pile.from_list([[1.0]], capacity=5)),
    "no size": (ArgumentError, "positive integer, got 0", lambda: Capacities(0, 1)),
    "traced": (Exception, "a length of 4, and there are 3", lambda: plait.block_until_ready(
        plait.jit(lambda d, n: Pile(d, n, capacity=(8, 3)).data)(np.ones(8), np.array([4, 1])))),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    kind, message, call = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()


def test_empty_elements_at_the_end():
    p = Pile.from_list([{"u": rows(2), "v": rows(3, 2)}], capacity=Capacities(16, 8, count=3))
    assert [x["v"].shape for x in p.to_list()] == [(3, 2), (0, 2), (0, 2)]
    traced = plait.jit(lambda d, n: Pile(d, n, capacity=(8, 3, 4)).sum(axis=1))
    np.testing.assert_array_equal(traced(rows(8), np.array([3, 1])), [6, 4, 0, 0])
    texts = [Pile.from_list([[1.0, 2.0], [3.0]]), Pile.from_list([[4.0]])]
    nested = Pile.from_list(texts, capacity=(16, 8, 3))
    assert len(nested) == 3 and len(nested[2]) == 0 and nested[1][0].tolist() == [4.0]


def pulls(x):
    """Return the pull of all other rows on each."""
    d = x[None] - x[:, None]
    return (d / ((d**2).sum(-1, keepdims=True) + 0.1) ** 1.5).sum(axis=1)


@pytest.mark.parametrize("backwards", [False, True])
def test_pairs_of_short_examples_need_no_more_memory_than_padded_ones(backwards):
    """A tile has 32 x 32 pairs, which is more than the pairs of examples of 16 rows."""
    f = (lambda x: plait.grad(lambda x: (pulls(x) ** 2).sum())(x)) if backwards else pulls
    r = np.random.default_rng(0)
    xs = [r.standard_normal((n, 2)) for n in (5, 9, 2, 0, 10, 7)]
    p = Pile.from_list(xs, capacity=Capacities(rows=64, longest=16, count=8))
    mapped = plait.jit(vmap(f, pile_axis, pile_axis)).lower(p).compile()
    for y, x in zip(mapped(p).to_list(), xs):
        np.testing.assert_allclose(y, f(x), rtol=1e-9, atol=1e-12)
    padded = plait.jit(vmap(f)).lower(np.zeros((8, 16, 2))).compile()
    needed, of_padded = (m.memory_analysis().temp_size_in_bytes for m in (mapped, padded))
    assert needed <= 2 * of_padded
