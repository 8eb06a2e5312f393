"""What custom rules remember: it belongs to one call, never to the function.

The tree of residuals, the tree of results, what the function and its rules close over, and the
rules themselves may all differ from call to call.
"""

import numpy as np
import pytest

import plait
from plait import lax

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


# ---- what functions and rules close over -----------------------------------------------------


class Holder:
    w = None


def test_closed_over_holder_of_a_tracer():
    """What a custom function reads from an object may be a traced value of the caller's."""
    m = Holder()
    f = plait.custom_jvp(lambda x: x * m.w)
    f.defjvp(lambda p, t: (p[0] * m.w, t[0] * m.w))

    def use(w, x):
        m.w = w
        return plait.grad(lambda x: f(x))(x) + f(x)

    assert plait.jit(use)(f32(3), f32(2)).item() == 3 + 6
    np.testing.assert_array_equal(plait.vmap(use)(f32([3, 4]), f32([2, 1])), [9, 8])
    loop = lambda x: lax.scan(lambda c, w: (use(w, c), None), x, f32([2, 3]))[0]  # noqa: E731
    assert loop(f32(1)).item() == 3 + 3 * (2 + 2)
    assert plait.grad(loop)(f32(1)).item() == 6


def scaled(k, x):
    """Custom forward rule over a closed-over `k`."""

    @plait.custom_jvp
    def g(y):
        return y * k

    g.defjvp(lambda p, t: (p[0] * k, t[0] * k))
    return g(x)


def scaled_back(k, x):
    """Custom pullback over a closed-over `k`, in the residuals and in the closure."""

    @plait.custom_vjp
    def g(y):
        return y * k

    g.defvjp(lambda y: (y * k, k), lambda r, ct: (ct * r,))
    return g(x)


def scaled_back_late(k, x):
    """Only `bwd` mentions the closed-over `k`."""

    @plait.custom_vjp
    def g(y):
        return y * 3.0

    g.defvjp(lambda y: (y * 3.0, None), lambda _, ct: (ct * k,))
    return g(x)


@pytest.mark.parametrize("f", [scaled, scaled_back])
def test_closed_over_tracers(f):
    """Custom functions and rules may close over values of jit, vmap and scan around them."""
    assert plait.jit(f)(f32(3), f32(2)).item() == 6
    np.testing.assert_array_equal(plait.vmap(f)(f32([3, 4]), f32([2, 2])), [6, 8])
    assert plait.jit(plait.grad(f, 1))(f32(3), f32(1)).item() == 3
    np.testing.assert_array_equal(plait.vmap(plait.grad(f, 1))(f32([3, 4]), f32([1, 2])), [3, 4])
    over = lambda x: plait.vmap(f)(f32([3, 4]), x).sum()  # noqa: E731
    np.testing.assert_array_equal(plait.grad(over)(f32([1, 2])), [3, 4])
    loop = lambda x: lax.scan(lambda c, r: (f(r, c), None), x, f32([2, 3]))[0]  # noqa: E731
    assert loop(f32(1)).item() == 6
    assert plait.grad(loop)(f32(1)).item() == 6
    assert plait.jit(plait.grad(loop))(f32(1)).item() == 6
    np.testing.assert_array_equal(plait.vmap(plait.grad(loop))(f32([1, 2])), [6, 6])
    assert plait.grad(plait.checkpoint(loop))(f32(1)).item() == 6
    outer = lambda k: plait.grad(lambda x: f(k, x))(f32(2))  # noqa: E731
    assert plait.grad(lambda k: outer(k) * k)(f32(3)).item() == 6


def test_pullback_alone_closes_over():
    """A closure of `bwd` alone reaches it: through jit, vmap, scan, and both at once."""
    f = scaled_back_late
    assert plait.jit(plait.grad(f, 1))(f32(5), f32(1)).item() == 5
    np.testing.assert_array_equal(plait.vmap(plait.grad(f, 1))(f32([5, 7]), f32([1, 2])), [5, 7])
    loop = lambda x: lax.scan(lambda c, r: (f(r, c), None), x, f32([2, 3]))[0]  # noqa: E731
    assert plait.grad(loop)(f32(1)).item() == 6
    assert plait.jit(plait.grad(loop))(f32(1)).item() == 6
    over = lambda x: plait.vmap(f)(f32([5, 7]), x).sum()  # noqa: E731
    np.testing.assert_array_equal(plait.grad(over)(f32([1, 2])), [5, 7])
    np.testing.assert_array_equal(plait.grad(plait.jit(over))(f32([1, 2])), [5, 7])


