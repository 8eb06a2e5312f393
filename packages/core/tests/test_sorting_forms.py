"""The greatest elements by blocks, against numpy's stable sort.

Invariant: elements repeat, so that ties within blocks and between them occur.
"""

import ml_dtypes
import numpy as np
import pytest

import plait
from plait.ext.ops.sorting import top_k

BF16 = np.dtype(ml_dtypes.bfloat16)


def repeated(dtype, shape, seed):
    r = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        lo, hi = np.iinfo(dtype).min, np.iinfo(dtype).max
        few = np.array([lo, lo + 1, 0, hi // 3, hi - 1, hi], dtype)
        return np.where(r.random(shape) < 0.99, few[0], r.choice(few, shape))
    values = np.round(r.normal(size=shape) * 4).astype(dtype)
    odd = r.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -np.nan], dtype), shape)
    return np.where(r.random(shape) < 0.0005, odd, values)


def order_of(x, k):
    """Return the positions of the greatest: nan first of all, ties in their order."""
    wide = x.astype(np.float64) if x.dtype == BF16 else x
    n = x.shape[-1]
    return (n - 1 - np.argsort(wide[..., ::-1], -1, kind="stable")[..., ::-1])[..., :k]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", BF16, "int8", "uint32", "int64"]
)
def test_values(dtype, seed):
    for shape, k in (((3, 2051), 8), ((2, 2, 4096), 64), ((50000,), 3)):
        x = repeated(dtype, shape, seed)
        f = plait.jit(lambda x, k=k: top_k(x, k))
        values, at = f(x)
        order = order_of(x, k)
        np.testing.assert_array_equal(np.asarray(at), order)
        want = np.take_along_axis(x, order, -1)
        assert np.asarray(values).tobytes() == want.tobytes()
        for alone, jitted in zip(top_k(x, k), (values, at)):
            assert np.asarray(alone).tobytes() == np.asarray(jitted).tobytes()


def test_forms():
    text = lambda n, k: plait.jit(lambda x: top_k(x, k)).lower(np.zeros(n, "f4")).as_text()  # noqa: E731
    assert "tensor<128x32xf32>" in text(4100, 4)
    for n, k in ((500, 1), (4096, 100), (4096, 0)):  # short, or most blocks hold a result
        assert "x32xf32" not in text(n, k)
    with plait.config(cpu_forms=False):
        assert "x32xf32" not in text(4100, 4)
