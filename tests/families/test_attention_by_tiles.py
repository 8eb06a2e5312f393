"""Attention by tiles, as CPUs compute it, against numpy in double precision.

Invariant: derivatives are compared with differences of numpy's result along a direction.
"""

import math
import re

import numpy as np
import pytest

import plait

TILED = [
    # batch, queries, keys, heads, groups, depth, columns, causal, window
    (2, 200, 200, 2, 2, 8, 8, True, None),  # a last tile with fewer queries
    (1, 300, 130, 4, 2, 4, 3, False, None),  # heads share keys
    (1, 130, 260, 2, 1, 4, 4, True, (70, 0)),
    (2, 330, 100, 1, 1, 3, 5, False, (20, 9)),  # the last queries see no key
    (1, 640, 640, 1, 1, 4, 4, True, (100, 3)),  # several tiles in a loop
    (160, 64, 512, 1, 1, 2, 2, False, None),  # not all heads at once
]


def drawn(case, seed=0):
    b, t, s, h, g, d, c, *_ = case
    r = np.random.default_rng(seed)
    shapes = (b, t, h, d), (b, s, g, d), (b, s, g, c), (b, t, h, c)
    return [r.normal(size=n).astype(np.float32) for n in shapes]


def by_numpy(q, k, v, causal, window):
    """Return attention in double precision, from all pairs."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[2] // k.shape[2], 2) for x in (k, v))
    products = np.einsum("bthd,bshd->bhts", q, k) / np.sqrt(q.shape[3])
    i, j = np.ogrid[: q.shape[1], : k.shape[1]]
    seen = (j <= i) | (not causal)
    if window is not None:
        seen = seen & (j >= i - window[0]) & (j <= i + window[1])
    terms = np.where(seen, np.exp(products), 0)
    total = terms.sum(-1, keepdims=True)
    return np.einsum("bhts,bshc->bthc", terms / np.where(total == 0, 1, total), v)


def attention(case):
    return lambda q, k, v: plait.nn.dot_product_attention(
        q, k, v, is_causal=case[-2], local_window_size=case[-1]
    )


def largest(text):
    """Return the most elements of an array in the text of a module."""
    shapes = re.findall(r"tensor<((?:\d+x)+)[a-z]", text)
    return max(math.prod(map(int, s[:-1].split("x"))) for s in shapes)


@pytest.mark.parametrize("case", TILED, ids=str)
def test_values(case):
    q, k, v, _ = drawn(case)
    f = plait.jit(attention(case))
    got = np.asarray(f(q, k, v))
    np.testing.assert_allclose(got, by_numpy(q, k, v, *case[-2:]), rtol=1e-5, atol=2e-6)
    np.testing.assert_array_equal(np.asarray(attention(case)(q, k, v)), got)
    assert largest(f.lower(q, k, v).as_text()) < case[0] * case[1] * case[2] * case[3]


@pytest.mark.parametrize("case", TILED, ids=str)
def test_values_of_one_head_at_a_time(case):
    *xs, _ = drawn(case)
    with plait.config(cpu_limits={"attention.at_once": 1}):
        got = plait.jit(attention(case))(*xs)
    np.testing.assert_allclose(got, by_numpy(*xs, *case[-2:]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", TILED, ids=str)
def test_derivatives(case):
    *xs, ct = drawn(case)
    *ts, _ = drawn(case, 1)
    f = attention(case)
    xs64 = [x.astype(np.float64) for x in xs]
    want = sum(s * by_numpy(*[x + n * 1e-4 * t for x, t in zip(xs64, ts)], *case[-2:])
               for n, s in ((1, 0.5), (-1, -0.5))) / 1e-4  # fmt: skip
    _, along = plait.jit(lambda xs, ts: plait.jvp(f, xs, ts))(tuple(xs), tuple(ts))
    np.testing.assert_allclose(np.asarray(along), want, rtol=1e-3, atol=1e-4)
    back = plait.jit(lambda xs, ct: plait.vjp(f, *xs)[1](ct))(tuple(xs), ct)
    got = sum(np.vdot(np.asarray(c).astype(np.float64), t) for c, t in zip(back, ts))
    scale = sum(np.linalg.norm(np.asarray(c)) * np.linalg.norm(t) for c, t in zip(back, ts))
    assert abs(got - np.vdot(ct, want)) < 1e-5 * scale


def test_mapped_examples_are_tiled():
    case = TILED[0]
    q, k, v, _ = drawn(case)
    f = plait.jit(plait.vmap(attention(case), in_axes=(0, None, 1)))
    vs = np.stack([v[0], 2 * v[0]], 1)
    got = np.asarray(f(q, k[0], vs))
    want = [by_numpy(q[i][None], k[:1], (1 + i) * v[:1], *case[-2:])[0] for i in range(2)]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=4e-6)
    assert largest(f.lower(q, k[0], vs).as_text()) < 2 * 2 * 200 * 200


@pytest.mark.parametrize("dtype, tol", [("bfloat16", 2e-2), ("float16", 2e-3), ("float64", 1e-12)])
def test_dtypes(dtype, tol):
    case = TILED[0]
    xs = [plait.device_put(x.astype(np.float64)).astype(dtype) for x in drawn(case)[:3]]
    got = plait.jit(attention(case))(*xs)
    assert got.dtype == dtype
    want = by_numpy(*[np.asarray(x) for x in xs], *case[-2:])
    np.testing.assert_allclose(np.asarray(got).astype(np.float64), want, rtol=tol, atol=tol)


def test_what_a_query_does_not_see_does_not_reach_it():
    case = TILED[0]
    q, k, v, _ = drawn(case)
    k[:, 150:] = np.nan
    got = np.asarray(plait.jit(attention(case))(q, k, v))
    assert np.isfinite(got[:, :64]).all() and np.isnan(got[:, 150:]).all()


@pytest.mark.parametrize("reverse", [False, True])
def test_memory_grows_with_rows(reverse):
    """With all pairs it would grow by the square."""

    def memory(n):
        f = attention((1, n, n, 1, 1, 8, 8, True, None))
        if reverse:
            f = plait.grad(
                lambda q, k, v: attention((True, None))(q, k, v).sum(), argnums=(0, 1, 2)
            )
        xs = [np.zeros((1, n, 1, 8), np.float32)] * 3
        return plait.jit(f).lower(*xs).compile().memory_analysis().temp_size_in_bytes

    assert memory(2048) < 3 * memory(1024)


@pytest.mark.parametrize("tiles, at_once", [(True, 1 << 20), (True, 1), (False, 1)])
def test_pairs_have_no_axes_of_one_element(tiles, at_once):
    """The compiler's loops over such axes take up to three times as long."""
    f = attention((True, None))
    g = plait.grad(lambda q, k, v: f(q, k, v).sum(), argnums=(0, 1, 2))
    xs = [np.zeros((2, 200, 2, 8), np.float32)] * 3
    with plait.config(cpu_forms=tiles, cpu_limits={"attention.at_once": at_once}):
        text = plait.jit(g).lower(*xs).as_text()
    shapes = re.findall(r"stablehlo.exponential .* : tensor<((?:\d+x)+)f32>", text)
    assert shapes and all("1" not in s.split("x") for s in shapes)


