"""vmap(chunk=): so many elements at a time, with the results of all at once.

Invariant: what is expected is numpy's, for the whole; that memory is bounded is seen in the
program, none of whose values between arguments and results is larger than that of a chunk.
"""

import numpy as np
import pytest

import plait
from plait.errors import ArgumentError, AxisError, ShapeError, TreeMismatch
from plait.ext.ir import programs_in

pnp = plait.numpy
X = np.random.default_rng(4).normal(size=(7, 3)).astype(np.float32)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("chunk", [1, 2, 3, 6, 7, 8, np.int64(4)])
@pytest.mark.parametrize("way", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_as_all_at_once(chunk, way):
    """Divided evenly or not; arguments and results in trees, mapped anywhere or not at all."""

    def f(d, w, label, *, k):
        assert label == "same"
        return (d["a"] * w + k, {"sum": d["a"].sum() + d["b"], "none": w}), k[None]

    axes = dict(
        in_axes=({"a": 1, "b": 0}, None, None), out_axes=((-1, {"sum": 0, "none": None}), 1)
    )
    a, b, w, k = X.T, X[:, 0], np.float32([1, 2, 3]), X[:, 1]
    mapped = plait.vmap(f, **axes, chunk=chunk)
    run = way(lambda a, b, w, k: mapped({"a": a, "b": b}, w, "same", k=k))
    (scaled, rest), last = run(a, b, w, k)
    np.testing.assert_allclose(np.asarray(scaled), (X * w + k[:, None]).T, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(rest["sum"]), X.sum(1) + b, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(rest["none"]), w)
    np.testing.assert_array_equal(np.asarray(last), k[None])


def test_no_elements_and_none_mapped():
    assert plait.vmap(lambda v: v.sum(), chunk=2)(X[:0]).shape == (0,)
    got = plait.vmap(lambda: pnp.ones(2), axis_size=5, chunk=2)()
    np.testing.assert_array_equal(np.asarray(got), np.ones((5, 2)))


def test_keys():
    keys = plait.random.split(plait.random.key(0), 5)
    draw = lambda k: (plait.random.normal(k, (2,)), plait.random.split(k)[0])  # noqa: E731
    numbers, last = plait.vmap(draw, chunk=2)(keys)
    want = [draw(k) for k in keys]
    np.testing.assert_array_equal(np.asarray(numbers), [np.asarray(n) for n, _ in want])
    data = plait.random.key_data
    np.testing.assert_array_equal(np.asarray(data(last)), [np.asarray(data(k)) for _, k in want])


def sizes(program):
    """The sizes of all values that are made inside of loops."""
    for e in program.eqns:
        for p in programs_in(e.params):
            yield from (o.aval.size for q in p.eqns for o in q.outputs)
            yield from sizes(p)


def test_the_memory_is_that_of_a_chunk():
    """Of an outer product for each element, no more are there at once than a chunk has."""
    wide = np.ones((40, 50), np.float32)
    f = lambda v: (v[:, None] * v).sum()  # noqa: E731
    program = plait.make_program(plait.vmap(f, chunk=8))(wide)
    assert max(sizes(program)) == 8 * 50 * 50
    assert max(o.aval.size for e in program.eqns for o in e.outputs) <= wide.size
    got = plait.vmap(f, chunk=8)(wide)
    np.testing.assert_array_equal(np.asarray(got), np.full(40, 2500))


def test_maps_of_maps():
    table = np.arange(20, dtype=np.float32).reshape(4, 5)
    f = plait.vmap(plait.vmap(lambda v: v * 2, chunk=2), in_axes=1, out_axes=1, chunk=3)
    np.testing.assert_array_equal(np.asarray(f(table)), table * 2)


def test_effects_keep_their_order():
    seen = []
    scalar = plait.ShapeDtypeStruct((), np.float32)

    def see(v):
        seen.append(float(v))
        return np.float32(v)

    f = plait.vmap(lambda v: plait.io_callback(see, scalar, v, ordered=True), chunk=2)
    f(np.float32([5, 4, 3, 2, 1]))
    assert seen == [5, 4, 3, 2, 1]


def test_refusals():
    for wrong in (0, -1, 2.5, "2", True):
        with pytest.raises(ArgumentError, match="chunk"):
            plait.vmap(lambda v: v, chunk=wrong)
    with pytest.raises(ArgumentError, match="axis_name='i'"):
        plait.vmap(lambda v: plait.lax.psum(v, "i"), axis_name="i", chunk=2)
    with pytest.raises(AxisError, match="out_axes"):
        plait.vmap(lambda v: v, out_axes=2, chunk=2)(X)
    with pytest.raises(AxisError, match="varies"):
        plait.vmap(lambda v: v, out_axes=None, chunk=2)(X)
    with pytest.raises(TreeMismatch, match="out_axes"):
        plait.vmap(lambda v: v, out_axes=(0, 0), chunk=2)(X)
    sizes = plait.symbolic_dims("n")
    with pytest.raises(ShapeError, match="symbolic"):
        plait.make_program(plait.vmap(lambda v: v, chunk=2))(
            plait.ShapeDtypeStruct(sizes, np.float32)
        )


def test_an_unhandled_error_is_the_users():
    with pytest.raises(ZeroDivisionError):
        plait.vmap(lambda v: 1 // 0, chunk=2)(X)


# ---- one at a time -------------------------------------------------------------------------


def test_sequential_vmap():
    seen = []
    scalar = plait.ShapeDtypeStruct((), np.float32)

    def see(v):
        seen.append(float(v))
        return np.float32(v)

    @plait.sequential_vmap
    def f(tree, y):
        return {"out": plait.io_callback(see, scalar, tree["x"], ordered=True) * y, "y": y}

    xs = np.float32([3, 1, 2])
    for way in (lambda g: g, plait.jit):
        seen.clear()
        got = way(plait.vmap(f, in_axes=({"x": 0}, None)))({"x": xs}, np.float32(10))
        np.testing.assert_array_equal(np.asarray(got["out"]), xs * 10)
        np.testing.assert_array_equal(np.asarray(got["y"]), [10] * 3)
        assert seen == [3, 1, 2]
    assert f({"x": 4.0}, 2.0)["out"] == 8
    twice = plait.vmap(plait.vmap(f, (None, 0)), ({"x": 0}, None))
    np.testing.assert_array_equal(np.asarray(twice({"x": xs}, xs)["out"]), np.outer(xs, xs))


def test_sequential_vmap_is_where_jax_has_it():
    from plait.custom_batching import sequential_vmap

    assert sequential_vmap is plait.sequential_vmap
