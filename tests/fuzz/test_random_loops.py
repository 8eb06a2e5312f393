"""Random loops whose turns multiply by matrices, differentiated in several orders with `vmap`.

Invariant: the truth is the same turns written one after the other.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as pnp

WIDTH = 3

STEPS = (
    lambda h, x, w, u: h @ w,
    lambda h, x, w, u: h @ w.T,
    lambda h, x, w, u: pnp.einsum("...i,ij->...j", h, w),
    lambda h, x, w, u: (h @ w) @ w,
    lambda h, x, w, u: pnp.sin(h) @ w * (h @ u),
    lambda h, x, w, u: h * w[0],
    lambda h, x, w, u: h @ (w * u),
    lambda h, x, w, u: h @ w[:, ::-1],
    lambda h, x, w, u: pnp.outer(h.reshape(-1)[:WIDTH], x.reshape(-1)[:WIDTH])[0] + h @ w,
    lambda h, x, w, u: h @ w + x @ w,
    lambda h, x, w, u: pnp.where(h > 0, h @ w, x @ u),
    lambda h, x, w, u: pnp.moveaxis(pnp.tensordot(w, h, (0, -1)), 0, -1),
    lambda h, x, w, u: plait.checkpoint(lambda h, w: pnp.tanh(h @ w))(h, w),
    lambda h, x, w, u: lax.scan(
        lambda c, r: (pnp.tanh(c @ w) + r, None), h, pnp.stack([x, x * 2])
    )[0],
    lambda h, x, w, u: lax.cond(x.sum() > 0, lambda h: h @ w, lambda h: h @ u, h),
    lambda h, x, w, u: plait.jit(lambda h: h @ w)(h),
    lambda h, x, w, u: lax.while_loop(
        lambda s: s[0] < 2, lambda s: (s[0] + 1, pnp.tanh(s[1] @ w)), (0, h), max_steps=3
    )[1],
)  # fmt: skip


def gradient(f):
    return plait.grad(f, (0, 1, 2, 3))


def of_examples(f):
    return plait.vmap(plait.grad(f, (0, 1)), in_axes=(None, None, 0, 1))


def of_all_examples(f):
    def several(w, *rest):
        mapped = plait.vmap(f, in_axes=(0, None, None, None))
        return mapped(pnp.stack([w, 2 * w]), *rest).sum()

    return plait.grad(several, (0, 1))


def tangents(f):
    return lambda *xs: plait.jvp(plait.grad(f, (0, 1)), xs, xs)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("way", [gradient, of_examples, of_all_examples, tangents])
@pytest.mark.parametrize("seed", range(12))
def test_gradients(seed, way):
    r = np.random.default_rng(seed)
    steps = [STEPS[k] for k in r.integers(len(STEPS), size=r.integers(1, 4))]
    shape = [(WIDTH,), (2, WIDTH), (2, 1, WIDTH)][r.integers(3)]
    options = {"reverse": bool(r.integers(2)), "unroll": int(r.integers(1, 3))}
    w, u = r.standard_normal((2, WIDTH, WIDTH)) / 2
    h, xs = r.standard_normal(shape), r.standard_normal((int(r.integers(1, 5)), *shape))
    whole = bool(r.integers(2))
    if way is of_examples:
        h, xs = np.stack([h, 2 * h]), np.stack([xs, xs / 2], 1)

    def turn(w, u, h, x):
        for step in steps:
            h = pnp.tanh(step(h, x, w, u))
        return h

    def loop(w, u, h, xs):
        end, ys = lax.scan(lambda h, x: (turn(w, u, h, x),) * 2, h, xs, **options)
        return (end**2).sum() + ((ys**3).sum() if whole else 0)

    def by_hand(w, u, h, xs):
        ys = []
        for x in xs[::-1] if options["reverse"] else xs:
            h = turn(w, u, h, x)
            ys.append(h)
        return (h**2).sum() + (sum((y**3).sum() for y in ys) if whole else 0)

    got = plait.tree.leaves(plait.jit(way(loop), tier="fast")(w, u, h, xs))
    want = plait.tree.leaves(way(by_hand)(w, u, h, xs))
    for g, v in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(v), rtol=1e-8, atol=1e-9)
