"""Masks hold what Jacobians hold, under every transformation, and few passes give Jacobians."""

import numpy as np
import pytest
from plait_sparsity import colours, jacobian, sparsity

import plait
import plait.numpy as pnp
from plait import Pile, lax, pile_axis

X = np.linspace(0.2, 1.4, 6, dtype=np.float32)


def neighbours(x):
    return pnp.sin(x[1:]) * x[:-1]


FUNCTIONS = {
    "neighbours": neighbours,
    "sum": lambda x: x[:3].sum()[None] + x[1] * x,
    "product": lambda x: np.ones((2, 6), np.float32) @ (x * x),
    "cumulative": lambda x: pnp.cumsum(x),
    "gather": lambda x: x[np.array([5, 0, 0])] * x[2],
    "scatter": lambda x: pnp.zeros(4).at[np.array([1, 3])].set(x[:2]),
    "where": lambda x: pnp.where(np.arange(6) > 2, x, x[::-1]),
    "scan": lambda x: lax.scan(lambda c, r: (c + r, c * 2.0), x[0], x[1:])[1],
    "loop": lambda x: lax.fori_loop(0, pnp.int32(2), lambda i, y: y[::-1] * x, x),
    "cond": lambda x: lax.cond(x[0] > 0, lambda y: y, lambda y: y[::-1], x),
    "jit": plait.jit(neighbours),
    "grad": plait.grad(lambda x: (x[1:] * x[:-1]).sum()),
    "pile": lambda x: plait.vmap(lambda v: v * v.sum(), pile_axis, pile_axis)(
        Pile(x, np.array([2, 4]))
    ).data[:6],
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("way", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_masks_are_those_of_jacobians(name, way):
    """Compare with numerical Jacobians, at an ordinary point."""
    f = FUNCTIONS[name]
    y, depends = way(sparsity(f))(X)
    eye = np.eye(6, dtype=np.float32) * 1e-2
    want = np.stack([np.asarray(f(X + e)) - np.asarray(f(X - e)) for e in eye], -1)
    np.testing.assert_allclose(y, np.asarray(f(X)), rtol=1e-6)
    np.testing.assert_array_equal(depends, np.abs(want) > 1e-6)


def test_a_jacobian_takes_as_many_passes_as_its_band_is_wide():
    x = np.linspace(0, 3, 40, dtype=np.float32)
    _, depends = sparsity(neighbours)(x)
    assert colours(np.asarray(depends)).max() == 1
    got = plait.jit(jacobian(neighbours, depends))(x)
    want = np.zeros((39, 40))
    want[range(39), range(39)] = np.sin(x[1:])
    want[range(39), range(1, 40)] = np.cos(x[1:]) * x[:-1]
    np.testing.assert_allclose(got, want, atol=1e-6)


def test_on_devices_and_exported(rows):
    mesh, cut = rows
    f = plait.shard_map(lambda v: v * v.sum(), mesh=mesh, in_specs=cut, out_specs=cut)
    x = np.arange(16, dtype=np.float32)
    want = np.kron(np.eye(8), np.ones((2, 2))) > 0
    np.testing.assert_array_equal(sparsity(f)(x)[1], want)
    file = plait.export.export(plait.jit(sparsity(neighbours)))(X).serialize()
    got = plait.export.deserialize(file).call(X)
    np.testing.assert_array_equal(got[1], np.eye(5, 6) + np.eye(5, 6, 1) > 0)


def test_for_each_of_a_stack():
    masks = plait.vmap(sparsity(neighbours))(np.stack([X, X]))[1]
    assert masks.shape == (2, 5, 6)


def test_a_sort_depends_on_all():
    assert np.asarray(sparsity(pnp.sort)(X)[1]).all()


def test_for_matrices():
    _, depends = sparsity(lambda m: m.sum(0))(np.ones((2, 3), np.float32))
    assert depends.shape == (3, 2, 3)
    np.testing.assert_array_equal(depends, np.eye(3)[:, None].repeat(2, 1) > 0)


def test_it_conforms():
    values = lambda f: lambda x: sparsity(f)(x)[0]  # noqa: E731
    report = plait.testing.transform_suite(values, lambda f: f, [X])
    assert report.total > 50
