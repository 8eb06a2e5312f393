"""Operations on sparse arrays, in every layout, beside numpy on the dense arrays.

Invariant: samples have duplicates, and padding that holds nan; results equal those of numpy.
"""

import itertools

import numpy as np
import pytest

import plait
from plait import sparse
from plait.sparse import BCOO

LAYOUTS = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)]  # numbers of batch and of dense axes
SHAPE = (2, 3, 2, 3)
W = np.arange(36, dtype=np.float32).reshape(SHAPE) % 7 - 2


def dense(x):
    return np.asarray(x.todense() if isinstance(x, sparse.JAXSparse) else x)


def check(found, want):
    assert found.shape == want.shape and found.dtype == want.dtype
    np.testing.assert_allclose(dense(found), want, rtol=1e-5, atol=1e-5)


OPERATIONS = {
    "reversed axes": (lambda x: x.T, lambda x: x.T),
    "transpose": (lambda x: x.transpose((1, 0, 3, 2)), lambda x: x.transpose(1, 0, 3, 2)),
    "swap": (lambda x: x.transpose((0, 2, 1, 3)), lambda x: x.transpose(0, 2, 1, 3)),
    "sum": (lambda x: x.sum(), lambda x: x.sum()),
    "sum 0": (lambda x: x.sum(0), lambda x: x.sum(0)),
    "sum 1": (lambda x: x.sum(1), lambda x: x.sum(1)),
    "sum 3": (lambda x: x.sum(-1), lambda x: x.sum(-1)),
    "sum 0 2": (lambda x: x.sum((0, 2)), lambda x: x.sum((0, 2))),
    "sum kept": (lambda x: x.sum((1, 3), keepdims=True), lambda x: x.sum((1, 3), keepdims=True)),
    "row": (lambda x: x[1], lambda x: x[1]),
    "column": (lambda x: x[:, 1], lambda x: x[:, 1]),
    "element": (lambda x: x[1, 2, 0, -1], lambda x: x[1, 2, 0, -1]),
    "steps": (lambda x: x[::-1, ::2, 1:, ::-2], lambda x: x[::-1, ::2, 1:, ::-2]),
    "nothing": (lambda x: x[:, 2:1], lambda x: x[:, 2:1]),
    "new axes": (lambda x: x[None, :, None, ..., None], lambda x: x[None, :, None, ..., None]),
    "reshape": (lambda x: x.reshape(6, 6), lambda x: x.reshape(6, 6)),
    "reshape 3": (lambda x: x.reshape((2, 6, -1)), lambda x: x.reshape(2, 6, 3)),
    "ravel": (lambda x: x.reshape(-1), lambda x: x.reshape(-1)),
    "odd reshape": (lambda x: x.reshape(4, 9), lambda x: x.reshape(4, 9)),
    "rev": (lambda x: sparse.bcoo_rev(x, (0, 1, -1)), lambda x: x[::-1, ::-1, :, ::-1]),
    "slice": (lambda x: sparse.bcoo_slice(x, start_indices=(0, 1, 0, 0), limit_indices=(2, 3, 1, 3),
                                          strides=(1, 1, 1, 2)), lambda x: x[0:2, 1:3, :1, ::2]),
    "dynamic slice": (lambda x: sparse.bcoo_dynamic_slice(x, (1, 2, -1, 1), (1, 2, 1, 2)),
                      lambda x: x[1:2, 1:3, 1:2, 1:3]),
    "squeeze": (lambda x: sparse.bcoo_squeeze(x[:1, :, :1, :1], dimensions=(0, -2, 3)),
                lambda x: x[0, :, 0, 0]),
    "broadcast": (lambda x: sparse.bcoo_broadcast_in_dim(
        x[:1, :, :, :1], shape=(4, 2, 3, 2, 2), broadcast_dimensions=(1, 2, 3, 4)),
        lambda x: np.broadcast_to(x[:1, :, :, :1], (4, 2, 3, 2, 2))),
    "concatenate 0": (lambda x: sparse.bcoo_concatenate([x, x[1:]], dimension=0),
                      lambda x: np.concatenate([x, x[1:]], 0)),
    "concatenate 1": (lambda x: sparse.bcoo_concatenate([x, x[:, :2], x], dimension=1),
                      lambda x: np.concatenate([x, x[:, :2], x], 1)),
    "concatenate 3": (lambda x: sparse.bcoo_concatenate([x, x[..., 1:]], dimension=-1),
                      lambda x: np.concatenate([x, x[..., 1:]], -1)),
    "negative": (lambda x: -x, lambda x: -x),
    "abs": (abs, abs),
    "twice": (lambda x: 2 * x, lambda x: 2 * x),
    "half": (lambda x: x / 2, lambda x: x / 2),
    "square": (lambda x: x**2, lambda x: x**2),
    "self": (lambda x: x * x, lambda x: x * x),
    "add": (lambda x: x + x.transpose((0, 1, 2, 3)), lambda x: x + x),
    "subtract": (lambda x: x - 3 * x, lambda x: x - 3 * x),
    "times row": (lambda x: x * x[0], lambda x: x * x[0]),
    "times dense": (lambda x: x * W, lambda x: x * W),
    "dense times": (lambda x: W * x, lambda x: W * x),
    "times part": (lambda x: x * W[0, :, :, :1], lambda x: x * W[0, :, :, :1]),
    "times column": (lambda x: x * W[:, :1], lambda x: x * W[:, :1]),
    "wide times": (lambda x: x[:, :, :1] * W, lambda x: x[:, :, :1] * W),
    "over dense": (lambda x: x / (W + 9), lambda x: x / (W + 9)),
    "plus dense": (lambda x: x + W, lambda x: x + W),
    "dense minus": (lambda x: W - x, lambda x: W - x),
    "integers": (lambda x: x.astype("int32"), lambda x: x.astype(np.int32)),
    "values": (lambda x: BCOO((sparse.bcoo_multiply_dense(x, W), x.indices), shape=x.shape),
               lambda x: x * W),
    "entries": (lambda x: sparse.bcoo_extract(x, W), lambda there: np.where(there, W, 0)),
}  # fmt: skip


