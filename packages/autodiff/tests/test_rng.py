"""Derivatives of samples by the parameters of their distributions.

Invariant: keys and bits do not vary; expected slopes are written out by hand.
"""

import numpy as np

import plait
from plait import random
from plait.ext.values import asarray

KEY = random.key(3)


def test_uniform_by_its_bounds():
    low, high = asarray(np.float64(1.0)), asarray(np.float64(3.0))
    f = lambda low, high: random.uniform(KEY, (5,), "float64", low, high)  # noqa: E731
    unit = np.asarray(random.uniform(KEY, (5,), "float64"))
    for g in (f, plait.jit(f)):
        _, by_low = plait.jvp(lambda a, g=g: g(a, high), (low,), (asarray(np.float64(1)),))
        _, by_high = plait.jvp(lambda b, g=g: g(low, b), (high,), (asarray(np.float64(1)),))
        np.testing.assert_allclose(np.asarray(by_low), 1 - unit, rtol=1e-12)
        np.testing.assert_allclose(np.asarray(by_high), unit, rtol=1e-12)


def test_location_and_scale():
    x = np.asarray(random.normal(KEY, (4,), "float64"))
    f = lambda m, s: random.normal(KEY, (4,), "float64") * s + m  # noqa: E731
    _, pull = plait.vjp(f, asarray(np.float64(0.0)), asarray(np.float64(2.0)))
    ct = np.arange(4.0)
    dm, ds = pull(asarray(ct))
    np.testing.assert_allclose(float(dm), ct.sum())
    np.testing.assert_allclose(float(ds), ct @ x)


def test_truncated_normal_by_its_bounds():
    def f(low):
        return random.truncated_normal(KEY, low, 2.0, (3,), "float64")

    low, eps = np.float64(-0.5), 1e-6
    _, dot = plait.jvp(f, (asarray(low),), (asarray(np.float64(1)),))
    slope = (np.asarray(f(asarray(low + eps))) - np.asarray(f(asarray(low - eps)))) / (2 * eps)
    np.testing.assert_allclose(np.asarray(dot), slope, rtol=1e-5)


def test_booleans_and_integers_do_not_vary():
    p = asarray(np.float32(0.3))
    out, dot = plait.jvp(
        lambda p: plait.numpy.multiply(random.bernoulli(KEY, p, (4,)).astype("float32"), 2.0),
        (p,),
        (p,),
    )
    assert out.shape == (4,) and not np.asarray(dot).any()
