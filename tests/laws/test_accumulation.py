"""Sums and products of thousands of half-precision numbers are rounded about once.

Every operation that combines many elements is given some thousand in bfloat16 or float16, and must
be as near to numpy's result in float64 as the dtype allows, but for a rounding or two; so must the
derivatives of operations that use one element many times.  Rounding at every step would stop at 256
in bfloat16, and overflow in float16.

Invariant: references are computed in float64 from the numbers as they were rounded.
"""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plait
import plait.lax as lax
import plait.nn as nn
import plait.numpy as pnp
import plait.ops as ops
import plait.scipy.signal as sg
import plait.scipy.special as sp
import plait.scipy.stats as stats

N = 3000
HALVES = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
_rng = np.random.default_rng(0)
AROUND_ONE = _rng.uniform(0.5, 1.5, N)
SMALL = AROUND_ONE / 8
"""Numbers whose sums stay finite."""
NEAR_ONE = 1 + (AROUND_ONE - 1) / 500
"""Numbers whose products stay finite."""
LARGE = AROUND_ONE * 300
"""Numbers whose squares overflow in float16."""
ONES = np.ones(70_000)
"""Ones whose count float16 cannot hold."""
MANY = _rng.uniform(0.5, 1.5, 70_000)
FIRST = np.zeros(N, np.int32)
PLACE = np.full(N, 0.5, np.float32)

Case = tuple[Callable[[Any], Any], np.ndarray, Callable[[np.ndarray], Any], int]


def _case(f: Callable, x: np.ndarray, want: Callable, roundings: int = 1) -> Case:
    return f, x, want, roundings


def _zeros(x: Any, n: int = 1) -> Any:
    return pnp.zeros(n, x.dtype)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max())
    return e / e.sum()


def _normal(x: np.ndarray) -> np.ndarray:
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5)


def _one(f: Callable) -> Callable[[np.ndarray], Any]:
    return lambda x: [f(x)]


