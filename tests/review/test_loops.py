"""Loops: how often they are traced, what carries become, empty ones, and forward mode of all."""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import (
    AxisError,
    TypeRule,
)

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


# ---- weak carries ----------------------------------------------------------------------------


def test_python_numbers_as_carries():
    """A carry that starts as a Python number takes the dtype that the step gives it."""
    assert lax.scan(lambda c, _: (c + 0.5, None), 0, None, length=4)[0].item() == 2
    out = lax.while_loop(lambda s: s[1] < 4, lambda s: (s[0] + 0.5, s[1] + 1), (0, 0))
    assert [o.item() for o in out] == [2, 4]
    assert lax.fori_loop(0, 4, lambda i, c: c + 0.5, 0).item() == 2
    wide = pnp.asarray(np.array([1.0, 2.0]))
    out, _ = lax.scan(lambda c, x: (c + x, None), 0.0, wide)
    assert out.dtype == np.float64 and out.item() == 3
    out = lax.while_loop(lambda s: s[0] < 3.0, lambda s: (s[0] + wide[0], s[1] + 1), (0.0, 0))
    assert out[0].dtype == np.float64 and [o.item() for o in out] == [3, 3]


def test_strong_carries_are_not_cut_down():
    """A strong carry whose step gives a wider kind is an error, not truncated."""
    with pytest.raises(TypeRule, match="must keep its type"):
        lax.scan(lambda c, _: (c * 0.5, None), pnp.asarray(np.int32(7)), None, length=1)
    with pytest.raises(TypeRule, match="must keep its type"):
        lax.while_loop(lambda c: c < 9, lambda c: c * 1.5, pnp.asarray(np.int32(7)))


def test_carries_that_settle_one_after_the_other():
    """A dtype that reaches one carry through another."""
    x = pnp.asarray(np.array([1.0, 2.0]))
    a, b = lax.scan(lambda c, x: ((c[1], x), None), (0.0, 0.0), x)[0]
    assert (a.dtype, b.dtype) == (np.float64, np.float64)
    assert (a.item(), b.item()) == (1, 2)
    a, b, c = lax.scan(lambda s, x: ((s[1], s[2], x), None), (0, 0, 0), x)[0]
    assert [v.item() for v in (a, b, c)] == [0, 1, 2]
    assert a.dtype == b.dtype == c.dtype == np.float64


def test_weak_carries_and_derivatives():
    """A weak carry that takes the type of what is differentiated."""
    x = pnp.asarray(np.float64(1))
    f = lambda x: lax.scan(lambda c, _: (c + x, 1.0), 0.0, None, length=2)  # noqa: E731
    (c, ys), (dc, dys) = plait.jvp(f, (x,), (1.0,))
    assert (c.item(), dc.item()) == (2, 2) and c.dtype == np.float64
    np.testing.assert_array_equal(ys, [1, 1])
    np.testing.assert_array_equal(dys, [0, 0])
    assert plait.grad(lambda x: f(x)[0])(x).item() == 2


# ---- how often Python runs -------------------------------------------------------------------


def nested(depth, init, count):
    """Loops in loops that close over the values of those around them."""
    if not depth:

        def leaf(x):
            count[0] += 1
            return lax.sin(x)

        return leaf
    inner = nested(depth - 1, init, count)
    return lambda x: lax.scan(lambda c, _: (c + inner(x + c) * x, None), init, None, length=2)[0]


@pytest.mark.parametrize("init", [0.0, np.float32(0)], ids=["weak", "strong"])
def test_traces_of_nested_loops(init):
    """A loop whose carry keeps its dtype is traced once, however deep it lies."""
    for depth in (2, 8, 14):
        count = [0]
        plait.make_program(nested(depth, init, count))(f32(0.5))
        assert count[0] <= 2
    count = [0]
    plait.make_program(plait.grad(nested(8, init, count)))(f32(0.5))
    assert count[0] <= 2


def np_nested(depth, x):
    if not depth:
        return np.sin(x)
    c = 0.0
    for _ in range(2):
        c = c + np_nested(depth - 1, x + c) * x
    return c


def test_nested_loops_are_right():
    """Value and derivative of nested loops."""
    x, h = np.float64(0.5), 1e-6
    f = nested(4, 0.0, [0])
    np.testing.assert_allclose(f(pnp.asarray(x)), np_nested(4, x), rtol=1e-12)
    want = (np_nested(4, x + h) - np_nested(4, x - h)) / (2 * h)
    np.testing.assert_allclose(plait.grad(f)(pnp.asarray(x)), want, rtol=1e-7)


