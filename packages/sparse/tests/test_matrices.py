"""COO, CSR and CSC, and equations with sparse matrices.

Invariant: values come from numpy and scipy; derivatives from finite differences.
"""

import numpy as np
import pytest
import scipy.sparse as sp

import plait
from plait import sparse
from plait.errors import PlaitError

D = np.array([[0, 3, 0], [1, 0, 2]], np.float32)
V, W = np.arange(3, dtype=np.float32), np.arange(6, dtype=np.float32).reshape(3, 2)
KINDS = {sparse.COO: sp.coo_array, sparse.CSR: sp.csr_array, sparse.CSC: sp.csc_array}


def parts(x):
    """Return the three arrays of a matrix of scipy or of ours."""
    names = ("data", "indices", "indptr") if hasattr(x, "indptr") else ("data", "row", "col")
    return tuple([np.asarray(getattr(x, n)) for n in names])


def random(seed, shape=(5, 7), dtype=np.float32, repeat=0):
    """Return a random matrix of scipy; `repeat` entries occur twice."""
    rng = np.random.default_rng(seed)
    row, col = rng.permutation(np.argwhere(rng.random(shape) < 0.4)).T  # in no order
    data = rng.random(row.size) + (1j * rng.random(row.size) if np.dtype(dtype).kind == "c" else 0)
    twice = [*range(row.size), *range(repeat)]
    return sp.coo_array((data.astype(dtype)[twice], (row[twice], col[twice])), shape=shape)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_of_scipys_arrays(kind, dtype):
    """Each format has scipy's arrays, with duplicates and out of order as they come."""
    for seed, repeat in [(0, 0), (1, 3)]:
        want = random(seed, dtype=dtype, repeat=repeat)
        mat = want if kind is sparse.COO else KINDS[kind](want)
        x = kind(parts(mat), shape=mat.shape)
        dense = want.toarray()
        v, w = np.arange(7, dtype=np.float32), np.ones((5, 2), np.float32)
        for got, value in [
            (x.todense(), dense), (x @ v, dense @ v), (x.T @ w, dense.T @ w),
            (w.T @ x, w.T @ dense), ((x * 2).todense(), dense * 2), (x.T.todense(), dense.T),
            ((x + x).todense(), 2 * dense), ((x @ x.T).todense(), dense @ dense.T),
            (x.sum(0).todense(), dense.sum(0)), (x[1].todense(), dense[1]),
            (plait.jit(lambda m, v: m @ v)(x, v), dense @ v),
        ]:  # fmt: skip
            np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-5)
        assert (x.shape, x.nse, x.ndim, x.dtype) == (mat.shape, mat.nnz, 2, dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_of_dense_arrays(kind):
    x = kind.fromdense(D)
    for got, want in zip(parts(x), parts(KINDS[kind](D)), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(kind.fromdense(D, nse=5).todense(), D)
    np.testing.assert_array_equal(plait.jit(lambda d: kind.fromdense(d, nse=4) @ V)(D), D @ V)
    np.testing.assert_array_equal(sparse.BCSR.from_bcoo(x.to_bcoo()).todense(), D)
    other = {sparse.COO: sparse.COO, sparse.CSR: sparse.CSC, sparse.CSC: sparse.CSR}[kind]
    assert type(x.T) is other and type(plait.jit(lambda m: m.T)(x)) is other
    assert type(x * 2) is type(-x) is type(plait.jit(lambda m: m)(x)) is kind
    assert repr(x) == f"{kind.__name__}(float32[2, 3], nse=3)"


@pytest.mark.parametrize("kind", KINDS)
def test_functions_and_trees(kind):
    x = kind.fromdense(D)
    found = sparse.sparsify(lambda m: plait.numpy.sin(m) @ W)(x)
    np.testing.assert_allclose(found, np.sin(D) @ W, rtol=1e-6)
    leaves, tree = plait.tree.flatten(x)
    np.testing.assert_array_equal(plait.tree.unflatten(tree, leaves).todense(), D)


@pytest.mark.parametrize("name", ["coo", "csr"])
def test_functions_by_name(name):
    of = lambda f: getattr(sparse, f"{name}_{f}")  # noqa: E731
    x = of("fromdense")(D)
    assert type(x) is getattr(sparse, name.upper())
    np.testing.assert_array_equal(of("todense")(x), D)
    np.testing.assert_array_equal(of("matvec")(x, V), D @ V)
    np.testing.assert_array_equal(of("matmat")(x, W), D @ W)
    np.testing.assert_array_equal(of("matvec")(x, V[:2], transpose=True), D.T @ V[:2])
    np.testing.assert_array_equal(of("matmat")(x, D, transpose=True), D.T @ D)
    for call in (lambda: of("matvec")(x, W), lambda: of("matmat")(D, W)):
        with pytest.raises(PlaitError):
            call()


@pytest.mark.parametrize("name", ["coo", "csr", "csc"])
def test_made_by_format(name):
    kind = getattr(sparse, name.upper())
    for k in (-4, -1, 0, 2, 5):
        x = sparse.eye(3, 4, k, sparse_format=name)
        assert type(x) is kind
        np.testing.assert_array_equal(x.todense(), np.eye(3, 4, k))
    x = sparse.empty((2, 3), np.int32, sparse_format=name)
    assert (type(x), x.nse, x.dtype) == (kind, 0, np.int32)
    with pytest.raises(PlaitError, match="matrix"):
        sparse.empty((2, 3, 4), sparse_format=name)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sparse.CSR(([1.0], [0], [0, 1]), shape=(1,)),
        lambda: sparse.CSR(([1.0], [3], [0, 1]), shape=(1, 2)),
        lambda: sparse.CSC(([1.0], [1], [0, 1, 1]), shape=(1, 2)),
        lambda: sparse.CSC(([1.0], [0], [0, 1]), shape=(1, 2)),
        lambda: sparse.COO(([1.0], [0], [2]), shape=(1, 2)),
        lambda: sparse.COO(([1.0], [0, 0], [1]), shape=(1, 2)),
        lambda: sparse.COO(([1.0], [0]), shape=(1, 2)),
        lambda: sparse.CSR.fromdense(np.ones(3)),
        lambda: sparse.COO.fromdense(D).transpose((0, 1)),
        lambda: plait.vmap(lambda m: m.todense())(sparse.CSR.fromdense(D)),
        lambda: plait.vmap(lambda d: sparse.CSC.fromdense(d, nse=2))(np.stack([D, D])),
    ],
)
def test_refused(make):
    with pytest.raises(PlaitError):
        make()


# ---- equations -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_solutions(dtype):
    a = (random(3, (6, 6), dtype) + 3 * sp.eye_array(6)).tocsr().astype(dtype)
    solve = lambda data, b: sparse.linalg.spsolve(data, a.indices, a.indptr, b)  # noqa: E731
    b = np.cos(np.arange(6.0)).astype(dtype)
    tol = 1e-5 if dtype == np.float32 else 1e-12
    for right in (b, np.stack([b, b[::-1]], 1)):
        want = np.linalg.solve(a.toarray(), right)
        for found in (solve(a.data, right), plait.jit(solve)(a.data, right)):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, want, tol, tol)
    assert np.isnan(solve(0 * a.data, b)).all()


def test_refused_equations():
    a = sparse.CSR.fromdense(np.eye(3, dtype=np.float32))
    for data, b in [
        (a.data, np.ones(2)), (a.data, np.ones((3, 1, 1))), (a.data.astype(int), np.ones(3, int)),
    ]:  # fmt: skip
        with pytest.raises(PlaitError):
            sparse.linalg.spsolve(data, a.indices, a.indptr, b)
