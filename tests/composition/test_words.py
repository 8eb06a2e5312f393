"""Words over the transformations, against numpy and finite differences in double precision.

Every word of length up to 2 runs on every program; of length 3, a seeded sample (all of them with
`PLAIT_ALL=1`).  Each is run eagerly and, with a leading jit, compiled.
"""

import itertools
import os
import random

import numpy as np
import pytest

import plait
from plait import lax

V, S = np.array([0.3, -0.7, 0.5]), np.array([1.0, 0.5])
X = np.array([0.4, 0.9, -0.3])
M = np.random.RandomState(0).randn(3, 3)
pnp = plait.numpy


@plait.custom_jvp
def soft(x):
    return lax.log(lax.exp(x) + 1)


@soft.defjvp
def _(xs, ts):
    return lax.log(lax.exp(xs[0]) + 1), ts[0] * lax.logistic(xs[0])


@plait.custom_vjp
def square(x):
    return x * x


square.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * ct * x,))


def np_scan(x):
    c = 1.0
    for r in x:
        c = np.sin(c * r) + r
    return c


def np_loop(x):
    y = x
    for _ in range(3):
        y = y * np.sin(y)
    return y.sum()


def w_while(x):
    turn = lambda s: (s[0] + 1, s[1] * lax.sin(s[1]))  # noqa: E731
    return lax.while_loop(lambda s: s[0] < 3, turn, (0, x))[1].sum()


def w_cond(x):
    yes, no = lambda y: (y * y).sum(), lambda y: lax.sin(y).sum()
    return lax.cond(x[1] > 0.05, yes, no, x)


def w_scan(x):
    return lax.scan(lambda c, r: (lax.sin(c * r) + r, None), np.float64(1.0), x)[0]


PROGRAMS = {  # name: (plait, numpy)
    "poly": (lambda x: (x * x * x - 2 * x).sum(), lambda x: (x**3 - 2 * x).sum()),
    "trig": (
        lambda x: (lax.sin(x) * lax.exp(x) / (1 + x * x)).sum(),
        lambda x: (np.sin(x) * np.exp(x) / (1 + x * x)).sum(),
    ),
    "matmul": (lambda x: (lax.tanh(x @ M) * x).sum(), lambda x: (np.tanh(x @ M) * x).sum()),
    "shape": (
        lambda x: (pnp.concatenate([x[::-1], x[1:] * x[0]]) ** 2).sum(),
        lambda x: (np.concatenate([x[::-1], x[1:] * x[0]]) ** 2).sum(),
    ),
    "scan": (w_scan, np_scan),
    "loop": (lambda x: lax.fori_loop(0, 3, lambda i, y: y * lax.sin(y), x).sum(), np_loop),
    "cond": (w_cond, lambda x: (x * x).sum() if x[1] > 0.05 else np.sin(x).sum()),
    "jitted": (
        lambda x: plait.jit(lambda y: (lax.cos(y) * y).sum())(x) * x[0],
        lambda x: (np.cos(x) * x).sum() * x[0],
    ),
    "custom_jvp": (lambda x: (soft(x) * x).sum(), lambda x: (np.log(np.exp(x) + 1) * x).sum()),
    "custom_vjp": (lambda x: (square(x) * x).sum(), lambda x: (x**3).sum()),
    "take": (
        lambda x: (x[np.array([2, 0, 2])] * x).sum(),
        lambda x: (x[[2, 0, 2]] * x).sum(),
    ),
    "while": (w_while, np_loop),
}
TRANSFORMS = {
    "jit": plait.jit,
    "vmap": lambda f: lambda x: plait.vmap(lambda s: f(x * s))(pnp.asarray(S)).sum(),
    "grad": lambda f: lambda x: (plait.grad(f)(x) * V).sum(),
    "jvp": lambda f: lambda x: plait.jvp(f, (x,), (V,))[1],
    "scan": lambda f: (
        lambda x: lax.scan(lambda c, s: (c + f(x * s), None), np.float64(0), pnp.asarray(S))[0]
    ),
    "cond": lambda f: lambda x: lax.cond(x[0] > 0.3, f, lambda y: f(y * 2), x),
    "checkpoint": plait.checkpoint,
}


def derivative(f):
    h = 0.02

    def along(x):
        near, far = f(x + h * V) - f(x - h * V), f(x + 2 * h * V) - f(x - 2 * h * V)
        return (8 * near - far) / (12 * h)

    return along


def many(f):
    return lambda x: sum(f(x * s) for s in S)


ORACLE = {
    "jit": lambda f: f,
    "checkpoint": lambda f: f,
    "vmap": many,
    "scan": many,
    "grad": derivative,
    "jvp": derivative,
    "cond": lambda f: lambda x: f(x) if x[0] > 0.3 else f(x * 2),
}


def impossible(program, word):
    """Reverse mode of while says so, which is tested elsewhere."""
    return program == "while" and "grad" in word


words = [w for n in (1, 2) for w in itertools.product(TRANSFORMS, repeat=n)]
cases = [(p, w) for w in words for p in PROGRAMS]
longer = [(p, w) for w in itertools.product(TRANSFORMS, repeat=3) for p in PROGRAMS]
cases += longer if os.environ.get("PLAIT_ALL") else random.Random(0).sample(longer, 160)
cases = [(p, w) for p, w in cases if not impossible(p, w)]


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    ("program", "word"), [pytest.param(p, w, id=f"{p}-{'.'.join(w)}") for p, w in cases]
)
def test_word(program, word):
    f, g = PROGRAMS[program]
    for t in reversed(word):
        f, g = TRANSFORMS[t](f), ORACLE[t](g)
    np.testing.assert_allclose(np.asarray(f(pnp.asarray(X))), g(X), rtol=2e-4, atol=1e-5)
