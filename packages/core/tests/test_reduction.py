"""Reductions against numpy: dtypes, axes, edge values, `initial`, `where`, empty arrays.

Invariant: what is compared with is computed by numpy, in float64 for floats that it lacks.
"""

import itertools
import math
import re

import ml_dtypes
import numpy as np
import pytest

import plait
from plait._core.array import asarray
from plait._ops import reduction as red
from plait._ops.argreduction import argmax, argmin
from plait._ops.reduction import (
    all_,
    any_,
    max_,
    mean,
    min_,
    prod,
    reduce_and,
    reduce_or,
    reduce_sum,
    reduce_xor,
    sum_,
)
from plait._xla.apart import kept_apart
from plait.errors import AxisError, ShapeError, TypeRule

BF16 = ml_dtypes.bfloat16
NAMES = ["bool", "int8", "int32", "int64", "uint32", "bfloat16", "float16", "float32", "float64",
         "complex64"]  # fmt: skip
REAL = [n for n in NAMES if n != "complex64"]
AXES = [None, 0, -1, (0, 2), (2, 1), (0, 1, 2), ()]
KEEP = ((False,), (False, True))
CASES = [(n, a) for n in NAMES for a in ((0, 2), None)] + [("float32", a) for a in AXES]


def dtype(name):
    return np.dtype(BF16) if name == "bfloat16" else np.dtype(name)


def sample(name, shape=(3, 4, 2), seed=0):
    """Small whole numbers, so that sums are exact in every dtype."""
    rng = np.random.default_rng(seed)
    d = dtype(name)
    low = 0 if d.kind in "bu" else -3
    x = rng.integers(low, 2 if d.kind == "b" else 4, shape)
    return (x + 1j * rng.integers(-3, 4, shape)).astype(d) if d.kind == "c" else x.astype(d)


def plain(x):
    """As numpy can compute with it."""
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.name in ("bfloat16", "float16") else x


def same(got, want):
    got = plain(got)
    np.testing.assert_array_equal(got, want)
    assert got.shape == np.shape(want)


SUM_DTYPES = {"bool": "int32", "int8": "int32"}


@pytest.mark.parametrize("name, axis", CASES)
def test_sum_and_prod(name, axis):
    x = sample(name)
    pairs = (sum_, np.sum), (prod, np.prod)
    for keep, (f, g) in itertools.product(KEEP[name == "float32"], pairs):
        wide = plain(x) if x.dtype.kind != "b" else x.astype(np.int32)
        got = f(x, axis, keepdims=keep)
        assert got.dtype == dtype(SUM_DTYPES.get(name, name))
        expected = g(wide, axis=axis, keepdims=keep)
        if f is prod and name == "int8":
            expected = g(x.astype(np.int32), axis=axis, keepdims=keep)
        np.testing.assert_allclose(plain(got), expected, rtol=1e-2 if name == "bfloat16" else 1e-6)
        assert got.shape == np.shape(expected)


@pytest.mark.parametrize("name, axis", CASES)
def test_extremes(name, axis):
    x = sample(name)
    for keep in KEEP[name == "float32"]:
        same(max_(x, axis, keepdims=keep), np.max(plain(x), axis=axis, keepdims=keep))
        same(min_(x, axis, keepdims=keep), np.min(plain(x), axis=axis, keepdims=keep))
        assert max_(x, axis).dtype == x.dtype


@pytest.mark.parametrize("name, axis", CASES)
def test_any_and_all(name, axis):
    x = sample(name)
    for keep in KEEP[name == "float32"]:
        same(any_(x, axis, keepdims=keep), np.any(plain(x), axis=axis, keepdims=keep))
        same(all_(x, axis, keepdims=keep), np.all(plain(x), axis=axis, keepdims=keep))


@pytest.mark.parametrize("name, axis", CASES)
def test_mean(name, axis):
    x = sample(name)
    got = mean(x, axis)
    assert got.dtype == (x.dtype if name in NAMES[5:] else np.float32)
    tolerance = {"bfloat16": 1e-2, "float16": 1e-3, "float64": 1e-12}.get(name, 1e-6)
    np.testing.assert_allclose(plain(got), np.mean(plain(x), axis=axis), rtol=tolerance, atol=1e-7)


