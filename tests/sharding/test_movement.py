"""device_put and constraints under derivatives and maps."""

import re

import numpy as np
import pytest

import plait
from plait_sharding import P, device_put, with_sharding_constraint

A = np.arange(16, dtype=np.float32).reshape(4, 4)


@pytest.mark.feature("S41")
def test_derivatives_of_a_move(lies, close):
    """The cotangent goes back; the original of what is differentiated is not deleted."""
    x = plait.numpy.asarray(A)
    for where in (plait.devices()[1], lies("x"), None):
        f = lambda x: (device_put(x, where, donate=True) ** 2).sum()  # noqa: E731, B023
        close(plait.grad(f)(x), 2 * A)
        close(plait.jvp(f, (x,), (x,))[1], 2 * (A * A).sum())
        assert not x.is_deleted()
    moved = plait.linear_transpose(lambda x: device_put(x, lies("x"), donate=True), x)
    close(moved(x)[0], A)


@pytest.mark.feature("S26")
def test_derivatives_where_arrays_lie_without_a_mesh_around(lies, close):
    w = device_put(A, lies("x", "y"))
    f = plait.jit(lambda x, w: plait.numpy.sin(x @ w).sum(), in_shardings=(None, lies("x", "y")))
    want = np.cos(A @ A) @ A.T
    close(plait.grad(f)(A, w), want)
    known, linear = plait.linearize(lambda x: f(x, w), A)
    close(linear(np.ones_like(A)), want.sum())
    close(plait.jit(plait.grad(f))(A, w), want)


@pytest.mark.feature("S27")
def test_the_mapped_axis_is_the_compilers(lies):
    """Its place in the constraint is open, and nothing else is."""
    f = lambda a: with_sharding_constraint(a * 2, lies("x"))  # noqa: E731
    big = np.stack([A] * 8)
    for axis, spec in ((0, '{?}, {"x"}, {}'), (1, '{"x"}, {?}, {}'), (2, '{"x"}, {}, {?}')):
        text = plait.jit(plait.vmap(f, axis, axis)).lower(np.moveaxis(big, 0, axis)).as_text()
        assert f"[{spec}]" in text, text
    half = lambda a: with_sharding_constraint(a, lies(P.UNCONSTRAINED, "y"))  # noqa: E731
    text = plait.jit(plait.vmap(half)).lower(big).as_text()
    assert '[{?}, {?}, {"y"}]' in text, text
    (e,) = plait.make_program(plait.vmap(f))(big).eqns[-1:]
    assert isinstance(e.params["sharding"], plait.NamedSharding)


@pytest.mark.feature("S17")
def test_one_sum_over_the_product_of_axes(mesh, close):
    f = plait.shard_map(
        lambda v: plait.lax.psum(v, ("x", "y")), mesh=mesh, in_specs=P(("x", "y")), out_specs=P()
    )
    low = plait.jit(f).lower(np.arange(8, dtype=np.float32))
    assert low.as_text().count("stablehlo.all_reduce") == 1
    assert len(re.findall(r" all-reduce(-start)?\(", low.compile().as_text())) == 1
    close(plait.jit(f)(np.arange(8, dtype=np.float32)), [28.0])


# ---- between different devices ---------------------------------------------------------------


def _stages(x, moves):
    """Return a number that is computed in stages, with a move between each two."""
    for k, move in enumerate(moves):
        x = plait.jit(lambda v, k=k: v**2 / (k + 1) + v)(move(x))
    return plait.numpy.sum(x**2)


@pytest.mark.feature("S41")
@pytest.mark.parametrize("count", [1, 2, 3])
def test_cotangents_return_over_every_move(count, close):
    """Stages on devices that have none in common: their derivatives are those of one device, and
    lie where their arguments do."""
    ids = plait.devices()
    parts = [ids[:2], ids[2:4], ids[4:8], ids[1:2]]
    lie = [plait.NamedSharding(plait.sharding.Mesh(d, "x"), P("x")) for d in parts]
    x, v = np.linspace(0.5, 1.2, 4, dtype=np.float32), np.arange(1, 5, dtype=np.float32)
    moves = [lambda y, s=s: device_put(y, s) for s in lie[1 : count + 1]]
    there, here = lambda y: _stages(y, moves), lambda y: _stages(y, [lambda z: z] * count)
    y, w = device_put(x, lie[0]), device_put(v, lie[0])
    assert there(y).devices() == set(parts[count])
    along = lambda f: lambda y, w: plait.grad(lambda z: (plait.grad(f)(z) * w).sum())(y)  # noqa: E731
    for derivative in (
        lambda f: lambda y, w: plait.grad(f)(y),
        lambda f: lambda y, w: plait.vjp(f, y)[1](f(y))[0],
        lambda f: lambda y, w: plait.jvp(plait.grad(f), (y,), (w,))[1],
        along,
    ):
        got = derivative(there)(y, w)
        close(got, derivative(here)(x, v))
        assert got.sharding == lie[0]
    close(plait.jvp(there, (y,), (w,))[1], plait.jvp(here, (x,), (v,))[1])
    close(plait.linearize(there, y)[1](w), plait.jvp(here, (x,), (v,))[1])
    rows = device_put(np.stack([x, v]), lie[0].with_spec(P(None, "x")))
    got = plait.grad(lambda r: plait.vmap(there)(r).sum())(rows)
    close(got, plait.grad(lambda r: plait.vmap(here)(r).sum())(np.stack([x, v])))
    assert got.sharding == rows.sharding


@pytest.mark.feature("S41")
def test_the_gradient_lies_where_its_argument_does():
    a, b = plait.devices()[1:3]
    for given, where in ((device_put(2.0, a), a), (plait.numpy.asarray(np.float32(2)), None)):
        y, got = plait.value_and_grad(lambda x: device_put(x, b) ** 2)(given)
        assert (y.devices(), float(got)) == ({b}, 4.0)
        assert got.devices() == {where or plait.devices()[0]}
