"""Rules that reach for a value of the very transformation they serve, and closures that may.

A rule runs below its transformation.  If it closes over a value of that transformation, the
levels would be turned upside down, and a derivative silently lost; so that is an error, which
names the line that made the value and the line that used it.
"""

import inspect

import numpy as np
import pytest

import plait
import plait_autodiff.ext
import plait_batching.ext
from plait import ext, lax
from plait.errors import UnexpectedTracerError

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def here(offset=0):
    """`file:line` of the caller, as errors say it."""
    return f"{__file__}:{inspect.currentframe().f_back.f_lineno + offset}"


def closing_jvp(x):
    """A derivative rule that closes over the value being differentiated."""

    @plait.custom_jvp
    def g(y):
        return y * x

    g.defjvp(lambda ps, ts: (ps[0] * x, ts[0] * x))
    return g(x)


def closing_vjp(x):
    @plait.custom_vjp
    def g(y):
        return y * x

    g.defvjp(lambda y: (y * x, ()), lambda r, ct: (ct * x,))
    return g(x)


def closing_residual(x):
    @plait.custom_vjp
    def g(y):
        return y * x

    g.defvjp(lambda y: (y * x, (x,)), lambda r, ct: (ct * r[0],))
    return g(x)


ways = {
    "grad": lambda f: plait.grad(f)(f32(3)),
    "jvp": lambda f: plait.jvp(f, (f32(3),), (1.0,)),
    "jvp of jvp": lambda f: plait.jvp(lambda x: plait.jvp(f, (x,), (1.0,))[1], (f32(3),), (1.0,)),
    "linearize": lambda f: plait.linearize(f, f32(3)),
    "grad of grad": lambda f: plait.grad(plait.grad(f))(f32(3)),
    "jit of grad": lambda f: plait.jit(plait.grad(f))(f32(3)),
}
staged_ways = {
    "grad of jit": lambda f: plait.grad(plait.jit(f))(f32(3)),
    "grad of checkpoint": lambda f: plait.grad(plait.checkpoint(f))(f32(3)),
    "grad of scan": lambda f: plait.grad(
        lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]
    )(f32(3)),
}


FUNCTIONS = (closing_jvp, closing_vjp, closing_residual)
CASES = [(f, w) for f in FUNCTIONS for w in ways if f is closing_jvp or "jvp" not in w]


@pytest.mark.parametrize("f,way", CASES)
def test_rule_over_its_own_level(f, way):
    """A custom rule that closes over what is being differentiated is refused, at every order."""
    with pytest.raises(UnexpectedTracerError) as caught:
        ways[way](f)
    text = str(caught.value)
    assert __file__ in text
    assert f.__name__ in text or "closes over" in text


@pytest.mark.parametrize("way", staged_ways)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_staged_rule_over_its_own_level(f, way):
    """The same where the function has been staged first: an error, never a wrong number."""
    with pytest.raises(plait.PlaitError, match="closes over"):
        staged_ways[way](f)


def test_names_both_lines():
    """The error says where the value was made, where it was used, and what to write."""
    made = used = None

    def f(x):
        nonlocal made, used
        k = x * 2
        made = here(-1)

        @plait.custom_jvp
        def g(y):
            return y * 1

        @g.defjvp
        def _(ps, ts):
            nonlocal used
            used = here(1)
            return ps[0], ts[0] * k

        return g(x)

    with pytest.raises(UnexpectedTracerError) as caught:
        plait.jvp(f, (f32(3),), (1.0,))
    assert made in str(caught.value)
    assert used in str(caught.value)
    assert "argument" in caught.value.fix


def test_nothing_is_left_behind():
    """After such an error everything works as before."""
    for _ in range(2):
        with pytest.raises(UnexpectedTracerError):
            plait.grad(closing_jvp)(f32(3))
    assert plait.grad(lambda x: x * x)(f32(3)).item() == 6


def test_outer_levels_may_be_closed_over():
    """What belongs to a transformation further out is a constant of the inner one."""

    def scaled(k, x):
        @plait.custom_jvp
        def g(y):
            return y * k

        g.defjvp(lambda ps, ts: (ps[0] * k, ts[0] * k))
        return g(x)

    inner = lambda k: plait.grad(lambda x: scaled(k, x))(f32(2))  # noqa: E731
    assert inner(f32(3)).item() == 3
    np.testing.assert_array_equal(plait.vmap(inner)(f32([3, 4])), [3, 4])
    assert plait.jit(inner)(f32(3)).item() == 3
    assert plait.grad(inner)(f32(3)).item() == 1  # d/dk of d/dx (x * k)


