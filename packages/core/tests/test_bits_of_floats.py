"""Parts of floats, of every kind of number, subnormal ones among them.

Invariant: the truth is numpy's, bit by bit; numbers are taken as bits, so that none is left out.
"""

import numpy as np
import pytest

import plait

jnp = plait.numpy


def numbers(dtype):
    """All of 16 bits; of others random bits, and subnormal numbers of both signs."""
    size = np.dtype(dtype).itemsize * 8
    if size == 16:
        return np.arange(2**16, dtype=np.uint16).view(dtype)
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**64, 500, dtype=np.uint64) >> np.uint64(64 - size)
    small = rng.integers(0, 2**64, 200, dtype=np.uint64) >> rng.integers(
        66 - size // 2, 63, 200, dtype=np.uint64
    )
    minus = np.uint64(1 << (size - 1))
    bits = np.concatenate([bits, small, small | minus, np.arange(4, dtype=np.uint64), [minus]])
    return bits.astype(f"uint{size}").view(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_mantissas_and_exponents(dtype):
    dtype = np.dtype(plait.dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    x = numbers(dtype)
    with np.errstate(all="ignore"):
        want, power = np.frexp(x.astype(np.float32) if dtype.itemsize == 2 else x)
    for frexp in (jnp.frexp, plait.jit(jnp.frexp)):
        mantissa, exponent = (np.asarray(v) for v in frexp(x))
        assert mantissa.dtype == dtype
        finite = np.isfinite(want)
        with np.errstate(invalid="ignore"):  # there are signalling nans
            np.testing.assert_array_equal(mantissa.astype(np.float64), want.astype(np.float64))
        np.testing.assert_array_equal(exponent[finite], power[finite])
        assert (exponent[~finite] == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_to_the_next_number(dtype):
    x = numbers(dtype)
    with np.errstate(all="ignore"):
        want = np.spacing(x)
    for spacing in (jnp.spacing, plait.jit(jnp.spacing)):
        got = np.asarray(spacing(x))
        np.testing.assert_array_equal(got, want)
        assert (np.signbit(got) == (x < 0))[~np.isnan(want)].all()


def test_signs_of_zeros():
    x = np.float32([-0.0, 0.0, -2, 3, np.nan])
    for sign in (jnp.sign, plait.jit(jnp.sign), plait.lax.sign):
        got = np.asarray(sign(x))
        np.testing.assert_array_equal(got, np.sign(x))
        assert np.signbit(got)[:4].tolist() == [True, False, True, False]
