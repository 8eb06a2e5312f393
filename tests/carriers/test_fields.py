"""A stranger's Taylor series: static attributes, custom derivatives, loops, and its neighbours.

A jet of order k carries x(t) = x0 + x1 t + ... + xk t^k through a function.  Its order is an
attribute, so programs made for one order must not be used for another.
"""

import math

import numpy as np
import pytest

import plait
import plait_autodiff.ext
from plait import ext, lax
from plait._ops import elementwise as el

pnp = plait.numpy


def f64(x):
    return pnp.asarray(np.asarray(x, np.float64))


class Jet(ext.Carrier):
    """Coefficients of a series of some order."""

    rules = ext.RuleTable("carriers_fields_jet", doc="rule(order, series, **params) -> series")
    does = "jet"
    fields = ("order",)
    loses = frozenset(("derivative",))

    def part_avals(self, aval, form):
        return (aval,) * (self.order + 1)

    def coerce(self, aval, parts, f, g):
        return (parts[0], *(ext.Literal(0.0, aval) for _ in range(self.order)))

    def series(self, x):
        return self.to_form(x, "jet") if x.aval.inexact else (x,) + (None,) * self.order

    def run(self, prim, rule, args, params):
        out = rule(self.order, [self.series(a) for a in args], **params)
        many = zip(*out) if prim.many else [tuple(out)]
        lifted = [self.lift(o[0].aval, "jet", o) if o[0].aval.inexact else o[0] for o in many]
        return lifted if prim.many else lifted[0]


rule = Jet.rules.rule


@rule(ext.Linear, ext.Structural)
def _(prim, k, s, **params):
    return [prim.bind(*[x[i] for x in s], **params) for i in range(k + 1)]


@rule(el.mul)
def _(k, s):
    x, y = s
    return [sum(x[j] * y[i - j] for j in range(i + 1)) for i in range(k + 1)]


@rule(el.div)
def _(k, s):
    x, y = s
    q = []
    for i in range(k + 1):
        q.append((x[i] - sum(q[j] * y[i - j] for j in range(i))) / y[0])
    return q


@rule(el.select)
def _(k, s):
    (p, *_), x, y = s
    return [el.select.bind(p, x[i], y[i]) for i in range(k + 1)]


@rule(el.stop)
def _(k, s):
    (x,) = s
    return [el.stop.bind(x[0]), *(ext.Literal(0.0, x[0].aval) for _ in range(k))]


def waves(k, x):
    """Of sine and cosine: S' = C x', C' = -S x'."""
    s, c = [el.sin.bind(x[0])], [el.cos.bind(x[0])]
    for n in range(1, k + 1):
        s.append(sum(j * x[j] * c[n - j] for j in range(1, n + 1)) / n)
        c.append(-sum(j * x[j] * s[n - j] for j in range(1, n + 1)) / n)
    return s, c


rule(el.sin)(lambda k, s: waves(k, s[0])[0])

rule(el.cos)(lambda k, s: waves(k, s[0])[1])
for _p in el.COMPARISONS:
    rule(_p)(lambda k, s, p=_p: [p.bind(*[x[0] for x in s])])


@rule(plait_autodiff.ext.custom_jvp_call)
def _(jet, args, params):
    """The derivative rule gives the series of the derivative; its integral is the series."""
    prim = plait_autodiff.ext.custom_jvp_call
    if prim.higher.pending(params):
        args, params = prim.higher.settle(params, args)
    program, consts, k = params["program"], params["consts"], jet.order
    if k == 0:
        return jet.through(prim, args, params)
    series = [jet.series(a) for a in args]
    with ext.opened(Jet(jet.parent, k - 1)) as lower:
        lift = lambda x, s: lower.lift(x.aval, "jet", s) if x.aval.inexact else x  # noqa: E731
        points = [lift(a, s[:k]) for a, s in zip(args, series)]
        slopes = [
            lift(a, tuple(i * s[i] for i in range(1, k + 1)))
            for a, s in zip(args[consts:], series[consts:])
            if a.aval.inexact
        ]
        results = ext.evaluate(params["rule"].get(), [*points, *slopes])
        n = len(program.outputs)
        outs = [lower.series(o) for o in results[:n]]
        dots = [lower.series(d) for d in results[n:]]
    full = [(o[0], *(d / (i + 1) for i, d in enumerate(dot))) for o, dot in zip(outs, dots)]
    return [jet.lift(o[0].aval, "jet", o) for o in full]