def test_perturbations_are_told_apart():
    """Nested derivatives with closures: each level sees its own perturbation only."""
    confusing = plait.grad(lambda x: x * plait.grad(lambda y: x + y)(1.0))
    assert confusing(f32(1)).item() == 1  # d/dx (x * 1)
    third = plait.grad(lambda x: x * plait.grad(lambda y: x * y * y)(x))
    assert third(f32(2)).item() == 3 * 2 * 4  # x * 2 x x = 2 x^3
    mixed = lambda x: plait.jvp(lambda y: plait.grad(lambda z: z * y * x)(y), (x,), (1.0,))[1]  # noqa: E731
    assert plait.grad(mixed)(f32(3)).item() == 1  # d/dy (y x) = x


def test_saved_value_of_a_level_around():
    """A value kept from the function around is as good as one closed over."""
    saved = []

    def f(x):
        saved.append(x)
        return plait.grad(lambda y: y * saved[0])(x)

    assert plait.grad(f)(f32(2)).item() == 1


def test_ground_cannot_take_tracers():
    """Leaving all transformations on purpose, with their values in hand, is refused too."""
    ground = ext.current()

    def f(x):
        with ext.use(ground):
            y = x * x
        return y * x

    with pytest.raises(UnexpectedTracerError):
        plait.grad(f)(f32(3))
    assert ext.current() is ground


def test_ground_takes_arrays():
    """What does not belong to a transformation may be computed outside of it."""
    ground = ext.current()

    def f(x):
        with ext.use(ground):
            k = lax.sin(f32(1))
        return x * k

    np.testing.assert_allclose(plait.grad(f)(f32(2)), np.sin(np.float32(1)), rtol=1e-6)
    np.testing.assert_allclose(plait.jit(f)(f32(2)), 2 * np.sin(np.float32(1)), rtol=1e-6)


def test_rules_may_close_over_what_they_are_given():
    """A rule may loop and branch in Python over its own operands, values and directions alike."""
    p = ext.Primitive("levels.twice", lambda x: x)
    ext.expand_rules.rule(p)(lambda x: lax.cond(x.sum() > 0, lambda: x * 2, lambda: x * 2))

    @plait_autodiff.ext.jvp_rules.rule(p)
    def _(xs, ts):
        (x,), (t,) = xs, ts
        dot = lax.scan(lambda c, _: (c + t + 0 * x, None), t * 0, None, length=2)[0]
        return p.bind(x), lax.cond(x > 0, lambda: dot, lambda: dot * 1)

    f = lambda x: p(p(x) * x)  # noqa: E731
    for g in (f, plait.jit(f), plait.checkpoint(f)):
        assert g(f32(3)).item() == 36
        assert plait.jvp(g, (f32(3),), (1.0,))[1].item() == 24
        assert plait.grad(g)(f32(3)).item() == 24
        assert plait.linearize(g, f32(3))[1](1.0).item() == 24
        assert plait.grad(plait.grad(g))(f32(3)).item() == 8
        assert plait.jit(plait.grad(g))(f32(3)).item() == 24
        np.testing.assert_array_equal(plait.vmap(plait.grad(g))(f32([3, 1])), [24, 8])
        total = plait.grad(lambda x, g=g: plait.vmap(g)(x).sum())
        np.testing.assert_array_equal(total(f32([3, 1])), [24, 8])


def test_transposed_rules_may_close_over_what_they_are_given():
    """The same of rules that reverse."""
    p = ext.Primitive("levels.thrice", lambda x: x)
    ext.lower_rules.rule(p)(lambda e, xs, ins, outs: e.op("stablehlo.add", [*xs, *xs], *outs))
    plait_autodiff.ext.jvp_rules.rule(p)(lambda xs, ts: (p.bind(*xs), p.bind(*ts)))
    plait_batching.ext.batching_rules.rule(p)(lambda b, xs, dims: (p.bind(*xs), dims[0]))

    @plait_autodiff.ext.transpose_rules.rule(p)
    def _(ct, x):
        return [lax.scan(lambda c, _: (c + ct, None), ct * 0, None, length=2)[0]]

    for g in (p, plait.jit(lambda x: p(x)), plait.checkpoint(lambda x: p(x))):
        square = lambda x, g=g: g(x) * x  # noqa: E731
        assert plait.grad(square)(f32(3)).item() == 12
        assert plait.jit(plait.grad(square))(f32(3)).item() == 12
        assert plait.grad(plait.grad(square))(f32(3)).item() == 4
        np.testing.assert_array_equal(plait.vmap(plait.grad(square))(f32([3, 1])), [12, 4])