PLACES = [(n, d) for n in (5, 100) for d in REAL] + [(n, "float32") for n in (1, 31, 32)]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("n, name", PLACES)
def test_places_of_extremes(name, n):
    """Both ways of computing them, by length of the axis; ties go to the first."""
    x = sample(name, (n, 3, 2), seed=n)
    for axis in (None, 0, -1):
        same(argmax(x, axis), np.argmax(plain(x), axis=axis))
        same(argmin(x, axis), np.argmin(plain(x), axis=axis))
        assert argmax(x, axis).dtype == np.int32
    same(argmax(x, 0, keepdims=True), np.argmax(plain(x), axis=0, keepdims=True))
    assert argmin(x, keepdims=True).shape == (1, 1, 1)


@pytest.mark.parametrize("n", [6, 64])
@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32", "float64"])
def test_edge_values(name, n):
    """nan is every extreme, the first one counts; infinities; -0.0 equals 0.0."""
    rows = np.zeros((5, n))
    rows[0, [2, 4]] = np.nan
    rows[1, 3], rows[1, 5] = np.inf, -np.inf
    rows[2] = -np.inf
    rows[3, [0, 2]] = -0.0
    rows[4] = np.inf
    x = rows.astype(dtype(name))
    for f, g in ((max_, np.max), (min_, np.min), (argmax, np.argmax), (argmin, np.argmin)):
        same(f(x, 1), g(rows, axis=1))
    with np.errstate(invalid="ignore"):
        same(sum_(x, 1), rows.sum(1))
    same(any_(x, 1), rows.any(1))


def test_complex_numbers_are_ordered_by_real_part_first():
    x = np.array([[1, 1j, 1 + 2j, -5j], [2, 2 - 1j, 2 + 1j, 0]], np.complex64)
    same(max_(x, 1), x.max(1))
    same(min_(x, 1), x.min(1))
    assert np.isnan(max_(np.array([1, complex(0, np.nan), 2], np.complex128)).item())
    with pytest.raises(TypeRule, match="argmax"):
        argmax(x)


def test_narrow_floats_are_summed_in_float32():
    for d in (BF16, np.float16):
        assert float(sum_(np.ones(10_000, d))) == float(np.asarray(10_000).astype(d))
        assert float(mean(np.ones(10_000, d))) == 1.0
    assert float(sum_(np.full(100, 1000.0, np.float16), dtype=np.float32)) == 100_000.0
    # the primitive itself too, which is what derivatives use
    assert float(reduce_sum.bind(asarray(np.ones(10_000, BF16)), axes=(0,))) > 9_000


def test_dtypes_of_sums():
    assert sum_(np.ones(3, np.uint8)).dtype == np.uint32
    assert sum_(np.ones(3, np.int64)).dtype == np.int64
    assert sum_(np.full(300, 100, np.int8)).item() == 30_000
    assert sum_(np.ones(3, np.int8), dtype=np.int8).dtype == np.int8
    assert sum_(np.ones(3, np.float32), dtype=np.float64).dtype == np.float64
    with plait.config(default_int="int64"):
        assert sum_(np.ones(3, np.int32)).dtype == np.int64
        assert sum_(np.ones(3, np.uint8)).dtype == np.uint64
        assert argmax(np.ones(3)).dtype == np.int64
    assert mean(np.arange(4), dtype=np.float16).dtype == np.float16


def test_empty():
    x = np.zeros((0, 3), np.float32)
    same(sum_(x, 0), x.sum(0))
    same(prod(x, 0), x.prod(0))
    same(any_(x), np.False_)
    same(all_(x), np.True_)
    same(sum_(x, 1), x.sum(1))
    same(max_(x, 1), np.zeros(0, np.float32))
    assert np.isnan(mean(x).item())
    for f in (max_, min_):
        with pytest.raises(ValueError, match="nothing to choose from"):
            f(x)
        with pytest.raises(ValueError, match="nothing to choose from"):
            f(x, 0)
    same(max_(x, 0, initial=-7.0), np.max(x, 0, initial=-7.0))
    for f in (argmax, argmin):
        with pytest.raises(ValueError, match="empty"):
            f(x, 0)
        assert f(x, 1).shape == (0,)