def stored(x):
    """Return where a sparse array has entries."""
    out = np.zeros(x.shape, bool)
    for at in np.ndindex(x.batch_shape):
        for k in np.asarray(x.indices)[at]:
            if (k < x.sparse_shape).all():
                out[(*at, *k)] = True
    return out


def judge(run, name, x, want):
    operation, reference = OPERATIONS[name]
    check(run(operation)(x), np.asarray(reference(stored(x) if name == "entries" else want)))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(name, layout, sample):
    judge(plait.jit, name, *sample(0, SHAPE, *layout, unique=name == "entries"))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_at_once(name, sample):
    judge(lambda f: f, name, *sample(1, SHAPE, 1, 1, unique=name == "entries"))


# ---- products --------------------------------------------------------------------------------

AXES = [
    (((3,), (0,)), ((), ())),
    (((1,), (1,)), ((0,), (0,))),
    (((1, 2), (1, 0)), ((), ())),
    (((2,), (2,)), ((0, 1), (0, 1))),
    (((), ()), ((3,), (1,))),
    (((0, 3), (0, 3)), ((1,), (1,))),
    (((0, 1, 2, 3), (0, 1, 2, 3)), ((), ())),
]


def product(x, y, numbers):
    """Return the product by numpy."""
    (a, b), (c, d) = numbers
    left = [k for k in range(x.ndim) if k not in (*a, *c)]
    right = [k for k in range(y.ndim) if k not in (*b, *d)]
    names = {(1, j): (0, i) for i, j in zip((*a, *c), (*b, *d))}
    ids = {k: n for n, k in enumerate([(0, i) for i in range(x.ndim)] + [(1, j) for j in right])}
    xs = [ids[0, i] for i in range(x.ndim)]
    ys = [ids[names.get((1, j), (1, j))] for j in range(y.ndim)]
    out = [ids[0, i] for i in (*c, *left)] + [ids[1, j] for j in right]
    return np.einsum(x, xs, y, ys, out)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("numbers", AXES, ids=range(len(AXES)))
