"""Strangers' transformations with values that every rule needs, and with forms that grow.

A carrier may have ambient values (a scale, a length, a key): they reach every program that it is
taken through.  Its forms may grow from turn to turn of a loop, if `widen` ends that.
"""

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait.ext.ops.elementwise import (
    add,
)

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


# ---- a scale that multiplies the result of every operation -----------------------------------


class Scaled(ext.Carrier):
    """Each elementwise result is multiplied by a scale, one value for all."""

    rules = ext.RuleTable("review_scaled", doc="rule(prim, scale, xs, **params) -> value")
    does = "scaled"

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


# ---- sums that are not added up yet ----------------------------------------------------------


class Sum(ext.Carrier):
    """A number as the terms of a sum; the form is how many there are, at most `most`."""

    rules = ext.RuleTable("review_sum", doc="rule(terms, **params) -> terms")
    does = "sum"
    fields = ("most",)

    def part_avals(self, aval, form):
        return (aval,) * form

    def join(self, aval, f, g):
        return max(f, g)

    def coerce(self, aval, parts, f, g):
        return parts + (ext.Literal(0.0, aval),) * (g - len(parts))

    def run(self, prim, rule, args, params):
        terms = rule([self.split(a)[1] for a in args])
        if self.most is not None and len(terms) > self.most:
            rest = terms[self.most - 1]
            for t in terms[self.most :]:
                rest = rest + t
            terms = (*terms[: self.most - 1], rest)
        return self.lift(args[0].aval, len(terms), tuple(terms))


class Widened(Sum):
    def widen(self, aval, f, g):
        return self.most


@Sum.rules.rule(add)
def _(terms):
    return sum(terms, ())


def terms(kind, f, x, most):
    carrier = kind(ext.current(), most)
    with ext.opened(carrier):
        out = f(carrier.lift(x.aval, 1, (x,)))
        return carrier.split(out)


def counted(x, n=3):
    return lax.scan(lambda c, _: (c + x, None), x, None, length=n)[0]


def test_form_that_grows_for_ever():
    """A form that each turn makes greater is an error that names the slot, not a loop."""
    with pytest.raises(plait.PlaitError, match=r"do not settle: .*slot 1: \d+") as caught:
        terms(Sum, counted, f32(1), None)
    assert "widen" in caught.value.fix
    with pytest.raises(plait.PlaitError, match="core.while.*do not settle"):
        terms(
            Sum,
            lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + x), (0, x))[1],
            f32(1),
            None,
        )


@pytest.mark.parametrize("kind", [Sum, Widened])
@pytest.mark.parametrize("most", [1, 2, 8])
def test_form_that_settles(kind, most):
    """It settles where it can grow no more, by itself or widened, and the value is right."""
    form, parts = terms(kind, counted, f32(1.5), most)
    assert form == len(parts) <= most
    assert sum(p.item() for p in parts) == 6
    form, parts = terms(kind, plait.jit(counted), f32(1.5), most)
    assert sum(p.item() for p in parts) == 6


def test_widening_saves_rounds():
    """Without `widen` a hundred forms are tried; with it, a few."""
    tried = []

    class Slow(Sum):
        def join(self, aval, f, g):
            tried.append((f, g))
            return max(f, g)

    class Fast(Slow):
        def widen(self, aval, f, g):
            return self.most

    form, parts = terms(Fast, counted, f32(1.0), 100)
    assert form == 100 and sum(p.item() for p in parts) == 4
    assert len(tried) < 20


def test_forms_of_branches():
    """Branches meet in the greater form; what is plain is brought to it."""

    def g(x):
        return lax.switch(1, [lambda x: x, lambda x: x + x + x, lambda x: 7.0], x)

    form, parts = terms(Sum, g, f32(2), None)
    assert form == 3 and sum(p.item() for p in parts) == 6