def jet(f, x, *series):
    """The series of `f(x + series[0] t + ...)`."""
    parts = [ext.as_value(x), *map(ext.as_value, series)]
    carrier = Jet(ext.current(), len(series), of=f)
    with ext.opened(carrier):
        out = f(carrier.lift(parts[0].aval, "jet", tuple(parts)))
    return [ext.materialise_at_ground(p) for p in carrier.to_form(out, "jet")]


def numbers(values):
    return [np.asarray(v).item() for v in values]


# ---- numpy's series --------------------------------------------------------------------------


def product(a, b):
    return [sum(a[j] * b[i - j] for j in range(i + 1)) for i in range(len(a))]


def sine(x):
    s, c = [math.sin(x[0])], [math.cos(x[0])]
    for n in range(1, len(x)):
        s.append(sum(j * x[j] * c[n - j] for j in range(1, n + 1)) / n)
        c.append(-sum(j * x[j] * s[n - j] for j in range(1, n + 1)) / n)
    return s


def np_body(x):
    return product(sine(x), x)


def np_loop(x, n=3):
    c = x
    for _ in range(n):
        c = product(sine(c), x)
    return c


def body(x):
    return lax.sin(x) * x


def loop(x):
    return lax.scan(lambda c, _: (lax.sin(c) * x, None), x, None, length=3)[0]


def while_(x):
    turn = lambda s: (s[0] + 1, lax.sin(s[1]) * x)  # noqa: E731
    return lax.while_loop(lambda s: s[0] < 3, turn, (0, x))[1]


def branch(x):
    return lax.cond(x > 0, body, lambda x: x * x, x)


PROGRAMS = {
    "eager": (body, np_body),
    "jit": (plait.jit(body), np_body),
    "scan": (loop, np_loop),
    "jit of scan": (plait.jit(loop), np_loop),
    "while": (while_, np_loop),
    "cond": (branch, np_body),
    "checkpoint": (plait.checkpoint(loop), np_loop),
    "mapped": (lambda x: plait.map_axes(body)(pnp.stack([x, x])).sum() * 0.5, np_body),
}


def orders(f, x, k):
    """Series of x + t."""
    return numbers(jet(f, f64(x), f64(1), *[f64(0)] * (k - 1)))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", PROGRAMS)
def test_series(name):
    """Through every program, for several orders one after the other over the same programs."""
    f, reference = PROGRAMS[name]
    for k in (2, 3, 1, 5, 2):
        want = reference([0.5, 1.0] + [0.0] * (k - 1))
        np.testing.assert_allclose(orders(f, 0.5, k), want, rtol=1e-9)


def test_series_of_a_curve():
    """The argument may be any series."""
    want = np_loop([0.3, 0.2, -0.1, 0.7])
    got = numbers(jet(loop, f64(0.3), f64(0.2), f64(-0.1), f64(0.7)))
    np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "mapped"])
def test_with_vmap(name):
    """Mapped inside and outside."""
    f, reference = PROGRAMS[name]
    want = [reference([v, 1.0, 0.0]) for v in (0.5, 0.7)]
    x = f64([0.5, 0.7])
    outside = plait.vmap(lambda x: jet(f, x, x * 0 + 1, x * 0))(x)
    np.testing.assert_allclose(np.stack([np.asarray(o) for o in outside], 1), want, rtol=1e-9)
    inside = jet(lambda v: plait.vmap(f)(v), x, f64([1, 1]), f64([0, 0]))
    np.testing.assert_allclose(np.stack([np.asarray(o) for o in inside], 1), want, rtol=1e-9)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "while"])
