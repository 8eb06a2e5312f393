"""Rows sorted by numpy within compiled programs, against numpy's stable sort.

Invariant: elements repeat, floats hold nans and zeros of both signs, and the program has no sort of
the compiler's.
"""

import ml_dtypes
import numpy as np
import pytest

import plait
from plait.ext.ops.sorting import argsort, sort, sort_together

BF16 = np.dtype(ml_dtypes.bfloat16)


def drawn(dtype, shape, seed=0):
    r = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return r.random(shape) < 0.3
    if dtype.kind in "iu":
        ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1], dtype)
        values = r.integers(0, min(shape[-1], 100), shape).astype(dtype)
        return np.where(r.random(shape) < 0.1, r.choice(ends, shape), values)
    values = np.round(r.normal(size=shape) * 9).astype(dtype)
    odd = r.choice(np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], dtype), shape)
    return np.where(r.random(shape) < 0.1, odd, values)


def plain(x):
    x = np.asarray(x)
    return x.astype(np.float32) if x.dtype == BF16 else x


def by_numpy(f, *xs):
    """Compile a function; return its results and those of its operations alone."""
    lowered = plait.jit(f).lower(*xs)
    assert "stablehlo.sort" not in lowered.as_text()
    assert '"numpy.' in lowered.as_text()
    return lowered.compile()(*xs)


CASES = [
    ("float32", (700, 100), 1),
    ("float32", (5000,), 0),
    ("int8", (2, 300, 128), -1),
    ("uint8", (1 << 17,), 0),
    ("bool", (70, 80), 1),
    ("int16", (40, 200, 3), 1),
    ("uint32", (250, 600), 0),
    ("float64", (33, 2048), 1),
    ("uint64", (3, 3000), 1),
    (BF16, (2, 900, 40), 1),
    ("int64", (9000, 8), 1),
    ("float32", (1, 1, 4096, 1), 2),
    ("int32", (4096, 1), 1),
]


@pytest.mark.parametrize(("dtype", "shape", "axis"), CASES)
def test_values(dtype, shape, axis):
    x = drawn(dtype, shape)
    got = by_numpy(lambda x: sort(x, axis), x)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(plain(got), np.sort(plain(x), axis))
    with plait.config(cpu_forms=False):
        assert np.asarray(sort(x, axis)).tobytes() == np.asarray(got).tobytes()


@pytest.mark.parametrize(("dtype", "shape", "axis"), CASES)
@pytest.mark.parametrize("descending", [False, True])
def test_order(dtype, shape, axis, descending):
    x = drawn(dtype, shape)
    got = by_numpy(lambda x: argsort(x, axis, descending=descending), x)
    y = plain(np.flip(x, axis) if descending else x)
    want = np.argsort(y, axis, kind="stable")
    want = np.flip(x.shape[axis] - 1 - want, axis) if descending else want
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("kinds", ["int16 float32", "float64 int8", "uint64 float64", "bool int64"])
def test_several_keys(kinds):
    first, second = (drawn(k, (15, 500), i) for i, k in enumerate(kinds.split()))
    goods = np.arange(first.size, dtype="float64").reshape(first.shape)
    got = by_numpy(lambda *xs: sort_together(xs, num_keys=2), first, second, goods)
    order = np.lexsort((second, first), axis=-1)
    for x, y in zip((first, second, goods), got):
        np.testing.assert_array_equal(np.asarray(y), np.take_along_axis(x, order, -1))


def test_orders_of_distinct_and_of_equal_numbers():
    distinct = np.random.default_rng(0).permutation(6000) * 1.0
    for x in (distinct, np.zeros((2, 3000)), -np.zeros(5000)):
        np.testing.assert_array_equal(by_numpy(argsort, x), np.argsort(x, kind="stable"))


def test_few_elements_and_others():
    """Few elements and complex ones are the compiler's, and so are all of them on request."""
    text = lambda x: plait.jit(sort).lower(x).as_text()  # noqa: E731
    assert "stablehlo.sort" in text(np.zeros(4095, "f4"))
    assert "stablehlo.sort" in text(np.zeros(5000, "c8"))
    assert "stablehlo.sort" not in text(np.zeros(4096, "f4"))
    with plait.config(cpu_forms=False):
        assert "stablehlo.sort" in text(np.zeros(4096, "f4"))
    with plait.config(cpu_limits={"sort.fewest": 10**6}):
        assert "stablehlo.sort" in text(np.zeros(4096, "f4"))
