"""Donated arrays and numpy's own arrays and functions beside what is differentiated.

Invariant: nothing that a transformation carries is dropped silently.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import DeletedArrayError

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


ones = np.ones(4, np.float32)


# ---- donation --------------------------------------------------------------------------------


def test_captured_array_that_was_donated():
    """A compiled function whose closed-over array has been donated elsewhere: our error."""
    x = f32(ones)
    uses = plait.jit(lambda y: y + x)
    uses(f32(ones))
    plait.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    for call in (
        lambda: uses(f32(ones)),
        lambda: plait.jit(lambda y: y * x)(f32(ones)),
        lambda: plait.grad(lambda y: (y * x).sum())(f32(ones)),
        lambda: lax.scan(lambda c, _: (c + x, None), f32(ones), None, length=2),
        lambda: x + 1,
        lambda: np.asarray(x),
    ):
        with pytest.raises(DeletedArrayError):
            call()


# ---- numpy and tracers -----------------------------------------------------------------------


def test_numpy_operands_of_tracers():
    """numpy's arrays and scalars beside a tracer leave the operation to it."""
    assert plait.grad(lambda x: np.float64(2) * x)(f32(1)).item() == 2
    assert plait.grad(lambda x: (np.ones(2, np.float32) * x).sum())(f32(1)).item() == 2
    assert plait.grad(lambda x: np.ones(2, np.float32) @ pnp.stack([x, x]))(f32(1)).item() == 2
    assert plait.grad(lambda x: (np.ones(2, np.float32) - x).sum())(f32(1)).item() == -2

    def in_place(x):
        a = np.ones(2, np.float32)
        a += x
        return a.sum()

    try:
        assert plait.grad(in_place)(f32(1)).item() == 2
    except TypeError:
        pass
    assert plait.grad(lambda x: sum([x, x * x]))(f32(2)).item() == 5
    assert plait.grad(lambda x: max(x, 2.0 * x))(f32(1)).item() == 2
    assert plait.grad(lambda x: pnp.array([x, x]).sum())(f32(1)).item() == 2
    np.testing.assert_array_equal(plait.jit(lambda x: pnp.array([x, x]))(f32(1)), [1, 1])
