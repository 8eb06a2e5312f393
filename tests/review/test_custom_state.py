"""What custom rules remember: it belongs to one call, never to the function.

The tree of residuals, the tree of results, what the function and its rules close over, and the
rules themselves may all differ from call to call.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import ConcretizationError

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


# ---- trees of residuals and results ----------------------------------------------------------


@plait.custom_vjp
def absolute(x):
    return abs(x)


absolute.defvjp(
    lambda x: (abs(x), {"pos": x} if x > 0 else {"neg": x}),
    lambda r, ct: (ct * (1.0 if "pos" in r else -1.0),),
)


def test_residual_tree_of_each_call():
    """`fwd` may branch on values, so that two calls have residuals of different structure."""
    assert plait.grad(lambda x: absolute(x) + absolute(-x) * 10)(f32(2)).item() == 11
    assert plait.grad(lambda x: absolute(-x) * 10 + absolute(x))(f32(2)).item() == 11
    assert plait.grad(lambda x: absolute(x) * absolute(-x))(f32(2)).item() == 4
    assert plait.grad(absolute)(f32(-3)).item() == -1


def test_residual_count_of_each_call():
    """Their number may differ too."""

    @plait.custom_vjp
    def power(x):
        return x * x if x > 1 else x

    power.defvjp(
        lambda x: (x * x, [x, x]) if x > 1 else (x, []),
        lambda r, ct: (ct * (sum(r) if r else 1.0),),
    )
    assert plait.grad(lambda x: power(x) + 100 * power(x / 10))(f32(2)).item() == 4 + 10


def test_pullbacks_outlive_later_calls():
    """A pullback uses the residuals of its own call, whatever has been called since."""
    first, pull_first = plait.vjp(absolute, f32(2))
    second, pull_second = plait.vjp(absolute, f32(-2))
    assert pull_first(1.0)[0].item() == 1
    assert pull_second(1.0)[0].item() == -1
    assert pull_first(1.0)[0].item() == 1


def test_result_tree_of_each_call():
    """A function may return another structure for other arguments, and from call to call."""

    @plait.custom_jvp
    def f(x):
        return {"a": x * 2} if x.ndim else [x * 3, x]

    @f.defjvp
    def _(xs, ts):
        out, dot = f(*xs), ts[0]
        return out, ({"a": dot * 2} if dot.ndim else [dot * 3, dot])

    def both(x, v):
        return f(x)[0] + f(v)["a"].sum() + f(x)[1]

    gx, gv = plait.grad(both, (0, 1))(f32(1), f32([1, 2]))
    assert gx.item() == 4
    np.testing.assert_array_equal(gv, [2, 2])
    gx, gv = plait.grad(plait.jit(both), (0, 1))(f32(1), f32([1, 2]))
    assert gx.item() == 4
    np.testing.assert_array_equal(gv, [2, 2])


# ---- what functions and rules close over -----------------------------------------------------


class Holder:
    w = None


def test_closed_over_array_is_read_at_each_trace():
    """A custom function that closes over an array is staged for each trace, not once for ever."""
    m = Holder()
    f = plait.custom_jvp(lambda x: x * m.w)
    f.defjvp(lambda p, t: (p[0] * m.w, t[0] * m.w))
    for w in (2.0, 5.0):
        m.w = f32(w)
        assert plait.jit(lambda x: f(x))(f32(1)).item() == w
        assert plait.grad(plait.jit(lambda x: f(x)))(f32(1)).item() == w
        assert f(f32(1)).item() == w
        assert plait.grad(f)(f32(1)).item() == w
        assert plait.grad(plait.checkpoint(lambda x: f(x)))(f32(1)).item() == w


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


def test_replaced_rule_is_used():
    """`defjvp` again: everything that is traced from then on has the new rule."""
    f = plait.custom_jvp(lambda x: x * x)
    f.defjvp(lambda p, t: (p[0] * p[0], 2.0 * p[0] * t[0]))
    assert plait.grad(f)(f32(3)).item() == 6
    assert plait.grad(plait.jit(lambda x: f(x)))(f32(3)).item() == 6
    f.defjvp(lambda p, t: (p[0] * p[0], 7.0 * t[0]))
    assert plait.grad(f)(f32(3)).item() == 7
    assert plait.grad(plait.jit(lambda x: f(x)))(f32(3)).item() == 7


def test_closed_over_array_is_no_text():
    """A megabyte that is closed over is not printed into the module."""
    big = pnp.asarray(np.random.RandomState(0).randn(1 << 18).astype(np.float32))
    f = plait.custom_jvp(lambda x: (x * big).sum())
    f.defjvp(lambda p, t: (f(p[0]), (t[0] * big).sum()))
    for g in (lambda x: f(x), plait.grad(lambda x: f(x)), lambda x: (x * big).sum()):
        assert len(plait.jit(g).lower(f32(1)).as_text()) < 10_000
    np.testing.assert_allclose(plait.jit(plait.grad(f))(f32(1)), np.asarray(big).sum(), rtol=1e-3)


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


def test_failing_rule_can_be_tried_again():
    """An exception in a rule leaves nothing half made."""
    fails = [True]
    f = plait.custom_jvp(lambda x: x * x)

    @f.defjvp
    def _(p, t):
        if fails[0]:
            raise ValueError("not yet")
        return p[0] * p[0], 2.0 * p[0] * t[0]

    g = plait.jit(lambda x: f(x))
    with pytest.raises(ValueError, match="not yet"):
        plait.grad(g)(f32(3))
    fails[0] = False
    assert plait.grad(g)(f32(3)).item() == 6


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


def test_branching_on_a_closed_over_array():
    """A custom function may branch on an array it closes over: on the array itself in a staged
    function, on what is computed of it in one that is not."""
    v = f32([3, 4])
    f = plait.custom_jvp(lambda x: x * 2.0 if v[0] > 1.0 else x)
    f.defjvp(lambda p, t: (f(p[0]), t[0] * 2.0))
    assert f(f32(1)).item() == 2
    assert plait.grad(f)(f32(1)).item() == 2
    g = plait.custom_jvp(lambda x: x * 2.0 if np.asarray(v)[0] > 1.0 else x)
    g.defjvp(lambda p, t: (g(p[0]), t[0] * 2.0))
    assert plait.jit(lambda x: g(x))(f32(1)).item() == 2
    assert plait.grad(plait.jit(lambda x: g(x)))(f32(1)).item() == 2
    with pytest.raises(ConcretizationError):
        plait.jit(lambda x: f(x))(f32(1))
