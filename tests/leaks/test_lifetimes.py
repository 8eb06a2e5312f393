"""Nothing lives longer than it should: functions, programs, interpreters and executables.

Invariant: each test counts what is alive after a collection, never how long something took.
"""

import gc
import weakref

import numpy as np
import pytest

import plait
from plait import ext, lax

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def freed(make, use):
    """Whether a function is gone after it was used and forgotten."""
    f = make()
    ref = weakref.ref(f)
    use(f)
    del f
    gc.collect()
    return ref() is None


def body():
    def step(c, _=None):
        return c * 2.0, None

    return step


def one():
    return lambda x: lax.sin(x) * 2.0


def custom_that_mentions_it():
    """A step whose custom rule mentions the step itself."""

    @plait.custom_jvp
    def g(x):
        return x * x

    def step(c, _=None):
        return g(c), None

    g.defjvp(lambda p, t: (step(p[0])[0], 2 * p[0] * t[0]))
    return step


def pullback_that_mentions_it():
    @plait.custom_vjp
    def g(x):
        return x * x

    def step(c, _=None):
        return g(c), None

    g.defvjp(lambda x: (step(x)[0], x), lambda x, ct: (2 * x * ct,))
    return step


def scanned(f):
    return lambda x: lax.scan(f, x, None, length=2)[0]


