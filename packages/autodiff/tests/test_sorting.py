"""Derivatives of sorting against finite differences, and written out where there are ties.

Invariant: what goes along with keys has derivatives too, keys that are integers have none.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.lax import top_k
from plait.numpy import argsort, sort
from plait_autodiff import check_grads, grad, jacrev, jvp

rng = np.random.default_rng(0)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_sort(axis):
    x = rng.permutation(12).reshape(3, 4) / 6.0
    check_grads(lambda v: sort(v, axis) ** 2, (x,), order=2)
    check_grads(lambda v: sort(v, axis, descending=True), (x,), order=1)


def test_what_goes_along():
    x, y = rng.permutation(6) / 3.0, rng.normal(size=6)
    check_grads(lambda a, b: lax.sort((a, b))[1] * b, (x, y), order=2)
    keys = np.array([2, 0, 1, 0, 2, 1])
    order = np.argsort(keys, kind="stable")
    got = jacrev(lambda b: lax.sort((keys, b))[1])(y)
    np.testing.assert_array_equal(np.asarray(got), np.eye(6)[order])
    check_grads(lambda a, b: lax.sort((keys, a, b), num_keys=2)[2], (x, y), order=1)


def test_ties_stay_in_their_order():
    x = np.array([1.0, 0.0, 1.0, -0.0])
    np.testing.assert_array_equal(np.asarray(jacrev(sort)(x)), np.eye(4)[[1, 3, 0, 2]])


def test_top_k():
    x = rng.permutation(12).reshape(3, 4) / 6.0
    check_grads(lambda v: top_k(v, 2)[0] ** 2, (x,), order=2)
    check_grads(lambda v: top_k(v, 2, axis=0)[0], (x,), order=1)
    g = plait.jit(grad(lambda v: top_k(v, 1)[0].sum()))(x)
    np.testing.assert_array_equal(np.asarray(g), x == x.max(1, keepdims=True))


def test_orders_are_constant_and_nothing_is_sorted():
    x = np.array([3.0, 1.0, 2.0])
    g = grad(lambda v: (argsort(v) * v).sum())(x)
    np.testing.assert_array_equal(np.asarray(g), [1.0, 2.0, 0.0])
    empty = np.zeros((2, 0))
    assert jvp(sort, (empty,), (empty,))[1].shape == (2, 0)
    assert grad(lambda v: top_k(v, 0)[0].sum())(x).tolist() == [0.0, 0.0, 0.0]
