"""Loops: how often they are traced, what carries become, empty ones, and forward mode of all."""

import numpy as np

import plait
from plait import lax

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


# ---- how often Python runs -------------------------------------------------------------------


def test_traces_are_remembered():
    """A step with a name is traced once for many loops, whatever transforms them."""
    count = [0]

    def step(c, x):
        count[0] += 1
        return lax.sin(c) + x, c

    xs = f32([1, 2, 3])
    loop = lambda c: lax.scan(step, c, xs)[0]  # noqa: E731
    for _ in range(3):
        loop(f32(0))
        plait.grad(loop)(f32(0))
        plait.jit(lambda c: loop(c))(f32(0))
        plait.vmap(loop)(f32([0, 1]))
    assert count[0] == 1


# ---- loops of no turns -----------------------------------------------------------------------


def test_derivatives_of_an_empty_scan():
    """Its derivatives, maps, and both."""
    none = f32(np.zeros((0,)))
    f = lambda x: lax.scan(lambda c, r: (c * r, c), x, none)[0] * x  # noqa: E731
    assert plait.grad(f)(f32(3)).item() == 6
    assert plait.grad(plait.grad(f))(f32(3)).item() == 2
    assert plait.jit(plait.grad(f))(f32(3)).item() == 6
    g = lambda x: lax.scan(lambda c, _: (c * x, None), x, None, length=0)[0]  # noqa: E731
    assert plait.grad(g)(f32(3)).item() == 1
    assert plait.grad(plait.checkpoint(g))(f32(3)).item() == 1
    ys = plait.vmap(lambda x: lax.scan(lambda c, r: (c * r, c), x, none)[1])(f32([3, 1]))
    assert ys.shape == (2, 0)
    np.testing.assert_array_equal(plait.vmap(plait.grad(f))(f32([3, 1])), [6, 2])
    into = plait.grad(lambda r: lax.scan(lambda c, r: (c * r, c), f32(1), r)[0])(none)
    assert into.shape == (0,)


def test_no_turns():
    """while_loop and fori_loop that never turn."""
    never = lambda x: lax.while_loop(lambda s: s < 0.0, lambda s: s / 0.0, x)  # noqa: E731
    np.testing.assert_array_equal(plait.vmap(never)(f32([1, 2])), [1, 2])
    primal, dot = plait.jvp(plait.vmap(never), (f32([1, 2]),), (f32([3, 4]),))
    np.testing.assert_array_equal(primal, [1, 2])
    np.testing.assert_array_equal(dot, [3, 4])
    assert lax.fori_loop(5, 3, lambda i, x: x * 2.0, f32(1)).item() == 1
    assert plait.grad(lambda x: lax.fori_loop(5, 3, lambda i, x: x * 2.0, x))(f32(1)).item() == 1


def test_map_of_nothing():
    """vmap over an axis of size 0, with a loop inside whose predicate varies."""
    loop = lambda x: lax.while_loop(lambda s: s < 1.0, lambda s: s + x, x)  # noqa: E731
    out = plait.vmap(loop)(f32(np.zeros((0,))))
    assert out.shape == (0,)
    g = plait.grad(lambda x: plait.vmap(lambda r: lax.sin(r))(x).sum())(f32(np.zeros((0,))))
    assert g.shape == (0,)


# ---- forward mode of while -------------------------------------------------------------------


def power(x):
    turn = lambda s: (s[0] + 1, s[1] * lax.sin(s[1]))  # noqa: E731
    return lax.while_loop(lambda s: s[0] < 3, turn, (0, x))[1]


def np_slope(x):
    y, t = x, 1.0
    for _ in range(3):
        y, t = y * np.sin(y), t * (np.sin(y) + y * np.cos(y))
    return y, t


def test_linearized_while():
    """linearize of a while_loop is forward mode: it needs nothing to be kept."""
    x = np.array([1.0, 2.0])
    y, f_lin = plait.linearize(power, pnp.asarray(x))
    np.testing.assert_allclose(y, [np_slope(v)[0] for v in x], rtol=1e-12)
    for t in ([1.0, 0.0], [0.5, -2.0]):
        want = np.array(t) * [np_slope(v)[1] for v in x]
        np.testing.assert_allclose(f_lin(pnp.asarray(np.array(t))), want, rtol=1e-12)
    mapped = plait.vmap(f_lin)(pnp.asarray(np.eye(2)))
    np.testing.assert_allclose(mapped, np.diag([np_slope(v)[1] for v in x]), rtol=1e-12)