USES = {
    "scan": (body, lambda f: scanned(f)(f32(1))),
    "grad of scan": (body, lambda f: plait.grad(scanned(f))(f32(1))),
    "second order of scan": (body, lambda f: plait.grad(plait.grad(scanned(f)))(f32(1))),
    "vmap of scan": (body, lambda f: plait.vmap(scanned(f))(f32([1, 2]))),
    "jit of scan": (body, lambda f: plait.jit(scanned(f))(f32(1))),
    "jit": (one, lambda f: plait.jit(f)(f32(1))),
    "jit under grad": (one, lambda f: plait.grad(plait.jit(f))(f32(1))),
    "checkpoint": (one, lambda f: plait.grad(plait.checkpoint(f))(f32(1))),
    "second order of checkpoint": (
        one,
        lambda f: plait.grad(plait.grad(plait.checkpoint(f)))(f32(1)),
    ),
    "cond": (one, lambda f: lax.cond(True, f, one(), f32(1))),
    "grad of cond": (one, lambda f: plait.grad(lambda x: lax.cond(x > 0, f, one(), x))(f32(1))),
    "vmap of cond": (
        one,
        lambda f: plait.vmap(lambda x: lax.cond(x > 0, f, one(), x))(f32([1, 2])),
    ),
    "while": (one, lambda f: lax.while_loop(lambda x: x < 0, f, f32(1))),
    "vmap of while": (
        one,
        lambda f: plait.vmap(lambda x: lax.while_loop(lambda x: x < 0, f, x))(f32([1, 2])),
    ),
    "eval_shape": (one, lambda f: plait.eval_shape(f, f32(1))),
    "custom_jvp that mentions it": (
        custom_that_mentions_it,
        lambda f: plait.grad(scanned(f))(f32(1)),
    ),
    "custom_jvp that mentions it, staged": (
        custom_that_mentions_it,
        lambda f: plait.jit(plait.grad(scanned(f)))(f32(1)),
    ),
    "custom_vjp that mentions it": (
        pullback_that_mentions_it,
        lambda f: plait.grad(scanned(f))(f32(1)),
    ),
    "custom_vjp that mentions it, second order": (
        pullback_that_mentions_it,
        lambda f: plait.grad(plait.grad(scanned(f)))(f32(1)),
    ),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("use", USES)
def test_functions_are_freed(use):
    """A function that was traced, transformed and compiled is freed when its user drops it."""
    assert freed(*USES[use])


def programs():
    gc.collect()
    return sum(isinstance(x, ext.Program) for x in gc.get_objects())


def partners(f):
    """What `f(i)` for many fresh i leaves behind: the growth of the second ten over the first."""
    for i in range(10):
        f(i)
    before = programs()
    for i in range(10, 20):
        f(i)
    return programs() - before


@pytest.mark.wide
def test_long_lived_branch():
    """A branch that lives long does not keep what was made of it and its many partners."""

    def stays(x):
        return x * 2.0

    def use(i):
        fresh = lambda x: x * float(i)  # noqa: E731
        x = f32(1)
        plait.grad(lambda x: lax.cond(x > 0, fresh, stays, x))(x)
        plait.grad(lambda x: lax.cond(x > 0, stays, fresh, x))(x)
        lax.cond(True, fresh, stays, x)
        plait.vmap(lambda x: lax.cond(x > 0, stays, fresh, x))(x[None])
        plait.grad(lambda x: plait.vmap(lambda x: lax.cond(x > 0, fresh, stays, x))(x).sum())(
            x[None]
        )

    assert partners(use) <= 0


def test_long_lived_loop_body():
    """Nor does the body of a while_loop keep its many predicates."""

    def stays(s):
        return s * 1.5

    def use(i):
        loop = lambda x: lax.while_loop(lambda s: s < float(i), stays, x)  # noqa: E731
        loop(f32(1))
        plait.vmap(loop)(f32([1, 2]))
        plait.jvp(loop, (f32(1),), (1.0,))
        plait.jvp(plait.vmap(loop), (f32([1, 2]),), (f32([1, 1]),))

    assert partners(use) <= 0


@pytest.mark.wide
def test_long_lived_step():
    """A named step under many fresh transformations."""

    def step(c, x):
        return lax.sin(c) + x, None

    def use(i):
        f = lambda c: lax.scan(step, c, f32([1, 2]))[0] * float(i)  # noqa: E731
        plait.grad(f)(f32(1))
        plait.jit(plait.grad(f))(f32(1))
        plait.vmap(plait.grad(f))(f32([1, 2]))

    assert partners(use) <= 0


@pytest.mark.wide
def test_fresh_jits():
    """Functions jitted in a loop."""
    assert partners(lambda i: plait.jit(lambda x: x * float(i))(f32(1))) <= 0
    assert partners(lambda i: plait.grad(plait.jit(lambda x: x * float(i)))(f32(1))) <= 0


def test_arrays_are_freed():
    """What a function closes over is freed with it, and results with their holders."""

    def refs():
        x, w = f32(np.ones(100)), f32(np.ones(100))
        f = plait.jit(lambda x: (x * w).sum())
        g = plait.grad(f)(x)
        return [weakref.ref(v) for v in (x, w, g)]

    gone = refs()
    gc.collect()
    assert [r() for r in gone] == [None] * 3


def test_residuals_are_freed():
    """A pullback keeps residuals for as long as it lives."""
    x = f32(np.ones(10))
    _, pull = plait.vjp(lambda x: lax.sin(x) * x, x)
    held = [weakref.ref(c) for c in plait.make_program(pull)(x).constants.values()]
    gc.collect()
    assert any(r() is not None for r in held)
    del pull
    gc.collect()
    assert [r() for r in held if r() is not x] == [None] * len([r for r in held if r() is not x])


def test_no_collection_while_tracing():
    """Tracing makes no garbage, so none is looked for; afterwards the collector is as it was."""
    collections = []

    def chain(x):
        for _ in range(3000):
            x = lax.sin(x) * x
        return x

    gc.collect()
    gc.callbacks.append(note := lambda phase, info: collections.append(phase))
    try:
        plait.make_program(chain)(f32(1))
        assert len(collections) <= 2
        collections.clear()
        plait.make_program(plait.grad(plait.jit(chain)))(f32(1))
        assert len(collections) <= 4
    finally:
        gc.callbacks.remove(note)
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        plait.jit(lambda x: x * (1 // 0))(f32(1))
    assert gc.isenabled()
    gc.disable()
    try:
        plait.jit(lambda x: x * 2)(f32(1))
        assert not gc.isenabled()
    finally:
        gc.enable()
