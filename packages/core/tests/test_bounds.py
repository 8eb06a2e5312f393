"""Python integers that a dtype does not hold are refused, as numpy refuses them, and compared."""

import numpy as np
import pytest

import plait
from plait.errors import OutOfBounds

pnp = plait.numpy
CASES = [("int8", 300), ("int8", -129), ("uint8", -1), ("uint8", 256), ("int16", 40000),
         ("uint16", -1), ("uint32", -1), ("uint64", -1)]  # fmt: skip


@pytest.mark.parametrize(("dtype", "n"), CASES)
def test_arithmetic_refuses(dtype, n):
    x = np.array([1, 2], dtype)
    for f in (
        lambda a, m: a + n,
        lambda a, m: n - a,
        lambda a, m: a * n,
        lambda a, m: a // n,
        lambda a, m: m.maximum(a, n),
        lambda a, m: m.full(3, n, dtype),
    ):
        with pytest.raises(OverflowError):
            f(x, np)
        for g in (f, lambda a, m, f=f: plait.jit(lambda v: f(v, m))(a)):
            with pytest.raises(OutOfBounds, match=f"{n} does not fit in {dtype}"):
                g(pnp.asarray(x), pnp)


@pytest.mark.parametrize(("dtype", "n"), CASES)
def test_comparisons_answer(dtype, n):
    x = np.array([1, 2], dtype)
    for f in (
        lambda a: a == n,
        lambda a: a != n,
        lambda a: a < n,
        lambda a: n <= a,
        lambda a: a > n,
        lambda a: a >= n,
    ):
        np.testing.assert_array_equal(f(pnp.asarray(x)), f(x))
        np.testing.assert_array_equal(plait.jit(f)(x), f(x))


def test_what_fits_stays():
    for dtype, n in (("int8", -128), ("uint8", 255), ("int16", -300), ("uint32", 2**31 - 1)):
        x = np.array([0, 0], dtype)
        got = pnp.asarray(x) + n
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, x + n)
    assert (pnp.ones(2, "int8") + 300.0).dtype == np.float32  # a float is of another kind
