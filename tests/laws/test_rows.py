"""Programs over rows: few arrays in memory, and nan stays in its row and in all of it.

Invariant: the truth is numpy in double precision, and the same program for the other rows alone.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax, nn

pytestmark = pytest.mark.full_tier

ROWS, LONG = 64, 192
X = np.random.RandomState(0).normal(size=(ROWS, LONG)).astype(np.float32)
W = np.random.RandomState(1).uniform(0.5, 1.5, LONG).astype(np.float32)
T = np.random.RandomState(2).randint(0, LONG, (ROWS, 1))
SEEN = np.arange(LONG) % 4 != 2


def layer_norm(x):
    c = x - x.mean(-1, keepdims=True)
    return c * lax.rsqrt((c * c).mean(-1, keepdims=True) + 1e-5) * W + W


def rms_norm(x):
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * W


def np_softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def np_lse(x):
    top = x.max(-1, keepdims=True)
    return np.log(np.exp(x - top).sum(-1, keepdims=True)) + top


def np_layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * W + W


FUNCTIONS = {
    "softmax": (nn.softmax, np_softmax, 1),
    "masked softmax": (
        lambda x: nn.softmax(pnp.where(SEEN, x, -1e9)),
        lambda x: np_softmax(np.where(SEEN, x, -1e9)), 2,
    ),
    "log_softmax": (nn.log_softmax, lambda x: x - np_lse(x), 1),
    "logsumexp": (lambda x: x - nn.logsumexp(x, -1, keepdims=True), lambda x: x - np_lse(x), 1),
    "by hand": (
        lambda x: pnp.exp(x - x.max(-1, keepdims=True)) / pnp.exp(
            x - x.max(-1, keepdims=True)).sum(-1, keepdims=True),
        np_softmax, 2,
    ),
    "layer norm": (layer_norm, np_layer_norm, 1),
    "standardize": (
        nn.standardize,
        lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5), 1,
    ),
    "rms norm": (rms_norm, lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * W, 1),
    "relu and mean": (
        lambda x: x - pnp.maximum(x, 0).mean(-1, keepdims=True),
        lambda x: x - np.maximum(x, 0).mean(-1, keepdims=True), 2,
    ),
    "sum": (lambda x: x / x.sum(-1, keepdims=True), lambda x: x / x.sum(-1, keepdims=True), 2),
    "least and sum": (
        lambda x: pnp.minimum(x.sum(-1, keepdims=True), x),
        lambda x: np.minimum(x.sum(-1, keepdims=True), x), 1,
    ),
}  # fmt: skip
"""Functions, the same in numpy, and the arrays that the compiled function writes, at most."""
GRADIENTS = {
    "softmax": 1,
    "masked softmax": 3,
    "log_softmax": 1,
    "layer norm": 1,
    "standardize": 1,
    "rms norm": 3,
}
"""The arrays that gradients of the sum of cubes write."""


def compiled(f, x):
    return plait.jit(f, tier="full").lower(x).compile()


def arrays(f):
    """Return how many arrays of the operand's shape a compiled function writes.

    The library computes whole rows of arrays that are large enough.
    """
    many = 64 * ROWS
    with plait.config(cache_dir=None):
        text = compiled(f, plait.ShapeDtypeStruct((many, LONG), np.float32)).as_text()
    steps = text[text.index("ENTRY") :].splitlines()[1:]
    return sum(f"[{many},{LONG}]" in s for s in steps if " parameter(" not in s)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arrays(name):
    f, _, most = FUNCTIONS[name]
    assert arrays(f) <= most


@pytest.mark.parametrize("name", GRADIENTS)
def test_arrays_of_gradients(name):
    f = FUNCTIONS[name][0]
    assert arrays(plait.grad(lambda x: (f(x) ** 3).sum())) <= GRADIENTS[name]


def ways(f):
    """Return functions of rows that belong to one."""
    gradient = plait.grad(lambda x: (f(x) * W).sum())
    return {"itself": f, "gradient": gradient, "second": lambda x: gradient(x) * gradient(x)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name):
    f, in_numpy, _ = FUNCTIONS[name]
    np.testing.assert_allclose(compiled(f, X)(X), in_numpy(X.astype(float)), rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("way", ["itself", "gradient", "second"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_stays_in_its_row_and_fills_it(name, way):
    f = ways(FUNCTIONS[name][0])[way]
    call = compiled(f, X)
    whole = np.asarray(call(X))
    for column in (0, 7, 100, LONG - 1):
        x = X.copy()
        x[5, column] = x[ROWS - 1, column] = np.nan
        got = np.asarray(call(x))
        others = np.delete(np.arange(ROWS), [5, ROWS - 1])
        np.testing.assert_array_equal(got[others], whole[others])
        if way == "itself":
            assert np.isnan(got[[5, ROWS - 1]]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("shape", [(64, 64), (64, 1000), (4096, 1), (4096, 3), (3, 5000)])
def test_extremes_of_two_keep_nan(dtype, shape):
    x = np.random.RandomState(0).normal(size=shape).astype(pnp.dtype(dtype))
    x[2, 0] = np.nan
    at = np.zeros(shape, bool)
    at[2, 0] = True
    row = np.broadcast_to(at.any(-1, keepdims=True), shape)
    for f, want in (
        (lambda x: pnp.maximum(x, 0).sum(-1), row[:, 0]),
        (lambda x: pnp.minimum(1, x).mean(-1), row[:, 0]),
        (lambda x: nn.relu(x).sum(-1), row[:, 0]),
        (lambda x: pnp.clip(x, -1, 1).mean(-1), row[:, 0]),
        (lambda x: pnp.maximum(x.sum(-1, keepdims=True), x), row),
        (lambda x: pnp.minimum(x, x.mean(-1, keepdims=True)), row),
        (lambda x: x / x.sum(-1, keepdims=True), row),
        (lambda x: pnp.maximum(x, 0).sum(), np.True_),
        (lambda x: x.max(-1), row[:, 0]),
        (lambda x: x - x.min(-1, keepdims=True), row),
    ):
        got = np.asarray(compiled(f, x)(x)).astype(float)
        np.testing.assert_array_equal(np.isnan(got), want)


CROSSED = {
    "columns of what rows shift": lambda x: pnp.exp(x - x.max(-1, keepdims=True)).sum(0),
    "rows of what all shift": lambda x: pnp.exp(x - x.max()).sum(-1),
    "turned": lambda x: pnp.exp(x - x.max(-1)[None, :]).sum(-1),
    "the greatest itself": lambda x: nn.softmax(x).sum(-1) * 0 + x.max(-1),
    "terms": lambda x: pnp.exp(x - x.max(-1, keepdims=True)),
    "compared": lambda x: x >= x.max(-1, keepdims=True),
    "in a branch": lambda x: lax.cond(
        x[1, 1] > -99, lambda t: x - t, lambda t: x, x.max(-1, keepdims=True)),
    "turned sum": lambda x: (lambda e: e + e.sum(-1)[None, :])(
        pnp.exp(x - x.max(-1, keepdims=True))),
    "beside another array": lambda x: pnp.exp(x[::-1] - x.max(-1, keepdims=True)).sum(-1),
    "half of the row": lambda x: pnp.exp(x - x.max(-1, keepdims=True))[:, :40].sum(-1),
}  # fmt: skip
"""Functions of a square array whose results depend on the greatest elements of rows with nan."""


@pytest.mark.parametrize("name", CROSSED)
def test_maxima_that_matter_keep_nan(name):
    n = 80
    x = np.random.RandomState(3).normal(size=(n, n)).astype(np.float32)
    x[4, 70] = x[9, 3] = np.nan
    f = CROSSED[name]
    with plait.config(cache_dir=None):
        got = np.asarray(compiled(f, x)(x))
        one_by_one = np.asarray(f(pnp.asarray(x)))
    np.testing.assert_array_equal(np.isnan(got.astype(float)), np.isnan(one_by_one.astype(float)))
    if got.dtype == bool:
        np.testing.assert_array_equal(got, one_by_one)
