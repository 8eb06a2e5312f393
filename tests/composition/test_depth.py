"""What has always been right, and stays so: depth, size, exceptions, nesting, maps."""

import sys

import numpy as np
import pytest

import plait
from plait import ext, lax

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def f64(x):
    return pnp.asarray(np.asarray(x, np.float64))


# ---- nested control flow ---------------------------------------------------------------------


def tangle(x):
    """A while_loop of a scan of a cond, and of another while_loop."""

    def turn(s):
        i, y = s
        pick = lambda c, r: (lax.cond(c > 1.0, lambda c: c * 0.5, lambda c: c + r * x, c), None)  # noqa: E731
        z = lax.scan(pick, y, f64([0.1, 0.2]))[0]
        grow = lambda q: (q[0] + 1, q[1] * 1.1)  # noqa: E731
        k = lax.while_loop(lambda q: q[0] < i, grow, (0, z))[1]
        return i + 1, k

    return lax.while_loop(lambda s: s[1] + s[0] * 0.3 < x, turn, (0, x * 0.1))[1]


def np_tangle(x):
    i, y = 0, x * 0.1
    while y + i * 0.3 < x:
        for r in (0.1, 0.2):
            y = y * 0.5 if y > 1 else y + r * x
        for _ in range(i):
            y *= 1.1
        i += 1
    return y


POINTS = [0.7, 1.5, 3.0]


def test_tangle():
    """Mapped, each element turns as often as it does alone."""
    want = [np_tangle(v) for v in POINTS]
    np.testing.assert_allclose(plait.vmap(tangle)(f64(POINTS)), want, rtol=1e-12)
    np.testing.assert_allclose(plait.jit(plait.vmap(tangle))(f64(POINTS)), want, rtol=1e-12)
    np.testing.assert_allclose([tangle(f64(v)).item() for v in POINTS], want, rtol=1e-12)


def test_tangle_forward():
    """Forward mode of it, first and second order, mapped inside and outside."""
    d = lambda x: plait.jvp(tangle, (x,), (1.0,))[1]  # noqa: E731
    h = 1e-6
    want = [(np_tangle(v + h) - np_tangle(v - h)) / (2 * h) for v in POINTS]
    np.testing.assert_allclose(plait.vmap(d)(f64(POINTS)), want, rtol=1e-6)
    outside = plait.jvp(plait.vmap(tangle), (f64(POINTS),), (f64(np.ones(3)),))[1]
    np.testing.assert_allclose(outside, want, rtol=1e-6)
    d2 = lambda x: plait.jvp(d, (x,), (1.0,))[1]  # noqa: E731
    second = [d2(f64(v)).item() for v in POINTS]
    np.testing.assert_allclose(second, 0, atol=1e-12)  # piecewise a multiple of x
    np.testing.assert_allclose(plait.vmap(d2)(f64(POINTS)), second, atol=1e-12)


def test_rotating_carries():
    """A derivative that enters one of many carries reaches all of them, through nested loops."""

    def turned(n, depth):
        def inner(c, k):
            def step(c, _):
                c = (c[-1], *c[:-1])
                return (inner(c, k - 1) if k else c), None

            return lax.scan(step, c, None, length=3)[0]

        return lambda x: pnp.stack(list(inner((x,) + (f32(0),) * (n - 1), depth)))

    for n, depth in ((5, 0), (40, 0), (10, 2), (20, 3)):
        total = sum(3**k for k in range(1, depth + 2))
        f = turned(n, depth)
        primal, dot = plait.jvp(f, (f32(2),), (1.0,))
        at = total % n
        want = np.eye(n, dtype=np.float32)[at]
        np.testing.assert_array_equal(dot, want)
        np.testing.assert_array_equal(primal, 2 * want)
    weights = f32(np.arange(10) + 1)
    f = turned(10, 1)
    assert plait.grad(lambda x: (f(x) * weights).sum())(f32(2)).item() == (3 + 9) % 10 + 1


def test_residuals_of_branches():
    """Branches with different residuals, at second order, in loops."""

    def f(x):
        three = [
            lambda c: lax.sin(c) * lax.exp(c),
            lambda c: c * c * c,
            lambda c: lax.tanh(c) * x,
        ]
        return lax.scan(lambda c, i: (lax.switch(i, three, c), None), x, pnp.asarray(
            np.array([0, 2, 1, 1, 0], np.int32)
        ))[0]  # fmt: skip

    def np_f(x):
        c = x
        for i in (0, 2, 1, 1, 0):
            c = [np.sin(c) * np.exp(c), c**3, np.tanh(c) * x][i]
        return c

    x, h = 0.9, 1e-4
    first = (np_f(x + h / 10) - np_f(x - h / 10)) / (h / 5)
    second = (np_f(x + h) - 2 * np_f(x) + np_f(x - h)) / h**2
    np.testing.assert_allclose(plait.grad(f)(f64(x)), first, rtol=1e-6)
    np.testing.assert_allclose(plait.grad(plait.grad(f))(f64(x)), second, rtol=1e-4)
    np.testing.assert_allclose(plait.grad(plait.grad(plait.jit(f)))(f64(x)), second, rtol=1e-4)
    np.testing.assert_allclose(plait.vmap(plait.grad(plait.grad(f)))(f64([x])), [second], rtol=1e-4)


