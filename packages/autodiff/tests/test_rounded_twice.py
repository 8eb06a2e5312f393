"""Derivatives of extremes of what a compiler computes in two places, and may round otherwise there.

Invariant: who has the extreme is asked of numpy.
"""

import numpy as np
import pytest

import plait
from plait import grad, lax
from plait import numpy as pnp

SEGMENTS = 7
X = np.random.RandomState(0).randn(40, 4).astype("float32")
AT = np.random.RandomState(1).randint(0, SEGMENTS - 1, 40).astype("int32")  # nothing for the last


def turned(x):
    """A product and a sum, which a loop may round once and another one twice."""
    return (x * 1.3).swapaxes(-1, -2).swapaxes(-1, -2) + 0.7 * x[:1, :1]


def scattered(way):
    start = pnp.full((SEGMENTS, X.shape[1]), -50 if way == "max" else 50, "float32")
    return lambda y: getattr(start.at[AT], way)(y).sum()


def through(shares):
    """A derivative with respect to what `turned` gives as one with respect to its operand."""
    moved = 1.3 * shares
    moved[0, 0] += 0.7 * shares.sum()
    return moved


@pytest.mark.parametrize("tier", ["full", "fast"])
@pytest.mark.parametrize("way", ["max", "min"])
def test_scattered_extremes(way, tier):
    exact = turned(X.astype("float64"))
    shares = np.zeros_like(exact)
    for segment in set(AT.tolist()):
        mine = np.flatnonzero(segment == AT)
        best = getattr(exact[mine], "arg" + way)(0)
        shares[mine[best], np.arange(X.shape[1])] = 1
    got = plait.jit(grad(lambda x: scattered(way)(turned(x))), tier=tier)(X)
    np.testing.assert_allclose(got, through(shares), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("tier", ["full", "fast"])
@pytest.mark.parametrize("way", ["max", "min"])
def test_running_extremes(way, tier):
    exact = turned(X.astype("float64"))
    shares = np.zeros_like(exact)
    for last in range(len(X)):
        best = getattr(exact[: last + 1], "arg" + way)(0)
        shares[best, np.arange(X.shape[1])] += 1
    of = getattr(lax, "cum" + way)
    got = plait.jit(grad(lambda x: of(turned(x), 0).sum()), tier=tier)(X)
    np.testing.assert_allclose(got, through(shares), rtol=1e-5, atol=1e-5)
