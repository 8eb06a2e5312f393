"""Results that a nan or an infinity does not touch are what they are without it.

A result touches the elements that its definition names.  For bilinear functions numpy and scipy
are given units to find these: `touched[o, i, j]` says that result `o` has the product of elements
`i` and `j`.  References sum over these products alone, in float64.

Invariant: no reference multiplies by padding.
"""

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.signal as ss

import plait
import plait.lax as lax
import plait.numpy as pnp
import plait.scipy.signal as sg

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32,
          "float64": np.float64}  # fmt: skip
BAD = np.nan, np.inf, -np.inf

MODES = "full", "same", "valid"
LINES = (5,), (3,)
PLANES = (3, 4), (2, 2)
BILINEAR: dict[str, tuple] = {
    **{f"convolve {m}": (pnp.convolve, np.convolve, LINES, m) for m in MODES},
    **{f"correlate {m}": (pnp.correlate, np.correlate, LINES, m) for m in MODES},
    "convolve shorter": (pnp.convolve, np.convolve, LINES[::-1], "same"),
    "correlate shorter": (pnp.correlate, np.correlate, LINES[::-1], "full"),
    **{f"signal.convolve {m}": (sg.convolve, ss.convolve, PLANES, m) for m in MODES},
    "signal.correlate": (sg.correlate, ss.correlate, PLANES, "same"),
    **{f"convolve2d {m}": (sg.convolve2d, ss.convolve2d, PLANES, m) for m in MODES},
    "correlate2d": (sg.correlate2d, ss.correlate2d, PLANES, "full"),
    "polymul": (lambda x, y, mode: pnp.polymul(x, y), np.convolve, LINES, "full"),
}  # fmt: skip


@cache
def _touched(name: str) -> np.ndarray:
    """Which products each result has."""
    _, f, (a, b), mode = BILINEAR[name]
    n, m = int(np.prod(a)), int(np.prod(b))
    units = [[f(x.reshape(a), y.reshape(b), mode).ravel() for y in np.eye(m)] for x in np.eye(n)]
    return np.moveaxis(np.asarray(units), 2, 0) != 0


def _reference(touched: np.ndarray, x: Any, y: Any) -> np.ndarray:
    x, y = (np.asarray(v).astype(np.float64).ravel() for v in (x, y))
    with np.errstate(all="ignore"):
        return np.where(touched, x[None, :, None] * y, 0.0).sum((1, 2))


def _cases(name: str, dtype: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Small integers, which stay exact, with bad ones here and there in either operand."""
    rng = np.random.default_rng(5)
    _, _, shapes, _ = BILINEAR[name]
    cases = []
    for bad, second in [(BAD[0], None), (BAD[1], None), (BAD[1], BAD[2]), (BAD[2], 0.0)]:
        for side in (0, 1):
            pair = [rng.integers(-2, 4, s).astype(np.float64) for s in shapes]
            pair[side].flat[rng.integers(pair[side].size)] = bad
            if second is not None:
                pair[1 - side].flat[rng.integers(pair[1 - side].size)] = second
            cases.append(tuple(v.astype(dtype) for v in pair))
    return cases


def _same(got: Any, want: np.ndarray, what: Any = "") -> None:
    got = np.asarray(got).astype(np.float64).ravel()
    np.testing.assert_allclose(got, want, rtol=1e-2, err_msg=str(what))


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    "name, dtype",
    [
        (n, d)
        for n in BILINEAR
        for d in DTYPES
        if "32" in d or d == "bfloat16" or n.endswith("same")
    ],
)
def test_sums_of_products(name: str, dtype: str) -> None:
    f, _, _, mode = BILINEAR[name]
    if dtype in ("float16", "float64") and not name.endswith(("full", "same")):
        pytest.skip("the same program in another dtype is tried above")
    for x, y in _cases(name, DTYPES[dtype]):
        _same(
            f(pnp.asarray(x), pnp.asarray(y), mode=mode), _reference(_touched(name), x, y), (x, y)
        )


@pytest.mark.parametrize("name", ["convolve same", "correlate valid", "signal.convolve same"])
def test_gradients_of_sums_of_products(name: str) -> None:
    f, _, _, mode = BILINEAR[name]
    touched = _touched(name)
    weights = np.random.default_rng(3).integers(1, 4, len(touched)).astype(np.float32)

    @plait.jit
    def pulled(x: Any, y: Any, w: Any) -> Any:
        out, back = plait.vjp(lambda x, y: f(x, y, mode=mode).ravel(), x, y)
        return back(w)

    for x, y in _cases(name, np.float32):
        for bad in (None, np.nan, np.inf):
            w = weights.copy()
            if bad is not None:
                w[0] = bad
            dx, dy = pulled(x, y, w)
            _same(dx, _reference(np.moveaxis(touched, 1, 0), w, y), (x, y, w))
            _same(dy, _reference(np.moveaxis(touched, 2, 0), w, x), (x, y, w))


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("name", ["convolve full", "signal.convolve same"])
def test_mapped_sums_of_products(name: str, axes: tuple) -> None:
    f, _, _, mode = BILINEAR[name]
    xs, ys = (np.stack(v) for v in zip(*_cases(name, np.float32)))
    x, y = (v if a == 0 else v[-1] for v, a in zip((xs, ys), axes))
    out = plait.vmap(lambda x, y: f(x, y, mode=mode), in_axes=axes)(x, y)
    for k, row in enumerate(out):
        a, b = (v[k] if at == 0 else v for v, at in zip((x, y), axes))
        _same(row, _reference(_touched(name), a, b), (a, b))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_examples_of_a_mapped_convolution_do_not_touch_each_other(dtype: str) -> None:
    """Nor do their gradients, which have groups of another kind."""
    rng = np.random.default_rng(2)
    xs, ys = rng.integers(-3, 4, (4, 3, 2, 7)), rng.integers(-3, 4, (4, 2, 2, 3))
    one = rng.integers(-3, 4, (4, 3, 1, 7)), rng.integers(-3, 4, (4, 2, 1, 3))

    def conv(x: Any, y: Any) -> Any:
        return lax.conv_general_dilated(x, y, (1,), [(1, 1)])

    def both(x: Any, y: Any) -> Any:
        out, back = plait.vjp(conv, x, y)
        return out, *back(out)

    for pair in ((xs, ys), one):
        clean = tuple(pnp.asarray(v).astype(dtype) for v in pair)
        for side in (0, 1):
            bad = list(clean)
            bad[side] = bad[side].at[1, 0, 0, 2].set(np.nan)
            for got, want in zip(plait.vmap(both)(*bad), plait.vmap(both)(*clean)):
                a, b = (np.asarray(v[np.array([0, 2, 3])]).astype(complex) for v in (got, want))
                np.testing.assert_allclose(a, b, rtol=1e-2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind, shape", [("feature", (1, 4, 8, 8)), ("batch", (8, 1, 8, 8))])
def test_groups_of_a_convolution_do_not_touch_each_other(
    kind: str, shape: tuple, dtype: str
) -> None:
    x, y = np.ones(shape, dtype), np.ones((4, 1, 3, 3), dtype)
    x[0, 0], y[-1] = np.nan, np.nan
    out = lax.conv_general_dilated(x, y, (1, 1), "SAME", **{f"{kind}_group_count": 4})
    touched = np.isnan(np.asarray(out)).any((0, 2, 3))
    assert touched.tolist() == [True, False, False, True]
