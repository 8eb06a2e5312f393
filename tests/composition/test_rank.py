"""Custom rules whose operands and results have different ranks, mapped along every axis.

A position of the mapped axis means something else for a matrix than for a vector, so a rule must
meet each of its values in a form that is valid at that value's rank.
"""

import itertools
import os
import random

import numpy as np
import pytest

import plait
from plait import lax

pnp = plait.numpy
RNG = np.random.RandomState(0)
X, Y = RNG.randn(3, 3, 3).astype(np.float32), RNG.randn(3, 3).astype(np.float32)


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def f64(x):
    return pnp.asarray(np.asarray(x, np.float64))


# ---- a scalar and a vector, from a matrix and a vector ---------------------------------------


def plain(x, y):
    return (x * y).sum() * 1.0, y * 2.0


def with_pullback():
    f = plait.custom_vjp(plain)

    def bwd(residuals, cts):
        x, y = residuals
        a, b = cts
        return pnp.broadcast_to(a * y, x.shape), (a * x).sum(0) + b * 2.0

    f.defvjp(lambda x, y: (plain(x, y), (x, y)), bwd)
    return f


def with_derivative():
    f = plait.custom_jvp(plain)

    @f.defjvp
    def _(primals, tangents):
        (x, y), (s, t) = primals, tangents
        return plain(x, y), ((s * y).sum() + (x * t).sum(), t * 2.0)

    return f


def loss_of(f):
    def loss(x, y):
        a, b = f(x, y)
        return a * a + (b * b * b).sum()

    return loss


def np_loss(x, y):
    a, b = (x * y).sum(), 2 * y
    return a * a + (b**3).sum()


def np_gradient(x, y):
    a = (x * y).sum()
    return 2 * a * np.broadcast_to(y, x.shape), 2 * a * x.sum(0) + 24 * y * y


def rows(axes):
    """The numpy arguments of each example."""
    x = X if axes[0] is not None else X[0]
    y = Y if axes[1] is not None else Y[0]
    each = [(np.take(x, i, axes[0]) if axes[0] is not None else x,
             np.take(y, i, axes[1]) if axes[1] is not None else y) for i in range(3)]  # fmt: skip
    return x, y, each


