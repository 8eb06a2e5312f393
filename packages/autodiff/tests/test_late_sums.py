"""Gradients of loops by matrices that each turn multiplies: values, and what the loop adds up.

Invariant: values are those of the same turns written one after the other.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as pnp
from plait.ext.ir import programs_in
from plait.ext.ops.control_flow import scan

TURNS, WIDTH = 7, 5
_r = np.random.default_rng(0)
W = _r.standard_normal((WIDTH, WIDTH)) / 2
U = _r.standard_normal((3, WIDTH)) / 2
START = _r.standard_normal(WIDTH)
XS = _r.standard_normal((TURNS, 3))


def recurrent(w, u, h, x):
    return pnp.tanh(h @ w + x @ u)


def turned(w, u, h, x):
    return pnp.sin(w.T @ h + x @ u)


def twice(w, u, h, x):
    return pnp.tanh(pnp.sin(h @ w) @ w + x @ u)


def linear(w, u, h, x):
    return h @ w + x @ u


def gates(w, u, h, x):
    return pnp.tanh(h @ w) / (1 + pnp.exp(-(h @ w.T + x @ u)))


def quadratic(w, u, h, x):
    return pnp.tanh(h @ (w @ w) + x @ u)


def checkpointed(w, u, h, x):
    return plait.checkpoint(recurrent)(w, u, h, x)


BODIES = [recurrent, turned, twice, linear, gates, quadratic, checkpointed]


def by_scan(body, w, u, h, xs, **options):
    end, ys = lax.scan(lambda h, x: (body(w, u, h, x),) * 2, h, xs, **options)
    return (end**2).sum() + (ys**3).sum()


def by_hand(body, w, u, h, xs, reverse=False):
    ys = []
    for x in xs[::-1] if reverse else xs:
        h = body(w, u, h, x)
        ys.append(h)
    return (h**2).sum() + (pnp.stack(ys) ** 3).sum()


def close(got, want, rtol=1e-10):
    for g, w in zip(plait.tree.leaves(got), plait.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(g, float), np.asarray(w, float), rtol, 1e-10)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"unroll": 3}], ids=str)
def test_values(body, options):
    hand = {"reverse": options.get("reverse", False)}
    of = lambda f, o: lambda *a: f(body, *a, **o)  # noqa: E731
    got = plait.jit(plait.grad(of(by_scan, options), (0, 1, 2, 3)))(W, U, START, XS)
    close(got, plait.grad(of(by_hand, hand), (0, 1, 2, 3))(W, U, START, XS))


WAYS = {
    "jvp of grad": lambda f: lambda w, u: plait.jvp(plait.grad(f, (0, 1)), (w, u), (w, 2 * u)),
    "grad of grad": lambda f: plait.grad(lambda w, u: (plait.grad(f, 1)(w, u) ** 2).sum(), (0, 1)),
    "jvp of jvp": lambda f: (
        lambda w, u: plait.jvp(lambda w: plait.jvp(lambda w: f(w, u), (w,), (w,))[1], (w,), (w,))
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("body", [recurrent, turned, gates])
def test_second_derivatives(way, body):
    got = WAYS[way](lambda w, u: by_scan(body, w, u, START, XS))(W, U)
    close(got, WAYS[way](lambda w, u: by_hand(body, w, u, START, XS))(W, U), 1e-9)


def carried(f, *args):
    """Return the shapes of what loops carry backwards."""
    found = []

    def look(p):
        for e in p.eqns:
            if e.prim is scan and e.params["reverse"]:
                k, c = e.params["consts"], e.params["carry"]
                found.extend(v.aval.shape for v in e.inputs[k : k + c])
            for q in programs_in(e.params):
                look(q)

    look(plait.make_program(f)(*args))
    return found


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "complex128"])
def test_dtypes(dtype):
    """Narrow floats are summed over turns in float32."""
    turns = 400
    xs = np.ones((turns, 8), dtype=pnp.dtype(dtype))
    w = np.eye(8, dtype=pnp.dtype(dtype))

    def f(w):
        ys = lax.scan(lambda c, x: (c, x @ w), 0, xs)[1]
        return pnp.sum(ys.real.astype("float32"))

    assert w.shape not in carried(plait.grad(f), w)
    got = plait.grad(f)(w)
    assert got.dtype == w.dtype
    np.testing.assert_array_equal(np.asarray(got).astype(complex), np.full((8, 8), turns))


@pytest.mark.parametrize("body", [recurrent, turned, twice, gates])
def test_loops_do_not_add_up_products(body):
    f = plait.grad(lambda w, u: by_scan(body, w, u, START, XS), (0, 1))
    assert W.shape not in carried(f, W, U)


def test_a_matrix_that_the_carry_passes_on():
    """It has no cotangent as a constant of the loop."""

    def f(m):
        turn = lambda c: (c[0] + 1, c[1], c[1] @ c[2])  # noqa: E731
        return lax.while_loop(lambda c: c[0] < 3, turn, (0, m, START), max_steps=6)[2].sum()

    close(plait.grad(f)(W), plait.grad(lambda m: (m @ (m @ (m @ START))).sum())(W))


def test_products_of_large_factors_are_added_up():
    """Stacking factors of which each has more elements than the matrix would take more memory."""
    h, xs = np.zeros((40, WIDTH)), np.zeros((TURNS, 40, 3))
    f = plait.grad(lambda w: by_scan(recurrent, w, U, h, xs))
    assert W.shape in carried(f, W)


def test_products_with_constants_are_added_up():
    """A factor that is the same in all turns is not stacked."""
    same = pnp.asarray(_r.standard_normal(WIDTH))

    def f(w):
        return lax.scan(lambda h, x: (pnp.tanh(h + same @ w) * x[0], None), START, XS)[0].sum()

    def hand(w):
        h = START
        for x in XS:
            h = pnp.tanh(h + same @ w) * x[0]
        return h.sum()

    assert W.shape in carried(plait.grad(f), W)
    close(plait.grad(f)(W), plait.grad(hand)(W))


def test_a_loop_needs_less_than_twice_its_memory():
    w, h, xs = np.zeros((64, 64)), np.zeros(64), np.zeros((2000, 64))
    u = np.eye(64)
    g = plait.jit(plait.grad(lambda w: by_scan(checkpointed, w, u, h, xs)), tier="full")
    stack = 2000 * 64 * 8
    assert g.lower(w).compile().memory_analysis().temp_size_in_bytes < 4 * stack
