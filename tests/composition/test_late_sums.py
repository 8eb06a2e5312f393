"""Gradients of loops by matrices that each turn multiplies, mapped, over piles and exported.

Invariant: values are those of the same turns written one after the other.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as pnp

TURNS, WIDTH = 7, 5
_r = np.random.default_rng(0)
W = _r.standard_normal((WIDTH, WIDTH)) / 2
U = _r.standard_normal((3, WIDTH)) / 2
START = _r.standard_normal(WIDTH)
XS = _r.standard_normal((TURNS, 3))
BATCH = _r.standard_normal((4, TURNS, 3))


def recurrent(w, u, h, x):
    return pnp.tanh(h @ w + x @ u)


def turned(w, u, h, x):
    return pnp.sin(w.T @ h + x @ u)


def gates(w, u, h, x):
    return pnp.tanh(h @ w) / (1 + pnp.exp(-(h @ w.T + x @ u)))


def by_scan(body, w, u, h, xs):
    end, ys = lax.scan(lambda h, x: (body(w, u, h, x),) * 2, h, xs)
    return (end**2).sum() + (ys**3).sum()


def by_hand(body, w, u, h, xs):
    ys = []
    for x in xs:
        h = body(w, u, h, x)
        ys.append(h)
    return (h**2).sum() + (pnp.stack(ys) ** 3).sum()


def close(got, want, rtol=1e-10):
    for g, w in zip(plait.tree.leaves(got), plait.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(g, float), np.asarray(w, float), rtol, 1e-10)


WAYS = {
    "vmap of grad": lambda f: plait.vmap(plait.grad(f, (0, 1)), in_axes=(None, None, None, 0)),
    "grad of vmap": lambda f: plait.grad(
        lambda *a: plait.vmap(f, in_axes=(None, None, None, 0))(*a).sum(), (0, 1)
    ),
    "jvp of grad": lambda f: (
        lambda w, u, h, xs: plait.jvp(
            lambda w: plait.vmap(plait.grad(f), in_axes=(None, None, None, 0))(w, u, h, xs),
            (w,),
            (w,),
        )
    ),
    "grad of grad": lambda f: plait.grad(
        lambda w, u, h, xs: (plait.grad(f, 1)(w, u, h, xs[0]) ** 2).sum(), (0, 1, 2)
    ),
    "over piles": lambda f: (
        lambda w, u, h, xs: plait.vmap(
            plait.grad(f, (0, 1)), in_axes=(None, None, None, plait.pile_axis), out_axes=0
        )(w, u, h, plait.Pile.from_list([xs[0], xs[1, :2], xs[2, :0]]))
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("body", [recurrent, turned, gates])
def test_transformed(way, body):
    if way == "over piles":
        of = lambda xs: [plait.grad(lambda w, u: by_hand(body, w, u, START, xs), (0, 1))(W, U)]  # noqa: E731
        each = [of(xs)[0] for xs in (BATCH[0], BATCH[1, :2])]
        zeros = np.zeros_like(W), np.zeros_like(U)
        want = [np.stack([np.asarray(v) for v in vs]) for vs in zip(*each, zeros)]
    else:
        want = WAYS[way](lambda *a: by_hand(body, *a))(W, U, START, BATCH)
    close(WAYS[way](lambda *a: by_scan(body, *a))(W, U, START, BATCH), want, 1e-9)


def test_symbolic_sizes():
    specs = plait.export.symbolic_args_specs((W, START, XS), ("n, n", "n", "t, 3"), ["n >= 1"])

    def f(w, h, xs):
        return lax.scan(lambda h, x: (pnp.tanh(h @ w) * x[0], None), h, xs)[0].sum()

    exported = plait.export.export(plait.jit(plait.grad(f)))(*specs)
    close(exported.call(W, START, XS), plait.grad(f)(W, START, XS))


def test_examples_of_piles_add_up_no_matrices():
    """Their products are one product of all rows."""
    xs = plait.Pile.from_list([np.ones((n, 3), np.float32) for n in (5, 3, 5, 5)])
    w, u, h = (v.astype(np.float32) for v in (W, U, START))

    def loss(w):
        each = plait.vmap(
            lambda x: by_scan(recurrent, w, u, h, x), in_axes=plait.pile_axis, out_axes=0
        )
        return each(xs).sum()

    text = plait.jit(plait.grad(loss)).lower(w).as_text()
    assert f"tensor<4x{WIDTH}x{WIDTH}xf32>" not in text
