"""Derivatives of functions of keys, and of elements that are not numbers but vary.

Invariant: slopes are those of the function with its random numbers written in as constants.
"""

import numpy as np
import pytest

import plait
from plait import numpy as pnp
from plait import random
from plait._ops.opaque import unwrap, wrap
from plait.ext.errors import TypeRule
from plait.ext.ir import primitive
from plait.ext.rules import AnyElement, expand_rules
from plait.ext.types import Aval, Opaque, float0
from plait.ext.values import asarray
from plait.lax import scan
from plait_autodiff.ext import ZERO, jvp_rules

KEY = random.key(3)
X = asarray(np.float64(0.7))


DRAWN = float(random.normal(KEY, (), "float64"))


# ---- keys do not vary --------------------------------------------------------------------------


def noisy(x, k):
    return pnp.sin(x * random.normal(k, (), "float64"))


@pytest.mark.feature("C24")
def test_directions_of_keys_are_float0():
    assert KEY.aval.tangent_type is Aval((), float0) and not KEY.aval.varies
    assert Aval((2,), "int32").tangent_type is Aval((2,), float0)
    assert X.aval.tangent_type is X.aval and X.aval.varies
    want = np.cos(0.7 * DRAWN) * DRAWN
    none = np.zeros((), float0)
    for f in (noisy, plait.jit(noisy), plait.checkpoint(noisy)):
        y, pull = plait.vjp(f, X, KEY)
        by_x, by_key = pull(asarray(np.float64(1)))
        np.testing.assert_allclose([y, by_x], [np.sin(0.7 * DRAWN), want])
        assert by_key.dtype == float0 and by_key.shape == ()
        dot = plait.jvp(f, (X, KEY), (asarray(np.float64(2)), none))[1]
        np.testing.assert_allclose(dot, 2 * want)
        np.testing.assert_allclose(plait.jit(plait.grad(f))(X, KEY), want)
    out, dot = plait.jvp(lambda x, k: (x, random.split(k)), (X, KEY), (X, none))
    assert out[1].shape == (2,) and dot[1].dtype == float0 and dot[1].shape == (2,)
    assert plait.grad(noisy, argnums=1, allow_int=True)(X, KEY).dtype == float0
    with pytest.raises(TypeRule, match="is with respect to floating or complex arguments"):
        plait.grad(noisy, argnums=1)(X, KEY)
    with pytest.raises(TypeRule, match="or float0 if that is integer"):
        plait.jvp(noisy, (X, KEY), (X, X))


@pytest.mark.feature("C24")
def test_custom_rules_with_keys():
    @plait.custom_vjp
    def f(x, k):
        return x * random.normal(k, (), "float64")

    f.defvjp(lambda x, k: (f(x, k), k), lambda k, ct: (ct * DRAWN, np.zeros((), float0)))

    @plait.custom_jvp
    def g(x, k):
        return x * random.normal(k, (), "float64")

    @g.defjvp
    def _(primals, tangents):
        assert tangents[1].dtype == float0
        return g(*primals), tangents[0] * DRAWN

    for h in (f, g):
        np.testing.assert_allclose(plait.grad(h)(X, KEY), DRAWN)
        keys = pnp.stack([KEY, KEY])
        both = plait.jit(plait.vmap(plait.grad(h), in_axes=(None, 0)))(X, keys)
        np.testing.assert_allclose(both, [DRAWN] * 2)


def test_through_loops():
    def walk(x, k):
        def step(c, k):
            return c * random.uniform(k, (), "float64", 0.5, 1.5), None

        return scan(step, x, random.split(k, 3))[0]

    us = [float(random.uniform(k, (), "float64", 0.5, 1.5)) for k in random.split(KEY, 3)]
    for f in (walk, plait.checkpoint(walk)):
        np.testing.assert_allclose(plait.grad(f)(X, KEY), np.prod(us))
    keys = random.split(KEY, 2)
    got = plait.vmap(plait.grad(walk), in_axes=(None, 0))(X, keys)
    np.testing.assert_allclose(got, [float(plait.grad(walk)(X, k)) for k in keys])


