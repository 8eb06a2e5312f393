"""Strangers' transformations with values that every rule needs, and with forms that grow.

A carrier may have ambient values (a scale, a length, a key): they reach every program that it is
taken through.  Its forms may grow from turn to turn of a loop, if `widen` ends that.
"""

import numpy as np
import pytest

import plait
from plait import ext, lax

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


pytestmark = pytest.mark.filterwarnings("ignore::plait.errors.RuleLost")  # of `ruled`, below


# ---- a scale that multiplies the result of every operation -----------------------------------


class Scaled(ext.Carrier):
    """Each elementwise result is multiplied by a scale, one value for all."""

    rules = ext.RuleTable("carriers_ambient_scaled", doc="rule(prim, scale, xs, **params) -> value")
    does = "scaled"
    loses = frozenset(("derivative",))

    def part_avals(self, aval, form):
        return (aval,)

    def coerce(self, aval, parts, f, g):
        return parts

    def run(self, prim, rule, args, params):
        out = rule(self.ambient[0], [self.split(a)[1][0] for a in args], **params)
        return self.lift(out.aval, "scaled", (out,))


@Scaled.rules.rule(ext.Elementwise)
def _(prim, scale, xs, **params):
    return prim.bind(*xs, **params) * scale


def scaled(f, x, scale):
    carrier = Scaled(ext.current(), ambient=(ext.as_value(scale),), of=f)
    with ext.opened(carrier):
        out = f(carrier.lift(x.aval, "scaled", (x,)))
    return ext.materialise_at_ground(carrier.split(out)[1][0])


def double(v):
    return v + v


def looped(v):
    return lax.scan(lambda c, _: (c + c, None), v, None, length=2)[0]


def turned(v):
    return lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] + s[1]), (0, v))[1]


def chosen(v):
    return lax.cond(True, double, lambda v: v, v)


@plait.custom_jvp
def ruled(v):
    return v + v


ruled.defjvp(lambda p, t: (p[0] + p[0], t[0] + t[0]))

PROGRAMS = {  # name: (function, power of twice the scale)
    "eager": (double, 1),
    "jit": (plait.jit(double), 1),
    "jit of jit": (plait.jit(plait.jit(double)), 1),
    "scan": (looped, 2),
    "jit of scan": (plait.jit(looped), 2),
    "while": (turned, 2),
    "cond": (chosen, 1),
    "checkpoint": (plait.checkpoint(looped), 2),
    "custom_jvp": (ruled, 1),
    "jit of custom_jvp": (plait.jit(lambda v: ruled(v)), 1),
    "scan in cond": (lambda v: lax.cond(True, looped, lambda v: v, v), 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_ambient_value(name):
    """A value that all rules share, an array or a number, through every program."""
    f, n = PROGRAMS[name]
    assert scaled(f, f32(1), f32(10)).item() == 20**n
    assert scaled(f, f32(1), 10.0).item() == 20**n
    assert scaled(f, f32(1), f32(100)).item() == 200**n  # the programs are shared, the value is not
    assert scaled(f, f32([1, 2]), f32(10)).tolist() == [20**n, 2 * 20**n]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", PROGRAMS)
def test_transformed_ambient_value(name):
    """Derivatives with respect to it, maps over it, and both, in either order."""
    f, n = PROGRAMS[name]
    of = lambda s: scaled(f, f32(1), s)  # noqa: E731
    slope = n * 2**n * 10 ** (n - 1)
    _, dot = plait.jvp(of, (f32(10),), (1.0,))
    assert dot.item() == slope
    np.testing.assert_array_equal(plait.vmap(of)(f32([10, 100])), [20**n, 200**n])
    if name != "while":
        assert plait.grad(of)(f32(10)).item() == slope
        assert plait.jit(plait.grad(of))(f32(10)).item() == slope
        np.testing.assert_array_equal(plait.vmap(plait.grad(of))(f32([10])), [slope])
        over = plait.grad(lambda s: plait.vmap(of)(s).sum())
        np.testing.assert_array_equal(over(f32([10])), [slope])
    inside = scaled(lambda v: plait.vmap(f)(v), f32([1, 2]), f32(10))
    np.testing.assert_array_equal(inside, [20**n, 2 * 20**n])
    assert scaled(lambda v: scaled(f, v, 1.0), f32(1), f32(10)).item() >= 20**n


def test_two_of_them():
    """Carriers of one class with ambient values of their own, one in the other."""
    inner = lambda v: scaled(double, v, f32(3))  # noqa: E731
    # the inner one adds and multiplies by 3, the outer one scales both results by 10
    assert scaled(inner, f32(1), f32(10)).item() == 2 * 10 * 3 * 10
    staged = lambda v: scaled(plait.jit(double), v, f32(3))  # noqa: E731
    assert scaled(plait.jit(staged), f32(1), f32(10)).item() == 2 * 10 * 3 * 10