@pytest.mark.parametrize("n, heads, forward, backward", [(256, 64, 64, 64), (1024, 16, 4, 1)])
def test_heads_at_once(n, heads, forward, backward):
    """A loop over heads copies its operands, so it has more than a few turns.  Derivatives hold the
    weights of all segments of tiles, so they take fewer heads."""
    f = attention((True, None))
    g = plait.grad(lambda q, k, v: f(q, k, v).sum(), argnums=(0, 1, 2))
    xs = [np.zeros((heads // 8, n, 8, 64), np.float32)] * 3
    with plait.config(cpu_limits={"attention.few_turns": 0}):  # of a size that `at_once` allows
        assert "stablehlo.while" in plait.jit(g).lower(*xs).as_text()
    for run, count in ((f, forward), (g, backward)):
        text = plait.jit(run).lower(*xs).as_text()
        shapes = re.findall(r"stablehlo.exponential .* : tensor<((?:\d+x)+)f32>", text)
        stacks = [[int(size) for size in s.split("x")[:-3]] for s in shapes]
        assert [math.prod(stack) for stack in stacks] == [count] * 4
        assert ("stablehlo.while" in text) == (count < heads)


def test_sums_over_queries_have_the_narrow_matrix_first():
    """With the weights first they take up to twice as long."""
    g = plait.grad(lambda k, v: attention((True, None))(k, k, v).sum(), argnums=(0, 1))
    text = plait.jit(g).lower(*[np.zeros((2, 256, 2, 8), np.float32)] * 2).as_text()
    sums = re.findall(r"dims = \[1\] x \[1\] : \(tensor<\d+x\d+x(\d+)xf32>.*?x(\d+)xf32>\)", text)
    assert len(sums) == 8 and all(int(left) < int(right) for left, right in sums)


@pytest.mark.full_tier
def test_weights_are_computed_once_if_result_and_derivative_need_them():
    f = attention((True, None))
    g = plait.jit(plait.grad(lambda q: (f(q, q, q) ** 2).sum()))
    text = g.lower(np.zeros((2, 256, 2, 8), np.float32)).compile().as_text()
    assert text.count("exponential(") == 4  # one for each segment of tiles


def test_other_platforms_and_settings_get_products_and_a_softmax():
    case = TILED[0]
    q, k, v, _ = drawn(case)
    f = plait.jit(attention(case))
    text = f.trace(q, k, v).lower(lowering_platforms=("tpu",)).as_text()
    assert "x200x" in text and "stablehlo.slice" not in text
    with plait.config(cpu_forms=False):
        assert "stablehlo.slice" not in f.lower(q, k, v).as_text()
