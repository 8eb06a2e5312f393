"""Sparse arrays: making them, converting them, and what their constructors refuse.

Invariant: dense values come from numpy and scipy.
"""

import numpy as np
import pytest
import scipy.sparse as sp

import plait
from plait import sparse
from plait.errors import PlaitError

LAYOUTS = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)]  # numbers of batch and of dense axes
D = np.array([[0, 3, 0], [1, 0, 2]], np.float32)
CUBE = (np.arange(24).reshape(2, 3, 4) % 3 * np.arange(24).reshape(2, 3, 4)).astype(np.float32)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [sparse.BCOO, sparse.BCSR])
@pytest.mark.parametrize(
    "x", [D, D.astype(bool), D.astype(np.int32), D * (1 + 2j), D * 0, D[:, :0]]
)
def test_dense_round_trip(kind, x):
    found = kind.fromdense(x)
    assert (found.shape, found.dtype, found.nse) == (x.shape, x.dtype, np.count_nonzero(x))
    np.testing.assert_array_equal(found.todense(), x)
    wide = kind.fromdense(x, nse=found.nse + 3)
    np.testing.assert_array_equal(wide.todense(), x)
    np.testing.assert_array_equal(plait.jit(lambda y: kind.fromdense(y, nse=6).todense())(x), x)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n_batch, n_dense", [(a, b) for a in range(4) for b in range(4 - a)])
def test_layouts_of_dense(n_batch, n_dense):
    x = sparse.BCOO.fromdense(CUBE, n_batch=n_batch, n_dense=n_dense)
    assert (x.n_batch, x.n_dense, x.shape) == (n_batch, n_dense, CUBE.shape)
    np.testing.assert_array_equal(x.todense(), CUBE)
    others = [(b, d) for b in range(4) for d in range(4 - b)]

    @plait.jit
    def every(x):
        return [x.update_layout(n_batch=b, n_dense=d, on_inefficient=None) for b, d in others]

    found = every(x)
    dense = plait.jit(lambda ys: [y.todense() for y in ys])(found)
    for y, z, layout in zip(found, dense, others, strict=True):
        assert (y.n_batch, y.n_dense) == layout and y.shape == CUBE.shape
        np.testing.assert_array_equal(z, CUBE)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(3))
def test_padding_and_duplicates(seed, layout, sample):
    x, dense = sample(seed, (2, 3, 2, 3), *layout)
    np.testing.assert_array_equal(x.todense(), dense)
    np.testing.assert_array_equal(x.sort_indices().todense(), dense)
    merged = x.sum_duplicates()
    assert merged.unique_indices and merged.indices_sorted
    np.testing.assert_array_equal(merged.todense(), dense)
    np.testing.assert_array_equal(plait.jit(lambda x: x.sum_duplicates(nse=9).todense())(x), dense)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.coo_matrix, sp.csc_array, sp.coo_array])
def test_from_scipy(make):
    for kind in (sparse.BCOO, sparse.BCSR):
        np.testing.assert_array_equal(kind.from_scipy_sparse(make(D)).todense(), D)


def test_duplicates_in_half_precision_are_added_in_single():
    data, at = np.full(4096, 0.1, np.float16), np.zeros((4096, 1), np.int32)
    x = sparse.BCOO((data, at), shape=(1,))
    want = np.float16(data.astype(np.float32).sum())
    for found in (x.todense(), x.sum_duplicates().todense(), x.sum()[None],
                  x @ np.ones((1, 1), np.float16)):  # fmt: skip
        np.testing.assert_allclose(np.asarray(found), [want], rtol=2e-3)


def test_rows_and_columns():
    x = sparse.BCSR.fromdense(CUBE, n_batch=1)
    assert (x.shape, x.n_batch, x.indptr.shape) == ((2, 3, 4), 1, (2, 4))
    np.testing.assert_array_equal(x.todense(), CUBE)
    np.testing.assert_array_equal(x.transpose((0, 2, 1)).todense(), CUBE.transpose(0, 2, 1))
    want = sp.csr_matrix(D)
    found = sparse.BCSR.fromdense(D)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, name), getattr(want, name))
    assert isinstance(found.T, sparse.BCSR) and isinstance(found * 2, sparse.BCSR)
    np.testing.assert_array_equal(found.T.todense(), D.T)
    np.testing.assert_array_equal((-found * D).todense(), -D * D)


