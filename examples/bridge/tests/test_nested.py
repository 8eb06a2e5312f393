"""The sample packages inside one another: none of them knows of another."""

import math

import numpy as np
import pytest
from plait_handlers import condition, log_density, normal, sample, seed, trace
from plait_precision import mixed_precision
from plait_quantised import quantise
from plait_units import Quantity, metre, second, with_units

import plait
import plait.numpy as pnp
from plait import lax

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 3)).astype(np.float32)
W = RNG.standard_normal((3, 2)).astype(np.float32)
Q = quantise(W)
FLOATS = np.asarray(Q.values, np.float32) * np.asarray(Q.scales)


def rounded(x):
    return np.asarray(x, np.float32).astype(plait.dtypes.bfloat16).astype(np.float32)


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-5)


def many(f):
    """The same through a loop and a call."""
    return lambda *args: lax.scan(lambda c, _: (c, plait.jit(f)(*args)), 0, None, length=2)[1][1]


@pytest.mark.parametrize("around", [lambda f: f, many, plait.jit, plait.checkpoint])
def test_units_and_precision(around):
    f = around(lambda x, w: x @ w)
    for run in (with_units(mixed_precision(f)), mixed_precision(with_units(f))):
        got = run(Quantity(X, metre), Quantity(W, second))
        assert got.unit == metre * second
        close(got.value, rounded(X) @ rounded(W))


@pytest.mark.parametrize("around", [lambda f: f, many, plait.jit, plait.checkpoint])
def test_eight_bits_in_units_intervals_and_low_precision(around):
    f = around(lambda x: x @ Q)
    got = with_units(f)(Quantity(X, metre))
    assert got.unit == metre
    close(got.value, X @ FLOATS)
    close(mixed_precision(f)(X), rounded(X) @ np.asarray(Q.values, "f") * np.asarray(Q.scales))
    low, high = plait.interval(f)(X - 0.1, X + 0.1)
    spread = 0.1 * abs(FLOATS).sum(0)
    np.testing.assert_allclose(low, X @ FLOATS - spread, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(high, X @ FLOATS + spread, rtol=1e-3, atol=1e-3)


def model(x):
    """Observations of a product in eight bits, computed in low precision, of a length in metres."""
    scale = sample("scale", normal())
    length = with_units(lambda v: v * v / v)(Quantity(x * scale, metre)).value
    return sample("y", normal(mixed_precision(lambda v: v @ Q)(length), 2.0))


def test_all_inside_a_probabilistic_program():
    y = np.zeros((4, 2), np.float32)
    mean = rounded(X * np.float32(0.5)) @ np.asarray(Q.values, "f") * np.asarray(Q.scales)
    half = math.log(2 * math.pi) / 2
    want = -0.125 - half - ((y - mean) ** 2 / 8 + math.log(2) + half).sum()
    density = lambda s: log_density(condition(model, {"y": y}), {"scale": s})(X)
    for f in (density, plait.jit(density), lambda s: plait.vmap(density)(pnp.stack([s, s]))[1]):
        np.testing.assert_allclose(f(np.float32(0.5)), want, rtol=1e-4)
    values = trace(seed(model, plait.random.key(0)))(X)[1]
    assert {name: v.shape for name, v in values.items()} == {"scale": (), "y": (4, 2)}


def test_sites_inside_low_precision():
    """A carrier between the sites and their handler."""
    low = mixed_precision(lambda x: sample("y", normal(x @ W, 1.0)))
    y = np.ones((4, 2), np.float32)
    want = -((y - rounded(X) @ rounded(W)) ** 2 / 2 + math.log(2 * math.pi) / 2).sum()
    np.testing.assert_allclose(log_density(low, {"y": y})(X), want, rtol=1e-4)
    np.testing.assert_allclose(
        log_density(plait.vmap(low), {"y": y[None]})(X[None]), want, rtol=1e-4
    )


def test_gradients_through_all():
    f = lambda x: mixed_precision(with_units(lambda v: (v @ Q).sum()))(Quantity(x, metre)).value
    np.testing.assert_allclose(plait.grad(f)(X), 0 * X + FLOATS.sum(1), rtol=2e-2, atol=2e-2)
    inside = with_units(plait.grad(lambda v: ((v @ Q) ** 2).sum()))(Quantity(X, metre))
    assert inside.unit == metre
    close(inside.value, 2 * X @ FLOATS @ FLOATS.T)
