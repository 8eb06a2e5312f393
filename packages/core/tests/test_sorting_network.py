"""Rows sorted by a network, against numpy's stable sort.

Invariant: elements repeat, floats hold nans and zeros of both signs, and the program has no sort of
the compiler's.
"""

import ml_dtypes
import numpy as np
import pytest

import plait
from plait.ext.ops.sorting import argsort, sort, sort_together

pytestmark = pytest.mark.full_tier

BF16 = np.dtype(ml_dtypes.bfloat16)


def drawn(dtype, shape, seed=0):
    r = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
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


def without_sort(f, *xs):
    """Compile a function; return its results and those of its operations alone."""
    lowered = plait.jit(f).lower(*xs)
    assert "stablehlo.sort" not in lowered.as_text()
    return lowered.compile()(*xs)


CASES = [
    ("float32", (700, 100), 1),
    ("int8", (2, 300, 128), -1),
    ("uint32", (250, 600), 0),
    ("float64", (33, 2048), 1),
    (BF16, (2, 900, 40), 1),
    ("int64", (9000, 8), 1),
]


@pytest.mark.parametrize(("dtype", "shape", "axis"), CASES)
def test_values(dtype, shape, axis):
    x = drawn(dtype, shape)
    got = without_sort(lambda x: sort(x, axis), x)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(plain(got), np.sort(plain(x), axis))
    assert np.asarray(sort(x, axis)).tobytes() == np.asarray(got).tobytes()


@pytest.mark.parametrize(("dtype", "shape", "axis"), CASES[:3])
@pytest.mark.parametrize("descending", [False, True])
def test_order(dtype, shape, axis, descending):
    x = drawn(dtype, shape)
    got = without_sort(lambda x: argsort(x, axis, descending=descending), x)
    want = np.argsort(np.flip(x, axis) if descending else x, axis, kind="stable")
    want = np.flip(x.shape[axis] - 1 - want, axis) if descending else want
    np.testing.assert_array_equal(np.asarray(got), want)


def test_several_keys():
    first, second = drawn("int16", (150, 500)), drawn("float32", (150, 500), 1)
    goods = np.arange(first.size, dtype="float64").reshape(first.shape)
    got = without_sort(lambda *xs: sort_together(xs, num_keys=2), first, second, goods)
    order = np.lexsort((second, first), axis=-1)
    for x, y in zip((first, second, goods), got):
        np.testing.assert_array_equal(np.asarray(y), np.take_along_axis(x, order, -1))


def test_other_rows():
    """Rows that are few, short or long are the compiler's, and so are all of them on request."""
    text = lambda *shape: plait.jit(sort).lower(np.zeros(shape, "f4")).as_text()  # noqa: E731
    for shape in ((16, 4096), (100, 100), (40, 16384), (1 << 17,)):
        assert "stablehlo.sort" in text(*shape)
    assert "stablehlo.sort" not in text(700, 100)
    with plait.config(cpu_forms=False):
        assert "stablehlo.sort" in text(700, 100)
