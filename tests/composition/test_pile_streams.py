"""Streams of batches without chosen capacities: few programs, and the values of every batch.

Invariant: counts are those of `plait.events`; values are numpy's, batch by batch.
"""

import re

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Pile, pile_axis, vmap
from plait.errors import MissingRule, UndecidedDim


def lognormal(r):
    return np.clip(np.exp(r.normal(3.7, 1.0, 64)), 1, 512).astype(np.int32)


def power_law(r):
    return np.minimum(2000, r.pareto(1.1, 32) * 5 + 1).astype(np.int32)


def uniform(r):
    return r.integers(0, 41, 16).astype(np.int32)


def elements(r, lengths):
    rows = r.standard_normal(int(lengths.sum()))
    return np.split(rows, np.cumsum(lengths)[:-1])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("lengths", [lognormal, power_law, uniform])
@pytest.mark.parametrize(("count", "most"), [(1, 12), (2, 24)])
def test_a_stream_of_batches_has_few_programs(lengths, count, most):
    r = np.random.default_rng(1)
    total = plait.jit(
        vmap(lambda *xs: sum(x.sum() ** (k + 1) for k, x in enumerate(xs)), pile_axis)
    )
    with plait.events.counting() as n:
        for _ in range(200):
            parts = [elements(r, lengths(r)) for _ in range(count)]
            got = total(*map(Pile.from_list, parts))
            want = [sum(x.sum() ** (k + 1) for k, x in enumerate(xs)) for xs in zip(*parts)]
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    assert n["compile"] <= n["trace"] <= most, dict(n)


def test_batches_of_other_numbers_of_elements_share_capacities():
    """Results have the number of elements in their types, so each number has a program; capacities
    add few."""
    r = np.random.default_rng(6)
    total = plait.jit(vmap(lambda x: x.sum(), pile_axis))
    with plait.events.counting() as n:
        for _ in range(60):
            xs = elements(r, r.integers(1, 41, r.integers(8, 16)))
            np.testing.assert_allclose(total(Pile.from_list(xs)), [x.sum() for x in xs], atol=1e-9)
    assert n["trace"] <= 8 + 4, dict(n)


STREAMS = {
    "sorted": lambda x: pnp.sort(x)[::-1],
    "weights": lambda x: plait.nn.softmax(pnp.outer(x, x), axis=1) @ x,
    "doubled": lambda x: 2 * x,
    "joined": lambda x: pnp.concatenate([x, x * x]),
}


def softmax_rows(x):
    w = np.exp(np.outer(x, x) - np.outer(x, x).max(1, initial=0)[:, None])
    return (w / w.sum(1)[:, None]) @ x


NUMPY = {
    "sorted": lambda x: np.sort(x)[::-1],
    "weights": softmax_rows,
    "doubled": lambda x: 2 * x,
    "joined": lambda x: np.concatenate([x, x * x]),
}


@pytest.mark.parametrize("name", STREAMS)
def test_results_of_a_stream_are_those_of_each_batch(name):
    """Results are piles: their capacities are those of the program, which no result shows."""
    r = np.random.default_rng(2)
    mapped = plait.jit(vmap(STREAMS[name], pile_axis, pile_axis))
    for _ in range(12):
        xs = elements(r, r.integers(0, 2 ** r.integers(2, 7), 5))
        got = mapped(Pile.from_list(xs))
        for y, x in zip(got.to_list(), xs, strict=True):
            np.testing.assert_allclose(y, NUMPY[name](x), rtol=1e-6, atol=1e-9)


def test_gradients_of_a_stream_have_the_rows_of_each_batch():
    r = np.random.default_rng(3)
    loss = lambda p: vmap(lambda x: (x**3).sum(), pile_axis)(p).sum()
    step = plait.jit(lambda p: plait.tree.map(lambda a, b: a - 0.1 * b, p, plait.grad(loss)(p)))
    for _ in range(10):
        xs = elements(r, r.integers(0, 2 ** r.integers(2, 7), 5))
        p = Pile.from_list(xs)
        for got in (
            step(p),
            plait.tree.map(lambda a, b: a - 0.1 * b, p, plait.jit(plait.grad(loss))(p)),
        ):
            for y, x in zip(got.to_list(), xs, strict=True):
                np.testing.assert_allclose(y, x - 0.3 * x**2, rtol=1e-9, atol=1e-12)