@pytest.mark.parametrize("name", REAL)
def test_neutral_elements(name):
    """An empty extreme is what every value of the dtype is at least, or at most."""
    x = asarray(np.zeros((0, 2), dtype(name)))
    most, least = (f.bind(x, axes=(0,)) for f in (red.reduce_min, red.reduce_max))
    if dtype(name).kind in "fV":
        assert np.isposinf(plain(most)).all() and np.isneginf(plain(least)).all()
    elif dtype(name).kind == "b":
        assert np.asarray(most).all() and not np.asarray(least).any()
    else:
        info = np.iinfo(name)
        assert (np.asarray(most) == info.max).all() and (np.asarray(least) == info.min).all()


def test_initial_and_where():
    x = sample("float32")
    keep = sample("bool", seed=1)
    same(sum_(x, 1, initial=3), x.sum(1, initial=3))
    same(prod(x, 1, initial=2), x.prod(1, initial=2))
    same(max_(x, 1, initial=1), x.max(1, initial=1))
    same(sum_(x, (0, 2), where=keep), x.sum((0, 2), where=keep))
    same(prod(x, 0, where=keep[0]), x.prod(0, where=keep[0]))
    same(min_(x, 0, where=keep, initial=9), x.min(0, where=keep, initial=9))
    same(any_(x, 0, where=keep), x.any(0, where=keep))
    same(all_(x, 0, where=keep), x.all(0, where=keep))
    with np.errstate(invalid="ignore", divide="ignore"):
        count = keep.sum(1)
        np.testing.assert_allclose(
            np.asarray(mean(x, 1, where=keep)), (x * keep).sum(1) / count, rtol=1e-6
        )
    with pytest.raises(ValueError, match="initial"):
        max_(x, where=keep)


@pytest.mark.parametrize("name", ["sum_", "prod", "max_", "min_", "any_", "all_"])
def test_initial_is_one_number(name):
    reduce, x = getattr(red, name), np.array([[0.0, 3.0], [2.0, 5.0]], np.float32)
    for start in (2.0, np.float32(2), np.array(2)):
        for keepdims in (False, True):
            got = reduce(x, 1, initial=start, keepdims=keepdims)
            assert got.shape == ((2, 1) if keepdims else (2,))
            same = np.append(x, [[2.0], [2.0]], 1).astype(np.float32)
            np.testing.assert_array_equal(got, reduce(same, 1, keepdims=keepdims))
    for start in (np.ones(2, np.float32), np.ones((1, 2, 2), np.float32), np.ones(1)):
        with pytest.raises(ShapeError, match="initial must be one number"):
            reduce(x, 1, initial=start)


def test_logic_of_integers():
    x = sample("int32")
    for axes in ((0,), (0, 2)):
        for p, f in ((reduce_and, np.bitwise_and), (reduce_or, np.bitwise_or),
                     (reduce_xor, np.bitwise_xor)):  # fmt: skip
            same(p.bind(asarray(x), axes=axes), f.reduce(x, axis=axes))
    empty = asarray(np.zeros(0, np.uint8))
    assert [p.bind(empty, axes=(0,)).item() for p in (reduce_and, reduce_or, reduce_xor)] == [
        255, 0, 0
    ]  # fmt: skip


def test_python_scalars_and_arrays_without_axes():
    assert sum_(3).item() == 3 and max_(2.5).item() == 2.5 and any_(2).item() is True
    assert argmax(np.float32(3)).item() == 0
    assert mean(True).item() == 1.0


def test_errors():
    x = sample("float32")
    for f in (sum_, max_, mean, any_):
        with pytest.raises(AxisError, match="axis 3 is out of range"):
            f(x, 3)
        with pytest.raises(AxisError, match="twice"):
            f(x, (0, 0))
    with pytest.raises(AxisError, match="counted from the front"):
        reduce_sum.bind(asarray(x), axes=(1, 0))
    with pytest.raises(TypeRule, match="do not fit in int8"):
        argmax(np.zeros(200), 0, index_dtype=np.int8)
    with pytest.raises(TypeRule, match="cannot hold an index"):
        argmax(x, 0, index_dtype=np.float32)
    with pytest.raises(TypeRule, match="reduce_sum is for"):
        reduce_sum.bind(asarray(np.ones(3, bool)), axes=(0,))