POINT = lax.ScatterDimensionNumbers((), (0,), (0,))
WINDOW = lambda x: (np.asarray(0, x.dtype), lax.add, (N,), (1,), "VALID")  # noqa: E731
FOLDED: dict[str, Case] = {
    "sum": _case(pnp.sum, SMALL, np.sum),
    "mean": _case(pnp.mean, AROUND_ONE, np.mean),
    "var": _case(pnp.var, LARGE / 2, np.var),
    "std": _case(pnp.std, LARGE, np.std),
    "prod": _case(pnp.prod, NEAR_ONE, np.prod),
    "cumsum": _case(pnp.cumsum, SMALL, np.cumsum),
    "cumprod": _case(pnp.cumprod, NEAR_ONE, np.cumprod),
    "average": _case(lambda x: pnp.average(x, weights=x), AROUND_ONE,
                     lambda x: np.average(x, weights=x), 2),
    "trace": _case(lambda x: pnp.trace(pnp.diag(x[:1500])), SMALL, lambda x: x[:1500].sum()),
    "norm": _case(pnp.linalg.norm, LARGE, np.linalg.norm),
    "norm, 3": _case(lambda x: pnp.linalg.norm(x, 3), LARGE, lambda x: np.linalg.norm(x, 3)),
    "matrix norm": _case(lambda x: pnp.linalg.matrix_norm(x.reshape(50, 60)), LARGE,
                         np.linalg.norm),
    "segment_sum": _case(lambda x: ops.segment_sum(x, FIRST, 1), SMALL, _one(np.sum)),
    "segment_prod": _case(lambda x: ops.segment_prod(x, FIRST, 1), NEAR_ONE, _one(np.prod)),
    "at.add": _case(lambda x: _zeros(x).at[FIRST].add(x), SMALL, _one(np.sum)),
    "at.subtract": _case(lambda x: _zeros(x).at[FIRST].subtract(x), SMALL, lambda x: [-x.sum()]),
    "at.multiply": _case(lambda x: (_zeros(x) + 1).at[FIRST].multiply(x), NEAR_ONE, _one(np.prod)),
    "at.divide": _case(lambda x: (_zeros(x) + 1).at[FIRST].divide(x), NEAR_ONE,
                       lambda x: [1 / x.prod()], 2),
    "rows": _case(lambda x: _zeros(x, 40).reshape(2, 20).at[FIRST[:150]].add(x.reshape(150, 20)),
                  SMALL, lambda x: [x.reshape(150, 20).sum(0), np.zeros(20)]),
    "add.at": _case(lambda x: pnp.add.at(_zeros(x), FIRST, x, inplace=False), SMALL, _one(np.sum)),
    "add.reduceat": _case(lambda x: pnp.add.reduceat(x, np.array([0, 999])), SMALL,
                          lambda x: [x[:999].sum(), x[999:].sum()]),
    "logaddexp.reduce": _case(pnp.logaddexp.reduce, AROUND_ONE, lambda x: np.log(np.exp(x).sum())),
    "scatter_add": _case(lambda x: lax.scatter_add(_zeros(x), FIRST[:, None], x, POINT), SMALL,
                         _one(np.sum)),
    "bincount": _case(lambda x: pnp.bincount(FIRST, weights=x, length=1), SMALL, _one(np.sum)),
    "histogram": _case(lambda x: pnp.histogram(PLACE, bins=1, weights=x)[0], SMALL, _one(np.sum)),
    "histogram2d": _case(lambda x: pnp.histogram2d(PLACE, PLACE, bins=1, weights=x)[0], SMALL,
                         lambda x: [[x.sum()]]),
    "mapped": _case(lambda x: plait.vmap(lambda x: _zeros(x).at[FIRST[:1500]].add(x))(
        x.reshape(2, 1500)), SMALL, lambda x: x.reshape(2, 1500).sum(1, keepdims=True)),
    "logsumexp": _case(nn.logsumexp, ONES, lambda x: np.log(np.exp(x).sum())),
    "softmax": _case(nn.softmax, ONES, _softmax),
    "softmax of others": _case(sp.softmax, AROUND_ONE * 4, _softmax, 2),
    "log_softmax": _case(nn.log_softmax, ONES, lambda x: np.log(_softmax(x))),
    "standardize": _case(nn.standardize, LARGE, _normal, 2),
    "einsum": _case(lambda x: pnp.einsum("i,i->", x, x), SMALL, lambda x: x @ x),
    "dot": _case(lambda x: pnp.dot(x, x), SMALL, lambda x: x @ x),
    "matmul": _case(lambda x: x.reshape(2, -1) @ x.reshape(-1, 2), SMALL,
                    lambda x: x.reshape(2, -1) @ x.reshape(-1, 2)),
    "convolve": _case(lambda x: pnp.convolve(x, x, "valid"), SMALL, _one(lambda x: x @ x[::-1])),
    "signal.correlate": _case(lambda x: sg.correlate(x, x, "valid"), SMALL, _one(lambda x: x @ x)),
    "reduce_window": _case(lambda x: lax.reduce_window(x, *WINDOW(x)), SMALL, _one(np.sum)),
    "select_and_scatter_add": _case(
        lambda x: lax.select_and_scatter_add(_zeros(x, N) + 1, x, "max", (N,), (1,), "SAME"),
        np.r_[np.ones(N // 2), 2, np.ones(N // 2 - 1)], lambda x: N * (x == 2)),
    "average, large weights": _case(lambda x: pnp.average(x, weights=x), LARGE,
                                    lambda x: np.average(x, weights=x), 2),
    "quantile": _case(lambda x: pnp.quantile(x, 0.3), MANY, lambda x: np.quantile(x, 0.3)),
    "median": _case(pnp.median, MANY, np.median),
    "nanmedian": _case(pnp.nanmedian, MANY, np.median),
    "sem": _case(stats.sem, LARGE, lambda x: x.std(ddof=1) / len(x) ** 0.5),
    "trapezoid": _case(pnp.trapezoid, SMALL, np.trapezoid),
    "cov": _case(pnp.cov, AROUND_ONE, np.cov),
}  # fmt: skip


def _turned(x: Any) -> Any:
    return lax.scan(lambda c, _: (c + x[0], None), np.float32(0), None, length=N)[0]


def _bounded(x: Any) -> Any:
    going, turn = lambda s: s[0] < N, lambda s: (s[0] + 1, s[1] + x[0])
    return lax.while_loop(going, turn, (0, np.float32(0)), max_steps=N)[1]


def _unrolled(x: Any) -> Any:
    return sum((x[0] * 1).astype(np.float32) for _ in range(600))


def _total(x: Any) -> Any:
    return x.astype(np.float32).sum()


ONE = np.ones(1)
USED: dict[str, Case] = {
    "indexing": _case(lambda x: x[FIRST].sum(), ONE, lambda x: [N]),
    "rows": _case(lambda x: _total(x[FIRST]), np.ones((2, 2)), lambda x: [[N, N], [0, 0]]),
    "take": _case(lambda x: pnp.take(x, FIRST).sum(), ONE, lambda x: [N]),
    "broadcast_to": _case(lambda x: pnp.broadcast_to(x, (N,)).sum(), ONE, lambda x: [N]),
    "repeat": _case(lambda x: _total(pnp.repeat(x, N)), ONE, lambda x: [N]),
    "tile": _case(lambda x: _total(pnp.tile(x, N)), ONE, lambda x: [N]),
    "scan": _case(_turned, ONE, lambda x: [N]),
    "scan, rows": _case(lambda x: _total(lax.scan(lambda c, i: (c, x[i]), 0.0, FIRST)[1]), ONE,
                        lambda x: [N]),
    "fori_loop": _case(lambda x: lax.fori_loop(0, N, lambda i, c: c + x[0], np.float32(0)), ONE,
                       lambda x: [N]),
    "while_loop": _case(_bounded, ONE, lambda x: [N]),
    "map": _case(lambda x: _total(lax.map(lambda i: x[0] * 1, FIRST)), ONE, lambda x: [N]),
    "loop of Python": _case(_unrolled, ONE, lambda x: [600]),
    "vmap": _case(lambda x: _total(plait.vmap(lambda i: x[0] * 1)(FIRST)), ONE, lambda x: [N]),
    "cumsum": _case(lambda x: _total(pnp.cumsum(x)), SMALL, lambda x: np.arange(N, 0, -1)),
    "prod": _case(pnp.prod, NEAR_ONE, lambda x: x.prod() / x, 2),
    "logsumexp": _case(nn.logsumexp, ONES, _softmax, 2),
    "softmax": _case(lambda x: nn.softmax(x)[0] * 1000, np.ones(N),
                     lambda x: 1000 * (np.eye(1, N)[0] - 1 / N) / N, 4),
}  # fmt: skip


def _near(got: Any, want: Any, dtype: str, roundings: int) -> None:
    got, want = np.asarray(got), np.asarray(want, np.float64)
    assert got.dtype == HALVES[dtype]
    info = ml_dtypes.finfo(HALVES[dtype])
    unit = np.maximum(np.abs(want) * float(info.eps), float(info.smallest_subnormal))
    worst = np.max(np.abs(got.astype(np.float64) - want) / unit)
    assert worst <= roundings, f"{worst} units in the last place, {got.ravel()[:3]} for {want}"


def _check(f: Callable, case: Case, dtype: str) -> None:
    _, x, want, roundings = case
    x = pnp.asarray(x).astype(dtype)
    _near(f(x), want(np.asarray(x).astype(np.float64)), dtype, roundings)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", FOLDED)
def test_folds(name: str, dtype: str) -> None:
    f = FOLDED[name][0]
    _check(f if dtype == "float16" else plait.jit(f), FOLDED[name], dtype)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", USED)
def test_derivatives(name: str) -> None:
    dtype = "float16" if "soft" in name or name == "logsumexp" else "bfloat16"
    _check(plait.grad(USED[name][0]), USED[name], dtype)


def test_derivatives_of_mapped_lookups() -> None:
    case = _case(lambda x: x, np.ones((2, 1)), lambda x: np.full((2, 1), N))
    _check(plait.vmap(plait.grad(lambda x: x[FIRST].sum())), case, "bfloat16")


def test_few_updates_stay_in_place() -> None:
    """Writing in a loop costs as much as the elements written, not as the whole array."""
    f = lambda x: x.at[np.array([3, 3])].add(np.ones(2, HALVES["bfloat16"]))  # noqa: E731
    text = plait.jit(f, donate_argnums=0).lower(pnp.zeros(1000, "bfloat16")).as_text()
    assert "tensor<1000xf32>" not in text
