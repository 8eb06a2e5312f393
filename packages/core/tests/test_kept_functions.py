"""Functions that come in one module after the other: they are read from code that is kept.

Invariant: a module has the same text whether its functions were written or read.
"""

import random
import re

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax

X = np.arange(6, dtype=np.float32)
TABLE = pnp.asarray(np.linspace(0, 1, 7, dtype=np.float32))
seen = []


def noted(x):
    seen.append(np.asarray(x).copy())


INNER = {
    "plain": lambda x: pnp.sin(x) * 2 + pnp.cumsum(x),
    "a loop": lambda x: lax.fori_loop(0, 3, lambda i, c: pnp.sin(c) + i, x),
    "branches": lambda x: lax.cond(x.sum() > 0, pnp.sin, pnp.cos, x),
    "sorted": lambda x: pnp.sort(-x),
    "calls another": lambda x: helper(x) + helper(x + 1),
    "a composite": lambda x: lax.composite(lambda x: pnp.tanh(x) * 3, "test.it")(x) + x,
    "with a constant": lambda x: x * TABLE[:6],
    "with a callback": lambda x: (plait.debug.callback(noted, x, ordered=True), x * 2)[1],
    "random": lambda x: x + plait.random.normal(plait.random.key(1), x.shape),
    "nothing": lambda x: x,
}


@plait.jit
def helper(x):
    return pnp.tanh(x) * 3


@pytest.mark.parametrize("name", INNER)
def test_the_same_modules_and_results(name):
    inner = plait.jit(INNER[name])

    def lowered(k):
        return plait.jit(lambda x: inner(x * 3) + inner(x)).lower(np.full(6, k, np.float32))

    texts = [lowered(k).as_text() for k in range(5)]
    assert len(set(texts)) == 1
    want = INNER[name](pnp.asarray(X * 3)) + INNER[name](pnp.asarray(X))
    for k in range(4):
        f = plait.jit(lambda x, k=k: inner(x * 3) + inner(x) + k - k)
        np.testing.assert_allclose(f(X), want, 1e-6, 1e-6)


def test_under_other_names():
    """Two functions of one name in a module."""
    first, second = plait.jit(lambda x: pnp.sin(x) + 1), plait.jit(lambda x: pnp.cos(x) + 2)
    for _ in range(3):
        plait.jit(lambda x: first(x) + 1).lower(X).as_text()
        plait.jit(lambda x: second(x) + 1).lower(X).as_text()
    f = plait.jit(lambda x: second(first(x)) * first(second(x)))
    names = re.findall(r"func.func private @(\S+)\(", f.lower(X).as_text())
    assert len(names) == len(set(names)) == 2
    np.testing.assert_allclose(
        f(X), (np.cos(np.sin(X) + 1) + 2) * (np.sin(np.cos(X) + 2) + 1), 1e-5
    )


@pytest.mark.parametrize("platforms", [("cpu",), ("cuda",), ("cpu", "cuda")])
def test_platforms_have_their_own(platforms):
    """A running sum is a loop on CPUs, and elsewhere a tree."""
    inner = plait.jit(lambda x: pnp.cumsum(x) * 2)
    for _ in range(4):
        plait.jit(lambda x: inner(x)).lower(X).as_text()
    text = plait.jit(lambda x: inner(x)).lower(X, lowering_platforms=platforms).as_text()
    fresh = plait.jit(lambda x: plait.jit(lambda y: pnp.cumsum(y) * 2)(x))
    assert text.replace("_lambda_", "") == fresh.lower(
        X, lowering_platforms=platforms
    ).as_text().replace("_lambda_", "")


def test_locations_are_written():
    inner = plait.jit(lambda x: pnp.sin(x) * 2)
    for _ in range(3):
        plait.jit(lambda x: inner(x)).lower(X).as_text()
    assert __file__ in plait.jit(lambda x: inner(x)).lower(X).as_text(debug_info=True)


def session(seed):
    """Return pairs (jitted function, the same in numpy), of one name; some call others."""
    draw = random.Random(seed)
    made = [
        (plait.jit(lambda x, k=k: x * k + 1), lambda x, k=k: x * np.float32(k) + 1)
        for k in (0.5, 0.25, -0.5)
    ]
    for _ in range(4):
        (f, f_), (g, g_) = draw.choices(made, k=2)
        made.append(
            (plait.jit(lambda x, f=f, g=g: f(x) + g(f(x))), lambda x, f=f_, g=g_: f(x) + g(f(x)))
        )
    return made


@pytest.mark.parametrize("seed", range(4))
def test_functions_that_call_functions_in_any_order(seed):
    """Programs that call some of seven functions of one name, which call each other."""
    draw, made = random.Random(seed), session(seed)
    for _ in range(8):
        (f, f_), (g, g_), (h, h_) = draw.choices(made, k=3)
        whole = plait.jit(lambda x, f=f, g=g, h=h: f(g(x)) - h(x))
        np.testing.assert_allclose(whole(X), f_(g_(X)) - h_(X), 1e-5, 1e-5)
