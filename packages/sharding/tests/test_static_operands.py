"""shard_map over arguments that are not arrays, over the axes that are left, and effects there.

Invariant: compared with numpy, or with the same function on the pieces one after the other.
"""

import types

import numpy as np
import pytest

import plait
from plait import io_callback, lax
from plait_sharding import P, shard_map

X = np.arange(8.0, dtype=np.float32)
POINT = types.SimpleNamespace(k=2.0)


# ---- arguments that are not arrays ---------------------------------------------------------

STATIC = {
    "an object": (POINT, lambda x, o: x * o.k),
    "a function": (np.negative, lambda x, o: -2 * (x - x) + (x * 2 if o is np.negative else x)),
    "a shape": ((2, 1), lambda x, o: x * 2 + plait.numpy.zeros(o)[0]),
    "a tree": ({"name": "ab", "w": np.float32(2)}, lambda x, o: x * len(o["name"]) * o["w"] / 2),
    "nothing": (None, lambda x, o: x * 2 if o is None else x),
    "a number": (2, lambda x, o: x * 2 if isinstance(o, int) else x),
}


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("around", [lambda f: f, plait.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", STATIC)
def test_what_is_not_an_array_passes_as_it_is(mesh, name, around, typed):
    given, f = STATIC[name]
    over = shard_map(f, mesh=mesh, in_specs=(P("y"), None), out_specs=P("y"), check_vma=typed)
    for _ in range(2):
        np.testing.assert_array_equal(around(lambda x: over(x, given))(X), 2 * X)


def test_each_object_has_its_own_program(mesh):
    over = shard_map(lambda x, o: x * o.k, mesh=mesh, in_specs=(P("y"), None), out_specs=P("y"))
    for k in (2.0, 3.0, 2.0):
        np.testing.assert_array_equal(over(X, types.SimpleNamespace(k=k)), k * X)
    signs = shard_map(lambda x, o: x / o, mesh=mesh, in_specs=(P("y"), None), out_specs=P("y"))
    for zero in (0.0, -0.0, 0.0):
        np.testing.assert_array_equal(signs(X + 1, zero), np.copysign(np.inf, zero) + 0 * X)


def test_what_a_spec_divides_is_an_array(mesh):
    over = shard_map(lambda x, o: x, mesh=mesh, in_specs=(P("y"), P()), out_specs=P("y"))
    with pytest.raises(plait.errors.NotAnArrayError):
        over(X, POINT)


# ---- the axes that are left ----------------------------------------------------------------


def test_without_axis_names_the_inner_one_takes_the_axes_that_are_left(mesh):
    squares = shard_map(
        lambda x: x * x * lax.axis_size("y"), in_specs=P(None, "y"), out_specs=P(None, "y")
    )
    outer = shard_map(squares, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    a = X.reshape(2, 4)
    with mesh:
        np.testing.assert_array_equal(plait.jit(outer)(a), 4 * a * a)
        np.testing.assert_array_equal(plait.jit(squares)(a), 4 * a * a)
    with mesh, pytest.raises(plait.PlaitError, match="inside a shard_map that has divided them"):
        plait.jit(shard_map(squares, in_specs=P("x"), out_specs=P("x")))(a)


# ---- effects where the compiler divides other axes ------------------------------------------


@pytest.mark.parametrize("names", [{"x"}, {"y"}, {"x", "y"}], ids=["x", "y", "x-y"])
@pytest.mark.parametrize("way", ["callback", "io", "in a branch"])
def test_effects_happen_once_for_each_position(mesh, names, way):
    seen = []
    acts = {
        "callback": lambda x: plait.debug.callback(seen.append, x.sum()),
        "io": lambda x: io_callback(lambda v: seen.append(v), None, x.sum()),
        "in a branch": lambda x: lax.cond(
            x.sum() > 9, lambda v: plait.debug.callback(seen.append, v), lambda v: None, x.sum()
        ),
    }[way]
    spec = P(tuple(sorted(names)))
    over = shard_map(
        lambda x: (acts(x), x + 1)[1],
        mesh=mesh, in_specs=spec, out_specs=spec, axis_names=names, check_vma=False,
    )  # fmt: skip
    np.testing.assert_array_equal(plait.jit(over)(X), X + 1)
    plait.effects_barrier()
    count = int(np.prod([mesh.shape[n] for n in names]))
    want = X.reshape(count, -1).sum(1)
    assert sorted(map(float, seen)) == [w for w in want if way != "in a branch" or w > 9]


def test_results_of_effects_where_the_compiler_divides_are_refused(mesh, told):
    ask = lambda x: io_callback(lambda v: np.asarray(v), plait.ShapeDtypeStruct((4,), x.dtype), x)  # noqa: E731
    over = shard_map(ask, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    with pytest.raises(plait.PlaitError, match="'y', which axis_names leaves to the compiler"):
        plait.jit(over)(X)
