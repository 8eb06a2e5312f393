"""Sparse arrays under, over and between other transformations.

Invariant: values come from the dense arrays by numpy, derivatives from finite differences or from
the formula; samples have padding that holds nan.
"""

import itertools

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax, sparse
from plait.sharding import Mesh, PartitionSpec
from plait.sparse import BCOO, BCSR, sparsify

D = np.array([[0, 3, 0, 1], [1, 0, -2, 0]], np.float32)
V = np.array([1, -1, 2, 3], np.float32)
AT = np.array([[0, 1], [0, 3], [1, 0], [1, 2], [2, 4]])
DATA = np.array([3, 1, 1, -2, np.nan], np.float32)


def matrix(data=DATA):
    return BCOO.made(pnp.asarray(data), pnp.asarray(AT, "int32"), (2, 4), True, True)


FUNCTIONS = {
    "scaled": (lambda x, v: (x * v[0] / v[1]) @ v, lambda d, v: (d * v[0] / v[1]) @ v),
    "scaled by itself": (lambda x, v: (x * x.sum()).T @ v[:2],
                         lambda d, v: (d * d.sum()).T @ v[:2]),
    "product": (lambda x, v: x @ v, lambda d, v: d @ v),
    "from the left": (lambda x, v: v[:2] @ x, lambda d, v: v[:2] @ d),
    "by rows": (lambda x, v: BCSR.from_bcoo(x) @ v, lambda d, v: d @ v),
    "elements": (lambda x, v: (x * v).sum(0).todense(), lambda d, v: (d * v).sum(0)),
    "square": (lambda x, v: (x @ x.T).todense() * v[0], lambda d, v: d @ d.T * v[0]),
    "sparse square": (lambda x, v: (x * x).T @ v[:2], lambda d, v: (d * d).T @ v[:2]),
    "sparsified": (lambda x, v: sparsify(lambda y, w: pnp.tanh(y) @ w)(x, v),
                   lambda d, v: np.tanh(d) @ v),
}  # fmt: skip


def stacked(f):
    """Return `f` mapped over two arrays, with its first result."""
    return lambda x, v: plait.vmap(f, in_axes=(None, 0))(x, pnp.stack([v, 2 * v]))[0]


def scanned(f):
    """Return `f` in a scan of one turn."""
    return lambda x, v: lax.scan(lambda c, w: (c, f(x, w)), 0.0, v[None])[1][0]


def in_branch(f):
    """Return `f` in a branch that depends on the operand."""
    return lambda x, v: lax.cond(v[0] > 0, f, lambda x, v: f(x, v) * 0, x, v)


def on_a_device(f):
    """Return `f` on each piece of a mesh of one device."""
    mesh, spec = Mesh(np.array(plait.devices()[:1]), ("i",)), PartitionSpec()
    return plait.shard_map(f, mesh=mesh, in_specs=(spec, spec), out_specs=spec)


AROUND = {"jit": plait.jit, "vmap": stacked, "scan": scanned, "cond": in_branch,
          "checkpoint": plait.checkpoint, "shard_map": on_a_device}  # fmt: skip


@pytest.mark.sampled(12)
@pytest.mark.parametrize("pair", list(itertools.permutations(AROUND, 2)), ids="-".join)
@pytest.mark.parametrize("name", ["product", "by rows", "sparsified"])
def test_values_and_gradients_under_two(name, pair):
    f, reference = FUNCTIONS[name]
    for outer in pair:
        f = AROUND[outer](f)
    np.testing.assert_allclose(f(matrix(), V), reference(D, V), rtol=1e-5)
    found = plait.grad(lambda v: f(matrix(), v).sum())(V)
    np.testing.assert_allclose(found, differences(lambda v: reference(D, v).sum(), V), rtol=1e-2)


def differences(f, v):
    """Return the gradient by central differences, in double precision."""
    v = v.astype(np.float64)
    steps = np.eye(len(v)) * 1e-5
    return [(f(v + s) - f(v - s)) / 2e-5 for s in steps]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_with_respect_to_the_entries(name):
    f, reference = FUNCTIONS[name]

    def of_values(data):
        dense = np.zeros((2, 4))
        dense[tuple(AT[:4].T)] = data[:4]
        return reference(dense, V.astype(np.float64)).sum()

    want = differences(of_values, DATA)
    want[4] = 0  # padding has no derivative
    slope = sparse.grad(lambda x: f(x, V).sum())(matrix())
    assert isinstance(slope, BCOO)
    np.testing.assert_allclose(slope.data, want, rtol=1e-2, atol=1e-4)
    by_rows = plait.grad(lambda t: f(matrix(t), V).sum())
    np.testing.assert_allclose(plait.jit(by_rows)(DATA), want, rtol=1e-2, atol=1e-4)
    found = plait.grad(lambda v: f(matrix(), v).sum())(V)
    np.testing.assert_allclose(found, differences(lambda v: reference(D, v).sum(), V), rtol=1e-2)
    tangent = np.arange(5, dtype=np.float32)
    _, along = plait.jvp(lambda t: f(matrix(t), V).sum(), (DATA,), (tangent,))
    np.testing.assert_allclose(along, np.dot(want, tangent), rtol=1e-2)


