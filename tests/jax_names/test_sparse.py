"""`jax.experimental.sparse`, answered by plait-sparse.

Invariant: values are those of numpy, and layouts those that JAX 0.10.2 gave when it was run once.
"""

import numpy as np
import pytest

D = np.array([[1, 0, 2], [0, 0, 3]], np.float32)


@pytest.fixture
def sparse(load):
    """The module, as libraries get it."""
    return load("jax.experimental.sparse")


def test_a_program_for_jax(sparse, jax):
    M, ones = sparse.BCOO.fromdense(D), np.ones(3, np.float32)
    assert repr(M) == "BCOO(float32[2, 3], nse=3)"
    np.testing.assert_array_equal(jax.jit(lambda m, v: m @ v)(M, ones), [3, 3])
    found = sparse.sparsify(lambda m: jax.numpy.sin(m).T)(M)
    np.testing.assert_allclose(found.todense(), np.sin(D).T, rtol=1e-6)
    slope = sparse.grad(lambda m: (m * m).sum())(M)
    np.testing.assert_array_equal(slope.todense(), 2 * D)
    batch = sparse.BCOO.fromdense(np.stack([D, 2 * D]), n_batch=1)
    np.testing.assert_array_equal(jax.vmap(lambda m: m @ ones)(batch), [[3, 3], [6, 6]])


def test_formats_and_equations(sparse, load):
    """The modules that JAX has them in answer, too."""
    for module, name in [("coo", "COO"), ("csr", "CSR"), ("csr", "CSC")]:
        kind = getattr(load(f"jax.experimental.sparse.{module}"), name)
        assert kind is getattr(sparse, name)
        np.testing.assert_array_equal(kind.fromdense(D).todense(), D)
    A = sparse.CSR.fromdense(D[:, 1:] + np.eye(2, dtype=np.float32))
    solve = load("jax.experimental.sparse.linalg").spsolve
    found = solve(A.data, A.indices, A.indptr, np.ones(2, np.float32))
    np.testing.assert_allclose(found, np.linalg.solve(A.todense(), np.ones(2)), rtol=1e-6)


def test_layouts_are_those_of_jax(sparse):
    M = sparse.BCOO.fromdense(D)
    B = sparse.BCOO.fromdense(np.ones((4, 2, 3), np.float32), n_batch=1)
    cases = [
        (M.T, (3, 2), 3, 0), (M[0], (3,), 3, 0), (M[0, 2], (), 1, 0), (M[None], (1, 2, 3), 3, 1),
        (M[:, 1:], (2, 2), 3, 0), (M + M.T.T, (2, 3), 6, 0), (M.reshape(-1), (6,), 3, 0),
        (M.sum(0), (3,), 3, 0), (M @ M.T, (2, 2), 4, 0), (M * 2, (2, 3), 3, 0),
        (sparse.bcoo_reduce_sum(B, axes=[0]), (2, 3), 24, 0), (B * 2, (4, 2, 3), 6, 1),
        (sparse.bcoo_update_layout(B, n_batch=0), (4, 2, 3), 24, 0),
        (sparse.empty((2, 3)), (2, 3), 0, 0), (sparse.eye(3, k=1), (3, 3), 2, 0),
    ]  # fmt: skip
    for x, shape, nse, n_batch in cases:
        assert (x.shape, x.nse, x.n_batch, x.n_dense) == (shape, nse, n_batch, 0)


HOMES = [("bcoo", "BCOO"), ("bcsr", "BCSR"), ("transform", "sparsify"), ("ad", "grad"),
         ("api", "eye"), ("random", "random_bcoo")]  # fmt: skip


@pytest.mark.parametrize("module, name", HOMES)
def test_its_modules(load, sparse, module, name):
    assert getattr(load(f"jax.experimental.sparse.{module}"), name) is getattr(sparse, name)
