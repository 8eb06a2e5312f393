"""Attention of piles as one operation, against the loop over examples, whose sizes are known.

Invariant: the other side computes all products at once; memory follows the rows.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import nn

from .pile_checks import poisoned

axis = plait.pile_axis
QUERIES, KEYS = (3, 0, 70, 33), (5, 2, 0, 40)
HEADS = {"one each": (2, 2), "grouped": (4, 2), "shared": (3, 1)}
LOOKS = {
    "all": {},
    "causal": {"is_causal": True},
    "window": {"local_window_size": (3, 1)},
    "both, scaled": {"is_causal": True, "local_window_size": 4, "scale": 0.3},
}


def drawn(heads, groups):
    rng = np.random.default_rng(0)
    each = lambda ns, *rest: [rng.standard_normal((n, *rest)) for n in ns]
    return each(QUERIES, heads, 4), each(KEYS, groups, 4), each(KEYS, groups, 4)


def agree(pile, want, rtol=1e-8):
    for got, w in zip(pile.to_list(), want, strict=True):
        assert got.shape == w.shape and got.dtype == w.dtype
        np.testing.assert_allclose(got, w, rtol=rtol, atol=1e-9)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("heads", "look"),
    [("one each", "all"), ("grouped", "causal"), ("shared", "window"), ("grouped", "both, scaled")],
)
def test_values_and_derivatives(heads, look):
    columns = drawn(*HEADS[heads])
    piles = [poisoned(c, (0,)) for c in columns]
    examples = [tuple(map(pnp.asarray, e)) for e in zip(*columns)]
    f = lambda q, k, v: nn.dot_product_attention(q, k, v, **LOOKS[look])
    fast = lambda g: plait.jit(g, tier="fast")
    agree(fast(plait.vmap(f, axis, axis))(*piles), [fast(f)(*e) for e in examples])
    loss = lambda *x: pnp.sin(f(*x)).sum()
    inside = plait.vmap(plait.grad(loss, (0, 1, 2)), axis, axis)
    outside = plait.grad(lambda *x: plait.vmap(loss, axis)(*x).sum(), (0, 1, 2))
    want = list(zip(*[fast(plait.grad(loss, (0, 1, 2)))(*e) for e in examples]))
    for g in (inside, outside):
        for pile, column in zip(fast(g)(*piles), want, strict=True):
            agree(pile, column)


@pytest.mark.wide
def test_tangents_and_second_derivatives():
    columns = drawn(2, 1)
    piles = [plait.Pile.from_list(c) for c in columns]
    examples = [tuple(map(pnp.asarray, e)) for e in zip(*columns)]
    f = lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True)

    def along(q, k, v):
        return plait.jvp(f, (q, k, v), (pnp.cos(q), k * 2, pnp.sin(v)))[1]

    def turned(q, k, v):
        g = lambda q, k: plait.grad(lambda q, k: pnp.sin(f(q, k, v)).sum(), (0, 1))(q, k)
        return plait.jvp(g, (q, k), (pnp.cos(q), pnp.sin(k)))[1][1]

    for g in (along, turned):
        agree(plait.vmap(g, axis, axis)(*piles), [g(*e) for e in examples], 1e-7)


def test_one_of_them_is_no_pile():
    q, k, v = drawn(2, 2)
    shared = pnp.asarray(k[0])
    got = plait.vmap(nn.dot_product_attention, (axis, None, None), axis)(
        plait.Pile.from_list(q), shared, shared
    )
    agree(got, [nn.dot_product_attention(pnp.asarray(x), shared, shared) for x in q])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_narrow_floats(dtype):
    q, k, v = ([pnp.asarray(x, dtype) for x in c] for c in drawn(2, 2))
    got = plait.vmap(nn.dot_product_attention, axis, axis)(
        *[plait.Pile.from_list(c) for c in (q, k, v)]
    )
    for y, e in zip(got.to_list(), zip(q, k, v), strict=True):
        assert y.dtype == e[0].dtype
        want = nn.dot_product_attention(*e)
        np.testing.assert_allclose(
            np.float32(y), np.float32(np.asarray(want)), rtol=0.02, atol=0.02
        )


def test_what_nobody_sees_and_numbers_that_are_none():
    """Infinite keys of one example reach no other one."""
    q, k, v = drawn(1, 1)
    k[3][7], v[0][3, 0, 1] = np.inf, np.nan
    f = lambda q, k, v: nn.dot_product_attention(q, k, v, local_window_size=(2, 0))
    got = plait.vmap(f, axis, axis)(*[plait.Pile.from_list(c) for c in (q, k, v)]).to_list()
    for b, e in enumerate(zip(q, k, v)):
        want = np.asarray(f(*map(pnp.asarray, e)))
        seen = np.isfinite(want).all((1, 2))
        if b == 0:  # no weight keeps a value that is not a number out of products with all of them
            assert not np.isfinite(got[b]).all()
            continue
        assert seen.all() == (b != 3)
        np.testing.assert_allclose(got[b][seen], want[seen], rtol=1e-8, atol=1e-9)
        assert not np.isfinite(got[b][~seen]).all((1, 2)).any()


def test_memory_follows_the_rows():
    """Products of queries and keys would be a hundred times as many."""
    x = plait.Pile.from_list([np.ones((n, 2, 16), np.float32) for n in (2000, 100, 30, 500)])
    rows = plait.tree.leaves(x)[0].nbytes
    f = lambda p: plait.vmap(nn.dot_product_attention, axis, axis)(p, p, p)
    gradient = plait.grad(lambda p: (f(p).data ** 2).sum())
    products = 4 * 2 * (2000**2 + 500**2)
    for g, times in ((f, 14), (gradient, 26)):
        needed = plait.jit(g).lower(x).compile().memory_analysis().temp_size_in_bytes
        assert needed < times * rows < products / 2, (needed, rows)


def test_tables_of_lengths_are_lowered_once():
    """Of piles of the same capacities, forwards and backwards; whoever asks, calls them."""
    rng = np.random.default_rng(0)
    piles = [plait.Pile.from_list([rng.standard_normal((n, 2, 4)) for n in ns])
             for ns in ([40, 0, 3], [2, 50, 7])]  # fmt: skip

    def loss(q, k):
        f = lambda q, k: (nn.softmax(pnp.einsum("nhd,mhd->hnm", q, k), -1) ** 2).sum()
        return plait.vmap(f, axis)(q, k).sum()

    text = plait.jit(plait.grad(loss)).lower(*piles).as_text()
    for table in ("owners", "_tiles_of", "_pairs_of"):
        assert text.count(f"func.func private @{table}(") == 1
        assert f"@{table}_" not in text.replace("@_tiles_of_rows", "")
        assert text.count(f"call @{table}(") >= 2
