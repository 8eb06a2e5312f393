"""Sums over short axes in the form that CPUs compute fast, against numpy in long double.

Invariant: each program holds the form that is expected.
"""

import numpy as np
import pytest

import plait
from plait.ext.ops.reduction import reduce_sum
from plait.ext.values import from_numpy

SHAPES = [((3, 2, 16), 1), ((8, 5, 9), 0), ((2, 3, 7, 8), 2), ((5, 8), 0)]


def summed(axis):
    return lambda x: reduce_sum.bind(x, axes=(axis,))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape, axis", SHAPES)
def test_values(shape, axis, dtype):
    x = np.random.default_rng(axis).normal(size=shape).astype(dtype)
    f = plait.jit(summed(axis))
    got = np.asarray(f(x))
    want = x.astype(np.longdouble).sum(axis)
    bound = shape[axis] * np.finfo(dtype).eps * np.abs(x).astype(np.longdouble).sum(axis)
    assert got.dtype == dtype and (np.abs(got - want) <= bound).all()
    assert "stablehlo.reduce" not in f.lower(x).as_text()
    np.testing.assert_array_equal(np.asarray(summed(axis)(from_numpy(x))), got)
    with plait.config(cpu_forms=False):
        assert f.lower(x).as_text().count("stablehlo.reduce") == 1


def test_a_sum_of_negative_zeros_is_zero():
    got = np.asarray(plait.jit(summed(0))(np.full((2, 8), -0.0, np.float32)))
    assert (got == 0).all() and not np.signbit(got).any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_sum(value):
    x = np.ones((3, 2, 16), np.float32)
    x[1, 0, 4] = value
    got = np.asarray(plait.jit(summed(1))(x))
    np.testing.assert_array_equal(got, x.sum(1))


@pytest.mark.parametrize(
    "shape, axis, dtype",
    [
        ((3, 9, 16), 1, "float32"),  # a long axis
        ((16, 8), 1, "float32"),  # the last one
        ((3, 2, 1), 1, "float32"),  # short rows
        ((3, 2, 16), 1, "float16"),  # sums are wider
        ((3, 2, 16), 1, "int32"),
    ],
)
def test_others_stay(shape, axis, dtype):
    x = np.ones(shape, dtype)
    f = plait.jit(summed(axis))
    assert f.lower(x).as_text().count("stablehlo.reduce") == 1
    np.testing.assert_array_equal(np.asarray(f(x)), x.sum(axis))


def test_other_compilers_get_the_operation():
    f = plait.jit(summed(1))
    text = f.trace(np.ones((3, 2, 16), np.float32)).lower(lowering_platforms=("tpu",)).as_text()
    assert text.count("stablehlo.reduce") == 1
