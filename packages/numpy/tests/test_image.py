"""Resampling, against numpy's interpolation, loops, and what must stay as it is."""

import numpy as np
import pytest

import plait
from plait.image import ResizeMethod, resize, scale_and_translate

X = np.random.RandomState(0).randn(5, 7).astype(np.float32)
METHODS = ["linear", "cubic", "lanczos3", "lanczos5"]


def centres(n, m):
    """Where the samples of the result lie among those of the image."""
    return (np.arange(m) + 0.5) * n / m - 0.5


@pytest.mark.parametrize("shape", [(5, 7), (10, 9), (5, 28)])
def test_larger_by_lines_is_numpys_interpolation(shape):
    want = X
    for axis, (n, m) in enumerate(zip(X.shape, shape)):
        at = centres(n, m)
        want = np.apply_along_axis(lambda row: np.interp(at, np.arange(n), row), axis, want)  # noqa: B023
    np.testing.assert_allclose(resize(X, shape, "linear"), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 4), (10, 9)])
def test_nearest_is_an_index(shape):
    rows, columns = (np.floor((np.arange(m) + 0.5) * n / m).astype(int)
                     for n, m in zip(X.shape, shape))  # fmt: skip
    ints = (X * 10).astype(np.int32)
    got = resize(ints, shape, "nearest")
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, ints[np.ix_(rows, columns)])


def test_smaller_by_lines_is_a_mean_of_a_loop():
    n, m = 7, 3
    want = np.zeros((5, m))
    for j, at in enumerate(centres(n, m)):
        w = np.maximum(0, 1 - np.abs(at - np.arange(n)) * m / n)
        want[:, j] = X @ (w / w.sum())
    np.testing.assert_allclose(resize(X, (5, m), "linear"), want, rtol=1e-5, atol=1e-6)
    coarse = [np.interp(at, np.arange(n), X[0]) for at in centres(n, m)]
    got = resize(X[:1], (1, m), "linear", antialias=False)[0]
    np.testing.assert_allclose(got, coarse, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_stays(method):
    for shape in ((9, 3), (2, 20)):
        np.testing.assert_allclose(resize(np.full((5, 7), 2.5), shape, method), 2.5, rtol=1e-6)


def test_cubic_follows_a_parabola_inside():
    line = np.arange(12.0) ** 2
    at = centres(12, 36)
    inside = (at > 2) & (at < 9)
    got = np.asarray(resize(line, (36,), "cubic"))
    np.testing.assert_allclose(got[inside], at[inside] ** 2, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_moving_by_whole_samples_is_a_shift(method):
    got = scale_and_translate(X, (5, 7), (1,), np.ones(1, "f4"), np.array([2.0], "f4"), method)
    np.testing.assert_allclose(got, np.pad(X, ((0, 0), (2, 0)))[:, :7], rtol=1e-5, atol=1e-6)


def test_scale_and_translate_along_one_of_two_axes():
    scale, moved = np.array([2.0], "f4"), np.array([0.0], "f4")
    got = scale_and_translate(X, (10, 7), [-2], scale, moved, "linear")
    np.testing.assert_allclose(got, resize(X, (10, 7), ResizeMethod.LINEAR), rtol=1e-5, atol=1e-6)


def test_errors():
    with pytest.raises(TypeError, match="'gaussian'"):
        resize(X, (2, 2), "gaussian")
    with pytest.raises(TypeError, match="2 axes"):
        resize(X, (2,), "linear")
    with pytest.raises(TypeError, match="axis 0 of size 0"):
        resize(np.ones((0, 7)), (5, 7), "linear")
    one = np.ones(1, "f4")
    with pytest.raises(TypeError, match="nearest"):
        scale_and_translate(X, (5, 7), (1,), one, one, "nearest")
    with pytest.raises(TypeError, match="would become"):
        scale_and_translate(X, (6, 7), (1,), one, one, "linear")
    with pytest.raises(ValueError, match="axis 3"):
        scale_and_translate(X, (5, 7), (3,), one, one, "linear")


def test_trees_as_vectors():
    tree = {"w": np.arange(4, dtype="f4").reshape(2, 2), "b": [np.int32(7), 0.5]}
    flat, unravel = plait.flatten_util.ravel_pytree(tree)
    np.testing.assert_array_equal(flat, [7, 0.5, 0, 1, 2, 3])
    back = unravel(flat + 1)
    assert back["b"][0].dtype == np.int32 and back["w"].shape == (2, 2)
    np.testing.assert_array_equal(back["w"], tree["w"] + 1)
    with pytest.raises(TypeError, match="6 elements"):
        unravel(flat[1:])
    flat, unravel = plait.flatten_util.ravel_pytree({"none": None})
    assert flat.shape == (0,) and unravel(flat) == {"none": None}
    jitted = plait.jit(lambda t: plait.flatten_util.ravel_pytree(t)[1](plait.numpy.ones(6)))
    np.testing.assert_array_equal(jitted(tree)["w"], np.ones((2, 2)))


@pytest.mark.parametrize("kinds", [["int32"], ["float32"], ["complex64"], ["float32", "int8"],
                                   ["complex64", "float32"], ["bool"]], ids=str)  # fmt: skip
def test_what_unravel_would_cut_off_is_refused(kinds):
    tree = [np.array([1, 0, 1]).astype(k) for k in kinds]
    flat, unravel = plait.flatten_util.ravel_pytree(tree)
    back = unravel(flat)
    for x, y in zip(tree, back, strict=True):
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(y), x)
    order = ["bool", "int32", "float32", "complex64"]
    widest = max(order.index({"int8": "int32"}.get(k, k)) for k in kinds)
    for k, dtype in enumerate(order):
        vector = np.ones(3 * len(kinds)).astype(dtype)
        if k <= widest:
            assert len(unravel(vector)) == len(kinds)
        else:
            with pytest.raises(plait.errors.TypeRule, match="cut off"):
                unravel(vector)
            with pytest.raises(plait.errors.TypeRule, match="cut off"):
                plait.jit(unravel)(vector)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_images_are_sampled_where_they_are(dtype):
    """Places beyond 256 are not numbers of bfloat16."""
    n, m = 700, 1400
    x = np.random.default_rng(0).uniform(1, 2, n).astype(np.float32)
    want = np.interp(centres(n, m), np.arange(n), x)
    image = plait.numpy.asarray(x).astype(dtype)
    got = np.asarray(resize(image, (m,), "linear")).astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=0.02)
    moved = scale_and_translate(image, (m,), (0,), np.float32([2]), np.float32([0]), "linear")
    np.testing.assert_allclose(np.asarray(moved).astype(np.float64), want, rtol=0.02)