def test_made_of_nothing():
    for n, m, k in [(3, None, 0), (3, 4, 1), (4, 3, -2), (2, 3, 5), (2, 2, -2)]:
        for name in ("bcoo", "bcsr"):
            found = sparse.eye(n, m, k, sparse_format=name)
            np.testing.assert_array_equal(found.todense(), np.eye(n, m, k))
    assert sparse.empty((2, 3), "int32").todense().tolist() == [[0] * 3] * 2
    assert sparse.empty((2, 3), sparse_format="bcsr").todense().tolist() == [[0] * 3] * 2
    assert sparse.empty((2, 3, 4), n_batch=1, n_dense=1).n_dense == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_random(layout):
    n_batch, n_dense = layout
    shape = (2, 3, 4, 5)
    x = sparse.random_bcoo(
        plait.random.key(1), shape, nse=0.5, n_batch=n_batch, n_dense=n_dense, sorted_indices=True
    )
    count = int(np.prod(shape[n_batch : 4 - n_dense]) * 0.5)
    assert (x.nse, x.n_batch, x.n_dense, x.shape) == (count, n_batch, n_dense, shape)
    sparse.BCOO((x.data, x.indices), shape=shape, indices_sorted=True, unique_indices=True)
    many = int(np.prod(shape[:n_batch])) * count * int(np.prod(shape[4 - n_dense :]))
    assert np.count_nonzero(x.todense()) == many


def test_more_positions_than_int32_counts():
    x = sparse.BCOO((ONES, I2 + 10**6 - 2), shape=(10**6, 10**6)).reshape(10**12)
    assert x.indices.tolist() == [[10**12 - 10**6 - 1], [10**12 - 2]]