# ---- elements that vary and are not numbers -----------------------------------------------------

METRES = Opaque("length<m>", (), "float64", "length", "take it apart", "float32")
PAIRS = Opaque("pair<f>", (2,), "float32", "pair", "take it apart", "float64")


@primitive("testing.area", traits=(AnyElement,))
def area(x: Aval) -> Aval:
    return Aval(x.shape, "float64")


expand_rules.rule(area)(lambda x: unwrap(x) * unwrap(x))


@pytest.mark.feature("C24")
def test_types_with_directions_of_their_own():
    assert METRES.tangent_dtype == np.float32
    x = wrap(np.array([1.5, -2.0]), METRES)
    assert x.aval.tangent_type is Aval((2,), "float32") and x.aval.varies
    t = asarray(np.float32([10, 20]))
    f = lambda x: (x[::-1], unwrap(x) ** 2)  # noqa: E731
    (y, square), (dy, dsquare) = plait.jvp(f, (x,), (t,))
    assert y.dtype is METRES and dy.dtype == np.float32 and dsquare.dtype == np.float64
    np.testing.assert_allclose(dy, [20, 10])
    np.testing.assert_allclose(dsquare, [30, -80])
    out, pull = plait.vjp(lambda x: (unwrap(x) ** 2).sum(), x)
    (ct,) = pull(asarray(np.float64(1)))
    assert ct.aval is x.aval.tangent_type
    np.testing.assert_allclose(ct, [3, -4])
    np.testing.assert_allclose(plait.jit(plait.grad(lambda x: (unwrap(x) ** 2).sum()))(x), [3, -4])
    made, pull = plait.vjp(lambda v: wrap(v * 2, METRES), asarray(np.array([1.0, 2.0])))
    assert made.dtype is METRES
    np.testing.assert_allclose(pull(t)[0], [20, 40])
    with pytest.raises(TypeRule, match="it has the dtype of the value"):
        plait.jvp(f, (x,), (asarray(np.float64([1, 2])),))


@pytest.mark.feature("C24")
def test_custom_rules_with_directions_of_their_own():
    @plait.custom_vjp
    def half(x):
        return unwrap(x) / 2

    half.defvjp(lambda x: (half(x), None), lambda _, ct: (ct.astype("float32") * 7,))

    @plait.custom_jvp
    def double(v):
        return wrap(v * 2, METRES)

    @double.defjvp
    def _(primals, tangents):
        return double(*primals), tangents[0].astype("float32") * 5

    v = asarray(np.array([1.0, 2.0]))
    got = plait.jit(plait.grad(lambda v: half(double(v)).sum()))(v)
    np.testing.assert_allclose(got, [35, 35])
    np.testing.assert_allclose(plait.grad(lambda v: half(double(v)).sum())(v), [35, 35])
    bad = plait.custom_jvp(lambda v: wrap(v, METRES))
    bad.defjvp(lambda p, t: (bad(*p), t[0]))  # of the wrong dtype: float64
    with pytest.raises(TypeRule):
        plait.jvp(bad, (v,), (v,))


def test_a_rule_that_returns_another_type_is_told():
    x = wrap(np.float32([1, 2]), PAIRS)
    assert plait.jvp(unwrap, (x,), (X,))[1].tolist() == [0, 0]  # directions are of another shape
    jvp_rules.rule(area)(lambda xs, ts: (area.bind(*xs), ts[0]))
    m = wrap(np.float64(3), METRES)
    with pytest.raises(TypeRule, match="a tangent of type f32"):
        plait.jvp(area, (m,), (asarray(np.float32(1)),))
    jvp_rules.rule(area, override=True)(lambda xs, ts: (area.bind(*xs), ZERO))
    assert float(plait.jvp(area, (m,), (asarray(np.float32(1)),))[0]) == 9
