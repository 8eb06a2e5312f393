"""What a rule returns is checked before it is believed: shape, dtype, count and axis.

A derivative of the wrong type does not fail by itself; it becomes somebody's wrong gradient.
"""

import numpy as np
import pytest

import plait
import plait_autodiff.ext
import plait_batching.ext
from plait import ext, lax
from plait.ext.errors import TypeRule
from plait.ext.ops.elementwise import mul

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def f64(x):
    return pnp.asarray(np.asarray(x, np.float64))


def pullback(f, fwd, bwd):
    g = plait.custom_vjp(f)
    g.defvjp(fwd, bwd)
    return g


def direction(f, rule):
    g = plait.custom_jvp(f)
    g.defjvp(rule)
    return g


X = [1.0, 2.0]

REVERSE = {
    "eager": lambda f: plait.grad(lambda x: f(x).sum())(f32(X)),
    "jit of grad": lambda f: plait.jit(plait.grad(lambda x: f(x).sum()))(f32(X)),
    "grad of jit": lambda f: plait.grad(lambda x: plait.jit(f)(x).sum())(f32(X)),
    "vmap of grad": lambda f: plait.vmap(plait.grad(lambda x: f(x).sum()))(f32([X, X])),
    "grad of vmap": lambda f: plait.grad(lambda x: plait.vmap(f)(x).sum())(f32([X, X])),
    "grad of scan": lambda f: plait.grad(
        lambda x: lax.scan(lambda c, _: (c, f(c)), x, None, length=2)[1].sum()
    )(f32(X)),
    "grad of checkpoint": lambda f: plait.grad(lambda x: plait.checkpoint(f)(x).sum())(f32(X)),
    "vjp": lambda f: plait.vjp(f, f32(X))[1](pnp.ones(plait.eval_shape(f, f32(X)).shape)),
}

FORWARD = {
    "eager": lambda f: plait.jvp(f, (f32(X),), (f32(X),)),
    "jit of jvp": lambda f: plait.jit(lambda x: plait.jvp(f, (x,), (x,)))(f32(X)),
    "jvp of jit": lambda f: plait.jvp(plait.jit(f), (f32(X),), (f32(X),)),
    "vmap of jvp": lambda f: plait.vmap(lambda x: plait.jvp(f, (x,), (x,)))(f32([X, X])),
    "jvp of vmap": lambda f: plait.jvp(plait.vmap(f), (f32([X, X]),), (f32([X, X]),)),
    "grad": lambda f: plait.grad(lambda x: f(x).sum())(f32(X)),
    "jvp of scan": lambda f: plait.jvp(
        lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0], (f32(X),), (f32(X),)
    ),
}


@pytest.mark.parametrize("way", REVERSE)
def test_cotangent_of_another_shape(way):
    """A pullback that returns a scalar for a vector is refused, not taken for the gradient."""
    f = pullback(
        lambda x: (x * x).sum(), lambda x: ((x * x).sum(), x), lambda x, ct: ((2 * x * ct).sum(),)
    )
    with pytest.raises(TypeRule, match=r"cotangent of type f32\[\].*f32\[2\]"):
        REVERSE[way](f)


@pytest.mark.parametrize("way", REVERSE)
def test_cotangent_of_another_dtype(way):
    """Nor is a complex one; one of another precision is rounded."""
    f = pullback(lambda x: x * x, lambda x: (x * x, x), lambda x, ct: (2j * x * ct,))
    with pytest.raises(TypeRule, match=r"cotangent of type c64\[2\].*f32\[2\]"):
        REVERSE[way](f)
    wide = pullback(lambda x: x * x, lambda x: (x * x, x), lambda x, ct: (f64(1) * 2 * x * ct,))
    plain = pullback(lambda x: x * x, lambda x: (x * x, x), lambda x, ct: (2 * x * ct,))
    got, want = (plait.tree.leaves(REVERSE[way](g)) for g in (wide, plain))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        assert a.dtype == b.dtype


@pytest.mark.parametrize("way", FORWARD)
def test_tangent_of_another_shape(way):
    """A derivative rule that returns a scalar tangent for a vector is refused."""
    f = direction(lambda x: x * x, lambda p, t: (p[0] * p[0], (t[0] * 2).sum()))
    with pytest.raises(TypeRule, match=r"tangent of type f32\[\].*f32\[2\]"):
        FORWARD[way](f)


