"""Gradients of loops by matrices that each turn multiplies, over piles and exported.

`tests/fuzz/test_random_loops.py` maps and differentiates such loops in several orders.

Invariant: values are those of the same turns written one after the other.
"""

import numpy as np

import plait
from plait import lax
from plait import numpy as pnp

WIDTH = 5
_r = np.random.default_rng(0)
W = _r.standard_normal((WIDTH, WIDTH)) / 2
START = _r.standard_normal(WIDTH)


def turn(w, h, x):
    return pnp.tanh(h @ w) * x[0]


def loop(w, h, xs):
    return lax.scan(lambda h, x: (turn(w, h, x), None), h, xs)[0].sum()


def by_hand(w, h, xs):
    for x in xs:
        h = turn(w, h, x)
    return h.sum()


def test_examples_of_piles():
    """One of them has no row, so its gradient is zero."""
    xs = [_r.standard_normal((n, 3)) for n in (7, 2, 0)]
    grads = plait.vmap(plait.grad(loop), (None, None, plait.pile_axis), 0)
    got = grads(W, START, plait.Pile.from_list(xs))
    want = [plait.grad(lambda w, x=x: by_hand(w, START, x))(W) for x in xs]
    np.testing.assert_allclose(got, np.stack([np.asarray(w) for w in want]), rtol=1e-9, atol=1e-12)


def test_symbolic_sizes():
    xs = _r.standard_normal((7, 3))
    specs = plait.export.symbolic_args_specs((W, START, xs), ("n, n", "n", "t, 3"), ["n >= 1"])
    exported = plait.export.export(plait.jit(plait.grad(loop)))(*specs)
    want = plait.grad(lambda w: by_hand(w, START, xs))(W)
    np.testing.assert_allclose(exported.call(W, START, xs), want, rtol=1e-10)


def test_examples_of_piles_add_up_no_matrices():
    """Their products are one product of all rows."""
    xs = plait.Pile.from_list([np.ones((n, 3), np.float32) for n in (5, 3, 5, 5)])
    w, h = W.astype(np.float32), START.astype(np.float32)

    def loss(w):
        return plait.vmap(lambda x: loop(w, h, x), plait.pile_axis, 0)(xs).sum()

    text = plait.jit(plait.grad(loss)).lower(w).as_text()
    assert f"tensor<4x{WIDTH}x{WIDTH}xf32>" not in text