def test_traces_of_a_while_loop():
    """The body of a while_loop with Python numbers as carry, closing over a traced value."""
    for init in ((0, 1.0), (pnp.asarray(np.int32(0)), f32(1))):
        count = [0]

        def f(k, init=init, count=count):
            def body(s):
                count[0] += 1
                return s[0] + 1, s[1] * k

            return lax.while_loop(lambda s: s[0] < 3, body, init)[1]

        plait.make_program(f)(f32(1))
        assert count[0] == 1
        np.testing.assert_allclose(plait.jit(f)(f32(2)), 8)


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


def test_empty_scan():
    """A scan over nothing returns its first carry and nothing stacked."""
    none = f32(np.zeros((0,)))
    for wrap in (lambda f: f, plait.jit):
        c, ys = wrap(lambda c: lax.scan(lambda c, r: (c + r, c), c, none))(f32(3))
        assert c.item() == 3 and ys.shape == (0,)
        c, ys = wrap(lambda c: lax.scan(lambda c, _: (c * 2, c[None]), c, None, length=0))(f32(3))
        assert c.item() == 3 and ys.shape == (0, 1)


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


def test_jacobian_of_while():
    """jacfwd of a while_loop, which the error of reverse mode recommends."""
    x = np.array([1.0, 2.0])
    want = np.diag([np_slope(v)[1] for v in x])
    np.testing.assert_allclose(plait.jacfwd(power)(pnp.asarray(x)), want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        plait.jit(plait.jacfwd(power))(pnp.asarray(x)), want, rtol=1e-12, atol=1e-12
    )
    with pytest.raises(plait.PlaitError, match="jacfwd") as caught:
        plait.grad(lambda x: power(x).sum())(pnp.asarray(x))
    line = power.__code__.co_firstlineno + 2
    assert f"{__file__}:{line}" in str(caught.value)
    with pytest.raises(plait.PlaitError, match="jacfwd") as caught:
        plait.grad(plait.jit(lambda x: power(x).sum()))(pnp.asarray(x))
    assert f"{__file__}:{line}" in str(caught.value)


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


def test_linearized_while_with_known_parts():
    """What does not vary is computed once; a predicate that varies is refused."""

    def f(x, n):
        turn = lambda s: (s[0] + 1, s[1] * 2, s[2] * x + s[1])  # noqa: E731
        return lax.while_loop(lambda s: s[0] < n, turn, (0, 1.0, x))

    def np_f(x, n):
        i, k, y, t = 0, 1.0, x, 1.0
        while i < n:
            i, k, y, t = i + 1, k * 2, y * x + k, t * x + y
        return i, k, y, t

    x, n = np.float64(0.7), pnp.asarray(np.int32(4))
    for g in (f, plait.jit(f), plait.checkpoint(f)):
        out, f_lin = plait.linearize(lambda x, g=g: g(x, n)[1:], pnp.asarray(x))
        dots = f_lin(pnp.asarray(np.float64(2)))
        want = np_f(x, 4)
        np.testing.assert_allclose([o.item() for o in out], want[1:3], rtol=1e-6)
        np.testing.assert_allclose([d.item() for d in dots], [0, 2 * want[3]], rtol=1e-12)
    twice = lambda x: plait.linearize(lambda x: f(x, n)[2], x)[1](1.0)  # noqa: E731
    h = 1e-5
    second = (np_f(x + h, 4)[3] - np_f(x - h, 4)[3]) / (2 * h)
    np.testing.assert_allclose(plait.jvp(twice, (pnp.asarray(x),), (1.0,))[1], second, rtol=1e-8)
    np.testing.assert_allclose(plait.linearize(twice, pnp.asarray(x))[1](1.0), second, rtol=1e-8)


# ---- mistakes --------------------------------------------------------------------------------


def test_lengths():
    """A scan that knows no length, or two."""
    step = lambda c, r: (c, c)  # noqa: E731
    with pytest.raises(AxisError, match="neither xs nor length"):
        lax.scan(step, f32(0), None)
    with pytest.raises(AxisError, match="differ"):
        lax.scan(step, f32(0), (f32([1]), f32([1, 2])))
    with pytest.raises(AxisError, match="differ"):
        lax.scan(step, f32(0), f32([1, 2]), length=3)
    with pytest.raises(AxisError, match="rows"):
        lax.scan(step, f32(0), f32(1))
