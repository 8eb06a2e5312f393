"""What custom derivative rules remember belongs to one call, never to the function.

Invariant: calls that differ in structure or in what is closed over do not disturb one another.
"""

import numpy as np
import pytest

import plait
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
