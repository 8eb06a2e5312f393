"""Determinants, norms and deviations of numbers that are far from 1, and their gradients.

Invariant: the truth is worked out in mpmath or in double precision, of exactly the numbers given; a
result is judged wherever it is an ordinary number of the dtype.
"""

import mpmath
import numpy as np
import pytest

import plait

pnp = plait.numpy

DIAGONALS = [
    [1e25, 1e25, 1e-30], [1e-25, 1e-25, 1e30], [1e20, 1e20, 1e-20, 1e-20],
    [1e-30, 3e38, 3e38, 1e-30, -2.0], [1e-20] * 5 + [1e20] * 5, [1.4, 0.71] * 200,
    [1e19] * 40 + [1.3] * 200 + [1e-19] * 40, [5.0], [0.0, 1e30, 1e30], [np.inf, 2.0],
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("diagonal", DIAGONALS, ids=len)
def test_determinants_of_diagonals(diagonal, dtype):
    if dtype == np.complex64 and np.inf in diagonal:
        return  # an infinite complex number times 0 is nan
    rng = np.random.default_rng(0)
    d = rng.permutation(np.array(diagonal)).astype(dtype)
    d = d * (1j ** np.arange(d.size)).astype(dtype) if dtype == np.complex64 else d
    with mpmath.workdps(50):
        want = complex(mpmath.fprod([mpmath.mpmathify(complex(v)) for v in d]))
    got = complex(np.asarray(pnp.linalg.det(np.diag(d))))
    if not np.isfinite(want):
        assert not np.isfinite(got)
    else:
        assert abs(got - want) <= 4 * d.size * np.finfo(dtype).eps * abs(want)


@pytest.mark.parametrize("n", [2, 3, 5, 30])
def test_determinants_of_scaled_matrices_and_their_gradients(n):
    """Columns are scaled by numbers whose product is 1."""
    rng = np.random.default_rng(n)
    steps = np.resize(np.float32([2.0**40, 2.0**-40]), n)
    steps[n // 2 * 2 :] = 1
    x = (rng.normal(size=(n, n)) + 2 * np.eye(n)).astype(np.float32)
    scaled = x * steps
    want = np.linalg.det(x.astype(np.float64)) * np.prod(steps.astype(np.float64))
    np.testing.assert_allclose(np.asarray(pnp.linalg.det(scaled)), want, 1e-4)
    slopes = np.linalg.inv(scaled.astype(np.float64)).T * want
    got = np.asarray(plait.grad(pnp.linalg.det)(scaled))
    assert np.isfinite(got).all()
    apart = np.abs(got - slopes) / np.abs(slopes).max(0)
    assert apart.max() < 1e-3


HALF = {
    "norm": (pnp.linalg.norm, np.linalg.norm),
    "norm of order 3": (lambda x: pnp.linalg.norm(x.reshape(-1), 3),
                        lambda x: np.linalg.norm(x.reshape(-1), 3)),
    "norms of rows": (lambda x: pnp.linalg.norm(x, axis=1), lambda x: np.linalg.norm(x, axis=1)),
    "frobenius": (lambda x: pnp.linalg.norm(x, "fro"), lambda x: np.linalg.norm(x, "fro")),
    "vector_norm": (pnp.linalg.vector_norm, np.linalg.vector_norm),
    "matrix_norm": (pnp.linalg.matrix_norm, np.linalg.matrix_norm),
    "std": (pnp.std, np.std),
    "std with ddof": (lambda x: pnp.std(x, axis=0, ddof=1), lambda x: np.std(x, axis=0, ddof=1)),
    "standardize": (lambda x: plait.nn.standardize(x, epsilon=0.0),
                    lambda x: (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)),
    "hypot": (lambda x: pnp.hypot(x, x[::-1]), lambda x: np.hypot(x, x[::-1])),
}  # fmt: skip


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", HALF)
@pytest.mark.parametrize("size", [300.0, 1.0, 1e-4])
def test_half_precision(name, dtype, size):
    """Where squares are beyond the dtype, results are rounded once, and gradients are right."""
    dtype = plait.dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    f, reference = HALF[name]
    rng = np.random.default_rng(0)
    x = (size * (rng.uniform(0.5, 1.5, (3, 3)))).astype(dtype)
    wide = x.astype(np.float64)
    eps = float(plait.dtypes.finfo(dtype).eps)
    got, want = np.asarray(f(x)), reference(wide)
    assert got.dtype == dtype
    np.testing.assert_allclose(got.astype(np.float64), want, 2 * eps, 4 * eps * eps)
    if name == "hypot":
        return
    weights = rng.normal(size=np.shape(want))
    slopes = np.asarray(plait.grad(lambda v: (f(v) * weights.astype(dtype)).sum())(x))
    h = 1e-6 * size
    for at in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[at] = h
        slope = (weights * (reference(wide + step) - reference(wide - step))).sum() / (2 * h)
        scale = max(1.0, 1.0 / size if name == "standardize" else 1.0)
        assert abs(float(slopes[at]) - slope) < 40 * eps * scale
