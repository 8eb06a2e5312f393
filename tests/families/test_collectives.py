"""Collectives among groups of places: mapped over an axis, and on devices, with derivatives.

Invariant: what each place gets is computed from everybody's arrays, by a loop over groups.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import AxisError

EVEN = [[0, 2, 5, 7], [3, 1, 6, 4]]
UNEVEN = [[0, 2, 5], [3, 1, 6, 4, 7]]
X = np.random.default_rng(0).standard_normal((8, 4, 3)).astype(np.float32)

COLLECTIVES = {
    "psum": (lambda v, g: lax.psum(v, "i", axis_index_groups=g), lambda xs, k: xs.sum(0)),
    "pmax": (lambda v, g: lax.pmax(v, "i", axis_index_groups=g), lambda xs, k: xs.max(0)),
    "pmin": (lambda v, g: lax.pmin(v, "i", axis_index_groups=g), lambda xs, k: xs.min(0)),
    "pmean": (lambda v, g: lax.pmean(v, "i", axis_index_groups=g), lambda xs, k: xs.mean(0)),
    "all_gather": (
        lambda v, g: lax.all_gather(v, "i", axis_index_groups=g), lambda xs, k: xs),
    "psum_scatter": (
        lambda v, g: lax.psum_scatter(v, "i", axis_index_groups=g), lambda xs, k: xs.sum(0)[k]),
    "pswapaxes": (
        lambda v, g: lax.pswapaxes(v, "i", 0, axis_index_groups=g), lambda xs, k: xs[:, k]),
    "all_to_all": (
        lambda v, g: lax.all_to_all(v, "i", 0, 1, axis_index_groups=g, tiled=True),
        lambda xs, k: np.concatenate(xs[:, k : k + 1], 1)),
}  # fmt: skip
CASES = [(name, EVEN) for name in COLLECTIVES]
CASES += [(name, UNEVEN) for name in ("psum", "pmax", "pmin", "pmean")]


def expected(name, groups):
    out = {}
    for g in groups:
        for k, place in enumerate(g):
            out[place] = COLLECTIVES[name][1](X[g], k)
    return np.stack([out[i] for i in range(8)])


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("name", "groups"), CASES)
def test_among_groups(name, groups):
    f, mesh = COLLECTIVES[name][0], plait.make_mesh((8,), ("i",))
    mapped = plait.vmap(lambda v: f(v, groups), axis_name="i")
    placed = plait.shard_map(
        lambda v: f(v[0], groups)[None], mesh=mesh, in_specs=plait.P("i"), out_specs=plait.P("i")
    )
    want = expected(name, groups)
    np.testing.assert_allclose(mapped(X), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(plait.jit(placed)(X), want, rtol=1e-5, atol=1e-6)
    weight = np.random.default_rng(1).standard_normal(want.shape).astype(np.float32)
    a, b = (
        plait.grad(lambda x, h=h: (h(x) * weight).sum())(X) for h in (mapped, plait.jit(placed))
    )
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    step = np.random.default_rng(2).standard_normal(X.shape).astype(np.float32)
    _, along = plait.jvp(lambda x: (mapped(x) * weight).sum(), (X,), (step,))
    np.testing.assert_allclose((np.asarray(a) * step).sum(), along, rtol=1e-3, atol=1e-4)


def test_inside_another_map():
    f = plait.vmap(plait.vmap(lambda v: lax.psum(v, "i", axis_index_groups=EVEN)), axis_name="i")
    np.testing.assert_allclose(f(X), expected("psum", EVEN), rtol=1e-5, atol=1e-6)
    g = plait.vmap(plait.vmap(lambda v: lax.psum(v, "i", axis_index_groups=EVEN), axis_name="i"),
                in_axes=1)  # fmt: skip
    np.testing.assert_allclose(g(X), expected("psum", EVEN).swapaxes(0, 1), rtol=1e-5, atol=1e-6)


def test_counts_of_groups():
    count = lambda g: plait.vmap(  # noqa: E731
        lambda v: v * lax.psum(1, "i", axis_index_groups=g), axis_name="i"
    )(np.ones(8))
    assert count(EVEN).tolist() == [4] * 8
    assert count(UNEVEN).tolist() == [3, 5, 3, 5, 5, 3, 5, 5]


def test_results_of_groups_differ():
    with pytest.raises(AxisError, match="may differ"):
        plait.shard_map(
            lambda v: lax.psum(v, "i", axis_index_groups=EVEN),
            mesh=plait.make_mesh((8,), ("i",)), in_specs=plait.P("i"), out_specs=plait.P(),
        )(X)  # fmt: skip


@pytest.mark.parametrize("groups", [[[0, 1]], [[0] * 8], 3, [], [[0, 1, 2, 3, 4, 5, 6, "7"]]])
def test_groups_divide_the_axis(groups):
    with pytest.raises(AxisError, match="do not divide"):
        plait.vmap(lambda v: lax.psum(v, "i", axis_index_groups=groups), axis_name="i")(X)


def test_sizes_of_groups():
    with pytest.raises(AxisError, match="different sizes"):
        plait.vmap(lambda v: lax.all_gather(v, "i", axis_index_groups=UNEVEN), axis_name="i")(X)
    with pytest.raises(AxisError, match="axes of one mesh"):
        inner = plait.vmap(lambda v: lax.psum(v, ("i", "j"), axis_index_groups=EVEN), axis_name="j")
        plait.vmap(inner, axis_name="i")(X)


def test_what_one_place_has():
    want = np.broadcast_to(X[5], X.shape)
    f = lambda v: lax.pbroadcast(v, "i", 5)  # noqa: E731
    np.testing.assert_array_equal(plait.vmap(f, axis_name="i")(X), want)
    mesh = plait.make_mesh((8,), ("i",))
    whole = plait.shard_map(
        lambda v: f(v[0]), mesh=mesh, in_specs=plait.P("i"), out_specs=plait.P()
    )
    np.testing.assert_array_equal(plait.jit(whole)(X), X[5])


def test_names_together():
    x = X[:6]
    both = lambda f: plait.vmap(plait.vmap(f, axis_name="j"), axis_name="i")(x.reshape(2, 3, 4, 3))  # noqa: E731
    got = both(lambda v: lax.all_gather(v, ("i", "j")))
    np.testing.assert_array_equal(got, np.broadcast_to(x, (2, 3, *x.shape)))
    got = both(lambda v: lax.psum_scatter(plait.numpy.tile(v, (3, 1))[:6], ("i", "j")))
    want = np.tile(x, (1, 3, 1))[:, :6].sum(0)
    np.testing.assert_allclose(got, want.reshape(2, 3, 3), rtol=1e-5)
    got = both(lambda v: lax.ppermute(v, ("i", "j"), [(0, 1), (4, 2)]))
    want = np.zeros_like(x)
    want[1], want[2] = x[0], x[4]
    np.testing.assert_array_equal(np.asarray(got).reshape(x.shape), want)
    f = lambda v: v + 10 * lax.axis_index(("i", "j")) + 0 * lax.axis_size(("i", "j"))  # noqa: E731
    got = plait.vmap(plait.vmap(f, axis_name="j"), axis_name="i")(np.zeros((2, 3)))
    np.testing.assert_array_equal(got, 10 * np.arange(6).reshape(2, 3))
    same = plait.vmap(lambda v: lax.pcast(v, "i", to="varying"), axis_name="i")(X)
    np.testing.assert_array_equal(same, X)
