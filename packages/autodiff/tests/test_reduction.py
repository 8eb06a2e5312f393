"""Derivatives of reductions against finite differences, and written out where there are ties.

Invariant: second derivatives too; products have zeros among their factors.
"""

import numpy as np
import pytest

import plait
from plait.numpy import argmax, max, mean, min, prod, sum
from plait_autodiff import check_grads, grad, jvp

rng = np.random.default_rng(0)


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-10, atol=1e-12)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("axis", [None, 1, (0, 2), (1, 2)])
@pytest.mark.parametrize("f", [sum, prod, max, min, mean])
def test_finite_differences(f, axis):
    x = rng.permutation(24).reshape(2, 3, 4) / 12.0 - 1.0  # zero among them, far apart
    check_grads(lambda v: f(v, axis) * f(v, axis, keepdims=True), (x,), order=2)


def test_complex():
    x = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    check_grads(lambda v: sum(v, 0) * prod(v, 1)[0], (x,), order=2)
    check_grads(lambda v: mean(v) * max(v, 1), (x,), order=1)


def test_where_and_initial():
    x, keep = rng.normal(size=(3, 4)), rng.integers(0, 2, (3, 4)) > 0
    check_grads(lambda v: prod(v, 0, where=keep, initial=2.0), (x,), order=2)
    check_grads(lambda v: max(v, 1, where=keep, initial=-9.0), (x,), order=1)
    check_grads(lambda v: mean(v, where=keep), (x,), order=1)


@pytest.mark.parametrize("zeros", [(), (1,), (0, 2), (0, 1, 3)])
def test_products_with_zeros(zeros):
    x = rng.normal(size=4)
    x[list(zeros)] = 0.0
    close(grad(prod)(x), [np.prod(np.delete(x, i)) for i in range(4)])
    second = np.array([[np.prod(np.delete(x, [i, j])) if i != j else 0.0 for j in range(4)]
                       for i in range(4)])  # fmt: skip
    close(plait.jit(plait.hessian(prod))(x), second)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (3, 0, 2)])
def test_products_of_no_elements(shape):
    for axis in range(len(shape)):
        assert grad(lambda v: prod(v, axis).sum())(np.zeros(shape)).shape == shape


@pytest.mark.parametrize("f", [max, min])
def test_ties_share_equally(f):
    x = np.array([[1.0, 2, 1], [3, 3, 3], [5, 4, 5]])
    best = np.asarray(f(x, 1))[:, None] == x
    close(grad(lambda v: f(v, 1) @ np.array([1.0, 10, 100]))(x),
          best / best.sum(1, keepdims=True) * np.array([[1.0], [10], [100]]))  # fmt: skip
    close(jvp(lambda v: f(v, 1), (x,), (x * x,))[1], (best * x * x).sum(1) / best.sum(1))


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
@pytest.mark.parametrize("f", [max, min])
def test_extremes_of_what_a_compiler_computes_twice(f, axis):
    """One element is marked, whatever its copies are rounded to: of the fast tier they differ."""
    x = np.random.RandomState(0).randn(5, 17).astype(np.float32)
    g = lambda x: (x * 1.3).T + 0.7 * x[:1, :1]
    places = np.argmax if f is max else np.argmin
    y = np.asarray(g(plait.numpy.asarray(x)))
    want = np.zeros_like(y)
    if axis == (0, 1):
        want.flat[places(y)] = 1
    else:
        np.put_along_axis(want, np.expand_dims(places(y, axis), axis), 1, axis)
    moved = 1.3 * want.T
    moved[0, 0] += 0.7 * want.sum()
    got = plait.jit(grad(lambda x: sum(f(g(x), axis))), tier="fast")(x)
    np.testing.assert_allclose(got, moved, rtol=1e-5)


def test_nan_is_its_own_derivative_and_nothing_has_none():
    out, dot = jvp(lambda v: max(v, 1), (np.array([[1.0, np.nan], [1, 2]]),), (np.ones((2, 2)),))
    assert np.isnan(np.asarray(dot)).tolist() == [True, False]
    empty = np.zeros((0, 3))
    close(jvp(lambda v: max(v, 0, initial=2.0), (empty,), (empty,))[1], np.zeros(3))
    close(jvp(lambda v: prod(v, 0), (empty,), (empty,))[1], np.zeros(3))
    assert grad(lambda v: sum(prod(v, 0)))(empty).shape == (0, 3)


def test_places_are_constant():
    x = rng.normal(size=(3, 4))
    close(grad(lambda v: sum(v[0] * argmax(v, 1)[0]))(x)[0], np.full(4, float(x[0].argmax())))


def test_narrow_sums_keep_their_dtype():
    x = np.ones((3, 300), np.float16)
    g = grad(lambda v: sum(sum(v, 1) * 2))(x)
    assert g.dtype == np.float16
    close(g, np.full((3, 300), 2.0))