def test_what_is_declared_holds_in_every_program():
    """A batch without declared facts has its own program."""
    second = plait.jit(vmap(lambda x: x[1], pile_axis))
    for k in (2, 4, 12):
        p = Pile.from_list([np.arange(k + j) for j in range(3)], at_least=2)
        assert second(p).tolist() == [1, 1, 1]
    with pytest.raises(UndecidedDim, match="at_least=2"):
        second(Pile.from_list([np.arange(3.0), np.arange(1.0), np.arange(5.0)]))


def test_one_size_stays_one():
    """Two piles of one batch share their lengths in every program."""
    r = np.random.default_rng(4)
    dots = plait.jit(vmap(lambda x, y: x @ y, pile_axis))
    for _ in range(8):
        n = r.integers(0, 2 ** r.integers(2, 7), 5)
        xs, ys = elements(r, n), elements(r, n)
        got = dots(Pile.from_list(xs), Pile.from_list(ys))
        np.testing.assert_allclose(got, [x @ y for x, y in zip(xs, ys)], rtol=1e-9, atol=1e-12)


def test_donated_batches_of_a_stream():
    r = np.random.default_rng(5)
    doubled = plait.jit(vmap(lambda x: 2 * x, pile_axis, pile_axis), donate_argnums=0)
    for _ in range(6):
        xs = elements(r, r.integers(0, 2 ** r.integers(2, 7), 5))
        for y, x in zip(doubled(Pile.from_list(xs)).to_list(), xs, strict=True):
            np.testing.assert_allclose(y, 2 * x)


@pytest.mark.parametrize("which", [0, 1, (0, 1)])
@pytest.mark.parametrize("sizes", [(5, 5), (2, 300)], ids=["one capacity", "capacities in turn"])
def test_donated_arguments_of_a_stream(which, sizes):
    """Whatever is donated is gone after each call, and nothing else is; a call that fails keeps
    it."""
    r = np.random.default_rng(9)
    step = plait.jit(
        lambda w, p: (
            {"a": w["a"] * 2, "b": w["b"] + 1},
            vmap(lambda x: x * w["a"] + w["b"], pile_axis, pile_axis)(p),
        ),
        donate_argnums=which,
    )
    gone = {which} if isinstance(which, int) else set(which)
    for turn in range(12):
        xs = elements(r, r.integers(*sizes, 4, endpoint=True))
        w = {"a": pnp.asarray(1.0 + turn), "b": turn if turn % 3 else pnp.asarray(0.0)}
        b, p = float(w["b"]), Pile.from_list(xs)
        new, got = step(w, p)
        for y, x in zip(got.to_list(), xs, strict=True):
            np.testing.assert_allclose(y, x * (1.0 + turn) + b)
        assert float(new["a"]) == 2 + 2 * turn and float(new["b"]) == b + 1
        leaves = plait.tree.leaves((w["a"], p))
        kept = [not x.is_deleted() for x in leaves]
        assert kept == [0 not in gone, 1 not in gone, True], (turn, kept)  # lengths are shared
        if 0 in gone:
            with pytest.raises(plait.errors.DeletedArrayError):
                step(w, Pile.from_list(xs))


TREES = {  # trees of two piles that a jitted function takes in turn, some equal by == alone
    "by name": lambda p, q: {"a": p, "b": q},
    "one lengths": lambda p, q: {"a": p, "b": Pile(p.data * 2, p.lengths)},
    "by numbers": lambda p, q: {1: p, 2: q},
    "by a truth": lambda p, q: {True: p, 2: q},
    "of numpy": lambda p, q: {"a": plait.tree.map(np.asarray, p), "b": q},
    "in a list": lambda p, q: [p, None, (q,)],
}