def test_with_grad(name):
    """Differentiated inside and outside: the k-th coefficient is a derivative over k!."""
    f, reference = PROGRAMS[name]
    third = 6 * reference([0.5, 1.0, 0.0, 0.0])[3]
    outside = plait.grad(lambda x: jet(f, x, x * 0 + 1, x * 0)[2])(f64(0.5))
    np.testing.assert_allclose(outside, third / 2, rtol=1e-8)
    inside = jet(plait.grad(f), f64(0.5), f64(1), f64(0))
    np.testing.assert_allclose(inside[2], third / 2, rtol=1e-8)
    np.testing.assert_allclose(numbers(inside)[0], reference([0.5, 1.0])[1], rtol=1e-9)
    staged = plait.jit(plait.grad(lambda x: jet(plait.jit(f), x, x * 0 + 1, x * 0)[2]))(f64(0.5))
    np.testing.assert_allclose(staged, third / 2, rtol=1e-8)


def test_in_itself():
    """A jet of a jet: mixed orders."""
    inner = lambda x: jet(loop, x, x * 0 + 1)[1]  # noqa: E731
    want = np_loop([0.5, 1.0, 0.0])
    np.testing.assert_allclose(orders(inner, 0.5, 1), [want[1], 2 * want[2]], rtol=1e-9)


# ---- custom derivatives ----------------------------------------------------------------------


def untrue():
    """x * x, whose derivative is said to be 100."""
    f = plait.custom_jvp(lambda x: x * x)
    f.defjvp(lambda p, t: (p[0] * p[0], t[0] * 100.0))
    return f


CUSTOM = {
    "eager": lambda f: f,
    "jit": lambda f: plait.jit(lambda x: f(x)),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "cond": lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x),
    "checkpoint": lambda f: plait.checkpoint(lambda x: f(x)),
}


@pytest.mark.filterwarnings("ignore::plait.errors.RuleLost")  # the last order needs no derivative
@pytest.mark.parametrize("way", CUSTOM)
def test_own_rule_for_custom_derivatives(way):
    """A carrier may have a rule for functions with custom derivatives, and use theirs."""
    f = CUSTOM[way](untrue())
    assert orders(f, 0.5, 1) == [0.25, 100]
    assert orders(f, 0.5, 3) == [0.25, 100, 0, 0]
    true = plait.custom_jvp(lambda x: lax.sin(x) * x)
    true.defjvp(lambda p, t: (true(p[0]), t[0] * (lax.cos(p[0]) * p[0] + lax.sin(p[0]))))
    want = np_body([0.5, 1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(orders(CUSTOM[way](true), 0.5, 4), want, rtol=1e-9)


class Plain(Jet):
    """The same without a rule for custom derivatives."""

    rules = ext.RuleTable("carriers_fields_plain_jet")


for _key in (ext.Linear, ext.Structural, el.mul):
    Plain.rules.rule(_key)(Jet.rules.own(_key))


@pytest.mark.parametrize("way", [w for w in CUSTOM if w != "cond"])
def test_custom_derivatives_without_a_rule(way):
    """A carrier that loses custom derivatives sees the function, and never half of each."""
    f = CUSTOM[way](untrue())
    carrier = Plain(ext.current(), 2)
    lost = pytest.warns(plait.errors.RuleLost, match=r"jet lost the derivative rule of <lambda>")
    with ext.opened(carrier), lost:
        x = f64(0.5)
        out = f(carrier.lift(x.aval, "jet", (x, f64(1), f64(0))))
        assert numbers(carrier.to_form(out, "jet")) == [0.25, 1, 1]


@pytest.mark.parametrize("kind", [Jet, Plain])
@pytest.mark.parametrize("way", ["eager", "jit", "scan", "checkpoint"])
def test_pullbacks_inside(way, kind):
    """Reverse mode inside of a carrier uses custom pullbacks, and the carrier sees through them."""
    cube = plait.custom_vjp(lambda x: x * x * x)
    cube.defvjp(lambda x: (x * x * x, x), lambda x, ct: (ct * 30.0 * x * x,))
    carrier = kind(ext.current(), 2)
    with ext.opened(carrier):
        x = f64(0.5)
        out = plait.grad(CUSTOM[way](cube))(carrier.lift(x.aval, "jet", (x, f64(1), f64(0))))
        assert numbers(carrier.to_form(out, "jet")) == [7.5, 30, 30]
