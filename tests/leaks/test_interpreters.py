"""Transformations that end by an exception, in a generator or with their thread leave nothing.

Invariant: afterwards the ground is current, and what was leaked has escaped.
"""

import gc
import sys
import threading

import numpy as np
import pytest

import plait
import plait_autodiff.ext
from plait import events, ext, lax
from plait.errors import UnexpectedTracerError

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def scanned(f):
    return lambda x: lax.scan(f, x, None, length=2)[0]


# ---- interpreters ----------------------------------------------------------------------------


def test_failed_trace_is_closed():
    """What a failed trace leaked has escaped like anything else."""
    saved = []

    def bad(x):
        saved.append(x)
        raise ValueError("on purpose")

    for run in (
        lambda: plait.jit(bad)(f32(1)),
        lambda: plait.grad(bad)(f32(1)),
        lambda: plait.vmap(bad)(f32([1])),
        lambda: plait.jvp(bad, (f32(1),), (1.0,)),
        lambda: plait.linearize(bad, f32(1)),
        lambda: lax.scan(lambda c, _: bad(c), f32(1), None, length=2),
        lambda: lax.cond(True, bad, bad, f32(1)),
        lambda: plait.checkpoint(bad)(f32(1)),
        lambda: plait.jit(plait.grad(plait.vmap(bad)))(f32([1])),
        lambda: plait.grad(lambda x: lax.scan(lambda c, _: bad(c), x, None, length=2)[0])(f32(1)),
    ):
        saved.clear()
        with pytest.raises(ValueError, match="on purpose"):
            run()
        assert len(saved) == 1
        with pytest.raises(UnexpectedTracerError):
            saved[0] + 1
        assert ext.current().parent is None


def test_rule_that_fails():
    """An exception in a rule of a table ends the trace it happened in, and only that."""
    prim = ext.Primitive("ended_interpreters.fails", lambda x: x)
    ext.expand_rules.rule(prim)(lambda x: x * 1.0)
    fails = [True]

    @plait_autodiff.ext.jvp_rules.rule(prim)
    def _(xs, ts):
        if fails[0]:
            raise ValueError("once")
        return prim.bind(*xs), ts[0] * 3.0

    staged = plait.jit(lambda x: prim(x))
    for run in (
        lambda: plait.grad(lambda x: prim(x))(f32(1)),
        lambda: plait.grad(staged)(f32(1)),
        lambda: plait.grad(lambda x: lax.scan(lambda c, _: (prim(c), None), x, None, 2)[0])(f32(1)),
    ):
        fails[0] = True
        with pytest.raises(ValueError, match="once"):
            run()
        assert ext.current().parent is None
        fails[0] = False
        assert run().item() in (3, 9)


def test_function_that_fails_once():
    """A step that fails is traced anew the next time."""
    fails = [True]

    def step(c, _):
        y = c * 2.0
        if fails[0]:
            raise ValueError("once")
        return y, None

    f = plait.grad(scanned(step))
    with pytest.raises(ValueError, match="once"):
        f(f32(1))
    fails[0] = False
    assert f(f32(1)).item() == 4


def test_generator_suspended_inside_an_interpreter():
    """A generator that is dropped inside `use(...)` does not bring a dead interpreter back."""
    ground, held = ext.current(), []

    def f(x):
        def values():
            with ext.use(ext.current().parent):
                yield 1.0

        it = values()
        next(it)
        held.append(it)
        return x * 2

    with pytest.raises(plait.PlaitError, match="left while another is current"):
        plait.vmap(f)(f32([1, 2]))
    with _quiet():
        held.clear()
        gc.collect()
    assert ext.current() is ground
    g = plait.jit(lambda x: x + 1)
    g(f32(1))
    with events.counting() as n:
        assert g(f32(1)).item() == 2
    assert n["trace"] == n["compile"] == 0


class _quiet:
    """The generator complains, when it is collected, to nobody in particular."""

    def __enter__(self):
        self.old, sys.unraisablehook = sys.unraisablehook, lambda _: None

    def __exit__(self, *_):
        sys.unraisablehook = self.old


def test_ended_thread():
    """A thread that ends in the middle of a transformation leaves nothing to others."""
    ground = ext.current()

    def die():
        try:
            plait.vmap(lambda x: (_ for _ in ()).throw(SystemExit))(f32([1]))
        except SystemExit:
            pass

    t = threading.Thread(target=die)
    t.start()
    t.join()
    assert ext.current() is ground
