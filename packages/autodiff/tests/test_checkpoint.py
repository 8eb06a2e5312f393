"""A checkpoint stays one through every transformation, or it would keep what it promised not to.

How much is kept is counted as what the pullback holds: the constants of its program.
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


def block(x):
    for _ in range(20):
        x = lax.sin(x)
    return x


def kept(f, x=1.0):
    """How many numbers the pullback of `f` at `x` holds."""
    _, pull = plait.vjp(f, f32(x))
    return sum(c.size for c in plait.make_program(pull)(f32(x)).constants.values())


def distinct(program, seen=None):
    """How many equations a program is written with, each sub-program counted once."""
    seen = set() if seen is None else seen
    if id(program) in seen:
        return 0
    seen.add(id(program))
    inner = [p for e in program.eqns for p in ext.programs_in(e.params)]
    return len(program.eqns) + sum(distinct(p, seen) for p in inner)


def looped(f, n=5):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=n)[0]


def test_what_is_counted():
    """Plain reverse mode keeps a number per operation, so the count means something."""
    assert kept(block) >= 20
    assert kept(looped(block)) >= 100


@pytest.mark.parametrize("order", [1, 2, 3])
def test_orders(order):
    """At every order a checkpointed block keeps its input, not what is inside."""
    f, plain = plait.checkpoint(block), block
    for _ in range(order - 1):
        f, plain = plait.grad(f), plait.grad(plain)
    assert kept(f) <= 4
    assert kept(plain) >= 20
    assert kept(plait.jit(f)) <= 4


@pytest.mark.parametrize("order", [1, 2])
def test_orders_in_a_loop(order):
    """In a loop it keeps one input per turn, at every order."""
    f = looped(plait.checkpoint(block))
    for _ in range(order - 1):
        f = plait.grad(f)
    assert kept(f) <= 5 * 4


def test_calls_of_calls():
    """A checkpoint that calls another one twice, and so on, is written with few equations."""

    def tower(depth):
        f = plait.checkpoint(lambda x: lax.sin(x) * x)
        for _ in range(depth):
            f = (lambda g: plait.checkpoint(lambda x: g(x) + g(x * 0.5)))(f)
        return f

    def np_tower(depth, x):
        if not depth:
            return np.sin(x) * x, np.cos(x) * x + np.sin(x)
        (a, s), (b, t) = np_tower(depth - 1, x), np_tower(depth - 1, x * 0.5)
        return a + b, s + 0.5 * t

    counts = [distinct(plait.make_program(plait.grad(tower(d)))(f32(0.5))) for d in (4, 7, 10)]
    assert counts[2] - counts[1] <= counts[1] - counts[0] + 8  # linear in the depth
    assert counts[2] < 400
    x = pnp.asarray(np.float64(0.5))
    np.testing.assert_allclose(plait.grad(tower(6))(x), np_tower(6, 0.5)[1], rtol=1e-12)
    second = plait.make_program(plait.grad(plait.grad(tower(6))))(f32(0.5))
    assert distinct(second) < 3000


def test_nested_checkpoints():
    """A checkpoint in a checkpoint is traced once per level, not once per path."""
    traced = [0]

    def nested(depth):
        if not depth:
            return lambda x: lax.sin(x)

        def body(x):
            traced[0] += 1
            return lax.sin(inner(x)) * x

        inner = nested(depth - 1)
        return plait.checkpoint(body)

    plait.make_program(plait.grad(nested(12)))(f32(0.5))
    assert traced[0] <= 24
    traced[0] = 0
    plait.make_program(plait.grad(plait.grad(nested(6))))(f32(0.5))
    assert traced[0] <= 24


def test_recomputation_is_there():
    """The backward pass of a checkpoint computes the block again; a plain one does not."""

    def sines(f):
        def count(p):
            here = sum(e.prim.name == "core.sin" for e in p.eqns)
            return here + sum(count(q) for e in p.eqns for q in ext.programs_in(e.params))

        _, pull = plait.vjp(f, f32(1))
        return count(plait.make_program(pull)(f32(1)))

    assert sines(block) == 0
    assert sines(plait.checkpoint(block)) >= 19


def test_other_checkpoint_of_a_gradient():
    """A checkpoint around a gradient keeps nothing of either."""
    assert kept(plait.checkpoint(plait.grad(plait.checkpoint(block)))) <= 2
    assert kept(plait.checkpoint(plait.grad(block))) <= 2


def test_no_more_static_values_are_kept_than_is_said(monkeypatch):
    monkeypatch.setattr("plait._jit.caches.MOST", 16)

    class Static:
        pass

    alive, f = weakref.WeakSet(), plait.checkpoint(lambda x, s: x * 2, static_argnums=1)
    for _ in range(100):
        s = Static()
        alive.add(s)
        assert f(3.0, s) == 6
    gc.collect()
    assert len(alive) <= 20
