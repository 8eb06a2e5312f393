"""Empty elements that fill up a capacity: neither results nor derivatives depend on them.

Invariant: the reference is the same batch without them, computed by a loop.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Capacities, Pile, pile_axis, vmap

XS = [np.arange(1.0, 1 + 2 * n).reshape(n, 2) / 9 for n in (3, 1, 4)]
SIZES = Capacities(64, 8, count=6)
W = np.array([0.3, -0.7])

FUNCTIONS = {
    "mean": lambda w, x: pnp.tanh(x @ w).mean(),
    "softmax": lambda w, x: (plait.nn.softmax(x @ w) * x[:, 0]).sum(),
    "norm": lambda w, x: pnp.sqrt(((x * w) ** 2).sum()),
    "first": lambda w, x: (x[0] * w).sum(),
    "greatest": lambda w, x: pnp.log(x.max() * w[0]),
    "constant": lambda w, x: w.sum() + x.sum(),
    "weights alone": lambda w, x: (w**2).sum(),
}


def total(f, w, x):
    return vmap(f, (None, pile_axis))(w, x).sum()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sums_and_gradients_are_those_of_the_examples(name):
    f = FUNCTIONS[name]
    p = Pile.from_list(XS, capacity=SIZES)
    value, got = plait.jit(plait.value_and_grad(lambda w: total(f, w, p)))(W)
    each = [plait.value_and_grad(f)(W, x) for x in XS]
    np.testing.assert_allclose(value, sum(float(v) for v, _ in each), rtol=1e-6)
    np.testing.assert_allclose(got, sum(np.asarray(g) for _, g in each), rtol=1e-6)
    rows = plait.grad(lambda p: total(f, W, p))(p).to_list()
    for y, x in zip(rows[:3], XS, strict=True):
        np.testing.assert_allclose(y, plait.grad(f, 1)(W, x), rtol=1e-6)
    assert all(len(y) == 0 for y in rows[3:])


@pytest.mark.parametrize("name", ["mean", "softmax"])
def test_second_derivatives_too(name):
    f = FUNCTIONS[name]
    p = Pile.from_list(XS, capacity=SIZES)
    got = plait.hessian(lambda w: total(f, w, p))(W)
    want = sum(np.asarray(plait.hessian(f)(W, x)) for x in XS)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    moved = plait.jvp(lambda w: total(f, w, p), (W,), (np.ones(2),))[1]
    np.testing.assert_allclose(moved, sum(float(plait.grad(f)(W, x).sum()) for x in XS), rtol=1e-6)


def test_a_loss_that_leaves_places_without_examples_out():
    """Labels are padded by the loader; the places of the padding are chosen by `where`."""
    labels = np.array([1.0, 0.0, 1.0, -1, -1, -1])

    def loss(w, p, labels):
        scores = vmap(FUNCTIONS["mean"], (None, pile_axis))(w, p)
        each = plait.nn.softplus(pnp.where(labels == 1, -1.0, 1.0) * scores)
        return pnp.where(labels >= 0, each, 0).sum()

    got = plait.grad(loss)(W, Pile.from_list(XS, capacity=SIZES), labels)
    np.testing.assert_allclose(got, plait.grad(loss)(W, Pile.from_list(XS), labels[:3]), rtol=1e-6)
    assert np.isfinite(got).all()


def test_results_of_missing_elements_are_zero():
    p = Pile.from_list(XS, capacity=SIZES)
    for f in FUNCTIONS.values():
        got = np.asarray(vmap(f, (None, pile_axis))(W, p))
        assert (got[3:] == 0).all() and (got[:3] != 0).all()
