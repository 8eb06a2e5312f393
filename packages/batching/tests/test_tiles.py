"""vtile: a function of every tile; compared with numpy's reshape and a Python loop over tiles."""

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import ArgumentError, AxisError

pytestmark = pytest.mark.feature("B39")
X = np.random.default_rng(5).normal(size=(6, 4)).astype(np.float32)


def centred(v):
    return v - v.mean()


@pytest.mark.parametrize("in_axis", [0, 1, -1])
@pytest.mark.parametrize("out_axis", [0, 1, -1])
@pytest.mark.parametrize("way", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_every_tile(in_axis, out_axis, way):
    got = way(plait.vtile(centred, in_axis, out_axis, 2))(X)
    tiles = np.split(X, 2, in_axis)
    want = np.concatenate([t - t.mean() for t in tiles], out_axis)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)


def test_tiles_of_one_element_by_default():
    f = plait.vtile(lambda v: (v / lax.psum(v, "i"),), (0,), (0,), None, "i")
    (got,) = f(X)
    np.testing.assert_allclose(np.asarray(got), X / X.sum(0), rtol=1e-5)


def test_trees_and_what_every_tile_gets():
    @plait.vtile(in_axes=({"x": 1}, None), out_axes=(1, None), tile_size=4)
    def f(t, w):
        return {"a": t["x"] * w, "b": t["x"].sum(0, keepdims=True) + w}, w

    got, same = f({"x": X}, np.float32(3))
    np.testing.assert_allclose(np.asarray(got["a"]), X * 3, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(got["b"]), X.sum(0, keepdims=True) + 3, rtol=1e-5)
    assert same == 3


def test_results_may_be_larger_or_smaller_than_tiles():
    got = plait.vtile(lambda v: np.float32([1, 2, 3]) + v[0, 0], tile_size=2)(X)
    want = np.concatenate([np.float32([1, 2, 3]) + X[i, 0] for i in (0, 3)])
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


def test_collectives_are_along_tiles():
    f = lambda v: lax.all_gather(v, "t", tiled=True) * lax.axis_index("t")  # noqa: E731
    got = plait.vtile(f, tile_size=3, axis_name="t")(X)
    np.testing.assert_allclose(np.asarray(got), np.concatenate([X * i for i in range(3)]))


def test_refusals():
    with pytest.raises(AxisError, match="no mapped arguments"):
        plait.vtile(centred, None)(X)
    with pytest.raises(AxisError, match=r"cannot be divided in 4 equal"):
        plait.vtile(centred, tile_size=4)(X)
    with pytest.raises(AxisError, match="cannot be divided in 6"):
        plait.vtile(lambda v, w: v, (0, 1), 0)(X, X)
    with pytest.raises(AxisError, match="out of range"):
        plait.vtile(centred, 2)(X)
    with pytest.raises(AxisError, match="result.* is out of range"):
        plait.vtile(lambda v: v.sum(), tile_size=2)(X)
    with pytest.raises(AxisError, match="varies"):
        plait.vtile(centred, 0, None, 2)(X)
    for wrong in (0, 1.5, True):
        with pytest.raises(ArgumentError, match="tile_size"):
            plait.vtile(centred, tile_size=wrong)
    with pytest.raises(ArgumentError, match="function"):
        plait.vtile(3)
