"""Maps of some elements at a time, and loops over single ones, differentiated and mapped again.

Invariant: what is expected is numpy's.
"""

import numpy as np
import pytest

import plait

jnp = plait.numpy
X = np.random.default_rng(6).normal(size=(5, 3)).astype(np.float32)
W = np.float32([1, -2, 3])


def loss(w, x):
    return jnp.tanh(w @ x) ** 2


def slopes(x):
    y = np.tanh(x @ W)
    return (2 * y * (1 - y**2))[:, None]


@plait.sequential_vmap
def sequential(w, x):
    return loss(w, x)


MAPS = {
    "chunks": plait.vmap(loss, (None, 0), chunk=2),
    "one by one": plait.vmap(sequential, (None, 0)),
    "chunks, jitted": plait.jit(plait.vmap(plait.jit(loss), (None, 0), chunk=3)),
}


@pytest.mark.parametrize("name", MAPS)
def test_derivatives(name):
    f = MAPS[name]
    total = lambda w, x: f(w, x).sum()  # noqa: E731
    of_w, of_x = plait.grad(total, (0, 1))(W, X)
    np.testing.assert_allclose(np.asarray(of_w), (slopes(X) * X).sum(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.asarray(of_x), slopes(X) * W, rtol=1e-4, atol=1e-5)
    out, dot = plait.jvp(lambda x: f(W, x), (X,), (np.ones_like(X),))
    np.testing.assert_allclose(np.asarray(out), np.tanh(X @ W) ** 2, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.asarray(dot), slopes(X)[:, 0] * W.sum(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("chunk", [1, 2, 5])
def test_gradients_of_each(chunk):
    each = plait.vmap(plait.grad(loss), (None, 0), chunk=chunk)
    np.testing.assert_allclose(np.asarray(each(W, X)), slopes(X) * X, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MAPS)
def test_mapped_again(name):
    f = MAPS[name]
    ws = np.stack([W, -W, 2 * W])
    got = plait.vmap(f, (0, None))(ws, X)
    np.testing.assert_allclose(np.asarray(got), np.tanh(X @ ws.T).T ** 2, rtol=1e-4, atol=1e-6)
    in_chunks = plait.vmap(f, (0, None), 1, chunk=2)(ws, X)
    np.testing.assert_allclose(np.asarray(in_chunks), np.tanh(X @ ws.T) ** 2, rtol=1e-4, atol=1e-6)


def test_over_devices():
    """A chunk at a time, each divided over a mesh."""
    mesh = plait.make_mesh((2,), ("r",))
    here = lambda v: plait.with_sharding_constraint(  # noqa: E731
        v * 2, plait.NamedSharding(mesh, plait.P())
    )
    got = plait.jit(plait.vmap(here, spmd_axis_name="r", chunk=2))(X[:4])
    np.testing.assert_allclose(np.asarray(got), 2 * X[:4])
