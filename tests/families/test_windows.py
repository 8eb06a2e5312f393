"""Sums over windows and products by groups, against loops.

Invariant: the loops are written with numpy's own argmax and matrix product.
"""

import itertools

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import TypeRule
from plait.ext.ops.windows import select_and_scatter_add_
from plait.testing import conformance
from plait_autodiff import check_grads

rng = np.random.default_rng(0)
X = rng.permutation(30).reshape(5, 6) / 7.0


def loop(source, x, *, select, window, strides, padding):
    """One window after the other."""
    worst = -np.inf if select == "max" else np.inf
    wide = np.pad(x, padding, constant_values=worst)
    out = np.zeros_like(wide)
    for at in itertools.product(*map(range, source.shape)):
        low = [i * s for i, s in zip(at, strides)]
        box = wide[tuple(slice(a, a + k) for a, k in zip(low, window))]
        best = np.unravel_index(box.argmax() if select == "max" else box.argmin(), window)
        out[tuple(a + b for a, b in zip(low, best))] += source[at]
    return out[tuple(slice(a, a + n) for (a, _), n in zip(padding, x.shape))]


def test_conformance():
    params = dict(select="max", window=(2, 3), strides=(1, 2), padding=((1, 0), (0, 1)))
    y = rng.normal(size=(5, 3))
    report = conformance(select_and_scatter_add_, [(y, X)], loop, params)
    assert {"value", "jit", "text", "law jvp", "law transpose", "law batching"} <= {*report.checks}


def test_as_users_say_it():
    y = rng.normal(size=(2, 3)).astype(np.float32)
    x = rng.permutation(24).reshape(4, 6).astype(np.float32)
    got = lax.select_and_scatter_add(y, x, "max", (2, 2), (2, 2))
    params = dict(select="max", window=(2, 2), strides=(2, 2), padding=((0, 0), (0, 0)))
    np.testing.assert_allclose(np.asarray(got), loop(y, x, **params))
    pool = lambda v: (lax.reduce_window(v, -np.inf, lax.max, (2, 2), (2, 2)) * y).sum()  # noqa: E731
    np.testing.assert_allclose(np.asarray(plait.grad(pool)(x)), np.asarray(got))
    ties = rng.integers(-1, 2, (5, 6)).astype(np.float32)
    y = rng.normal(size=(3, 4)).astype(np.float32)
    ties = ties[:, :5]
    got = lax.select_and_scatter_add(y, ties, "min", (2, 2), (2, 1), ((0, 1), (0, 0)))
    params = dict(select="min", window=(2, 2), strides=(2, 1), padding=((0, 1), (0, 0)))
    np.testing.assert_allclose(np.asarray(got), loop(y, ties, **params))
    y = y[:2, :3]
    nan = lax.select_and_scatter_add(np.float32([1]), np.float32([3, np.nan, 4]), "max", (3,), (1,))
    assert nan.tolist() == [0, 1, 0]
    empty = lax.select_and_scatter_add(np.zeros((0,), np.float32), np.ones(2, np.float32), "max",
                                       (3,), (1,))  # fmt: skip
    assert empty.tolist() == [0, 0]
    with pytest.raises(TypeRule, match="give an element for each"):
        lax.select_and_scatter_add(y[:1], x, "max", (2, 2), (2, 2))
    with pytest.raises(TypeRule, match="no 'sum'"):
        lax.select_and_scatter_add(y, x, "sum", (2, 2), (2, 2))
    with pytest.raises(TypeRule, match="give 2 sizes"):
        lax.select_and_scatter_add(y, x, "max", (2,), (2, 2))


def test_products_by_groups():
    x, w = rng.normal(size=(7, 3)), rng.normal(size=(4, 3, 2))
    sizes = np.array([2, 0, 3, 1])
    group = np.repeat(np.arange(4), sizes)

    def want(x, w):
        return np.concatenate([np.stack([r @ w[g] for r, g in zip(x, group)]), np.zeros((1, 2))])

    np.testing.assert_allclose(np.asarray(lax.ragged_dot(x, w, sizes)), want(x, w), 1e-12)
    broken = w.copy()
    broken[1] = np.nan
    np.testing.assert_allclose(np.asarray(lax.ragged_dot(x, broken, sizes)), want(x, w), 1e-12)
    part = lax.ragged_dot(x, w[2:], sizes, group_offset=np.array([2]))
    np.testing.assert_allclose(np.asarray(part), want(x, w) * (np.arange(7) >= 2)[:, None], 1e-12)
    f = lambda x, w: lax.ragged_dot(x, w, sizes)  # noqa: E731
    check_grads(f, (x, w), order=1)
    got = plait.vmap(f, in_axes=(0, None))(np.stack([x, 2 * x]), w)
    np.testing.assert_allclose(np.asarray(got[1]), want(2 * x, w), 1e-12)
    narrow = lax.ragged_dot(np.int8(x), np.int8(w), sizes, preferred_element_type=np.int32)
    assert narrow.dtype == np.int32
    with pytest.raises(TypeRule, match="4 groups and 3 matrices"):
        lax.ragged_dot(x, w[1:], sizes)
    with pytest.raises(TypeRule, match=r"give \(m, k\) rows"):
        lax.ragged_dot(x, w[0], sizes)