def test_rule_that_calls_its_own_function():
    """A rule may call the function it serves: derivatives of any order, staged or not."""
    s = plait.custom_jvp(lambda x: lax.tanh(x))
    s.defjvp(lambda p, t: (s(p[0]), t[0] * (1.0 - s(p[0]) * s(p[0]))))
    third = plait.grad(plait.grad(plait.grad(plait.jit(lambda x: s(x)))))(f32(0.3))
    y = np.tanh(0.3)
    np.testing.assert_allclose(third, -2 * (1 - y * y) * (1 - 3 * y * y), rtol=1e-5)
    twice = lambda x: lax.scan(lambda c, _: (s(c), None), x, None, length=2)[0]  # noqa: E731
    got = plait.vmap(plait.grad(plait.grad(twice)))(pnp.asarray(np.array([0.3, 0.1])))

    def d2(x, h=1e-4):
        f = lambda x: np.tanh(np.tanh(x))  # noqa: E731
        return (f(x + h) - 2 * f(x) + f(x - h)) / h**2

    np.testing.assert_allclose(got, [d2(0.3), d2(0.1)], rtol=1e-6)


def test_integer_arguments():
    """Integers have no derivative; pullbacks return None for them, mapped and looped too."""

    @plait.custom_vjp
    def f(x, n):
        return x * n

    f.defvjp(lambda x, n: (x * n, (n,)), lambda r, ct: (ct * r[0], None))
    n = pnp.asarray(np.array([3, 4], np.int32))
    assert plait.grad(f)(f32(2), n[0]).item() == 3
    np.testing.assert_array_equal(plait.vmap(plait.grad(f))(f32([2, 1]), n), [3, 4])
    np.testing.assert_array_equal(plait.jit(plait.vmap(plait.grad(f)))(f32([2, 1]), n), [3, 4])
    np.testing.assert_array_equal(plait.vmap(lambda n: plait.grad(f)(f32(2), n))(n), [3, 4])
    step = lambda c, _: (plait.vmap(f)(c, n), None)  # noqa: E731
    loop = plait.jit(lambda x: lax.scan(step, x, None, length=2)[0].sum())
    np.testing.assert_array_equal(plait.grad(loop)(f32([1, 1])), [9, 16])


def test_closed_over_arrays_of_every_rank():
    """Arrays in the closure of a custom function keep their own rank under every mapping."""
    k, v = f32(3), f32([3, 4])
    one = plait.custom_jvp(lambda x: x * v)
    one.defjvp(lambda p, t: (p[0] * v, t[0] * v))
    x = f32([[1, 2], [3, 4]])
    np.testing.assert_array_equal(plait.vmap(one)(x), [[3, 8], [9, 16]])
    total = lambda x: plait.vmap(plait.jit(lambda y: one(y)))(x).sum()  # noqa: E731
    np.testing.assert_array_equal(plait.grad(total)(x), [[3, 4], [3, 4]])
    np.testing.assert_array_equal(plait.vmap(plait.vmap(one))(f32([[[1, 2]]])), [[[3, 8]]])
    loop = lambda x: lax.scan(lambda c, _: (one(c), None), x, None, length=2)[0].sum()  # noqa: E731
    np.testing.assert_array_equal(plait.grad(loop)(f32([1, 1])), [9, 16])
    constant = plait.custom_jvp(lambda x: v)
    constant.defjvp(lambda p, t: (v, t[0] * 0.0))
    np.testing.assert_array_equal(plait.jit(lambda x: constant(x))(f32([1, 1])), [3, 4])
    np.testing.assert_array_equal(plait.vmap(constant)(f32([[1, 1]])), [[3, 4]])
    mapped = plait.vmap(plait.jit(lambda x: constant(x) + x))(f32([[1, 1]]))
    np.testing.assert_array_equal(mapped, [[4, 5]])
    spread = plait.custom_jvp(lambda x: x + pnp.broadcast_to(k, (2,)))
    spread.defjvp(lambda p, t: (spread(p[0]), t[0]))
    np.testing.assert_array_equal(plait.vmap(spread, in_axes=1)(f32([[1], [2]])), [[4, 5]])
    g = plait.grad(lambda x: plait.jit(lambda x: spread(x))(x).sum())(f32([1, 2]))
    np.testing.assert_array_equal(g, [1, 1])
