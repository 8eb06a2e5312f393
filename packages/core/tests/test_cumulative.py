"""Running sums and their kin against numpy's `accumulate`; recurrences against a Python loop.

Invariant: each way of computing them (row after row, as a tree, as a scan) is compared with the
same reference.
"""

import ml_dtypes
import numpy as np
import pytest

import plait
from plait._core.array import asarray
from plait._ops import cumulative as cum
from plait._ops.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum, linear_recurrence
from plait.errors import AxisError, TypeRule

BF16 = ml_dtypes.bfloat16
SHAPES = [((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 1, 4), 1), ((1,), 0), ((2, 3, 8), 2)]
EMPTY = [((0, 3), 0), ((3, 0), 0), ((0,), 0)]
KINDS = {
    "cumsum": (cumsum, np.add),
    "cumprod": (cumprod, np.multiply),
    "cummax": (cummax, np.maximum),
    "cummin": (cummin, np.minimum),
    "cumlogsumexp": (cumlogsumexp, np.logaddexp),
}


def accumulated(ufunc, x, axis, reverse):
    x = np.flip(x, axis) if reverse else x
    out = ufunc.accumulate(x, axis) if x.size else x
    return np.flip(out, axis) if reverse else out


def recurrence_by_loop(a, u, axis, reverse):
    a, u = (np.moveaxis(v, axis, 0) for v in (a, u))
    out, y = np.zeros_like(u), np.zeros_like(u[:1]).sum(0)
    for i in range(len(u))[:: -1 if reverse else 1]:
        y = a[i] * y + u[i]
        out[i] = y
    return np.moveaxis(out, 0, axis)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_against_accumulate(name, reverse):
    f, ufunc = KINDS[name]
    for shape, axis in SHAPES + EMPTY:
        x = np.random.default_rng(0).normal(size=shape)
        got = f(x, axis=axis, reverse=reverse)
        want = accumulated(ufunc, x, axis, reverse)
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)
        assert got.dtype == x.dtype and got.shape == shape


@pytest.mark.sampled(10)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("way", [cum.tree, cum._as_scan])
def test_the_other_ways(way, reverse):
    for name, (_, ufunc) in KINDS.items():
        for shape, axis in SHAPES:
            x = np.random.default_rng(1).normal(size=shape)
            got = way(getattr(cum, name + "_"), [asarray(x)], axis, reverse)
            want = accumulated(ufunc, x, axis, reverse)
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)
    a, u = np.random.default_rng(2).normal(size=(2, 3, 6))
    got = way(cum.recurrence, [asarray(a), asarray(u)], 1, reverse)
    np.testing.assert_allclose(np.asarray(got), recurrence_by_loop(a, u, 1, reverse), rtol=1e-12)


@pytest.mark.parametrize("name", ["int8", "int32", "int64", "uint32", "float16", "float32",
                                  "complex64", BF16])  # fmt: skip
def test_dtypes(name):
    d = np.dtype(name)
    x = np.array([[2, 1, 0, 3, 1], [1, 3, 2, 2, 0]]).astype(d)
    wide = x.astype(np.float64) if d.kind not in "iuc" else x
    for f, ufunc in ((cumsum, np.add), (cumprod, np.multiply)):
        got = f(x, axis=1, dtype=d)
        assert got.dtype == d
        np.testing.assert_array_equal(np.asarray(got).astype(wide.dtype), ufunc.accumulate(wide, 1))
    if d.kind == "c":
        with pytest.raises(TypeRule, match="cummax is for"):
            cummax(x)
        return
    for f, ufunc in ((cummax, np.maximum), (cummin, np.minimum)):
        np.testing.assert_array_equal(
            np.asarray(f(x, 1)).astype(wide.dtype), ufunc.accumulate(wide, 1)
        )


def test_dtypes_of_sums_and_flattening():
    x = np.array([[True, False], [True, True]])
    assert cumsum(x).dtype == np.int32
    np.testing.assert_array_equal(np.asarray(cumsum(x)), np.cumsum(x))
    np.testing.assert_array_equal(np.asarray(cumprod(x, 0)), np.cumprod(x, 0))
    assert cumsum(np.full(300, 100, np.int8)).dtype == np.int32
    assert cumsum(np.ones(3, np.uint8)).dtype == np.uint32
    assert cumsum(np.ones(3, np.float32), dtype=np.float64).dtype == np.float64
    np.testing.assert_array_equal(np.asarray(cummax(x)), np.maximum.accumulate(x, 0))


def test_narrow_floats_are_accumulated_in_float32():
    for d in (BF16, np.float16):
        assert float(np.asarray(cumsum(np.ones(3000, d)))[-1]) == float(np.asarray(3000).astype(d))


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_edge_values(name):
    x = np.array([0.0, -0.0, 1, np.inf, 2, -np.inf, 3, np.nan, 4]).astype(name)
    with np.errstate(all="ignore"):
        for f, ufunc in KINDS.values():
            got, want = np.asarray(f(x, axis=0)), accumulated(ufunc, x, 0, False)
            np.testing.assert_allclose(got, want, rtol=2e-3 if name == "float16" else 1e-6)
        x = np.array([-np.inf, -np.inf, 0, 1]).astype(name)
        want = np.array([-np.inf, -np.inf, 0, np.log(1 + np.e)])
        tolerance = 1e-3 if name == "float16" else 1e-6
        np.testing.assert_allclose(np.asarray(cumlogsumexp(x)), want, rtol=tolerance)


@pytest.mark.parametrize("reverse", [False, True])
def test_linear_recurrence(reverse):
    rng = np.random.default_rng(0)
    for shape, axis in SHAPES:
        a, u = rng.normal(size=(2, *shape))
        got = linear_recurrence(a, u, axis, reverse)
        np.testing.assert_allclose(
            np.asarray(got), recurrence_by_loop(a, u, axis, reverse), rtol=1e-10
        )
    a, u = rng.normal(size=(4, 1)), rng.normal(size=3).astype(np.float32)
    want = recurrence_by_loop(*np.broadcast_arrays(a, u.astype(np.float64)), 0, reverse)
    np.testing.assert_allclose(np.asarray(linear_recurrence(a, u, 0, reverse)), want, rtol=1e-10)


def test_large():
    x = np.random.default_rng(0).normal(size=100_000)
    np.testing.assert_allclose(np.asarray(cumsum(x)), np.cumsum(x), rtol=1e-9, atol=1e-9)


def test_inside_jit_and_errors():
    x = np.random.default_rng(0).normal(size=(3, 4))
    out = plait.jit(lambda v: cumsum(v, 1, reverse=True))(x)
    np.testing.assert_allclose(np.asarray(out), accumulated(np.add, x, 1, True), rtol=1e-12)
    with pytest.raises(AxisError, match="axis 2 is out of range"):
        cumsum(x, 2)
    with pytest.raises(AxisError, match="out of range"):
        cummax(np.float32(1))
    with pytest.raises(AxisError, match="counted from the front"):
        cum.cumsum_.bind(asarray(x), axis=-1, reverse=False)
    with pytest.raises(TypeRule, match="cumlogsumexp is for floating"):
        cumlogsumexp(np.arange(3))
