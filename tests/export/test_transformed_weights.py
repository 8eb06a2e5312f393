"""Calls of functions with weights beside the module, transformed: against the function itself."""

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as pnp
from plait_export import deserialize, export, symbolic_args_specs

F32 = np.float32
RNG = np.random.default_rng(5)
W, V = RNG.normal(size=(4, 4)).astype(F32), pnp.asarray(RNG.normal(size=4).astype(F32))
X = RNG.normal(size=(3, 4)).astype(F32)


def model(x):
    return pnp.tanh(x @ W) * V


def replaced(x, w):
    return pnp.tanh(x @ w) * V


def close(x, y):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-4, atol=1e-5)


@pytest.fixture(params=["here", "saved", "read back"])
def call(request):
    """The function whose weight W is twice what it was."""
    made = export(model, weights=16)(symbolic_args_specs(X, "b, 4"))
    assert list(made.weights) == ["W", "V"]
    if request.param != "here":
        order = 2 if request.param == "saved" else 0
        made = deserialize(made.serialize(order))
        assert made.has_vjp() == bool(order)
    return made.with_weights({"W": 2 * W}).call


def test_derivatives(call):
    loss = lambda f: lambda x: (f(x) ** 2).sum()  # noqa: E731
    of = lambda x: replaced(x, 2 * W)  # noqa: E731
    close(plait.grad(loss(call))(X), plait.grad(loss(of))(X))
    close(plait.jit(plait.grad(loss(call)))(X), plait.grad(loss(of))(X))
    t = np.cos(X)
    for got, want in zip(plait.jvp(call, (X,), (t,)), plait.jvp(of, (X,), (t,)), strict=True):
        close(got, want)
    twice = lambda f: plait.grad(lambda x: (plait.grad(loss(f))(x) ** 2).sum())  # noqa: E731
    close(twice(call)(X), twice(of)(X))


def test_maps_and_loops(call):
    of = lambda x: replaced(x, 2 * W)  # noqa: E731
    many = RNG.normal(size=(5, 3, 4)).astype(F32)
    close(plait.vmap(call)(many), of(many))
    close(plait.vmap(plait.grad(lambda x: call(x).sum()))(many),
          plait.vmap(plait.grad(lambda x: of(x).sum()))(many))  # fmt: skip
    step = lambda f: lambda c, _: (f(c), c.sum())  # noqa: E731
    for got, want in zip(lax.scan(step(call), X, None, 3), lax.scan(step(of), X, None, 3)):
        close(got, want)
    branches = lambda x: lax.cond(x.sum() > 0, call, lambda v: v * 1, x)  # noqa: E731
    close(branches(np.abs(X)), of(np.abs(X)))