AXES = [(0, None), (1, None), (2, None), (None, 1), (2, 1), (-1, 0)]
KINDS = {"pullback": with_pullback, "derivative": with_derivative}
WAYS = {"eager": lambda f: f, "jit": plait.jit}


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_value(kind, way, axes):
    """A mapped custom function gives what it gives for each example."""
    x, y, each = rows(axes)
    f = WAYS[way](loss_of(KINDS[kind]()))
    got = plait.vmap(f, in_axes=axes)(f32(x), f32(y))
    np.testing.assert_allclose(got, [np_loss(*e) for e in each], rtol=2e-5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_gradient_of_each(kind, way, axes):
    """The mapped gradient of a custom function."""
    x, y, each = rows(axes)
    gradient = plait.grad(WAYS[way](loss_of(KINDS[kind]())), argnums=(0, 1))
    got = plait.vmap(gradient, in_axes=axes)(f32(x), f32(y))
    for g, want in zip(got, zip(*[np_gradient(*e) for e in each])):
        np.testing.assert_allclose(g, np.stack(want), rtol=2e-4, atol=1e-4)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_gradient_of_mapped(kind, way, axes):
    """The gradient through a mapped custom function: its rule is what is mapped then."""
    x, y, each = rows(axes)
    f = WAYS[way](loss_of(KINDS[kind]()))
    total = lambda x, y: plait.vmap(f, in_axes=axes)(x, y).sum()  # noqa: E731
    got = plait.grad(total, argnums=(0, 1))(f32(x), f32(y))
    for g, axis, parts in zip(got, axes, zip(*[np_gradient(*e) for e in each])):
        want = np.sum(parts, 0) if axis is None else np.stack(parts, axis)
        np.testing.assert_allclose(g, want, rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_direction(way, axes):
    """Forward mode of a mapped custom_jvp function, and mapped forward mode of one."""
    x, y, each = rows(axes)
    f = WAYS[way](loss_of(with_derivative()))
    moved = [(0.3 * a, 0.7 * b) for a, b in each]
    want = [sum((g * t).sum() for g, t in zip(np_gradient(*e), ts)) for e, ts in zip(each, moved)]
    mapped = plait.vmap(f, in_axes=axes)
    args = f32(x), f32(y)
    got = plait.jvp(mapped, args, (args[0] * 0.3, args[1] * 0.7))[1]
    np.testing.assert_allclose(got, want, rtol=2e-4)
    one = lambda x, y: plait.jvp(f, (x, y), (x * 0.3, y * 0.7))[1]  # noqa: E731
    np.testing.assert_allclose(plait.vmap(one, in_axes=axes)(*args), want, rtol=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_wrapped_in_control_flow(kind):
    """Inside a loop, a branch and a checkpoint, mapped along the last axis of the matrix."""
    x, y, each = rows((2, None))
    loss = loss_of(KINDS[kind]())

    def looped(x, y):
        return lax.scan(lambda c, _: (c + loss(x, y), None), 0.0, None, length=2)[0]

    def branched(x, y):
        return lax.cond(x[0, 0] > 0, lambda x, y: loss(x, y), lambda x, y: loss(x * 0.5, y), x, y)

    def np_branched(x, y):
        return np_loss(x, y) if x[0, 0] > 0 else np_loss(x * np.float32(0.5), y)

    for f, reference in [
        (looped, lambda x, y: 2 * np_loss(x, y)),
        (branched, np_branched),
        (plait.checkpoint(loss), np_loss),
    ]:
        got = plait.vmap(f, in_axes=(2, None))(f32(x), f32(y))
        np.testing.assert_allclose(got, [reference(*e) for e in each], rtol=2e-5)


# ---- every construct around every function, against one example at a time --------------------


def body(x, y):
    return lax.sin(x) * y + lax.cos(x).sum()


def both(x, y):
    return body(x, y), y * 2.0


def body_tangent(x, y, s, t):
    return lax.cos(x) * s * y + lax.sin(x) * t - (lax.sin(x) * s).sum()


def body_cotangent(residuals, cts):
    x, y = residuals
    c, d = cts
    return lax.cos(x) * c * y - lax.sin(x) * c.sum(), (lax.sin(x) * c).sum(0) + d * 2.0


derivative = plait.custom_jvp(both)
derivative.defjvp(lambda p, t: (both(*p), (body_tangent(*p, *t), t[1] * 2.0)))
pullback = plait.custom_vjp(both)
pullback.defvjp(lambda x, y: (both(x, y), (x, y)), body_cotangent)


def steps(x, y):
    def step(carry, row):
        a, b = carry
        return (lax.tanh(a + row), b * lax.sin(row) + a.sum(0)), (b, a)

    (a, b), (u, v) = lax.scan(step, (x, y * 0 + 1.0), x)
    return a * v.sum(0), b + u.sum(0)


def branches(x, y):
    yes = lambda x, y: (x * 2.0, lax.sin(y))  # noqa: E731
    no = lambda x, y: (lax.exp(x) * x, y * x.sum())  # noqa: E731
    return lax.cond(x.sum() + y.sum() > 0.0, yes, no, x, y)


def turns(x, y):
    def turn(s):
        i, a, b = s
        return i + 1.0, lax.sin(a) + b, b * 0.9 + a.sum(0) * 0.1

    _, a, b = lax.while_loop(lambda s: s[0] < 3.0 + y.sum(), turn, (0.0, x, y))
    return a, b


FUNCTIONS = {
    "plain": both, "derivative": derivative, "pullback": pullback,
    "scan": steps, "cond": branches, "while": turns,
}  # fmt: skip


def in_scan(f):
    def g(x, y):
        out = lax.scan(lambda c, _: (None, f(x, y)), None, None, length=1)[1]
        return out[0][0], out[1][0]

    return g


def in_cond(f):
    return lambda x, y: lax.cond(
        x[0, 0] > 0.0, lambda x, y: tuple(f(x, y)), lambda x, y: tuple(f(x * 0.5, y)), x, y
    )


WRAPPERS = {
    "bare": lambda f: f,
    "jit": lambda f: plait.jit(lambda *a: f(*a)),
    "checkpoint": lambda f: plait.checkpoint(lambda *a: f(*a)),
    "in scan": in_scan,
    "in cond": in_cond,
}


def scalar(f):
    def s(x, y):
        a, b = f(x, y)
        return (a * a).sum() + (b * b * b).sum()

    return s


def second(f):
    gradient = plait.grad(scalar(f), (0, 1))

    def total(x, y):
        a, b = gradient(x, y)
        return a.sum() + b.sum()

    return plait.grad(total, (0, 1))


DERIVED = {
    "value": lambda f: lambda x, y: tuple(f(x, y)),
    "grad": lambda f: plait.grad(scalar(f), (0, 1)),
    "jvp": lambda f: lambda x, y: plait.jvp(f, (x, y), (x * 0.3, y * 0.7))[1],
    "second": second,
    "jit grad": lambda f: plait.jit(plait.grad(scalar(f), (0, 1))),
}


def words():
    every = [
        w
        for w in itertools.product(FUNCTIONS, WRAPPERS, DERIVED, [(2, None), (1, 0), (None, 1)])
        if not (w[0] == "while" and w[2] in ("grad", "second", "jit grad"))
        and not (w[0] == "pullback" and w[2] == "jvp")
    ]
    if os.environ.get("PLAIT_ALL"):
        return every
    return random.Random(0).sample(every, 24)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("function,wrapper,how,axes", words(), ids=str)
def test_words(function, wrapper, how, axes):
    """A mapped derivative of a wrapped function is the stack of what single examples give.

    `PLAIT_ALL=1` runs all words instead of a seeded sample.
    """
    f = DERIVED[how](WRAPPERS[wrapper](FUNCTIONS[function]))
    x, y = np.float64(X), np.float64(Y)
    x, y = (x if axes[0] is not None else x[0]), (y if axes[1] is not None else y[0])
    got = plait.vmap(lambda *a: tuple(f(*a)), in_axes=axes)(f64(x), f64(y))
    one = lambda i: (  # noqa: E731
        np.take(x, i, axes[0]) if axes[0] is not None else x,
        np.take(y, i, axes[1]) if axes[1] is not None else y,
    )
    each = [f(*map(f64, one(i))) for i in range(3)]
    for g, want in zip(got, zip(*each)):
        np.testing.assert_allclose(g, np.stack([np.asarray(w) for w in want]), rtol=1e-6, atol=1e-8)


def test_words_start_from_numpy():
    """The functions of the words compute what numpy does, so that their stacks mean something."""
    x, y = np.float64(X[0]), np.float64(Y[0])
    a, b = both(f64(x), f64(y))
    np.testing.assert_allclose(a, np.sin(x) * y + np.cos(x).sum(), rtol=1e-12)
    np.testing.assert_allclose(b, 2 * y)
    for f in (derivative, pullback):
        gx, gy = plait.grad(scalar(f), (0, 1))(f64(x), f64(y))
        h = 1e-6
        value = lambda x, y: (  # noqa: E731
            ((np.sin(x) * y + np.cos(x).sum()) ** 2).sum() + ((2 * y) ** 3).sum()
        )
        for i, j in itertools.product(range(3), range(3)):
            e = np.zeros((3, 3))
            e[i, j] = h
            want = (value(x + e, y) - value(x - e, y)) / (2 * h)
            np.testing.assert_allclose(gx[i, j], want, rtol=1e-6)
        for j in range(3):
            e = np.zeros(3)
            e[j] = h
            want = (value(x, y + e) - value(x, y - e)) / (2 * h)
            np.testing.assert_allclose(gy[j], want, rtol=1e-6)
