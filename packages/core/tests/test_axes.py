"""Axes and indices that an array does not have are refused where they are written.

Invariant: numpy says what is right; nothing is taken modulo the rank.
"""

import numpy as np
import pytest

import plait
from plait.errors import SubscriptError
from plait.ext.errors import AxisError

pnp = plait.numpy

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def test_axis_twice():
    """The same axis by two names."""
    for f in (lambda x: x.sum(axis=(0, 0)), lambda x: x.sum(axis=(1, -1))):
        with pytest.raises(AxisError):
            f(f32(X))


# ---- indices ---------------------------------------------------------------------------------


def test_static_index_out_of_range():
    """What is known to be out of range is an error, as it is for numpy."""
    for f in (lambda x: x[0, 3], lambda x: x[2], lambda x: x[0][-4]):
        with pytest.raises(SubscriptError):
            f(f32(X))
        with pytest.raises(SubscriptError):
            plait.jit(f)(f32(X))
