"""Elements by their rank: by bisection on CPUs, and by a sort.

Invariant: the truth is numpy's sort; both ways agree to the bit.
"""

import numpy as np
import pytest

import plait
from plait import numpy as pnp
from plait.ext.errors import PlaitError
from plait.ext.ops.sorting import ranked_

ROWS, LONG = 3, 5000
_r = np.random.default_rng(0)


def rows(dtype):
    x = _r.standard_normal((ROWS, LONG))
    x[0, ::7], x[0, 1::7], x[1, ::5], x[1, 1::900], x[1, 2::900] = 0, -0.0, 1, np.inf, -np.inf
    x[2, :40], x[2, 40:50] = np.nan, -np.nan
    return _r.permuted(x, axis=1).astype(pnp.dtype(dtype))


def bits(x):
    x = np.asarray(x)
    return np.where(np.isnan(x.astype(float)), -1, x.view(f"int{8 * x.dtype.itemsize}"))


PLACES = np.array([[0], [1200], [LONG - 1]], np.int32), np.array([[2000, 4960]] * ROWS, np.int32)


def in_both_ways(x, at):
    f = lambda x, at: ranked_.bind(x, at)  # noqa: E731
    with plait.config(cpu_limits={"ranked.advantage": 0}):
        found, text = plait.jit(f)(x, at), plait.jit(f).lower(x, at).as_text()
    assert "stablehlo.sort" not in text
    with plait.config(cpu_forms=False):
        return found, plait.jit(lambda x, at: ranked_.bind(x, at))(x, at)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("at", PLACES, ids=["one", "two"])
def test_values(dtype, at):
    x = rows(dtype)
    order = np.sort(x.astype(float), axis=1)
    found, sorted_ = in_both_ways(x, at)
    for f, s, places in zip(found, sorted_, (at, np.minimum(at + 1, LONG - 1)), strict=True):
        np.testing.assert_array_equal(bits(f), bits(s))
        np.testing.assert_array_equal(np.asarray(f, float), np.take_along_axis(order, places, 1))


def test_long_rows_are_not_sorted():
    """One or two quantiles of long rows are found by bisection, many of them by a sort."""
    x = np.zeros((2, LONG), np.float32)
    sorts = lambda f, x: "stablehlo.sort" in plait.jit(f).lower(x).as_text()  # noqa: E731
    assert not sorts(lambda x: pnp.median(x, axis=1), x)
    assert not sorts(lambda x: pnp.quantile(x, np.array([0.1, 0.9]), axis=1), x)
    assert sorts(lambda x: pnp.quantile(x, np.linspace(0, 1, 9), axis=1), x)
    assert sorts(lambda x: pnp.median(x, axis=1), x[:, :100])
    with plait.config(cpu_forms=False):
        assert sorts(lambda x: pnp.median(x, axis=1) + 0, x)


@pytest.mark.parametrize(
    "method", ["linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf", "weibull"]
)
@pytest.mark.parametrize("q", [0.0, 0.25, 0.3333, 0.5, 1.0])
def test_quantiles(method, q):
    x = _r.standard_normal((4, 2000)).astype(np.float32)
    x[1], x[2, ::3] = 2, 0
    got = pnp.quantile(x, q, axis=1, method=method)
    np.testing.assert_allclose(got, np.quantile(x, q, axis=1, method=method), rtol=1e-5, atol=1e-6)
    x[0, ::4] = np.nan
    got = pnp.nanquantile(x, q, axis=1, method=method)
    want = np.nanquantile(x, q, axis=1, method=method)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_positions_outside_are_the_nearest():
    x = rows("float32")
    given = np.array([[-7], [LONG + 3], [2**31 - 1]], np.int32)
    for f, s, g in zip(*in_both_ways(x, given), in_both_ways(x, np.clip(given, 0, LONG - 1))[0]):
        np.testing.assert_array_equal(bits(f), bits(s))
        np.testing.assert_array_equal(bits(f), bits(g))


def test_positions_of_other_rows_are_refused():
    x = pnp.zeros((3, 4))
    for at in (np.zeros((2, 1), np.int32), np.zeros((3, 1), np.int64), np.zeros(1, np.int32)):
        with pytest.raises(PlaitError, match="positions"):
            ranked_.bind(x, pnp.asarray(at))
    with pytest.raises(PlaitError, match="ranked"):
        ranked_.bind(pnp.zeros((3, 4), "int32"), pnp.zeros((3, 1), "int32"))
