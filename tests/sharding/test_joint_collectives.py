"""Collectives along several axes of a mesh, under transformations.

Invariant: linear ones are compared by inner products with their transposes, mapped ones with loops.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import P, lax

MESH = plait.make_mesh((2, 2, 2), ("a", "b", "c"))
X = np.random.default_rng(0).normal(size=(16, 8, 3)).astype(np.float32)
NAMES = ("c", "a")
LINEAR = {
    "all_gather": lambda v: lax.all_gather(v, NAMES, tiled=True),
    "all_gather, stacked": lambda v: lax.all_gather(v, NAMES, axis=1).sum(0),
    "psum_scatter": lambda v: lax.psum_scatter(v, NAMES, scatter_dimension=1, tiled=True),
    "all_to_all": lambda v: lax.all_to_all(v, NAMES, 1, 0, tiled=True),
    "ppermute": lambda v: lax.ppermute(v, NAMES, [(0, 3), (2, 1), (3, 0)]),
    "psum": lambda v: lax.psum(v, NAMES),
}


def over(f):
    spec = P(("a", "b", "c"))
    return plait.shard_map(f, mesh=MESH, in_specs=spec, out_specs=spec)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", LINEAR)
def test_transposes(name):
    f = over(LINEAR[name])
    y, back = plait.vjp(f, X)
    ct = np.random.default_rng(1).normal(size=y.shape).astype(np.float32)
    np.testing.assert_allclose((y * ct).sum(), (X * back(ct)[0]).sum(), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(plait.jvp(f, (X,), (X,))[1], y, rtol=1e-5)
    g = plait.grad(lambda x: (plait.checkpoint(f)(x) ** 2).sum())(X)
    np.testing.assert_allclose(g, back(2 * y)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LINEAR)
def test_mapped(name):
    f, xs = over(LINEAR[name]), np.stack([X, 2 * X, X[::-1]])
    want = np.stack([f(x) for x in xs])
    np.testing.assert_allclose(plait.vmap(f)(xs), want, rtol=1e-5)
    np.testing.assert_allclose(plait.jit(plait.vmap(f, 2))(np.moveaxis(xs, 0, 2)), want, rtol=1e-5)
    inside = plait.shard_map(
        lambda v: plait.vmap(LINEAR[name])(v),
        mesh=MESH,
        in_specs=P(None, ("a", "b", "c")),
        out_specs=P(None, ("a", "b", "c")),
    )
    np.testing.assert_allclose(inside(xs), want, rtol=1e-5)


def test_with_a_mapped_axis_between():
    """Names of which one is an axis of vmap: what can be is done together."""
    names = ("a", "k", "b")

    def f(v):
        return plait.vmap(
            lambda u: lax.psum_scatter(lax.all_gather(u, names), names), axis_name="k"
        )(v)

    g = plait.shard_map(
        f, mesh=MESH, in_specs=P(("a", "b")), out_specs=P(("a", "b")), axis_names={"a", "b"}
    )
    x = pnp.asarray(X[:12, 0])
    np.testing.assert_allclose(g(x), 12 * x, rtol=1e-5)
