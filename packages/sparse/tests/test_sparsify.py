"""Functions of arrays that `sparsify` applies to sparse ones: results, refusals, and control flow.

Invariant: a result equals that of numpy on the dense arrays; no result is dense by accident.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax, sparse
from plait.errors import PlaitError
from plait.sparse import BCOO, sparsify

D = np.array([[0, 3, 0, 1], [1, 0, -2, 0]], np.float32)
V = np.array([1, -1, 2, 3], np.float32)


def dense(x):
    return np.asarray(x.todense() if isinstance(x, sparse.JAXSparse) else x)


def matrix():
    """Return D with two entries for one index, and padding that holds nan."""
    data = np.array([1, 2, 1, 1, -2, np.nan], np.float32)
    return BCOO((data, [[0, 1], [0, 1], [0, 3], [1, 0], [1, 2], [2, 4]]), shape=(2, 4))


STAYS_SPARSE = {
    "sin": (lambda x: pnp.sin(x), np.sin),
    "twice": (lambda x: x * 2 / 4, lambda x: x / 2),
    "negative": (lambda x: -x, lambda x: -x),
    "square": (lambda x: x**2, np.square),
    "root": (lambda x: pnp.sqrt(abs(x)), lambda x: np.sqrt(abs(x))),
    "sign": (lambda x: pnp.sign(x), np.sign),
    "floor": (lambda x: pnp.floor(x / 2), lambda x: np.floor(x / 2)),
    "relu": (lambda x: plait.nn.relu(x), lambda x: np.maximum(x, 0)),
    "sum": (lambda x: x.sum(0), lambda x: x.sum(0)),
    "transpose": (lambda x: x.T, np.transpose),
    "reshape": (lambda x: x.reshape(4, 2), lambda x: x.reshape(4, 2)),
    "row": (lambda x: x[1:, ::2], lambda x: x[1:, ::2]),
    "stack": (lambda x: pnp.concatenate([x, x], 1), lambda x: np.concatenate([x, x], 1)),
    "add": (lambda x: x + pnp.sin(x), lambda x: x + np.sin(x)),
    "subtract": (lambda x: x - 3 * x, lambda x: -2 * x),
    "times dense": (lambda x: x * V, lambda x: x * V),
    "over dense": (lambda x: x / V, lambda x: x / V),
    "product": (lambda x: x @ x.T, lambda x: x @ x.T),
    "convert": (lambda x: x.astype("int32"), lambda x: x.astype(np.int32)),
    "jit": (plait.jit(lambda x: x * 2), lambda x: x * 2),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda x: x + x, lambda x: x * 3, x),
             lambda x: x + x if x.sum() > 0 else 3 * x),
    "loop": (lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x), lambda x: 8 * x),
    "while": (lambda x: lax.while_loop(lambda x: abs(x).sum() < 100, lambda x: x * 2, x),
              lambda x: 16 * x),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", STAYS_SPARSE)
def test_sparse_results(name):
    f, reference = STAYS_SPARSE[name]
    x, want = matrix(), reference(D)
    for found in (sparsify(f)(x), plait.jit(sparsify(f))(x)):
        assert isinstance(found, BCOO) and found.shape == want.shape
        np.testing.assert_allclose(dense(found), want, rtol=1e-6)


BECOMES_DENSE = {
    "product with a vector": (lambda x: x @ V, D @ V),
    "sum of all": (lambda x: x.sum(), D.sum()),
    "sum with dense": (lambda x: x + D, 2 * D),
    "on purpose": (lambda x: pnp.cos(sparse.todense(x)), np.cos(D)),
    "branches of two kinds": (lambda x: lax.cond(True, lambda x: x * 2, lambda x: sparse.todense(x),
                                                 x), 2 * D),
    "a carry that grows": (lambda x: lax.fori_loop(0, 9, lambda i, c: c + x, x), 10 * D),
    "a carry with a dense start": (lambda x: lax.scan(lambda c, v: (c + x @ v, v.sum()),
                                                      np.zeros(2, np.float32), V[None])[0], D @ V),
    "rows of a matrix": (lambda x: lax.scan(lambda c, r: (c + r @ V, None), np.float32(0), x)[0],
                         (D @ V).sum()),
}  # fmt: skip


@pytest.mark.parametrize("name", BECOMES_DENSE)
def test_dense_results(name):
    f, want = BECOMES_DENSE[name]
    for found in (sparsify(f)(matrix()), plait.jit(sparsify(f))(matrix())):
        assert not isinstance(found, BCOO)
        np.testing.assert_allclose(found, want, rtol=1e-6)


def test_a_batch_goes_through_a_scan_row_by_row():
    x = BCOO.fromdense(np.stack([D, 2 * D]), n_batch=1)
    total, rows = sparsify(
        lambda x: lax.scan(lambda c, m: (c + m @ V, m * 3), np.zeros(2, np.float32), x)
    )(x)
    np.testing.assert_allclose(total, 3 * D @ V)
    assert isinstance(rows, BCOO) and rows.n_batch == 1
    np.testing.assert_allclose(dense(rows), 3 * np.stack([D, 2 * D]))


def test_trees_and_other_arguments():
    found = sparsify(lambda t, *, k: {"a": t[0] * k, "b": t[1] + 1, "c": 4})((matrix(), V), k=2.0)
    np.testing.assert_allclose(dense(found["a"]), 2 * D)
    np.testing.assert_allclose(found["b"], V + 1)
    assert found["c"] == 4
    rows = sparse.BCSR.fromdense(D)
    assert isinstance(sparsify(lambda x: x)(rows), BCOO)
    np.testing.assert_allclose(sparsify(lambda v: rows @ v)(V), D @ V)


REFUSED = {
    "a number added": lambda x: x + 1,
    "cosine": lambda x: pnp.cos(x),
    "exponential": lambda x: pnp.exp(x),
    "comparison": lambda x: x > 0,
    "division by it": lambda x: 1 / x,
    "power 0": lambda x: x**-1,
    "maximum": lambda x: pnp.maximum(x, V),
    "largest": lambda x: x.max(),
    "sorted": lambda x: pnp.sort(x),
    "with dense": lambda x: pnp.concatenate([x, D]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    with pytest.raises(PlaitError, match="dense|rule") as e:
        sparsify(REFUSED[name])(matrix())
    assert "test_sparsify.py" in str(e.value)


def test_a_function_of_arrays_names_sparsify():
    with pytest.raises(PlaitError, match="sin expected arrays, got a BCOO") as e:
        pnp.sin(matrix())
    assert "sparsify(sin)" in str(e.value) and "test_sparsify.py" in str(e.value)


def test_infinity_times_no_entry_is_zero():
    found = matrix() * np.full((2, 4), np.inf, np.float32)
    assert np.isfinite(dense(found)[D == 0]).all()
