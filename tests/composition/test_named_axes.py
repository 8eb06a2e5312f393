"""Named axes inside custom rules, and derivatives over them.

Invariant: the references are sums over the axis, written out.
"""

import numpy as np
import pytest

import plait
from plait import lax

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


# ---- named axes in rules ---------------------------------------------------------------------


def test_named_axes_in_rules():
    """A custom rule that speaks of an axis bound outside of the function it serves."""

    @plait.custom_jvp
    def total(x):
        return lax.psum(x, "i")

    total.defjvp(lambda p, t: (lax.psum(p[0], "i"), lax.psum(t[0], "i") * 1.0))
    f = plait.vmap(lambda x: plait.grad(lambda x: total(x) * x)(x), axis_name="i")
    plain = plait.vmap(lambda x: plait.grad(lambda x: lax.psum(x, "i") * x)(x), axis_name="i")
    np.testing.assert_allclose(f(f32([1, 2])), plain(f32([1, 2])))


LATE = {
    "bare": lambda f: f,
    "jit": lambda f: plait.jit(lambda x: f(x)),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "cond": lambda f: lambda x: lax.cond(x > -1, f, lambda x: x, x),
    "checkpoint": lambda f: plait.checkpoint(lambda x: f(x)),
}


@pytest.mark.parametrize("wrap", LATE)
def test_named_axes_in_rules_only(wrap):
    """A rule that speaks of an axis of which its function does not: the rule is traced late, and
    sees the axes that the call saw."""
    late = plait.custom_jvp(lambda x: x * 1.0)
    late.defjvp(lambda p, t: (p[0], lax.psum(t[0], "i")))
    h, x = LATE[wrap](late), f32([1, 2])
    assert h(f32(3)).item() == 3  # there is no axis, and no need of one
    inside = lambda x: plait.jvp(h, (f32(1),), (f32(1),))[1] + 0 * x  # noqa: E731
    np.testing.assert_array_equal(plait.vmap(inside, axis_name="i")(x), [2, 2])
    np.testing.assert_array_equal(plait.vmap(plait.jit(inside), axis_name="i")(x), [2, 2])
    outside = plait.jvp(plait.vmap(h, axis_name="i"), (x,), (f32([1, 1]),))[1]
    np.testing.assert_array_equal(outside, [2, 2])
    g = plait.grad(lambda x: plait.vmap(h, axis_name="i")(x).sum())(x)
    np.testing.assert_array_equal(g, [2, 2])
    three = f32([1, 2, 3])
    outside = plait.jvp(plait.vmap(h, axis_name="i"), (three,), (f32([1, 1, 1]),))[1]
    np.testing.assert_array_equal(outside, [3, 3, 3])


@pytest.mark.parametrize("wrap", LATE)
def test_axis_sizes_in_rules(wrap):
    """The size that a late rule sees is that of the axis of its own call."""
    late = plait.custom_jvp(lambda x: x * 1.0)
    late.defjvp(lambda p, t: (p[0], t[0] * lax.psum(1, "i")))
    h = LATE[wrap](late)
    for n in (2, 3, 2):
        x = f32(np.ones(n))
        got = plait.jvp(plait.vmap(h, axis_name="i"), (x,), (x,))[1]
        np.testing.assert_array_equal(got, [n] * n)
        inside = lambda x: plait.grad(h)(x)  # noqa: E731
        np.testing.assert_array_equal(plait.vmap(inside, axis_name="i")(x), [n] * n)


def test_pullbacks_over_named_axes():
    """Pullbacks that speak of an axis around."""
    f = plait.custom_vjp(lambda x: x * 1.0)
    f.defvjp(lambda x: (x * 1.0, None), lambda _, ct: (lax.psum(ct, "i"),))
    x = f32([1, 2])
    for wrap in LATE.values():
        h = wrap(f)
        np.testing.assert_array_equal(plait.vmap(plait.grad(h), axis_name="i")(x), [2, 2])
        g = plait.grad(lambda x, h=h: (plait.vmap(h, axis_name="i")(x) * f32([1, 10])).sum())(x)
        np.testing.assert_array_equal(g, [11, 11])


def test_derivatives_of_collectives():
    """Derivatives inside and outside the map that binds the axis."""
    x = f32([1, 2])
    square = lambda x: lax.psum(x * x, "i")  # noqa: E731
    inside = plait.vmap(plait.grad(square), axis_name="i")(x)
    np.testing.assert_array_equal(inside, 2 * 2 * np.array([1, 2]))
    outside = plait.grad(lambda v: plait.vmap(lambda x: square(x) * x, axis_name="i")(v).sum())(x)
    np.testing.assert_array_equal(outside, [5 + 2 * 1 * 3, 5 + 2 * 2 * 3])
