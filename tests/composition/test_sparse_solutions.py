"""Derivatives of and maps over sparse matrices of other formats, and solutions of their equations.

Invariant: values come from numpy, derivatives from finite differences.
"""

import numpy as np
import pytest
import scipy.sparse as sp

import plait
from plait import sparse

D = np.array([[0, 3, 0], [1, 0, 2]], np.float32)
V = np.arange(3, dtype=np.float32)


def system(seed, n):
    """Return a matrix of scipy without zeros on the diagonal."""
    rng = np.random.default_rng(seed)
    found = sp.coo_array(np.where(rng.random((n, n)) < 0.4, rng.random((n, n)), 0))
    return (found + 3 * sp.eye_array(n)).tocsr()


@pytest.mark.parametrize("kind", [sparse.COO, sparse.CSR, sparse.CSC])
def test_gradients_of_products(kind):
    slope = sparse.grad(lambda m: (m @ V).sum())(kind.fromdense(D))
    np.testing.assert_array_equal(slope.todense(), np.where(D != 0, V, 0))


def test_maps_over_equations():
    a, b = system(3, 6), np.cos(np.arange(6.0))
    solve = lambda data, b: sparse.linalg.spsolve(data, a.indices, a.indptr, b)  # noqa: E731
    batch = np.stack([a.data, 2 * a.data])
    want = [np.linalg.solve(a.toarray() * k, b) for k in (1, 2)]
    for f in (plait.vmap(solve, (0, None)), plait.jit(plait.vmap(solve, (0, None)))):
        np.testing.assert_allclose(f(batch, b), want, 1e-12, 1e-12)


def test_derivatives_of_solutions():
    a = system(4, 5)
    solve = lambda data, b: sparse.linalg.spsolve(data, a.indices, a.indptr, b)  # noqa: E731
    loss = lambda data, b: (solve(data, b) ** 2).sum()  # noqa: E731
    at = (a.data, np.cos(np.arange(5.0)))
    slopes = plait.jit(plait.grad(loss, (0, 1)))(*at)
    second = plait.hessian(loss)(*at)
    rng, step = np.random.default_rng(0), 1e-6
    for k in (0, 1):
        way = [np.zeros_like(x) for x in at]
        way[k] = rng.normal(size=at[k].shape)
        ahead, behind = ([x + s * step * w for x, w in zip(at, way)] for s in (1, -1))
        want = (float(loss(*ahead)) - float(loss(*behind))) / (2 * step)
        np.testing.assert_allclose(np.vdot(slopes[k], way[k]), want, 1e-6)
        found = plait.jvp(solve, at, tuple(way))[1]
        np.testing.assert_allclose(
            found, (solve(*ahead) - solve(*behind)).numpy() / (2 * step), 1e-5, 1e-7
        )
        if k == 0:
            change = plait.grad(loss)(*ahead) - plait.grad(loss)(*behind)
            np.testing.assert_allclose(second @ way[0], change.numpy() / (2 * step), 1e-4, 1e-6)
