"""What libraries read of JAX's functions where Plait's own give, or take, less.

Invariant: the other side is numpy, or ml_dtypes by numpy's methods.
"""

import copy
import pickle

import numpy as np
import pytest

from plait_jax import lenient


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn"])
def test_numbers_of_finfo_are_scalars_of_the_dtype(dtype):
    info = lenient.finfo(dtype)
    for name in ("max", "min", "eps", "tiny"):
        got = getattr(info, name)
        assert isinstance(got, np.generic) and got.dtype == info.dtype == np.dtype(dtype)
        assert got.astype("float64").dtype == np.float64
    if dtype in ("float16", "float32", "float64"):
        want = np.finfo(dtype)
        assert (info.max, info.min, info.eps, info.tiny) == (
            want.max, want.min, want.eps, want.tiny
        )  # fmt: skip
        assert info.bits == want.bits and isinstance(info.bits, int)
    for other in (copy.copy(info), pickle.loads(pickle.dumps(info))):
        assert other.max == info.max
    assert str(info.dtype) in repr(info)
    with pytest.raises(AttributeError):
        info.no_such_number


def test_of_complex_numbers_it_is_that_of_their_parts():
    assert lenient.finfo("complex64").eps.dtype == np.float32


def test_bounds_with_more_axes_than_the_shape(jax):
    key = jax.random.PRNGKey(0)
    plain = float(jax.random.uniform(key))
    for shape in ((1,), (1, 1)):
        low = np.full(shape, 2, np.float32)
        got = jax.random.uniform(key, (), np.float32, low, low + 1)
        np.testing.assert_allclose(got, np.full(shape, 2 + plain), rtol=1e-6)
    with pytest.raises(TypeError):
        jax.random.uniform(key, (), np.float32, np.zeros(3), np.ones(3))