def test_products_with_dense(numbers, layout, sample):
    x, dense_x = sample(3, (3, 2, 3, 3), *layout)
    y = np.arange(54, dtype=np.float32).reshape(3, 2, 3, 3) % 5 - 2
    if numbers == AXES[2]:
        y = y.transpose(2, 1, 0, 3)
    if numbers == AXES[4]:
        y = y.transpose(1, 0, 2, 3)
    swapped = tuple((b, a) for a, b in numbers)

    @plait.jit
    def both(x, y):
        return (sparse.bcoo_dot_general(x, y, dimension_numbers=numbers),
                sparse.bcoo_dot_general(y, x, dimension_numbers=swapped))  # fmt: skip

    found = both(x, y)
    check(found[0], product(dense_x, y, numbers))
    check(found[1], product(y, dense_x, swapped))


@pytest.mark.parametrize("numbers", [AXES[1], (((2,), (1,)), ((0,), (0,))),
                                     (((1, 2), (1, 2)), ((0,), (0,)))], ids=range(3))  # fmt: skip
@pytest.mark.parametrize("layout", [(0, 0), (1, 0), (1, 1)])
def test_products_of_sparse(numbers, layout, sample):
    x, dense_x = sample(1, (2, 3, 3), *layout)
    y, dense_y = sample(2, (2, 3, 3), 1, 0)
    found = sparse.bcoo_dot_general(x, y, dimension_numbers=numbers)
    check(found, product(dense_x, dense_y, numbers))


@pytest.mark.parametrize("kind", ["bcoo", "bcsr"])
def test_matmul(kind, sample):
    x, d = sample(0, (3, 4))
    x = sparse.BCSR.from_bcoo(x) if kind == "bcsr" else x
    v, w, m = W[0, 0, 0], np.arange(4, dtype=np.float32), W.reshape(-1)[:20].reshape(4, 5)
    check(x @ w, d @ w)
    check(v @ x, v @ d)
    check(x @ m, d @ m)
    check(m.T @ x.T, m.T @ d.T)
    check(x @ x.T, d @ d.T)
    many = np.stack([m, m + 1])
    check(x @ many, d @ many)
    check(many.transpose(0, 2, 1) @ x.T, many.transpose(0, 2, 1) @ d.T)


def test_batches_of_matrices(sample):
    x, d = sample(0, (2, 3, 4), 1)
    m = W.reshape(-1)[:24].reshape(2, 4, 3)
    check(x @ m, d @ m)
    check(m @ x, m @ d)
    check(x @ m[0], d @ m[0])
    check(x @ x.transpose((0, 2, 1)), d @ d.transpose(0, 2, 1))


def test_products_of_halves_are_accumulated_in_single():
    x = sparse.BCOO.fromdense(np.full((1, 4096), 0.1, np.float16))
    v = np.ones(4096, np.float16)
    want = np.float16(0.1).astype(np.float64) * 4096
    np.testing.assert_allclose(np.asarray(x @ v, np.float64), [want], rtol=1e-3)
    assert (x @ v).dtype == np.float16


def test_sampled_product():
    a, b = W[0, 0, :, :].T.copy(), W[1, 0]
    at = np.array([[0, 1], [2, 2], [1, 0], [3, 3]])
    found = sparse.bcoo_dot_general_sampled(a, b, at, dimension_numbers=(((1,), (0,)), ((), ())))
    np.testing.assert_allclose(found, [*(a @ b)[tuple(at[:3].T)], 0])


def test_every_sum_and_transpose(sample):
    x, d = sample(4, (2, 2, 3), 1, 1)
    for n in range(4):
        for axes in itertools.combinations(range(3), n):
            found = plait.jit(lambda x, axes=axes: sparse.bcoo_reduce_sum(x, axes=axes))(x)
            check(found, d.sum(axes) if axes else d)
    for perm in itertools.permutations(range(3)):
        check(plait.jit(lambda x, perm=perm: x.transpose(perm))(x), d.transpose(perm))
