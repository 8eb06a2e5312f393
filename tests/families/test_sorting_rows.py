"""Rows sorted by a network under transformations: gradients, maps and piles.

Invariant: numpy sorts each example alone, and its order gives the gradient.
"""

import numpy as np
import pytest

import plait
from plait import Pile, pile_axis
from plait import numpy as pnp

pytestmark = pytest.mark.full_tier

R = np.random.default_rng(0)
X = np.round(R.normal(size=(600, 120)) * 9).astype("float32")  # with equal elements
WEIGHTS = R.normal(size=(600, 120)).astype("float32")


def test_gradient():
    f = lambda x: (pnp.sort(x, -1) * WEIGHTS).sum()  # noqa: E731
    want = np.empty_like(X)
    np.put_along_axis(want, np.argsort(X, -1, kind="stable"), WEIGHTS, -1)
    for g in (plait.grad(f), plait.jit(plait.grad(f))):
        np.testing.assert_array_equal(np.asarray(g(X)), want)


@pytest.mark.parametrize("jitted", [False, True])
def test_map(jitted):
    columns = plait.vmap(lambda x: (pnp.sort(x), pnp.argsort(x), pnp.median(x)), 1, (1, 1, 0))
    f = plait.jit(columns) if jitted else columns
    for got, want in zip(f(X.T), (np.sort(X).T, np.argsort(X, kind="stable").T, np.median(X, -1))):
        np.testing.assert_array_equal(np.asarray(got), want)


def test_piles():
    rows = [R.normal(size=(n, 500)).astype("float32") for n in (40, 0, 90, 31)]
    got = plait.jit(plait.vmap(pnp.sort, pile_axis, pile_axis))(Pile.from_list(rows))
    for x, y in zip(rows, got):
        np.testing.assert_array_equal(np.asarray(y), np.sort(x))
    long = [R.normal(size=(n,)).astype("float32") for n in R.integers(60, 129, 700)]
    got = plait.jit(plait.vmap(pnp.sort, pile_axis, pile_axis))(Pile.from_list(long))
    for x, y in zip(long, got):
        np.testing.assert_array_equal(np.asarray(y), np.sort(x))
