"""Batches of other capacities, where structures are compared: whatever fits is taken.

Invariant: values are numpy's, element by element; a batch that does not fit is refused by name.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Capacities, Pile, lax, pile_axis, vmap
from plait.errors import TreeMismatch


def batch(*lengths, tail=(2,)):
    total = sum(lengths)
    rows = np.arange(1.0, 1 + total * int(np.prod(tail))).reshape(total, *tail)
    return np.split(rows, np.cumsum(lengths)[:-1])


BATCHES = {
    "the same": batch(3, 0, 5, 1),
    "longer": batch(20, 0, 5, 1),
    "longer, fewer in all": batch(9, 0, 0, 0),
    "empty": batch(0, 0, 0, 0),
}
total = lambda p: vmap(lambda x: x.sum(), pile_axis)(p)


def made(xs, **how):
    return {"a": Pile.from_list(xs, **how), "b": np.float64(2)}


def scaled(t):
    return {
        "s": t["b"] * total(t["a"]),
        "p": vmap(lambda x: x[::-1] * 2, pile_axis, pile_axis)(t["a"]),
    }


def check(got, xs):
    np.testing.assert_allclose(got["s"], [2 * x.sum() for x in xs])
    for y, x in zip(got["p"].to_list(), xs, strict=True):
        np.testing.assert_array_equal(y, 2 * x[::-1])


@pytest.mark.parametrize("name", BATCHES)
def test_a_compiled_function_takes_what_fits(name):
    first = made(batch(16, 1, 2, 7), capacity=(64, 32))
    check(plait.jit(scaled).lower(first).compile()(made(BATCHES[name])), BATCHES[name])


@pytest.mark.parametrize("name", BATCHES)
def test_an_exported_function_takes_what_fits(name):
    first = made(batch(16, 1, 2, 7), capacity=(64, 32))
    exported = plait.export.export(plait.jit(scaled))(first)
    check(exported.call(made(BATCHES[name])), BATCHES[name])
    check(plait.jit(exported.call)(made(BATCHES[name])), BATCHES[name])


def test_less_capacity_is_enough_where_lengths_are_known():
    """A batch made with much room fits where its rows fit."""
    xs = batch(3, 0, 5, 1)
    compiled = plait.jit(scaled).lower(made(xs)).compile()
    check(compiled(made(xs, capacity=(640, 320))), xs)


@pytest.mark.parametrize("other", [batch(70, 0, 1, 0), batch(0, 0, 0, 9), batch(1, 2, 3)])
def test_what_does_not_fit_is_refused(other):
    first = made(batch(3, 0, 5, 1))
    for f in (
        plait.jit(scaled).lower(first).compile(),
        plait.export.export(plait.jit(scaled))(first).call,
    ):
        with pytest.raises(TreeMismatch, match="elements"):
            f(made(other))
    few = plait.jit(scaled).lower(made(batch(3, 5), capacity=Capacities(64, 8, count=4))).compile()
    with pytest.raises(TreeMismatch, match="elements"):
        few(made(batch(3, 0, 5, 1)))


@pytest.mark.parametrize("take", [True, False])
def test_branches_return_batches_of_any_capacity(take):
    xs, ys = batch(3, 0, 5, 1), batch(20, 70, 5, 1)
    p, q = Pile.from_list(xs), Pile.from_list(ys)
    f = lambda k, p, q: lax.cond(k, lambda: (p, 1), lambda: (q, 2))
    want = xs if take else ys
    for run in (f, plait.jit(f)):
        got, number = run(take, p, q)
        assert int(number) == (1 if take else 2)
        for y, x in zip(got.to_list(), want, strict=True):
            np.testing.assert_array_equal(y, x)
    g = plait.grad(lambda p, q: (f(take, p, q)[0] ** 2).sum(), (0, 1))(p, q)
    for pile, own, is_taken in zip(g, (xs, ys), (take, not take), strict=True):
        for y, x in zip(pile.to_list(), own, strict=True):
            np.testing.assert_array_equal(y, 2 * x * is_taken)


def test_branches_whose_batches_have_other_elements_are_refused():
    p, q = Pile.from_list(batch(3, 1)), Pile.from_list(batch(3, 1, 2))
    with pytest.raises(TreeMismatch, match="2 elements"):
        lax.cond(True, lambda: p, lambda: q)


def test_batches_of_any_capacity_are_stacked_for_scan():
    parts = [batch(3, 0, 5, 1), batch(20, 70, 5, 1), batch(0, 0, 0, 0), batch(1, 1, 1, 1)]
    stack = plait.tree.map(lambda *xs: pnp.stack(xs), *map(Pile.from_list, parts))
    last, each = lax.scan(lambda c, p: (c + total(p).sum(), total(p)), 0.0, stack)
    np.testing.assert_allclose(each, [[x.sum() for x in xs] for xs in parts])
    assert float(last) == sum(x.sum() for xs in parts for x in xs)
    assert [len(x) for x in stack[1].to_list()] == [20, 70, 5, 1]


def test_piles_of_equal_lengths_and_other_capacities_are_added():
    xs = batch(3, 0, 5, 1)
    p, q = Pile.from_list(xs), Pile.from_list(xs, capacity=(200, 100))
    for a, b in ((p, q), (q, p)):
        got = plait.tree.map(lambda a, b: a + 2 * b, {"w": a}, {"w": b})["w"]
        for y, x in zip(got.to_list(), xs, strict=True):
            np.testing.assert_array_equal(y, 3 * x)


def test_values_in_tiles_fit_too():
    """Elements with two sizes lie in tiles."""
    xs = [x @ x.T for x in batch(40, 3, 0)]
    p = Pile.from_list(xs, axis=(0, 1))
    q = Pile.from_list([x @ x.T for x in batch(100, 3, 0)], axis=(0, 1))
    f = vmap(lambda x: (x * x).sum(), pile_axis)
    np.testing.assert_allclose(plait.jit(f).lower(q).compile()(p), [(x * x).sum() for x in xs])


def test_keys_and_integers_fit_too():
    k = plait.random.split(plait.random.key(0), 30)
    small = Pile.from_list([{"k": k[:2], "i": np.arange(2)}, {"k": k[2:3], "i": np.arange(1)}])
    large = Pile.from_list([{"k": k[:21], "i": np.arange(21)}, {"k": k[2:3], "i": np.arange(1)}])
    f = vmap(lambda d: (vmap(plait.random.normal)(d["k"]) * d["i"]).sum(), pile_axis)
    want = [
        float(plait.random.normal(k[1])),
        0.0,
    ]
    np.testing.assert_allclose(plait.jit(f).lower(large).compile()(small), want, rtol=1e-6)


def test_classes_that_refuse_placeholders_are_left_whole():
    """Only piles are put together without values."""

    class Scale:
        def __init__(self, factor):
            assert getattr(factor, "dtype", None) == np.float64
            self.factor = factor

    plait.tree.register(Scale, lambda s: ((s.factor,), None), lambda _, kids: Scale(*kids))
    f = plait.jit(lambda s, p: s.factor * total(p))
    first = plait.jit(lambda s, p: s.factor * total(p))
    small, large = batch(3, 0, 5, 1), batch(40, 0, 5, 1)
    scale = Scale(np.asarray(2.0))
    for xs in (large, small, batch(9, 0, 5, 1), large):
        np.testing.assert_allclose(f(scale, Pile.from_list(xs)), [2 * x.sum() for x in xs])
    compiled = first.lower(scale, Pile.from_list(large)).compile()
    np.testing.assert_allclose(compiled(scale, Pile.from_list(small)), [2 * x.sum() for x in small])
