"""Derivatives of running sums and recurrences against finite differences, to the third order.

Invariant: zeros, ties and infinities, where differences say nothing, are written out.
"""

import numpy as np
import pytest

import plait
from plait.ext.ops.cumulative import recurrence
from plait.lax import cumlogsumexp, cummax, cummin, cumprod, cumsum
from plait_autodiff import check_grads, grad, jacfwd, jacrev, jvp

rng = np.random.default_rng(0)


def close(got, want, rtol=1e-10):
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-12)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("f", [cumsum, cumprod, cummax, cummin, cumlogsumexp])
def test_finite_differences(f, reverse):
    x = rng.permutation(12).reshape(3, 4) / 6.0 - 1.0
    for axis in (0, 1):
        check_grads(lambda v: f(v, axis=axis, reverse=reverse) * v, (x,), order=2)  # noqa: B023


@pytest.mark.parametrize("reverse", [False, True])
def test_recurrence(reverse):
    a, u = rng.normal(size=(2, 3, 4))
    f = lambda a, u: recurrence(a, u, axis=1, reverse=reverse)  # noqa: E731
    check_grads(f, (a, u), order=3)
    check_grads(lambda a: f(a, u), (a,), order=2)
    check_grads(lambda u: f(a, u), (u,), order=1)


def test_complex():
    x = rng.normal(size=4) + 1j * rng.normal(size=4)
    check_grads(lambda v: cumprod(v) * cumsum(v), (x,), order=2)
    check_grads(lambda a, u: recurrence(a, u, axis=0, reverse=False), (x, x[::-1].copy()), order=2)


@pytest.mark.parametrize("zeros", [(1,), (0, 2)])
def test_products_with_zeros(zeros):
    x = rng.normal(size=4)
    x[list(zeros)] = 0.0
    want = np.array([[np.prod(np.delete(x[: i + 1], j)) if j <= i else 0 for j in range(4)]
                     for i in range(4)])  # fmt: skip
    close(jacfwd(cumprod)(x), want)
    close(jacrev(cumprod)(x), want)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("f", [cummax, cummin])
def test_ties_share_equally(f, reverse):
    x = np.array([2.0, 2, 1, 3, 3, 0, 3, 0, 0])
    flip = (lambda v: v[::-1]) if reverse else (lambda v: v)
    y = flip(x)
    pick = np.max if f is cummax else np.min
    want = np.zeros((9, 9))
    for i in range(9):
        tied = y[: i + 1] == pick(y[: i + 1])
        want[i, : i + 1] = tied / tied.sum()
    want = want[::-1, ::-1] if reverse else want
    close(jacrev(lambda v: f(v, 0, reverse))(x), want)
    close(jacfwd(lambda v: f(v, 0, reverse))(x), want)


def test_infinities_and_nothing():
    x = np.array([-np.inf, -np.inf, 0.0, 1.0])
    e = np.exp(x - np.where(np.isfinite(x), 0, 0))
    want = np.tril(e[None] / np.maximum(np.cumsum(e), 1e-300)[:, None])
    close(jacfwd(cumlogsumexp)(x), want)
    empty = np.zeros((0, 2))
    for f in (cumsum, cumprod, cummax, cumlogsumexp):
        assert grad(lambda v: f(v, axis=0).sum())(empty).shape == (0, 2)  # noqa: B023
        assert jvp(lambda v: f(v, axis=1), (empty,), (empty,))[1].shape == (0, 2)  # noqa: B023


def test_inside_jit():
    x = rng.normal(size=5)
    f = lambda v: cumprod(v).sum()  # noqa: E731
    close(plait.jit(grad(f))(x), np.asarray(grad(f)(x)))
