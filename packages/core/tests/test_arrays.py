"""Arrays beside Python numbers, and as keys.

Invariant: numpy says what is right.
"""

import numpy as np
import pytest

import plait

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


# ---- numbers that do not fit -----------------------------------------------------------------


def test_python_floats():
    """Floats round as numpy's do: to infinity where that is the nearest."""
    half = pnp.asarray(np.float16(1))
    assert (half * 70000.0).item() == np.inf
    assert (half * 70000.0).dtype == np.float16
    assert (pnp.asarray(True) + 1).dtype == np.int32
    assert (pnp.asarray(np.int8(7)) + 1).dtype == np.int8


# ---- numpy and tracers -----------------------------------------------------------------------


def test_comparison_and_hash():
    """Arrays compare elementwise, so they are not keys."""
    assert f32(1) in [f32(2), f32(1)]
    with pytest.raises(TypeError):
        {f32(1): 1}