@pytest.mark.wide
def test_forms_of_calls_in_turn():
    """A call finds the program of its own form, whatever calls came before."""
    r = np.random.default_rng(7)
    seen = []

    @plait.jit
    def total(tree, scale):
        kind = plait.tree.structure(tree, is_leaf=lambda x: isinstance(x, Pile))
        seen.append(str(kind))
        p, q = plait.tree.leaves(tree, is_leaf=lambda x: isinstance(x, Pile))
        sums = [vmap(lambda x: (x**2).sum(), pile_axis)(each) for each in (p, q)]
        named = next(iter(tree)) if isinstance(tree, dict) else None
        return sums[0] - sums[1] * scale, plait.numpy.asarray(100 if named is True else 0)

    for turn in range(40):
        name = list(TREES)[turn % len(TREES)]
        pair = [Pile.from_list(elements(r, power_law(r))) for _ in range(2)]
        tree = TREES[name](*pair)
        flat = plait.tree.leaves(tree, is_leaf=lambda x: isinstance(x, Pile))
        p, q = [np.array([(x**2).sum() for x in each.to_list()]) for each in flat]
        for scale in (2.0, np.float64(3.0)):
            got, told = total(tree, scale)
            np.testing.assert_allclose(got, p - q * scale, rtol=1e-9)
            assert told == (100 if name == "by a truth" else 0)
    assert len(seen) < 2 * 40


def test_a_batch_that_fits_in_no_program_makes_one():
    """Calls change capacities by their own ones and by their lengths."""
    f = plait.jit(lambda p: vmap(lambda x: x.sum(), pile_axis)(p))
    r = np.random.default_rng(8)
    for n in ([5, 5], [70, 3], [5, 6], [900, 1], [71, 2], [1, 1], [900, 900], [80, 1], [0, 0]):
        xs = elements(r, np.array(n))
        for made in (Pile.from_list(xs), Pile(np.concatenate([*xs, np.full(7, np.nan)]), n)):
            np.testing.assert_allclose(f(made), [x.sum() for x in xs], atol=1e-9)


OUTSIDE = {
    "sum": (lambda x: x.sum(0), 0),
    "softmax": (lambda x: plait.nn.softmax(x, 0), pile_axis),
    "a constant": (lambda x: pnp.tanh(x @ np.arange(6.0).reshape(2, 3)), pile_axis),
    "a loop": (lambda x: plait.lax.scan(lambda c, r: (c + r, c), pnp.zeros(2, "float64"), x)[0], 0),
    "a gradient": (plait.grad(lambda x: (x**3).sum()), pile_axis),
}


@pytest.mark.parametrize("sizes", [plait.Capacities(rows=40, longest=9, count=4), None])
@pytest.mark.parametrize("name", OUTSIDE)
def test_calls_outside_of_jit_are_lowered_once(name, sizes):
    """The function runs at each call, and the program that it stages is looked up by structure."""
    f, out_axes = OUTSIDE[name]
    r, ran = np.random.default_rng(8), []

    def mapped(x):
        ran.append(x)
        return f(x)

    batches = [[r.standard_normal((n, 2)) for n in r.permutation([9, 2, 5, 1])] for _ in range(6)]
    piles = [Pile.from_list(xs, capacity=sizes) for xs in batches]
    with plait.events.counting() as n:
        found = [vmap(mapped, pile_axis, out_axes)(p) for p in piles]
    assert (n["lower"], len(ran) >= len(piles)) == (1, True), dict(n)
    for got, xs in zip(found, batches):
        for y, x in zip(got, xs, strict=True):
            np.testing.assert_allclose(y, f(pnp.asarray(x)), rtol=1e-6, atol=1e-9)


def test_errors_outside_of_jit_name_their_own_lines():
    """A function of the structure of an earlier one, on another line, is not taken for it."""
    p = Pile.from_list([np.ones((k, k)) for k in (2, 3)], axis=(0, 1))
    first = lambda x: pnp.linalg.eigvals(x)
    second = lambda x: pnp.linalg.eigvals(x)
    lines = []
    for f in (first, second):
        with plait.config(ragged_fallback="error"), pytest.raises(MissingRule) as e:
            vmap(f, pile_axis, pile_axis)(p)
        lines.append(int(re.findall(r"test_pile_streams.py:(\d+)", str(e.value))[0]))
    at = first.__code__.co_firstlineno
    assert lines == [at, at + 1]
