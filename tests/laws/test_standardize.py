"""`nn.standardize` and its derivatives, far from zero as well.

Invariant: the other side is the formula and its gradient in float64, by numpy.
"""

import numpy as np
import pytest

import plait
from plait import nn


def standardized(x, axis, where=None, epsilon=1e-5):
    """Results in float64, the deviations they are made of, and the places that count."""
    x = np.asarray(x, np.float64)
    counts = np.broadcast_to(True if where is None else where, x.shape)
    mean = x.mean(axis, keepdims=True, where=counts)
    scale = np.sqrt(x.var(axis, keepdims=True, where=counts) + epsilon)
    return (x - mean) / scale, scale, counts


def slopes_of_standardized(x, weights, axis, where=None):
    """The gradient of the weighted sum of the results."""
    z, scale, counts = standardized(x, axis, where)
    n = counts.sum(axis, keepdims=True)
    total = lambda v: v.sum(axis, keepdims=True)  # noqa: E731
    return (weights - counts * (total(weights) + z * total(weights * z)) / n) / scale


@pytest.mark.parametrize("algorithm", ["fast", "stable"])
@pytest.mark.parametrize("axis", [-1, 0, 1, (0, 2), (1, -1), None], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_standardize_far_from_zero(algorithm, axis, dtype):
    """Means of many deviations: the results are off by what rounding the mean costs, no more."""
    rng = np.random.default_rng([7, len(str(axis))])
    kind = plait.dtypes.dtype(dtype)
    for far in (0.0, 30.0, 1e3, 1e4, -1e5):
        far, size = (far, 1.0) if dtype == "float32" else (far / 50, 20.0)
        x = (size * rng.standard_normal((6, 7, 16)) + far).astype(kind)
        wide = np.asarray(x, np.float64)
        weights = rng.standard_normal(x.shape).astype(kind)
        some = rng.random(x.shape) < 0.8
        near = 8 * float(np.finfo(np.float32).eps) * (1 + abs(far) / wide.std())
        half = 0 if dtype == "float32" else 4 * float(plait.dtypes.finfo(dtype).eps)
        for where in (None, some):
            f = lambda v, where=where: nn.standardize(v, axis, where=where, algorithm=algorithm)  # noqa: E731
            got, want = f(x), standardized(wide, axis, where)[0]
            assert got.dtype == kind
            np.testing.assert_allclose(np.asarray(got, np.float64), want, half, 4 * near + half / 8)
            got = plait.grad(lambda v, f=f: (f(v) * weights).sum())(x)
            want = slopes_of_standardized(wide, np.asarray(weights, np.float64), axis, where)
            most = np.abs(want).max()
            np.testing.assert_allclose(np.asarray(got, np.float64) / most, want / most,
                                       atol=32 * (near + half))  # fmt: skip


@pytest.mark.parametrize("algorithm", ["fast", "stable"])
def test_standardize_has_the_derivatives_of_its_formula(algorithm):
    """They are right to the second order, in each mode."""
    rng = np.random.default_rng(8)
    x, weights, step = rng.standard_normal((3, 3, 5))
    x = x + 40
    for axis, where in ((-1, None), (0, None), (None, None), (-1, weights > -0.8)):
        f = lambda v: (nn.standardize(v, axis, where=where, algorithm=algorithm) * weights).sum()  # noqa: E731, B023
        slopes = lambda v: slopes_of_standardized(v, weights, axis, where)  # noqa: E731, B023
        close = lambda got, want: np.testing.assert_allclose(got, want, 1e-8, 1e-8)  # noqa: E731
        close(plait.grad(f)(x), slopes(x))
        close(plait.jvp(f, (x,), (step,))[1], (slopes(x) * step).sum())
        close(plait.vmap(plait.grad(f))(np.stack([x, 2 * x])), np.stack([slopes(x), slopes(2 * x)]))
        h = 1e-4
        twice = (slopes(x + h * step) - slopes(x - h * step)) / (2 * h)
        for got in (plait.jvp(plait.grad(f), (x,), (step,))[1],
                    plait.grad(lambda v: (plait.grad(f)(v) * step).sum())(x)):  # fmt: skip
            np.testing.assert_allclose(got, twice, 1e-5, 1e-6)


def test_standardize_rows_that_are_not_finite_stay_alone():
    x = np.array([[1, 2, np.inf], [np.nan, 1, 2], [5, 5, 5], [1e30, -1e30, 0], [1, 2, 4]])
    x = x.astype(np.float32)
    got = np.asarray(nn.standardize(x))
    assert np.isnan(got[:2]).all()
    np.testing.assert_array_equal(got[2], [0, 0, 0])
    np.testing.assert_allclose(got[4], standardized(x[4], -1)[0], 1e-6)
    finite = np.isfinite(x)
    got = np.asarray(nn.standardize(x, where=finite))
    np.testing.assert_allclose(got[0, :2], standardized(x[0, :2], -1)[0], 1e-6)
    np.testing.assert_allclose(got[1, 1:], standardized(x[1, 1:], -1)[0], 1e-6)
    assert np.isnan(nn.standardize(x, where=np.zeros_like(finite))).all()
    for shape, axis in (((2, 0), -1), ((0, 3), 0), ((0, 3), -1)):
        assert nn.standardize(np.zeros(shape, np.float32), axis).shape == shape
