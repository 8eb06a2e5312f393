"""vmap of shard_map and of constraints: against a Python loop; and the same collectives with
their axis bound by vmap and by a mesh."""

import io

import numpy as np
import pytest

import plait
from plait._ops.callbacks import debug_print
from plait._ops.collective import (
    all_gather,
    all_to_all,
    axis_index,
    pmean,
    ppermute,
    psum,
    psum_scatter,
)
from plait.ext.ops.elementwise import sin
from plait.lax import pmax, pmin
from plait_sharding import P, device_put, make_mesh, shard_map, with_sharding_constraint

R = np.random.default_rng(0)
A = R.normal(size=(8, 16)).astype(np.float32)
MANY = R.normal(size=(3, 8, 16)).astype(np.float32)

COLLECTIVES = {
    "psum": (lambda v: psum(v, "y"), P("x")),
    "psum of both": (lambda v: psum(v, ("x", "y")), P()),
    "pmax": (lambda v: pmax(v, "x"), P(None, "y")),
    "all_gather": (lambda v: all_gather(v, "y", axis=1, tiled=True), P("x")),
    "all_gather, stacked": (lambda v: all_gather(v, "x"), P(None, None, "y")),
    "ppermute": (lambda v: ppermute(v, "y", [(0, 1), (1, 2), (3, 0)]), P("x", "y")),
    "psum_scatter": (lambda v: psum_scatter(v, "y", tiled=True), P(("x", "y"))),
    "all_to_all": (lambda v: all_to_all(v, "y", 0, 1, tiled=True), P(("x", "y"))),
    "axis_index": (lambda v: v + axis_index("x") * 10 + axis_index("y"), P("x", "y")),
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_the_mapped_axis_anywhere(mesh, lies, close, name):
    f, outs = COLLECTIVES[name]
    m = shard_map(f, mesh=mesh, in_specs=P("x", "y"), out_specs=outs)
    one = plait.jit(m)
    want = np.stack([np.asarray(one(a)) for a in MANY])
    for at in range(3):
        close(plait.jit(plait.vmap(m, at))(np.moveaxis(MANY, 0, at)), want)
        close(plait.vmap(m, at, out_axes=1)(np.moveaxis(MANY, 0, at)), np.moveaxis(want, 0, 1))
    twice = plait.jit(plait.vmap(plait.vmap(m), 1))(np.stack([MANY, -MANY], 1))
    close(twice[0], want)


def test_what_does_not_vary(mesh, close):
    m = shard_map(
        lambda a, w: psum(a @ w, "y"), mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x")
    )
    w = R.normal(size=(16, 4)).astype(np.float32)
    close(plait.jit(plait.vmap(m, (0, None)))(MANY, w), MANY @ w)
    close(plait.jit(plait.vmap(m, (None, 2)))(A, np.stack([w, -w], 2)), np.stack([A @ w, -A @ w]))
    each = plait.vmap(
        lambda a: shard_map(lambda v: v * a[0, 0], mesh=mesh, in_specs=P("x"), out_specs=P("x"))(A)
    )
    close(each(MANY), MANY[:, :1, :1] * A)


def test_one_operation_stays_one(mesh):
    m = shard_map(lambda v: psum(v, "y"), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x"))
    p = plait.make_program(plait.vmap(m, 1))(np.moveaxis(MANY, 0, 1))
    (e,) = [e for e in p.eqns if e.prim.name == "sharding.shard_map"]
    assert e.params["in_specs"] == ((("x",), (), ("y",)),) and p.axes == frozenset()


def test_names_inside_and_outside(mesh, close):
    """The innermost axis of a name is meant, whether vmap or a mesh binds it."""
    f = shard_map(lambda v: psum(v, "y"), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x"))
    want = MANY.reshape(3, 8, 4, 4).sum(2)
    for wrap in (lambda g: g, plait.jit):
        close(wrap(plait.vmap(f, axis_name="y"))(MANY), want)
        close(plait.vmap(wrap(f), axis_name="y")(MANY), want)
    both = shard_map(
        lambda v: psum(psum(v, "i"), "y"), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x")
    )
    close(plait.jit(plait.vmap(both, axis_name="i"))(MANY)[1], want.sum(0))
    inside = shard_map(
        plait.vmap(lambda v: psum(v, "y"), axis_name="y"),
        mesh=mesh,
        in_specs=P("x", "y"),
        out_specs=P("x", "y"),
    )
    close(inside(A), np.repeat(A.reshape(2, 4, 16).sum(1), 4, 0))
    # no operand varies, the name does
    g = shard_map(lambda v: v * 0 + axis_index("i"), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    out = plait.jit(plait.vmap(lambda: g(A), axis_name="i", axis_size=3))()
    close(out, np.broadcast_to(np.arange(3)[:, None, None], (3, 8, 16)))
    sizes = plait.jit(lambda v: v / plait.lax.axis_size("x"))
    close(shard_map(sizes, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(A), A / 2)
    close(plait.vmap(sizes, axis_name="x")(A), A / 8)


SAME = {
    "psum": lambda v: psum(v * axis_index("i"), "i"),
    "pmean": lambda v: pmean(v, "i"),
    "pmax": lambda v: pmax(v, "i"),
    "pmin": lambda v: pmin(v, "i"),
    "all_gather": lambda v: all_gather(v, "i"),
    "all_gather, tiled": lambda v: all_gather(v, "i", axis=1, tiled=True),
    "psum_scatter": lambda v: psum_scatter(v, "i"),
    "psum_scatter, tiled": lambda v: psum_scatter(v, "i", tiled=True),
    "ppermute": lambda v: ppermute(v, "i", [(0, 3), (3, 1)]),
    "all_to_all": lambda v: all_to_all(v, "i", 0, 1),
    "all_to_all, tiled": lambda v: all_to_all(v, "i", 0, 1, tiled=True),
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", SAME)
def test_the_same_by_vmap_and_by_a_mesh(close, name):
    f = SAME[name]
    x = R.normal(size=(4, 4, 3)).astype(np.float32)
    devices = shard_map(
        lambda v: f(v[0])[None], mesh=make_mesh((4,), "i"), in_specs=P("i"), out_specs=P("i")
    )
    lanes = plait.vmap(f, axis_name="i")
    close(lanes(x), devices(x))
    close(plait.vmap(f, axis_name="i", in_axes=1)(x.swapaxes(0, 1)), devices(x))
    g = lambda h: plait.jit(plait.grad(lambda x: (sin(h(x)) * 2).sum()))  # noqa: E731
    close(g(lanes)(x), g(devices)(x))
    j = lambda h: plait.jvp(h, (x,), (x * x,))[1]  # noqa: E731
    close(j(lanes), j(devices))


def test_constraints_leave_the_mapped_axis_open(lies, close):
    f = plait.jit(plait.vmap(lambda a: with_sharding_constraint(a * 2, lies("x"))))
    big = np.stack([A] * 4)
    out = f(device_put(big, lies("y")))
    close(out, big * 2)
    assert out.sharding == lies("y", "x")  # not gathered to be mapped
    close(
        plait.vmap(lambda a: with_sharding_constraint(a * 2, lies("x", "y")), 1)(
            MANY.swapaxes(0, 1)
        ),
        MANY * 2,
    )
    close(
        plait.vmap(lambda a, b: a * with_sharding_constraint(b, lies("x")), (0, None))(MANY, A),
        MANY * A,
    )


def test_prints_for_each_element_and_piece(mesh):
    out = io.StringIO()

    def local(v):
        debug_print("{:.3f}", v[0, 0], file=out)
        return v

    f = shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
    plait.jit(plait.vmap(f))(MANY)
    assert sorted(out.getvalue().split()) == sorted(f"{v:.3f}" for v in MANY[:, ::4, ::4].ravel())