def test_jacobians_of_sparse_arguments():
    for make in (sparse.jacfwd, sparse.jacrev, sparse.jacobian):
        found = make(lambda x: x @ V)(matrix())
        assert (found.shape, found.n_batch) == ((2, 2, 4), 1)
        want = np.zeros((2, 2, 4))
        for i, j in AT[:4]:
            want[i, i, j] = V[j]
        np.testing.assert_allclose(found.todense(), want)
    value, (a, b) = sparse.value_and_grad(lambda x, v: (x @ v).sum(), (0, 1))(matrix(), V)
    np.testing.assert_allclose(value, (D @ V).sum())
    np.testing.assert_allclose(b, D.sum(0))
    assert isinstance(a, BCOO)
    _, aux = sparse.grad(lambda x: ((x @ V).sum(), "kept"), has_aux=True)(matrix())
    assert aux == "kept"


def test_a_batch_is_mapped_along_its_batch_axes():
    dense = np.stack([D, 2 * D, D - D])
    for kind in (BCOO, BCSR):
        x = kind.fromdense(dense, n_batch=1)
        np.testing.assert_allclose(plait.vmap(lambda m: m @ V)(x), dense @ V)
        back = plait.jit(plait.vmap(lambda m: m * 2))(x)
        assert (back.shape, back.n_batch) == (dense.shape, 1)
        np.testing.assert_allclose(back.todense(), 2 * dense)
        slope = plait.vmap(sparse.grad(lambda m: (m @ V).sum()))(x)
        np.testing.assert_allclose(slope.todense(), (dense != 0) * V)
        for wrong in (1, 2):  # with as many entries as examples the leaves alone would fit
            with pytest.raises(plait.PlaitError, match="expected a batch axis"):
                plait.vmap(lambda m: m @ V, in_axes=wrong)(x)
        with pytest.raises(plait.PlaitError, match="expected out_axes"):
            plait.vmap(lambda m: m, out_axes=2)(x)
    two = BCOO.fromdense(np.stack([dense, -dense]), n_batch=2)
    np.testing.assert_allclose(
        plait.vmap(plait.vmap(lambda m: m @ V), in_axes=1, out_axes=1)(two),
        np.stack([dense, -dense]) @ V,
    )


INSIDE = {
    "grad": (lambda x: plait.grad(lambda v: (x @ v).sum())(V), D.sum(0)),
    "jvp": (lambda x: plait.jvp(lambda v: x @ v, (V,), (V + 1,))[1], D @ (V + 1)),
    "grad of its values": (lambda x: plait.grad(lambda k: ((k * x) @ V).sum())(2.0), (D @ V).sum()),
    "vmap": (lambda x: plait.vmap(lambda v: x @ v)(np.stack([V, 2 * V])),
             np.stack([D @ V, 2 * D @ V])),
    "checkpoint": (lambda x: plait.checkpoint(lambda v: x @ v)(V), D @ V),
    "checkpoint of it": (lambda x: plait.checkpoint(lambda x: x @ V)(x), D @ V),
    "jit of grad": (lambda x: plait.jit(plait.grad(lambda v: (x @ v).sum()))(V), D.sum(0)),
    "hessian": (lambda x: plait.hessian(lambda v: ((x @ v) ** 2).sum())(V), 2 * D.T @ D),
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_transformations_inside_of_sparsify(name):
    f, want = INSIDE[name]
    for run in (sparsify(f), plait.jit(sparsify(f))):
        np.testing.assert_allclose(run(matrix()), want, rtol=1e-5)


def test_a_mapped_value_inside_of_sparsify_is_sparse():
    x = BCOO.fromdense(np.stack([D, 2 * D]), n_batch=1)
    found = sparsify(plait.vmap(lambda m: pnp.sin(m).T))(x)
    assert isinstance(found, BCOO) and found.n_batch == 1
    np.testing.assert_allclose(found.todense(), np.sin([D, 2 * D]).transpose(0, 2, 1), rtol=1e-6)


def test_export():
    saved = plait.export.export(plait.jit(lambda x, v: (x @ v, x * 2)))(matrix(), V)
    product, twice = plait.export.deserialize(saved.serialize()).call(matrix(), V)
    np.testing.assert_allclose(product, D @ V)
    assert isinstance(twice, BCOO)
    np.testing.assert_allclose(twice.todense(), 2 * D)


def test_piles_of_vectors_are_multiplied_by_a_sparse_matrix():
    x = matrix()
    pile = plait.Pile.from_list([np.float32([[1, 0], [0, 1], [2, 2]]), np.float32([[1, 1]])])
    rows = plait.vmap(lambda m: (m @ x).sum(0), plait.pile_axis)(pile)
    want = [np.float32([3, 3]) @ D, np.float32([1, 1]) @ D]
    np.testing.assert_allclose(rows, want)


def test_a_rule_of_a_stranger():
    table = plait.ext.rules.tables()["sparsify"]
    mine = plait.ext.Primitive("sparse_test.double", lambda x: x, traits=())
    table.rule(mine)(lambda x: x * 2)
    found = sparsify(lambda x: mine.bind(x))(matrix())
    np.testing.assert_allclose(found.todense(), 2 * D)