@pytest.mark.parametrize("way", FORWARD)
def test_tangent_of_another_dtype(way):
    """Nor is one of another precision, or an integer one."""
    wide = direction(lambda x: x * x, lambda p, t: (p[0] * p[0], t[0] * f64(2)))
    with pytest.raises(TypeRule, match=r"tangent of type f64\[2\].*f32\[2\]"):
        FORWARD[way](wide)
    whole = direction(lambda x: x * x, lambda p, t: (p[0] * p[0], t[0].astype(np.int32)))
    with pytest.raises(TypeRule, match=r"tangent of type i32\[2\].*f32\[2\]"):
        FORWARD[way](whole)


OTHERS = {
    "shape": lambda x: (x * x)[None],
    "dtype": lambda x: f64(1) * x * x,
    "number of results": lambda x: (x * x, x),
}

STAGED = ("grad of jit", "grad of scan", "grad of checkpoint", "grad of vmap")


@pytest.mark.parametrize("way", STAGED)
@pytest.mark.parametrize("other", OTHERS)
def test_forward_rule_returns_what_the_function_does(other, way):
    """`fwd` returns the value of the function: the same types, where the function was staged."""
    wrong = OTHERS[other]
    f = pullback(lambda x: x * x, lambda x: (wrong(x), x), lambda x, ct: (x,))
    with pytest.raises(TypeRule, match="the forward rule .* the function itself returns"):
        REVERSE[way](f)


@pytest.mark.parametrize("way", ("jvp of jit", "jvp of scan", "jvp of vmap"))
@pytest.mark.parametrize("other", OTHERS)
def test_derivative_rule_returns_what_the_function_does(other, way):
    """So does a derivative rule."""
    wrong = OTHERS[other]
    f = direction(lambda x: x * x, lambda p, t: (wrong(p[0]), wrong(t[0])))
    with pytest.raises(TypeRule, match="the derivative rule .* the function itself returns"):
        FORWARD[way](f)


# ---- rules of tables -------------------------------------------------------------------------


def party(name):
    """A stranger's primitive: its operand, said by its own expand rule."""
    p = ext.Primitive(f"boundaries.{name}", lambda x: x)
    ext.expand_rules.rule(p)(lambda x: mul.bind(x, ext.Literal(1.0, x.aval)))
    return p


def mappable(p):
    plait_batching.ext.batching_rules.rule(p)(lambda b, xs, dims: (p.bind(*xs), dims[0]))
    return p


def test_jvp_rule():
    """Forward rules of primitives are checked, eager and staged."""
    for k, wrong in enumerate([lambda t: t.sum(), lambda t: f64(1) * t, lambda t: t[None]]):
        p = mappable(party(f"forward{k}"))
        plait_autodiff.ext.jvp_rules.rule(p)(lambda xs, ts, w=wrong: (p.bind(*xs), w(ts[0])))
        for way in FORWARD.values():
            with pytest.raises(TypeRule, match="tangent of type"):
                way(lambda x: p(x))


def test_transpose_rule():
    """So are transposed ones."""
    for k, wrong in enumerate([lambda c: c.sum(), lambda c: f64(1) * c, lambda c: c[None]]):
        p = mappable(party(f"reverse{k}"))
        plait_autodiff.ext.jvp_rules.rule(p)(lambda xs, ts, p=p: (p.bind(*xs), p.bind(*ts)))
        plait_autodiff.ext.transpose_rules.rule(p)(lambda ct, x, w=wrong: [w(ct)])
        for way in REVERSE.values():
            with pytest.raises(TypeRule, match="cotangent of type"):
                way(lambda x, p=p: p(x))


def test_expand_rule_under_a_transformation():
    """The same where a transformation takes the expand rule for want of one of its own, if the
    setting `checks` is on."""
    p = ext.Primitive("boundaries.said_late", lambda x: x)
    ext.expand_rules.rule(p)(lambda x: x[None])
    with plait.config(checks=True):
        for f in (lambda x: plait.jvp(p, (x,), (x,)), lambda x: plait.vmap(p)(x)):
            with pytest.raises(TypeRule, match="'expand' rule"):
                f(f32(X))


def test_results_of_a_rule_are_counted():
    """A rule of an operation with many results returns all of them."""
    p = ext.Primitive("boundaries.pair", lambda x: [x, x], many=True)
    ext.expand_rules.rule(p)(lambda x: [x * 1, x * 2])
    plait_autodiff.ext.jvp_rules.rule(p)(lambda xs, ts: (p.bind(*xs), [ts[0]]))
    plait_batching.ext.batching_rules.rule(p)(lambda b, xs, dims: (p.bind(*xs), [dims[0]]))
    with pytest.raises(ValueError):
        plait.jvp(lambda x: p(x)[0], (f32(X),), (f32(X),))
    with pytest.raises(ValueError):
        plait.vmap(lambda x: p(x)[0])(f32([X, X]))
