"""Arrays of numpy that programs close over are what they were when they were traced.

Invariant: writing to them later changes no result.
"""

import numpy as np
import pytest

import plait

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def test_array_changed_afterwards():
    """Constants are what they were when the rule ran: a numpy array is copied."""
    mutable = np.ones(2, np.float32)
    f = plait.jit(lambda x: x * mutable)
    np.testing.assert_array_equal(f(f32([1, 1])), [1, 1])
    mutable[:] = 7
    np.testing.assert_array_equal(f(f32([1, 1])), [1, 1])
    a = pnp.asarray(mutable)
    mutable[:] = 9
    np.testing.assert_array_equal(a, [7, 7])
    large = np.zeros(1 << 20, np.float32)
    b = pnp.asarray(large)
    large[0] = 7
    assert b[0].item() == 0
    with pytest.raises(ValueError):
        np.asarray(b)[1] = 9
