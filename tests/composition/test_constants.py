"""Rules that use arrays of their own: they work in programs as they work at once.

A program owns the constants that its rules brought; none is dropped when a program is derived.
"""

import functools

import numpy as np
import pytest

import plait
import plait_autodiff.ext
import plait_batching.ext
from plait import ext, lax

pnp = plait.numpy

C = np.array([1.0, 2.0, 3.0], np.float32)


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


ones = np.ones(3, np.float32)

CONSTANTS = {  # made at first use, and only once
    "numpy": lambda: C,
    "array": functools.cache(lambda: f32(C)),
    "scalar array": functools.cache(lambda: f32(2)),
    "number": lambda: 2.0,
}


def party(name, constant):
    """x * constant, by an expand rule, and by rules of its own for the derivative."""
    p = ext.Primitive(f"constants.{name.replace(' ', '_')}", lambda x: x)
    ext.expand_rules.rule(p)(lambda x: x * constant())
    return p


said = {name: party(f"said {name}", c) for name, c in CONSTANTS.items()}

ruled = {name: party(f"ruled {name}", c) for name, c in CONSTANTS.items()}

for _name, _p in ruled.items():
    _c = CONSTANTS[_name]
    plait_autodiff.ext.jvp_rules.rule(_p)(
        lambda xs, ts, p=_p, c=_c: (p.bind(*xs), ts[0] * c() * 10)
    )
    plait_batching.ext.batching_rules.rule(_p)(
        lambda b, xs, dims, p=_p, c=_c: (b.front(xs[0], dims[0]) * c(), 0)
    )


def repeat(f):
    """Two turns of a loop."""
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


def while_(f):
    return lambda x: lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])), (0, x))[1]


PROGRAMS = {  # name: (wrapper, how often it applies)
    "eager": (lambda f: f, 1),
    "jit": (lambda f: plait.jit(lambda x: f(x)), 1),
    "jit in jit": (lambda f: plait.jit(plait.jit(lambda x: f(x))), 1),
    "scan": (repeat, 2),
    "jit of scan": (lambda f: plait.jit(repeat(f)), 2),
    "while": (while_, 1),
    "cond": (lambda f: lambda x: lax.cond(x.sum() > -1e9, f, lambda x: x, x), 1),
    "checkpoint": (lambda f: plait.checkpoint(f), 1),
    "checkpoint of scan": (lambda f: plait.checkpoint(repeat(f)), 2),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("way", PROGRAMS)
@pytest.mark.parametrize("constant", CONSTANTS)
def test_expand_rule(constant, way):
    """An expand rule with a constant: values, derivatives and maps of programs."""
    wrap, n = PROGRAMS[way]
    f, c = wrap(said[constant]), np.asarray(CONSTANTS[constant]())
    want = ones * c**n
    np.testing.assert_allclose(f(f32(ones)), want)
    np.testing.assert_allclose(plait.vmap(f)(f32([ones, 2 * ones])), [want, 2 * want])
    primal, dot = plait.jvp(f, (f32(ones),), (f32(2 * ones),))
    np.testing.assert_allclose(primal, want)
    np.testing.assert_allclose(dot, 2 * want)
    if way != "while":
        total = lambda x: f(x).sum()  # noqa: E731
        np.testing.assert_allclose(plait.grad(total)(f32(ones)), want)
        np.testing.assert_allclose(plait.jit(plait.grad(total))(f32(ones)), want)
        square = lambda x: (f(x) * f(x)).sum()  # noqa: E731
        second = plait.grad(lambda x: plait.grad(square)(x).sum())(f32(ones))
        np.testing.assert_allclose(second, 2 * want * want)
        mapped = plait.grad(lambda x: plait.vmap(f)(x).sum())(f32([ones, ones]))
        np.testing.assert_allclose(mapped, [want, want])


@pytest.mark.sampled(8)
@pytest.mark.parametrize("way", PROGRAMS)
@pytest.mark.parametrize("constant", CONSTANTS)
def test_rules(constant, way):
    """The same for rules of forward mode and batching: each is used, with its constant."""
    wrap, n = PROGRAMS[way]
    f, c = wrap(ruled[constant]), np.asarray(CONSTANTS[constant]())
    want = ones * c**n
    np.testing.assert_allclose(plait.vmap(f)(f32([ones, 2 * ones])), [want, 2 * want])
    np.testing.assert_allclose(plait.jvp(f, (f32(ones),), (f32(ones),))[1], want * 10**n)
    mapped = plait.vmap(f, in_axes=1)(f32(np.stack([ones, 2 * ones], 1)))
    np.testing.assert_allclose(mapped, [want, 2 * want])
    if way != "while":
        total = lambda x: f(x).sum()  # noqa: E731
        np.testing.assert_allclose(plait.grad(total)(f32(ones)), want * 10**n)
        np.testing.assert_allclose(plait.jit(plait.grad(total))(f32(ones)), want * 10**n)
        each = plait.vmap(plait.grad(total))(f32([ones, ones]))
        np.testing.assert_allclose(each, [want * 10**n] * 2)


linear = ext.Primitive("constants.linear", lambda x: x)

ext.lower_rules.rule(linear)(lambda e, xs, ins, outs: xs[0])

plait_autodiff.ext.jvp_rules.rule(linear)(lambda xs, ts: (linear.bind(*xs), linear.bind(*ts)))

plait_autodiff.ext.transpose_rules.rule(linear)(lambda ct, x: [ct * CONSTANTS["array"]() * C])

plait_batching.ext.batching_rules.rule(linear)(lambda b, xs, dims: (linear.bind(*xs), dims[0]))


@pytest.mark.parametrize("way", [w for w in PROGRAMS if w != "while"])
def test_transpose_rule(way):
    """A transposed rule with constants."""
    wrap, n = PROGRAMS[way]
    f = wrap(linear)
    want = (C * C) ** n
    np.testing.assert_allclose(plait.grad(lambda x: f(x).sum())(f32(ones)), want)
    np.testing.assert_allclose(plait.jit(plait.grad(lambda x: f(x).sum()))(f32(ones)), want)
    got = plait.grad(lambda x: plait.jit(plait.vmap(f))(x).sum())(f32([ones, ones]))
    np.testing.assert_allclose(got, [want, want])
    np.testing.assert_allclose(plait.vmap(plait.grad(lambda x: f(x).sum()))(f32([ones])), [want])


def test_constants_are_operands():
    """A large constant of a rule is handed to the compiled program, not printed into it."""
    big = np.random.RandomState(0).randn(1 << 16).astype(np.float32)
    p = ext.Primitive("constants.big", lambda x: x)
    ext.expand_rules.rule(p)(lambda x: (big * x).sum())
    plait_autodiff.ext.jvp_rules.rule(p)(lambda xs, ts: (p.bind(*xs), (ts[0] * big).sum()))
    f = lambda x: lax.scan(lambda c, _: (p(c) * 1e-3, None), x, None, length=2)[0]  # noqa: E731
    for g in (f, plait.grad(f), lambda x: plait.vmap(f)(pnp.stack([x, x]))):
        assert len(plait.jit(g).lower(f32(1)).as_text()) < 50_000
    total = big.astype(np.float64).sum()
    np.testing.assert_allclose(plait.jit(f)(f32(1)), (total * 1e-3) ** 2, rtol=1e-3)
    np.testing.assert_allclose(plait.jit(plait.grad(f))(f32(1)), (total * 1e-3) ** 2, rtol=1e-3)
