"""Functions that combine all leaves of trees with piles: norms, sums, tests of finiteness.

They see neither lengths nor rows that are hidden, so they agree with the same functions of trees of
the elements.
"""

import operator

import numpy as np
import pytest

import plait
from plait import Pile
from plait import numpy as pnp

RNG = np.random.default_rng(5)
EXAMPLES = [RNG.normal(size=(n, 2)).astype(np.float32) for n in (3, 0, 5, 1)]
WEIGHTS = RNG.normal(size=(4,)).astype(np.float32)
WAYS = {
    "known": lambda f, p: f(p),
    "traced": lambda f, p: plait.jit(f)(p),
    "traced rows": lambda f, p: plait.jit(lambda rows: f(Pile(rows, p.lengths)))(p.data),
    "in scan": lambda f, p: plait.lax.scan(lambda c, _: (c, f(c)), p, None, length=2)[1][1],
}
PILES = {
    "exact": lambda: Pile(np.concatenate(EXAMPLES), [len(x) for x in EXAMPLES]),
    "spare": lambda: Pile.from_list(EXAMPLES, capacity=(32, 8)),
    "policy": lambda: Pile.from_list(EXAMPLES, capacity=plait.Capacities(32, 8, count=8)),
}


def squares(tree):
    return plait.tree.map(lambda x: x * x, tree)


def norm_by_map(tree):
    sums = plait.tree.map(pnp.sum, squares(tree))
    return pnp.sqrt(plait.tree.reduce(operator.add, sums, 0.0))


def norm_by_reduce(tree):
    return pnp.sqrt(plait.tree.reduce(lambda total, x: total + (x * x).sum(), tree, 0.0))


def norm_by_pairs(tree):
    sums = plait.tree.map(lambda x: pnp.vdot(x, x), tree)
    return pnp.sqrt(plait.tree.reduce_associative(operator.add, sums))


def largest(tree):
    return plait.tree.reduce(pnp.maximum, plait.tree.map(lambda x: abs(x).max(initial=0), tree))


def product(tree):
    dots = plait.tree.map(pnp.vdot, tree, squares(tree))
    return plait.tree.reduce(operator.add, dots, 0.0)


FUNCTIONS = {f.__name__: f for f in (norm_by_map, norm_by_reduce, norm_by_pairs, largest, product)}


def expected(name, trees):
    flat = np.concatenate([np.ravel(x) for x in trees]).astype(np.float64)
    if name == "largest":
        return abs(flat).max()
    return (flat**3).sum() if name == "product" else np.sqrt((flat**2).sum())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", PILES)
@pytest.mark.parametrize("way", WAYS)
def test_hidden_rows_and_lengths_are_not_counted(way, kind, name):
    """The cosine makes ones of rows that are hidden."""
    shown = [np.cos(x) for x in EXAMPLES]

    def f(p):
        return FUNCTIONS[name]({"w": pnp.asarray(WEIGHTS), "p": plait.tree.map(pnp.cos, p)})

    got = WAYS[way](f, PILES[kind]())
    np.testing.assert_allclose(got, expected(name, [WEIGHTS, *shown]), rtol=1e-5)


@pytest.mark.parametrize("way", ["known", "traced", "traced rows"])
def test_gradients_of_a_norm(way):
    p = PILES["spare"]()
    got = WAYS[way](plait.grad(norm_by_map), p)
    norm = expected("norm_by_map", EXAMPLES)
    for g, x in zip(got.to_list(), EXAMPLES, strict=True):
        np.testing.assert_allclose(g, x / norm, rtol=1e-5)


def test_nans_in_hidden_rows_are_not_seen():
    def is_finite(p):
        logs = plait.tree.map(lambda x: pnp.log(pnp.where(x == 0, -1.0, x * x)), p)
        return pnp.stack([plait.tree.reduce(lambda a, x: a & pnp.isfinite(x).all(), logs, True)])

    p = Pile.from_list(EXAMPLES, capacity=(32, 8))
    assert is_finite(p).tolist() == [True]
    tested = plait.tree.map(lambda x: pnp.isfinite(1 / x).all(), p)
    assert plait.tree.all(tested)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", [pnp.mean, pnp.min, pnp.prod, pnp.std, lambda x: (x + 3).sum(0)[1]])
def test_hidden_rows_do_not_count_in_what_is_no_sum(f, way):
    p = Pile.from_list(EXAMPLES, capacity=(32, 8))

    def by_map(p):
        shown = plait.tree.map(lambda x: x + 10, p)
        return plait.tree.reduce(operator.add, plait.tree.map(f, shown), 0.0)

    def by_reduce(p):
        shown = plait.tree.map(lambda x: x + 10, p)
        return plait.tree.reduce(lambda so_far, x: so_far + f(x), shown, 0.0)

    want = f(pnp.concatenate([x + 10 for x in EXAMPLES]))
    for g in (by_map, by_reduce):
        np.testing.assert_allclose(WAYS[way](g, p), want, rtol=1e-5)


@pytest.mark.parametrize("way", ["known", "traced"])
def test_several_axes_that_differ(way):
    pairs = plait.vmap(lambda x: x @ x.T, plait.pile_axis, plait.pile_axis)(PILES["exact"]())
    total = lambda p: plait.tree.reduce(lambda a, x: a + x.sum(), p, 0.0)  # noqa: E731
    if way == "traced":
        with pytest.raises(plait.errors.ShapeError, match="several axes differ"):
            plait.jit(total)(pairs)
        return
    want = sum((x @ x.T).sum() for x in EXAMPLES)
    np.testing.assert_allclose(total(pairs), want, rtol=1e-5)


def test_functions_that_add_axes_or_keep_them_change_nothing():
    p, q = PILES["exact"](), PILES["exact"]()
    both = plait.tree.map(lambda *xs: pnp.stack(xs), p, q)
    one = plait.tree.map(lambda x: x[1], both)
    assert [x.tolist() for x in one.to_list()] == [x.tolist() for x in EXAMPLES]
    kinds = plait.tree.map(lambda x: x.dtype.name, p)
    assert plait.tree.leaves(kinds) == ["float32", "int32"]