I2 = np.array([[0, 1], [1, 0]])
ONES = np.ones(2, np.float32)
WIDE = sparse.BCOO((ONES, I2.astype("int32")), shape=(10**6, 10**6))
WRONG = {
    "beyond": (lambda: sparse.BCOO((ONES, I2 + 1), shape=(2, 2)), "indices from 0 to below"),
    "negative": (lambda: sparse.BCOO((ONES, I2 - 1), shape=(2, 2)), "indices from 0 to below"),
    "in part": (lambda: sparse.BCOO((ONES, [[0, 2], [0, 0]]), shape=(2, 2)), "got \\[0, 2\\]"),
    "unsorted": (lambda: sparse.BCOO((ONES, I2[::-1]), shape=(2, 2), indices_sorted=True),
                 "expected sorted indices"),
    "duplicates": (lambda: sparse.BCOO((ONES, I2 * 0), shape=(2, 2), unique_indices=True),
                   "expected each index once"),
    "floats": (lambda: sparse.BCOO((ONES, I2 * 1.0), shape=(2, 2)), "to be integers"),
    "counts": (lambda: sparse.BCOO((np.ones(3), I2), shape=(2, 2)), "expected data whose sizes"),
    "axes": (lambda: sparse.BCOO((ONES, I2), shape=(2,)), "at least 2 axes"),
    "dense axes": (lambda: sparse.BCOO((ONES, I2), shape=(2, 2, 2)), "expected data with 2 axes"),
    "vector": (lambda: sparse.BCOO((ONES, [0, 1]), shape=(2,)), "nse, n_sparse"),
    "pair": (lambda: sparse.BCOO(ONES[0], shape=(2,)), "expected a pair of arrays"),
    "shape": (lambda: sparse.BCOO((ONES, I2), shape=2), "sequence of integers"),
    "too few": (lambda: sparse.BCOO.fromdense(D, nse=2), "at least 3"),
    "traced": (lambda: plait.jit(sparse.BCOO.fromdense)(D), "needs `nse`"),
    "merged": (lambda: sparse.BCOO.fromdense(D).sum_duplicates(nse=1), "at least 3"),
    "layout": (lambda: sparse.BCOO.fromdense(D).update_layout(n_batch=1), "stores zeros"),
    "rows": (lambda: sparse.BCSR((ONES, [0, 1], [0, 2, 1]), shape=(2, 2)), "never falls"),
    "first row": (lambda: sparse.BCSR((ONES, [0, 1], [1, 1, 2]), shape=(2, 2)), "begins with 0"),
    "last row": (lambda: sparse.BCSR((ONES, [0, 1], [0, 1, 3]), shape=(2, 2)), "ends at 2"),
    "columns": (lambda: sparse.BCSR((ONES, [0, 2], [0, 1, 2]), shape=(2, 2)), "columns from 0"),
    "columns' order": (lambda: sparse.BCSR((ONES, [1, 0], [0, 2, 2]), shape=(2, 2),
                                           indices_sorted=True), "sorted columns"),
    "a column twice": (lambda: sparse.BCSR((ONES, [1, 1], [0, 2, 2]), shape=(2, 2),
                                           unique_indices=True), "each column once"),
    "number of rows": (lambda: sparse.BCSR((ONES, [0, 1], [0, 1, 2]), shape=(3, 2)), "indptr of"),
    "product": (lambda: sparse.BCOO.fromdense(D) @ D, "matmul expected equal sizes"),
    "truth": (lambda: bool(sparse.BCOO.fromdense(D)), "ambiguous"),
    "comparison": (lambda: sparse.BCOO.fromdense(D) == D, "would be dense"),
    "a number added": (lambda: sparse.BCOO.fromdense(D) + 1, "would be dense"),
    "a divisor": (lambda: D / sparse.BCOO.fromdense(D), "division by a sparse array"),
    "a power": (lambda: sparse.BCOO.fromdense(D) ** 0, "the power 0"),
    "an index": (lambda: sparse.BCOO.fromdense(D)[[0, 1]], "indexed by integers"),
    "an index beyond": (lambda: sparse.BCOO.fromdense(D)[2], "out of bounds"),
    "many positions": (lambda: WIDE.reshape(10**12),
                       "at most 2147483647 positions"),
    "random": (lambda: sparse.random_bcoo(plait.random.key(0), (2, 2), nse=5), "nse from 0 to 4"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_refusals(name):
    call, text = WRONG[name]
    with pytest.raises(PlaitError, match=text) as e:
        call()
    lines = str(e.value).splitlines()
    assert len(lines) >= 3 and "test_arrays.py" in str(e.value)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("batch, dense", [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)])
@pytest.mark.parametrize("n, m, k", [(3, 3, 0), (5, 4, 2), (3, 4, -1), (3, 3, 5), (0, 3, 0)])
def test_diagonals_store_no_more_than_they_hold(n, m, k, batch, dense):
    """Entries that each row stores in vain would make a matrix of n rows one of n * n numbers."""
    made = sparse.eye(n, m, k, n_batch=batch, n_dense=dense)
    want = sparse.BCOO.fromdense(np.eye(n, m, k, dtype=np.float32), n_batch=batch, n_dense=dense)
    assert (made.nse, made.data.shape) == (want.nse, want.data.shape)
    assert made.indices.shape == want.indices.shape
    np.testing.assert_array_equal(made.todense(), np.eye(n, m, k))
    traced = plait.jit(lambda x: sparse.eye(n, m, k, n_batch=batch, n_dense=dense).todense() * x)
    np.testing.assert_array_equal(traced(2.0), 2 * np.eye(n, m, k))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 3)])
def test_arrays_without_elements_in_every_layout(shape):
    x = np.zeros(shape, np.float32)
    for batch in range(len(shape) + 1):
        for dense in range(len(shape) + 1 - batch):
            one = sparse.BCOO.fromdense(x, n_batch=batch, n_dense=dense)
            for y in (one, one.sum_duplicates(), one.sort_indices()):
                assert y.shape == shape and y.todense().shape == shape
            total = sparse.bcoo_reduce_sum(one, axes=(0,))
            np.testing.assert_array_equal(total.todense(), x.sum(0))
