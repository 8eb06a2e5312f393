"""Sorting against numpy: every dtype, nans and zeros, ties, several keys; the greatest elements.

Invariant: what is compared with is numpy's stable sort, in float32 for dtypes that it lacks.
"""

import ml_dtypes
import numpy as np
import pytest

import plait
from plait._core.array import asarray
from plait._ops.sorting import argsort, sort, sort_, sort_together, top_k
from plait.errors import AxisError, TypeRule

FLOATS = ["float16", "float32", "float64", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
          ml_dtypes.float8_e5m2]  # fmt: skip
WHOLE = ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", ml_dtypes.int4]
COMPLEX = ["complex64", "complex128"]


def sample(name, shape=(3, 40)):
    """With many ties; floats with nans of both signs, infinities and zeros of both signs."""
    d = np.dtype(name)
    rng = np.random.default_rng(0)
    x = rng.integers(0 if d.kind in "bu" else -4, 5, shape)
    if d.kind in "iu" and d.itemsize >= 4:
        x = x * (np.iinfo(d).max // 4)  # the ends of its range too
    if d.kind == "b" or "int" in d.name:
        return x.astype(d)
    x = x.astype(np.complex128 if d.kind == "c" else np.float64)
    if d.kind == "c":
        x.imag = rng.integers(-2, 3, shape)
    flat = x.reshape(-1)
    flat[[5, 6, 50]], flat[[9, 77]] = -0.0, np.nan
    flat[12] = -np.nan
    if d.itemsize > 1:
        flat[7], flat[44] = np.inf, -np.inf
    if d.kind == "c":
        flat[[14, 15, 16]] = complex(1, np.nan), complex(np.nan, -1), complex(-3, np.nan)
    with np.errstate(all="ignore"):
        return x.astype(d)


def plain(x):
    """As numpy sorts it rightly."""
    x = np.asarray(x)
    return x if x.dtype.name in ("bool", *WHOLE, *FLOATS[:3], *COMPLEX) else x.astype(np.float32)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", [*WHOLE, *FLOATS, *COMPLEX])
def test_sort_and_argsort(name):
    x = sample(name)
    for axis in (0, -1, None):
        got = sort(x, axis)
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(plain(got), np.sort(plain(x), axis))
        order = argsort(x, axis)
        assert order.dtype == np.int32
        np.testing.assert_array_equal(np.asarray(order), np.argsort(plain(x), axis, kind="stable"))


@pytest.mark.parametrize("name", ["int32", "float32", "float64", "complex64"])
def test_descending(name):
    x = sample(name)
    ascending = np.sort(plain(x), -1)
    np.testing.assert_array_equal(np.asarray(sort(x, descending=True)), ascending[:, ::-1])
    # of equal elements the first comes first
    n = x.shape[-1]
    want = n - 1 - np.argsort(plain(x)[:, ::-1], -1, kind="stable")[:, ::-1]
    np.testing.assert_array_equal(np.asarray(argsort(x, descending=True)), want)


@pytest.mark.parametrize("name", ["int8", "float32", "float64", "complex128"])
def test_what_goes_along(name):
    """Bits of keys are kept; ties stay in their order."""
    x = sample(name)
    goods = np.arange(x.size, dtype=np.float64).reshape(x.shape)
    keys, moved, third = sort_together([x, goods, -goods], axis=1)
    order = np.argsort(x, 1, kind="stable")
    want = np.take_along_axis(x, order, 1)
    np.testing.assert_array_equal(np.asarray(keys), want)
    np.testing.assert_array_equal(np.signbit(np.asarray(keys).real), np.signbit(want.real))
    np.testing.assert_array_equal(np.asarray(moved), np.take_along_axis(goods, order, 1))
    np.testing.assert_array_equal(np.asarray(third), np.take_along_axis(-goods, order, 1))


def test_several_keys():
    rng = np.random.default_rng(0)
    a, c = rng.integers(0, 3, 500), rng.integers(0, 9, 500).astype(np.int8)
    b = rng.integers(0, 4, 500).astype(np.float64)
    b[::7] = np.nan
    z = rng.integers(0, 3, 500) + 1j * rng.integers(0, 3, 500)
    for keys in ((a, b), (b, a), (a, b, c), (b, z, a), (z, b)):
        got = sort_together([*keys, np.arange(500)], num_keys=len(keys))
        np.testing.assert_array_equal(np.asarray(got[-1]), np.lexsort(keys[::-1]))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("along", [0, 1], ids=["alone", "with values"])
@pytest.mark.parametrize("second", ["bool", "int8", "uint32", "int32", "float16", "float32"])
@pytest.mark.parametrize("first", ["bool", "uint8", "uint32", "int32", "float32"])
def test_pairs_of_small_keys(first, second, along):
    """Extremes, infinities, nans; of zeros that are equal it is the second key that decides."""
    rng = np.random.default_rng(0)
    a, b = few_of(first, (3, 40), rng), few_of(second, (3, 40), rng)
    got = sort_together([a, b, *[np.arange(120).reshape(3, 40)] * along], axis=1, num_keys=2)
    order = np.lexsort((b, a), axis=1)
    for g, x in zip(got, (a, b)):
        want = np.take_along_axis(x, order, 1)
        assert g.dtype == want.dtype
        np.testing.assert_array_equal(np.asarray(g), want)
    if along:
        want = order + 40 * np.arange(3)[:, None]
        np.testing.assert_array_equal(np.asarray(got[2]), want)


def few_of(name, shape, rng):
    dtype = np.dtype(name)
    if dtype.kind == "f":
        values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0]
    elif dtype.kind == "b":
        values = [False, True]
    else:
        lo, hi = np.iinfo(dtype).min, np.iinfo(dtype).max
        values = [lo, lo + 1, 0, 1, hi // 2, hi - 1, hi]
    return rng.choice(np.array(values, dtype), shape)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_elements(n):
    x = np.arange(n, dtype=np.float32)[::-1].copy()
    np.testing.assert_array_equal(np.asarray(sort(x)), np.sort(x))
    np.testing.assert_array_equal(np.asarray(argsort(x)), np.argsort(x))
    for y in (np.zeros((n, 3), np.int64), np.zeros((3, n), np.int8)):
        got = argsort(y, 0)
        np.testing.assert_array_equal(np.asarray(got), np.argsort(y, 0, kind="stable"))
        assert top_k(y, min(1, y.shape[1]))[0].shape == (y.shape[0], min(1, y.shape[1]))
    values, indices = top_k(x, n)
    np.testing.assert_array_equal(np.asarray(values), np.sort(x)[::-1])
    assert indices.dtype == np.int32


@pytest.mark.parametrize("name", ["bool", "int8", "uint32", "int64", *FLOATS])
def test_top_k(name):
    x = sample(name)
    ref = plain(x)
    n = x.shape[-1]
    # descending, nan first of all, ties in their order
    order = n - 1 - np.argsort(ref[:, ::-1], -1, kind="stable")[:, ::-1]
    for k in (0, 1, 5, n):
        values, indices = top_k(x, k)
        np.testing.assert_array_equal(np.asarray(indices), order[:, :k])
        want = np.take_along_axis(ref, order[:, :k], -1)
        np.testing.assert_array_equal(plain(values), want)
        assert values.dtype == x.dtype
    values, indices = top_k(x.T, 3, axis=0)
    np.testing.assert_array_equal(np.asarray(indices), order[:, :3].T)


def test_inside_jit_and_methods():
    x = sample("float32")
    f = plait.jit(lambda v: (sort(v, 0), argsort(v), top_k(v, 2)))
    a, b, (c, _) = f(x)
    np.testing.assert_array_equal(np.asarray(a), np.sort(x, 0))
    np.testing.assert_array_equal(np.asarray(b), np.argsort(x, -1, kind="stable"))
    assert c.shape == (3, 2)
    np.testing.assert_array_equal(np.asarray(asarray(x).sort()), np.sort(x))
    np.testing.assert_array_equal(np.asarray(asarray(x).argsort()), np.argsort(x, kind="stable"))


def test_on_other_platforms_than_cpu_keys_are_not_packed():
    from plait._core.staging import staged
    from plait._types.avals import aval_for
    from plait._xla.mlir import text
    from plait._xla.module import module_of

    p = staged(lambda v: [argsort(v)], [aval_for((8,), "float32")])
    counts = [
        text(module_of(p, platforms=platforms).code).count("i64>) -> tensor<8xi64>")
        for platforms in (("cpu",), ("cuda",))
    ]
    assert counts[0] and not counts[1]


def test_errors():
    x = asarray(np.ones((2, 3)))
    with pytest.raises(AxisError, match="axis 2 is out of range"):
        sort(x, 2)
    with pytest.raises(AxisError, match="out of range"):
        argsort(np.float32(1))
    with pytest.raises(TypeRule, match="cannot be sorted together"):
        sort_together([x, np.ones(3)])
    with pytest.raises(TypeRule, match="by 3 keys of 1 operands"):
        sort_together([x], num_keys=3)
    with pytest.raises(TypeRule, match="nothing|operands"):
        sort_together([])
    with pytest.raises(TypeRule, match="no 4 greatest of 3"):
        top_k(x, 4)
    with pytest.raises(TypeRule, match="no -1 greatest"):
        top_k(x, -1)
    with pytest.raises(TypeRule, match="top_k is for"):
        top_k(np.ones(3, np.complex64), 1)
    with pytest.raises(AxisError, match="counted from the front"):
        sort_.bind(x, axis=-1, num_keys=1, stable=True)