def test_inside_jit():
    x = sample("float32")
    f = plait.jit(lambda v: (sum_(v, 0), max_(v), argmin(v, 1), mean(v, (0, 2))))
    for got, want in zip(f(x), (x.sum(0), x.max(), x.argmin(1), x.mean((0, 2)))):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


EXTREMES = {"max": np.max, "min": np.min, "argmax": np.argmax, "argmin": np.argmin}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 128, 16), (2, 9000)], ids=str)
def test_nan_is_greatest_and_least_of_large_arrays(shape, dtype):
    """The compiler leaves the reductions of large arrays to a library."""
    x = np.zeros(shape, np.float32)
    x[1, 2] = np.nan
    x[0, 5] = np.inf
    cases = [(name, axis) for name in EXTREMES for axis in (None, 0, len(shape) - 1)]
    f = plait.jit(lambda x: [getattr(x.astype(dtype), name)(axis) for name, axis in cases])
    for got, (name, axis) in zip(f(x), cases):
        want = EXTREMES[name](x, axis)
        np.testing.assert_array_equal(np.asarray(got).astype(np.float64), want, f"{name} {axis}")


STEPS = [((9000,), None), ((4100,), 0), ((130, 67), 1), ((130, 67), (0, 1)), ((9, 21, 40), (0, 1)),
         ((6, 1003), 1), ((6, 1021), 1), ((6, 1000), None),
         ((9, 40, 21), (0, 2)), ((9, 40, 35), (0, 2)), ((70, 8, 8), (1, 2)), ((9, 1, 600), 2),
         ((600, 9, 1), (0, 2)), ((2, 5, 3, 300), (0, 2, 3)), ((600, 9), ())]  # fmt: skip


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_extremes_of_large_arrays(name):
    """Over all kinds of axes, which are reduced in steps; nan and the signs of zeros count."""
    rng = np.random.default_rng(0)
    f = plait.jit(lambda xs: [(max_(x, a), min_(x, a)) for x, (_, a) in zip(xs, STEPS)])
    for special in (None, np.nan, -0.0):
        xs = []
        for shape, _ in STEPS:
            x = np.zeros(shape) if special == 0 else rng.integers(-99, 99, shape) / 4
            if special is not None:
                x.flat[rng.integers(0, x.size, x.size // 90)] = special
                x.flat[[0, -1]] = special
            xs.append(x.astype(dtype(name)))
        for x, got, (shape, axis) in zip(xs, f(xs), STEPS):
            x = x.astype(np.float64)
            wants = np.max(x, axis=axis), np.min(x, axis=axis)
            got = [np.asarray(g).astype(np.float64) for g in got]
            for g, want in zip(got, wants):
                np.testing.assert_array_equal(g, want, f"{shape} {axis} {special}")
            if special == 0:
                minus = np.signbit(x)
                np.testing.assert_array_equal(np.signbit(got[0]), minus.all(axis))
                np.testing.assert_array_equal(np.signbit(got[1]), minus.any(axis))


def test_groups_of_the_longest_rows_are_found():
    """Without a search among as many sizes as there are elements."""
    x = plait.ShapeDtypeStruct((2**34,), np.float32)
    assert b"reduce" in kept_apart(plait.jit(lambda x: max_(x, 0)).lower(x).module().code, 1)


@pytest.mark.parametrize("n", [256, 300, 999, 1000, 1003, 1024, 2048, 4000])
@pytest.mark.parametrize("made", [lambda x: x, lambda x: x * 2.0 + 1.0], ids=["given", "computed"])
def test_extremes_of_rows_copy_nothing(n, made):
    """Slices in front of a reduction are copied: groups of neighbours divide the rows.  A reduction
    of more than 32 groups reads its operand from memory."""
    f = plait.jit(lambda x: max_(made(x), 1), tier="full")
    text = f.lower(np.zeros((100, n), np.float32)).compile().as_text()
    steps = text[text.index("ENTRY") :].splitlines()[1:]
    written = [math.prod(map(int, re.findall(r"\d+", s.split("[")[1].split("]")[0])))
               for s in steps if " fusion(" in s]  # fmt: skip
    assert written and max(written) <= 100 * n // 4


def test_nan_is_greatest_outside_of_jit():
    x = np.zeros((2, 9000), np.float32)
    x[1, 2] = np.nan
    np.testing.assert_array_equal(np.asarray(max_(x, 1)), [0, np.nan])
