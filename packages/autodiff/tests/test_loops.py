"""Derivatives of loops: how often they are traced, weak carries, forward mode of while.

Invariant: the references are derivatives of Python's loops.
"""

import numpy as np
import pytest

import plait
from plait import lax

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


# ---- weak carries ----------------------------------------------------------------------------


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
