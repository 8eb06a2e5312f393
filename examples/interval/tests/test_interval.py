"""Interval bounds enclose samples, under and over every transformation."""

import numpy as np
import pytest

import plait
from plait import lax

LO, HI = np.array([-0.5, 0.2, 1.0], np.float32), np.array([0.3, 0.4, 1.5], np.float32)
W = np.random.RandomState(0).randn(3, 3).astype(np.float32)


def looped(x):
    return lax.fori_loop(0, 3, lambda i, y: y * 0.5 + lax.sin(y), x)


def scanned(x):
    return lax.scan(lambda c, r: (c * r + 1.0, c), np.float32(1), x)[1]


def counted(x):
    body = lambda s: (s[0] + 1, s[1] * 0.5 - x)  # noqa: E731
    return lax.while_loop(lambda s: s[0] < 4, body, (0, x))[1]


def chosen(x):
    return lax.cond(W[0, 0] > 0, lambda y: y * y, lambda y: -y, x)


PROGRAMS = {
    "poly": lambda x: x * x - 2 * x,
    "layers": lambda x: lax.tanh(x @ W) @ W,
    "loop": looped,
    "scan": scanned,
    "while": counted,
    "cond": chosen,
    "jit": lambda x: plait.jit(lambda y: lax.exp(y) - abs(y))(x),
    "shape": lambda x: plait.numpy.concatenate([x[::-1], x[1:]]),
    "vmap": lambda x: plait.vmap(lambda a, b: a * b + 1, in_axes=(0, None))(x, x[0]),
    "grad": lambda x: plait.grad(lambda y: (lax.sin(y) * y).sum())(x),
    "checkpointed": plait.checkpoint(lambda x: lax.sin(x) * x),
}


def samples():
    rng = np.random.RandomState(1)
    return [LO, HI, *(LO + (HI - LO) * rng.rand(3).astype(np.float32) for _ in range(20))]


def encloses(lo, hi, f):
    for x in samples():
        y = np.asarray(f(x))
        slack = 1e-5 + 1e-5 * abs(y)
        assert (np.asarray(lo) <= y + slack).all() and (y <= np.asarray(hi) + slack).all()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("compiled", [False, True])
def test_encloses(name, compiled):
    f = PROGRAMS[name]
    bounds = plait.interval(f)
    lo, hi = (plait.jit(bounds) if compiled else bounds)(LO, HI)
    encloses(lo, hi, f)


@pytest.mark.parametrize("name", ["poly", "layers", "loop", "scan", "while"])
def test_a_point_is_the_function(name):
    f = PROGRAMS[name]
    lo, hi = plait.interval(f)(LO, LO)
    np.testing.assert_allclose(lo, f(LO), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(hi, f(LO), rtol=1e-5, atol=1e-6)


def test_mapped():
    boxes = np.stack([LO, LO - 1]), np.stack([HI, HI - 1])
    f = PROGRAMS["loop"]
    lo, hi = plait.vmap(plait.interval(f))(*boxes)
    for i in range(2):
        want = plait.interval(f)(boxes[0][i], boxes[1][i])
        np.testing.assert_allclose(lo[i], want[0], rtol=1e-5)
        np.testing.assert_allclose(hi[i], want[1], rtol=1e-5)


def test_differentiated():
    """The width of x^2 on [a, a + 1], for a > 0, is 2a + 1: its derivative is 2."""

    def width(a):
        lo, hi = plait.interval(lambda x: x * x)(a, a + 1)
        return hi - lo

    np.testing.assert_allclose(plait.grad(width)(2.0), 2.0, rtol=1e-6)
    np.testing.assert_allclose(plait.jvp(width, (2.0,), (3.0,))[1], 6.0, rtol=1e-6)


def test_inside_scan_and_cond():
    def step(c, x):
        lo, hi = plait.interval(lambda v: v * v)(x, x + 1)
        return c + hi - lo, None

    total = lax.scan(step, np.float32(0), np.array([1.0, 2.0], np.float32))[0]
    np.testing.assert_allclose(total, 3 + 5, rtol=1e-6)
    hi = lax.cond(True, lambda x: plait.interval(lax.exp)(x, x + 1)[1], lambda x: x, 0.0)
    np.testing.assert_allclose(hi, np.e, rtol=1e-6)


def test_a_missing_rule_says_what_to_write():
    with pytest.raises(plait.PlaitError, match="interval_rules.rule"):
        plait.interval(lambda x: lax.atan2(x, x))(LO, HI)


def test_a_lost_derivative_is_named():
    rounded = plait.custom_vjp(lambda x: lax.round(x))
    rounded.defvjp(lambda x: (rounded(x), None), lambda _, ct: (ct,))
    with pytest.warns(plait.errors.RuleLost, match=r"interval lost .*<lambda>") as w:
        plait.grad(lambda x: plait.interval(rounded)(x, x + 0.1)[0])(0.3)
    assert w[0].filename == __file__


def test_prints_show_both_ends(capfd):
    def f(x):
        plait.debug.print("x = {}", x)
        return x * 2.0

    for run in (plait.interval(f), plait.jit(plait.interval(plait.jit(f)))):
        low, high = run(np.float32(1), np.float32(2))
        assert (low, high) == (2, 4)
    plait.effects_barrier()
    assert capfd.readouterr().out.split("\n")[:2] == ["x = [1. 2.]"] * 2
