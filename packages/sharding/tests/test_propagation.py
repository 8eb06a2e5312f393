"""AUTO: what the compiler chooses, and what it is told of it.

Invariant: programs are such that what is known determines the choice; it is written down.
"""

import numpy as np
import pytest

import plait
from plait.errors import PlacementError
from plait_sharding import (
    AUTO,
    MissingMesh,
    NamedSharding,
    PartitionSpec,
    device_put,
    make_mesh,
    with_sharding_constraint,
)

A = np.arange(64, dtype=np.float32).reshape(8, 8)
SHAPE = plait.ShapeDtypeStruct((8, 8), "float32")


@pytest.mark.feature("S29")
def test_arguments_follow_the_constraint_on_a_result(mesh, lies, close):
    """Of a product that is divided by rows and columns, one factor is divided by rows, the other by
    columns."""
    f = plait.jit(
        lambda a, b: with_sharding_constraint(a @ b, lies("x", "y")), in_shardings=AUTO(mesh)
    )
    for given in ((SHAPE, SHAPE), (A, SHAPE), (A, A)):
        compiled = f.lower(*given).compile()
        assert compiled.input_shardings == ((lies("x"), lies(None, "y")), {})
        assert compiled.output_shardings == lies("x", "y")
        close(compiled(A, A), A @ A)
    close(f(A, A), A @ A)
    close(f(device_put(A, lies("x")), A), A @ A)


@pytest.mark.feature("S29")
def test_results_follow_the_arguments(mesh, lies, close):
    f = plait.jit(lambda a: (a * 2, a.T, a.sum(1)), in_shardings=lies("x"), out_shardings=AUTO)
    with mesh:
        outs = f(A)
        assert f.lower(A).compile().output_shardings == tuple([o.sharding for o in outs])
    assert [o.sharding for o in outs] == [lies("x"), lies(None, "x"), lies("x")]
    for got, want in zip(outs, (A * 2, A.T, A.sum(1))):
        close(got, want)


def test_some_arguments_only(mesh, lies, close):
    f = lambda d, s: d["a"] @ d["b"] * s  # noqa: E731
    auto = {"a": lies("x", "y"), "b": AUTO(mesh)}
    g = plait.jit(f, in_shardings=(auto, None))
    (told, s), _ = g.lower({"a": A, "b": A}, 2.0).compile().input_shardings
    assert told["a"] == lies("x", "y") and told["b"] == lies("y")
    assert s == lies()  # a copy on each device
    close(g({"a": A, "b": A}, 2.0), A @ A * 2)
    close(plait.jit(lambda x: g({"a": x, "b": x}, 2.0))(A), A @ A * 2)


def test_asked_once_for_each_type(mesh, lies, close):
    f = plait.jit(lambda a: with_sharding_constraint(a + 1, lies("y")), in_shardings=AUTO(mesh))
    close(f(A), A + 1)
    with plait.events.counting() as n:
        for _ in range(3):
            close(f(A), A + 1)
        there = device_put(A, lies("y"))
        close(f(there), A + 1)
    assert n["trace"] == n["compile"] == 0
    close(f(A[:4, 0]), A[:4, 0] + 1)


def test_what_was_placed_otherwise_is_refused(mesh, lies, told):
    f = plait.jit(lambda a: with_sharding_constraint(a, lies("x")), in_shardings=AUTO(mesh))
    x = device_put(A, lies(None, "y"))
    told(lambda: f(x), "in_shardings", repr(lies("x")), kind=PlacementError)


def test_mistakes(mesh, told):
    for how in ({"in_shardings": AUTO}, {"out_shardings": AUTO}):
        f = plait.jit(lambda a: a, **how)
        told(lambda: f(A), "AUTO", "with mesh", kind=MissingMesh)  # noqa: B023
        told(lambda: f.lower(A), "AUTO", kind=MissingMesh)  # noqa: B023
    told(lambda: AUTO(3), "needs a mesh")
    told(lambda: device_put(A, AUTO), "AUTO", "not a device")
    told(lambda: with_sharding_constraint(A, AUTO(mesh)), "AUTO", "not a sharding")


SPELLED = {
    "one device": ((1, 1), ("x", "y")),
    "rows": ((8, 1), ("x", "y")),
    "columns": ((1, 8), ("x",)),
}
"""Meshes with axes of size 1, and a spec that names one."""


@pytest.mark.parametrize("name", SPELLED)
@pytest.mark.parametrize("compiles", [True, False], ids=["jit", "eager"])
def test_results_keep_the_names_of_axes_of_size_one(name, compiles, close):
    """A step whose results are its next arguments finds its executable again."""
    sizes, entries = SPELLED[name]
    place = NamedSharding(make_mesh(sizes, ("x", "y")), PartitionSpec(*entries))
    step = lambda v: v * 2 + 1  # noqa: E731
    run = plait.jit(step) if compiles else step
    x = device_put(A, place)
    once = run(x)
    with plait.events.counting() as n:
        twice = run(once)
    assert once.sharding.spec == twice.sharding.spec == place.spec and n.get("compile", 0) == 0, n
    close(twice, step(step(A)))


def test_results_that_lie_otherwise_have_names_of_their_own(lies, mesh, close):
    x = device_put(A, lies("x", "y"))
    first, turned, rows, told = plait.jit(
        lambda v: (v[0], v.T, v.sum(1), with_sharding_constraint(v, lies("x")))
    )(x)
    assert turned.sharding == lies("y", "x") and rows.sharding == lies("x")
    assert told.sharding == lies("x")
    thin = make_mesh((8, 1), ("x", "y"))
    y = device_put(A, NamedSharding(thin, PartitionSpec("x", "y")))
    asked = NamedSharding(thin, PartitionSpec("x"))
    kept = plait.jit(lambda v: v * 1, out_shardings=asked)(y)
    assert kept.sharding.spec == asked.spec  # what is asked for is taken as it is written
    assert plait.jit(lambda v: v.sum(1))(y).sharding.spec == PartitionSpec("x")
    close(first, A[0])
