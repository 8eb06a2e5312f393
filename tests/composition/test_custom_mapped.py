"""Custom derivatives under mapping: axes of tangents, sums of cotangents, what is closed over.

Invariant: mapped results are those of a Python loop over the elements.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait_autodiff import CustomPrimal, SymbolicZero

pnp = plait.numpy
X = np.float32([0.5, -1.0, 2.0])


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def forward():
    """x ** 2 * y, with a rule that is three times too large."""
    f = plait.custom_jvp(lambda x, y: x * x * y)
    f.defjvp(
        lambda p, t: (
            p[0] * p[0] * p[1],
            3 * (2 * p[0] * p[1] * t[0] + p[0] * p[0] * t[1]),
        )
    )
    return f


def backward():
    f = plait.custom_vjp(lambda x, y: x * x * y)
    f.defvjp(
        lambda x, y: (x * x * y, (x, y)),
        lambda r, ct: (3 * 2 * r[0] * r[1] * ct, 3 * r[0] * r[0] * ct),
    )
    return f


@pytest.mark.feature("B14")
@pytest.mark.parametrize("outer", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_tangents_and_primals_share_an_axis(outer):
    """Only the primal, only the tangent, or both mapped, along any axes."""
    f = outer(forward())
    both = lambda x, t: plait.jvp(lambda x: f(x, 2.0), (x,), (t,))  # noqa: E731
    t = f32([1.0, 10.0, 100.0])
    y, dot = plait.vmap(both, (0, None))(f32(X), f32(1))
    np.testing.assert_allclose(y, 2 * X**2)
    np.testing.assert_allclose(dot, 12 * X)
    y, dot = plait.vmap(both, (None, 0))(f32(0.5), t)
    np.testing.assert_allclose(y, [0.5] * 3)
    np.testing.assert_allclose(dot, 6 * np.float32([1, 10, 100]))
    rows = f32(np.stack([X, 2 * X]))
    wide = lambda x, t: plait.jvp(lambda x: f(x, 2.0), (x,), (t,))  # noqa: E731
    y, dot = plait.vmap(wide, (1, 0), 1)(rows, f32(np.ones((3, 2))))
    np.testing.assert_allclose(y, 2 * np.asarray(rows) ** 2)
    np.testing.assert_allclose(dot, 12 * np.asarray(rows))
    ends = plait.jvp(lambda x: plait.vmap(f, (0, None))(x, 2.0), (f32(X),), (t,))
    np.testing.assert_allclose(ends[1], 12 * X * np.asarray(t))


@pytest.mark.feature("B15")
@pytest.mark.parametrize("outer", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_cotangents_are_summed(outer):
    """What is not mapped has the sum of the cotangents of all elements."""
    f = outer(backward())
    total = lambda c: plait.vmap(f, (0, None))(f32(X), c).sum()  # noqa: E731
    loop = sum(3 * x * x for x in X)
    np.testing.assert_allclose(plait.grad(total)(f32(1.5)), loop, rtol=1e-6)
    np.testing.assert_allclose(plait.jit(plait.grad(total))(f32(1.5)), loop, rtol=1e-6)
    g = plait.vmap(plait.grad(f), (0, None))(f32(X), f32(1.5))
    np.testing.assert_allclose(g, 9 * X, rtol=1e-6)


@pytest.mark.feature("B16")
@pytest.mark.parametrize("way", ["plain", "jit", "scan", "checkpoint"])
def test_closing_over_what_is_mapped(way):
    """A custom_vjp function of two arguments closes over a mapped value, in all its parts."""
    wrap = {
        "plain": lambda f: f,
        "jit": plait.jit,
        "checkpoint": plait.checkpoint,
        "scan": lambda f: lambda x, y: lax.scan(lambda c, _: (f(x, y), None), x, None, 1)[0],
    }[way]

    def of(x, y, z):
        @plait.custom_vjp
        def f(x, y):
            return x * y * z

        f.defvjp(lambda x, y: (x * y * z, (x, y)), lambda r, ct: (ct * r[1] * z, ct * r[0] * z))
        return wrap(f)(x, y)

    y, z = f32([1, 2, 3]), f32([5, 7, 11])
    gx, gy = plait.vmap(plait.grad(of, (0, 1)))(f32(X), y, z)
    np.testing.assert_allclose(gx, np.asarray(y) * np.asarray(z), rtol=1e-6)
    np.testing.assert_allclose(gy, X * np.asarray(z), rtol=1e-6)
    inner = lambda x, y: plait.vmap(of, (0, None, 0))(x, y, z).sum()  # noqa: E731
    gx, gy = plait.grad(inner, (0, 1))(f32(X), f32(2))
    np.testing.assert_allclose(gx, 2 * np.asarray(z), rtol=1e-6)
    np.testing.assert_allclose(gy, (X * np.asarray(z)).sum(), rtol=1e-6)


@pytest.mark.feature("B17")
@pytest.mark.parametrize("order", ["vmap of grad", "grad of vmap"])
def test_symbolic_zeros_are_of_elements(order):
    """Rules see symbolic zeros of the type of one element; no zeros are made for them."""
    seen = []
    f = plait.custom_vjp(lambda x, y: x * y)

    def fwd(x, y):
        assert type(y) is CustomPrimal
        seen.append((x.perturbed, y.perturbed, y.value.shape))
        return x.value * y.value, (y.value,)

    f.defvjp(fwd, lambda r, ct: (ct * r[0], SymbolicZero(r[0].aval)), symbolic_zeros=True)
    j = plait.custom_jvp(lambda x, y: x * y)

    def rule(primals, tangents):
        (x, y), (t, zero) = primals, tangents
        assert type(zero) is SymbolicZero and zero.shape == y.shape == (2,)
        seen.append("jvp")
        return j(x, y), t * y

    j.defjvp(rule, symbolic_zeros=True)
    x, y = f32(np.stack([X, X])), f32(np.ones((3, 2)) * [2, 3])
    for g in (f, j):
        if order == "vmap of grad":
            h = plait.vmap(plait.grad(lambda x, y, g=g: g(x, y).sum()), (1, 0))
        else:
            h = plait.grad(lambda x, y, g=g: plait.vmap(g, (1, 0))(x, y).sum())
        got = np.asarray(plait.jit(h)(x, y))
        want = np.asarray(y) if order == "vmap of grad" else np.asarray(y).T
        np.testing.assert_array_equal(got, want)
        text = str(plait.make_program(h)(x, y))
        assert not [op for op in ("core.add(", "core.broadcast_in_dim(", "0.0:") if op in text]
    assert (True, False, (2,)) in seen and "jvp" in seen


def blocks():
    """Two reversible blocks: one that is inverted by its rule, one by its operations."""

    @plait.custom_ivjp
    def rev(a, b):
        return a + lax.sin(b), b

    @rev.defivjp
    def _(xs, ys, dys):
        (y, b), (dy, db) = ys, dys
        return (y - lax.sin(b), b), (dy, db + dy * lax.cos(b))

    return {"rule": rev, "operations": plait.invertible(lambda a, b: (a + lax.sin(b), b))}


@pytest.mark.parametrize("kind", ["rule", "operations"])
@pytest.mark.parametrize("way", ["plain", "jit", "scan"])
def test_reversible_functions(kind, way):
    """Mapped and differentiated, in both orders; of two arguments one need not be mapped."""
    f = blocks()[kind]
    f = {
        "plain": lambda f: f,
        "jit": plait.jit,
        "scan": lambda f: lambda a, b: lax.scan(lambda c, _: (f(*c), None), (a, b), None, 2)[0],
    }[way](f)
    n = 2 if way == "scan" else 1
    both = lambda a, b: sum(f(a, b))  # noqa: E731
    b = np.float32([0.2, 0.4, 0.6])
    want = 1 + n * np.cos(b)
    np.testing.assert_allclose(plait.vmap(plait.grad(both, 1))(f32(X), b), want, rtol=1e-5)
    mapped = lambda a, b: plait.vmap(both, (None, 0))(a, b).sum()  # noqa: E731
    ga, gb = plait.jit(plait.grad(mapped, (0, 1)))(f32(1), b)
    np.testing.assert_allclose(gb, want, rtol=1e-5)
    assert ga.item() == 3
    second = plait.vmap(plait.grad(plait.grad(both, 1), 1))(f32(X), b)
    np.testing.assert_allclose(second, -n * np.sin(b), rtol=1e-4)