# ---- depth and size --------------------------------------------------------------------------


def wrapped(wrap, n):
    f = lambda x: lax.sin(x) * x  # noqa: E731
    for _ in range(n):
        f = wrap(f)
    return f


DEEP = {
    "jit": plait.jit,
    "vmap": lambda f: lambda x: plait.vmap(lambda s: f(x * s))(f32([1.0])).sum(),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "cond": lambda f: lambda x: lax.cond(x > 0, f, lambda y: y * 2, x),
    "checkpoint": lambda f: plait.checkpoint(lambda x: f(x)),
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("depth", [10, 30])
def test_depth(name, depth):
    """Tens of levels of one construct: traced in linear time, with Python's usual stack."""
    f = wrapped(DEEP[name], depth)
    np.testing.assert_allclose(plait.grad(f)(f32(0.5)), np.cos(0.5) * 0.5 + np.sin(0.5), rtol=1e-5)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", DEEP)
def test_great_depth(name):
    """Eighty levels, staged and differentiated, with Python's usual stack."""
    program = plait.make_program(plait.grad(wrapped(DEEP[name], 80)))(f32(0.5))
    assert program.out_avals[0].shape == ()


def test_orders_of_differentiation():
    """grad and jvp nested five times."""
    f = lambda x: x * x * x * x * x * x  # noqa: E731
    g = f
    for _ in range(5):
        g = plait.grad(g)
    assert g(f32(1)).item() == 720
    g = f
    for _ in range(5):
        g = (lambda h: lambda x: plait.jvp(h, (x,), (1.0,))[1])(g)
    assert g(f32(1)).item() == 720


def test_calls_of_calls():
    """A function that calls one twice, which calls one twice, and so on, 40 deep, forward."""

    def tower(depth):
        f = plait.jit(lambda x: lax.sin(x) * x)
        for _ in range(depth):
            f = (lambda h: plait.jit(lambda x: h(x) + h(x)))(f)
        return f

    program = plait.make_program(lambda x: plait.jvp(tower(40), (x,), (1.0,))[1])(f32(0.5))

    def distinct(p, seen):
        if id(p) in seen:
            return 0
        seen.add(id(p))
        inner = [q for e in p.eqns for q in ext.programs_in(e.params)]
        return len(p.eqns) + sum(distinct(q, seen) for q in inner)

    assert distinct(program, set()) < 400
    x = np.float64(0.5)
    want = 2**5 * (np.cos(x) * x + np.sin(x))  # the compiler writes every call out
    np.testing.assert_allclose(plait.grad(tower(5))(f64(x)), want, rtol=1e-12)


def test_long_chain():
    """Thousands of operations in a row need no stack."""

    def chain(x):
        for _ in range(5000):
            x = x * 1.0001
        return x

    np.testing.assert_allclose(plait.make_program(plait.grad(chain))(f64(1)).out_avals[0].shape, ())
    program = plait.make_program(plait.grad(plait.jit(chain)))(f64(1))
    assert program.out_avals[0].shape == ()


def test_endless_recursion():
    """Functions that transform themselves for ever: a RecursionError, and nothing is left."""
    ground, limit = ext.current(), sys.getrecursionlimit()

    def jitted(x):
        return plait.jit(jitted)(x)

    def mapped(x):
        return plait.vmap(mapped)(x)

    def derived(x):
        return plait.grad(derived)(x)

    sys.setrecursionlimit(600)
    try:
        for f in (jitted, derived):
            with pytest.raises(RecursionError):
                f(f32(1))
            assert ext.current() is ground
        with pytest.raises((RecursionError, plait.PlaitError)):
            mapped(f32(np.ones((2, 2))))
        assert ext.current() is ground
    finally:
        sys.setrecursionlimit(limit)
    assert plait.grad(lambda x: x * x)(f32(3)).item() == 6


# ---- asynchronous ----------------------------------------------------------------------------


def test_exceptions_restore():
    """Exceptions thrown anywhere leave the ground as current, and a second try works."""
    ground = ext.current()
    fails = [True]

    def fresh():
        def f(x):
            if fails[0]:
                raise KeyError("on purpose")
            return lax.sin(x)

        return f

    zero = f32(0)
    for run in (
        lambda f: plait.jit(plait.grad(f))(zero),
        lambda f: plait.vmap(plait.grad(f))(zero[None])[0],
        lambda f: plait.grad(lambda x: lax.cond(x < 1, f, f, x))(zero),
        lambda f: plait.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0])(
            zero
        ),
        lambda f: plait.grad(plait.checkpoint(f))(zero),
        lambda f: plait.jvp(lambda x: lax.while_loop(lambda y: y < 0, f, x), (zero,), (1.0,))[1],
    ):
        f = fresh()
        fails[0] = True
        with pytest.raises(KeyError):
            run(f)
        assert ext.current() is ground
        fails[0] = False
        assert run(f).item() == 1
