"""Traced values among the arguments of `nondiff_argnums`, which the rule is given as they are.

Invariant: derivatives are those that the rules say, by numpy.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import UnexpectedTracerError

pnp = plait.numpy
S, P = 0.25, 0.5
PS = np.array([0.5, -2.0, 3.0], np.float32)


@dataclass
class Limits:
    """An object that holds a traced value and is not a tree."""

    at: object


def by_vjp(uses, **options):
    """p * 2, whose cotangent is clipped to s; the function uses s (and adds nothing), or not."""
    g = plait.custom_vjp(lambda s, p: p * 2 + (0 * s if uses else 0), nondiff_argnums=(0,))
    value = (lambda p: p.value) if options else (lambda p: p)
    g.defvjp(lambda s, p: (value(p) * 2, ()), lambda s, r, ct: (pnp.clip(ct, -s, s),), **options)
    return g


def by_jvp(uses, **options):
    """p * 2, whose tangent is multiplied by s."""
    g = plait.custom_jvp(lambda s, p: p * 2 + (0 * s if uses else 0), nondiff_argnums=(0,))
    g.defjvp(lambda s, ps, ts: (g(s, ps[0]), ts[0] * s), **options)
    return g


def in_a_tree(uses):
    g = plait.custom_vjp(lambda s, p: p * 2 + (0 * s["at"][0] if uses else 0), (0,))
    g.defvjp(lambda s, p: (p * 2, ()), lambda s, r, ct: (ct * s["at"][0],))
    return lambda s, p: g({"at": (s, None)}, p)


def in_an_object(uses):
    g = plait.custom_vjp(lambda s, p: p * 2 + (0 * s.at if uses else 0), (0,))
    g.defvjp(lambda s, p: (p * 2, ()), lambda s, r, ct: (ct * s.at,))
    return lambda s, p: g(Limits(s), p)


def by_name(uses):
    g = plait.custom_vjp(lambda p, s: p * 2 + (0 * s if uses else 0), nondiff_argnames=("s",))
    g.defvjp(lambda p, s: (p * 2, ()), lambda s, r, ct: (ct * s,))
    return lambda s, p: g(p, s=s)


MADE = {
    "vjp": by_vjp,
    "vjp, zeros": lambda uses: by_vjp(uses, symbolic_zeros=True),
    "jvp": by_jvp,
    "jvp, zeros": lambda uses: by_jvp(uses, symbolic_zeros=True),
    "in a tree": in_a_tree,
    "by name": by_name,
}
WAYS = {
    "jit": lambda f: plait.grad(lambda p: plait.jit(f)(S, p))(P),
    "jit around": lambda f: plait.jit(lambda s: plait.grad(lambda p: f(s, p))(P))(S),
    "scan": lambda f: plait.grad(
        lambda p: lax.scan(lambda c, s: (c + f(s, p), None), 0.0, np.array([S], "float32"))[0]
    )(P),
    "cond": lambda f: plait.grad(lambda p: lax.cond(p > 0, lambda s: f(s, p), lambda s: p, S))(P),
    "checkpoint": lambda f: plait.grad(lambda p: plait.checkpoint(f)(S, p))(P),
    "mapped": lambda f: plait.vmap(plait.grad(lambda p, s: f(s, p)), (None, 0))(
        P, np.array([S, S], "float32")
    )[1],
    "mapped inside": lambda f: plait.grad(
        lambda p: plait.vmap(lambda s: f(s, p))(np.array([S, S], "float32")).sum()
    )(P),
    "mapped in jit": lambda f: plait.jit(
        plait.grad(lambda p: plait.vmap(lambda s: f(s, p))(np.array([S, S], "float32")).sum())
    )(P),
    "jvp": lambda f: plait.vjp(lambda p: plait.jit(f)(S, p), P)[1](1.0)[0],
}


@pytest.mark.parametrize("uses", [False, True], ids=["rule alone", "function, too"])
@pytest.mark.parametrize("name", MADE)
def test_traced(name, uses):
    """The rule uses it, and the function perhaps."""
    for way, run in WAYS.items():
        want = 2 * S if way in ("mapped inside", "mapped in jit") else S
        np.testing.assert_allclose(run(MADE[name](uses)), want, err_msg=way)


def test_in_an_object():
    """An object that is not a tree may hold it."""
    for uses in (False, True):
        np.testing.assert_allclose(WAYS["jit"](in_an_object(uses)), S)


def test_keys():
    """A mapped key, and a rule that calls the function."""

    def sample(shape, low, key):
        return plait.random.uniform(key, shape, minval=low)

    f = plait.custom_jvp(sample, nondiff_argnums=(0, 2))
    f.defjvp(lambda shape, key, ps, ts: (f(shape, ps[0], key), f(shape, *ps, key) * ts[0]))
    keys = plait.random.split(plait.random.key(1), 3)
    each = lambda x: plait.vmap(lambda k: f((2,), x, k))(keys)  # noqa: E731
    want = np.stack([sample((2,), 0.5, k) for k in keys])
    np.testing.assert_allclose(each(0.5), want)
    for g in (each, plait.jit(each)):
        out, dot = plait.jvp(g, (0.5,), (2.0,))
        np.testing.assert_allclose(out, want)
        np.testing.assert_allclose(dot, 2 * want)


@pytest.mark.parametrize("name", ["vjp", "jvp"])
def test_differentiated(name):
    """Refuse a value that is being differentiated, and name the line that made it."""
    f = MADE[name](False)
    for g in (f, plait.jit(f)):
        with pytest.raises(UnexpectedTracerError, match="reated on line"):
            plait.grad(lambda x, g=g: g(x, x))(P)
