"""Images, grids, codes, integrals and segments against scipy and loops.

Invariant: scipy, or a Python loop, says what is right.
"""

import doctest

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.interpolate
import scipy.ndimage

import plait
import plait.ops as ops
from plait.errors import AxisError, ConcretizationError, TypeRule
from plait.scipy import integrate, interpolate, ndimage
from plait.scipy.cluster import codes, vq
from plait_numpy import ops as segments

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5))
MODES = {"constant": "grid-constant", "nearest": "nearest", "wrap": "grid-wrap",
         "mirror": "mirror", "reflect": "reflect"}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_places_between_pixels(mode):
    places = [RNG.uniform(-9, 12, size=(7, 2)) for _ in range(2)]
    for order in (0, 1):
        want = scipy.ndimage.map_coordinates(X, places, order=order, mode=MODES[mode], cval=2.5)
        got = ndimage.map_coordinates(X, places, order, mode, cval=2.5)
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12, atol=1e-12)
    whole = np.rint(X * 10).astype(np.int32)
    got = ndimage.map_coordinates(whole, places, 1, mode)
    assert got.dtype == np.int32


def test_errors_of_images():
    with pytest.raises(TypeRule, match="order 3"):
        ndimage.map_coordinates(X, [X, X], 3)
    with pytest.raises(TypeRule, match="no mode"):
        ndimage.map_coordinates(X, [X, X], 1, "around")
    with pytest.raises(AxisError, match="1 coordinates"):
        ndimage.map_coordinates(X, [X], 1)


POINTS = np.array([0.0, 1, 3]), np.array([0.0, 2, 3, 7])


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_functions_on_grids(method):
    values, places = RNG.normal(size=(3, 4, 2)), RNG.uniform(-1, 8, size=(6, 2))
    run = plait.jit(lambda f, x, y: f((x, y)))
    for fill in (np.nan, None, 1.0):
        ours = interpolate.RegularGridInterpolator(POINTS, values, method, fill_value=fill)
        theirs = scipy.interpolate.RegularGridInterpolator(POINTS, values, method, False, fill)  # type: ignore
        got = run(ours, places[:, 0], places[:, 1])
        np.testing.assert_allclose(np.asarray(got), theirs(places), rtol=1e-12)
    with pytest.raises(AxisError, match="a grid of 2 axes"):
        ours(places[:, :1])
    with pytest.raises(AxisError, match="vectors of points"):
        interpolate.RegularGridInterpolator(POINTS, values[:2])
    with pytest.raises(TypeRule, match="bounds_error"):
        interpolate.RegularGridInterpolator(POINTS, values, bounds_error=True)


def test_codes_and_integrals():
    book = X[:2] + 0.1
    for obs, codebook in ((X, book), (X[:, 0], book[:, 0])):
        want = scipy.cluster.vq.vq(obs, codebook)
        got = vq.vq(obs, codebook)
        np.testing.assert_array_equal(np.asarray(got[0]), want[0])
        np.testing.assert_allclose(np.asarray(got[1]), want[1], rtol=1e-12, atol=1e-12)
    with pytest.raises(AxisError):
        vq.vq(X, book[:, :2])
    np.testing.assert_allclose(float(integrate.trapezoid(X[0])), np.trapezoid(X[0]))


# ---- segments ------------------------------------------------------------------------------

FOLDS = {"segment_sum": (np.add, 0), "segment_prod": (np.multiply, 1),
         "segment_max": (np.maximum, -np.inf), "segment_min": (np.minimum, np.inf)}  # fmt: skip


@pytest.mark.parametrize("name", FOLDS)
def test_segments(name):
    """Also those without rows, at the beginning, in the middle and at the end."""
    ours = getattr(ops, name)
    run = plait.jit(lambda x, i: (ours(x, i, 5), ours(x, i, 5, bucket_size=3)))
    for ids in ([0, 1, 0, 3], [3, 3, 2, 0], [-1, 7, 2, 2], [0, 0, 0, 0]):
        f, neutral = FOLDS[name]
        _check_segments(run, f, neutral, ids)
    assert ours(X, np.array([0, 2, 1, 0])).shape == (3, 5)


def _check_segments(run, f, neutral, ids):
    want = np.full((5, 5), float(neutral))
    for row, i in zip(X, ids):
        if 0 <= i < 5:
            want[i] = f(want[i], row)
    for got in run(X, np.array(ids)):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)


def test_segments_of_integers_and_errors():
    got = ops.segment_max(np.array([1, 2], np.int32), np.array([2, 2]), 3)
    assert got.tolist() == [-(2**31), -(2**31), 2]
    with pytest.raises(ConcretizationError, match="give num_segments"):
        plait.jit(ops.segment_sum)(X, np.array([0, 1, 2, 3]))
    with pytest.raises(AxisError, match="a number for each row"):
        ops.segment_sum(X, np.array([0, 1]), 2)
    with pytest.raises(TypeRule, match="give integers"):
        ops.segment_sum(X, X[:, 0], 2)


def test_examples():
    for module in (ndimage, interpolate, codes, segments):
        assert doctest.testmod(module).failed == 0
