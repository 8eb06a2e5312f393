"""Gradients of checkpoints, mapped and under other transformations, are those of the function.

Invariant: the references are finite differences or the same formula in numpy.
"""

import numpy as np

import plait
from plait import lax

pnp = plait.numpy


def block(x):
    for _ in range(20):
        x = lax.sin(x)
    return x


def np_block(x):
    for _ in range(20):
        x = np.sin(x)
    return x


def test_gradients_are_right():
    """Recomputing changes no number: derivatives against finite differences."""
    x, h = np.float64(0.9), 1e-4
    first = (np_block(x + h) - np_block(x - h)) / (2 * h)
    second = (np_block(x + h) - 2 * np_block(x) + np_block(x - h)) / h**2
    f = plait.checkpoint(block)
    at = pnp.asarray(x)
    np.testing.assert_allclose(plait.grad(f)(at), first, rtol=1e-6)
    np.testing.assert_allclose(plait.grad(plait.grad(f))(at), second, rtol=1e-5)
    np.testing.assert_allclose(plait.grad(plait.grad(plait.jit(f)))(at), second, rtol=1e-5)
    np.testing.assert_allclose(plait.jvp(plait.grad(f), (at,), (1.0,))[1], second, rtol=1e-5)
    np.testing.assert_allclose(plait.vmap(plait.grad(plait.grad(f)))(at[None]), [second], rtol=1e-5)
    summed = plait.grad(lambda v: plait.vmap(plait.grad(f))(v).sum())
    np.testing.assert_allclose(summed(at[None]), [second], rtol=1e-5)
