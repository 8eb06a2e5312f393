"""Arrays beside Python numbers, and as keys.

Invariant: numpy says what is right.
"""

import ml_dtypes
import numpy as np
import pytest

import plait
from plait.errors import DeletedArrayError
from plait.ext.values import from_numpy

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


@pytest.mark.parametrize("dtype", ["float32", "bool", "complex128", "bfloat16", "int4"])
def test_views_of_numpy(dtype):
    """numpy reads all dtypes in place: its own by a struct, others by `__array__`."""
    want = np.arange(6).reshape(2, 3).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    x = from_numpy(want)
    view = np.asarray(x)
    assert view.dtype == want.dtype and not view.flags.writeable
    assert np.shares_memory(view, np.asarray(x)) and not np.shares_memory(view, np.array(x))
    np.testing.assert_array_equal(view, want)
    assert hasattr(x, "__array_struct__") == (dtype not in ("bfloat16", "int4"))
    x.delete()
    with pytest.raises(DeletedArrayError, match="donated or deleted"):
        np.asarray(x)
