"""plait.nn: values against formulas in float64 and scipy, at the edges too.

Invariant: what is compared with is computed by numpy or scipy in double precision; limits at
infinity are written out.
"""

import ml_dtypes
import numpy as np
import pytest
import scipy.special as sp

import plait
import plait.nn as nn
from plait.errors import AxisError, PlaitError, TypeRule

INF = np.inf
ODD = [-1e4, 1e4, 0.5, 6.0, 1e-6, -1e-6, 88.0, -104.0]
POINTS = np.concatenate([np.linspace(-30, 30, 61), ODD])
SQRT = np.sqrt(2 / np.pi)


def sigmoid(x):
    return sp.expit(x)


FUNCTIONS = {
    "relu": (lambda x: np.maximum(x, 0), 0, INF),
    "relu6": (lambda x: np.clip(x, 0, 6), 0, 6),
    "leaky_relu": (lambda x: np.where(x >= 0, x, 0.01 * x), -INF, INF),
    "hard_tanh": (lambda x: np.clip(x, -1, 1), -1, 1),
    "hard_sigmoid": (lambda x: np.clip(x + 3, 0, 6) / 6, 0, 1),
    "hard_silu": (lambda x: x * np.clip(x + 3, 0, 6) / 6, 0, INF),
    "sparse_plus": (lambda x: np.where(x < -1, 0, np.where(x > 1, x, (x + 1) ** 2 / 4)), 0, INF),
    "sparse_sigmoid": (lambda x: np.clip((x + 1) / 2, 0, 1), 0, 1),
    "sigmoid": (sigmoid, 0, 1),
    "tanh": (np.tanh, -1, 1),
    "silu": (lambda x: x * sigmoid(x), 0, INF),
    "swish": (lambda x: x * sigmoid(x), 0, INF),
    "mish": (lambda x: x * np.tanh(np.logaddexp(x, 0)), 0, INF),
    "gelu": (lambda x: x * (1 + np.tanh(SQRT * (x + 0.044715 * x**3))) / 2, 0, INF),
    "softplus": (lambda x: np.logaddexp(x, 0), 0, INF),
    "log_sigmoid": (lambda x: -np.logaddexp(-x, 0), -INF, 0),
    "squareplus": (lambda x: np.where(x > 0, (x + np.sqrt(x**2 + 4)) / 2,
                                      2 / (np.sqrt(x**2 + 4) - np.minimum(x, 0))), 0, INF),
    "soft_sign": (lambda x: x / (1 + np.abs(x)), -1, 1),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), -1, INF),
    "celu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), -1, INF),
    "selu": (lambda x: 1.0507009873554805 * np.where(
        x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))), -1.7580993408473766, INF),
    "identity": (lambda x: x, -INF, INF),
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_activations(name):
    ref, low, high = FUNCTIONS[name]
    f = getattr(nn, name)
    with np.errstate(all="ignore"):
        want = ref(POINTS)
    for dtype, tol in ((np.float32, 2e-6), (np.float64, 1e-12)):
        x = POINTS.astype(dtype)
        got, compiled = f(x), plait.jit(f)(x)
        assert got.dtype == dtype and got.shape == x.shape
        for y in (got, compiled):
            np.testing.assert_allclose(np.asarray(y), want, rtol=tol, atol=tol)
        ends = np.asarray(f(np.array([-INF, INF, np.nan], dtype)))
        np.testing.assert_allclose(ends, [low, high, np.nan], rtol=1e-6)
    for dtype, tol in ((np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2)):
        x = np.linspace(-8, 8, 33).astype(dtype)
        got = f(x)
        assert got.dtype == np.dtype(dtype)
        want_ = ref(x.astype(np.float64))
        np.testing.assert_allclose(np.asarray(got).astype(float), want_, rtol=tol, atol=3 * tol)
    assert f(plait.numpy.zeros((2, 0))).shape == (2, 0)


def test_parameters():
    x = np.float32([-2.0, 0.0, 3.0])
    np.testing.assert_allclose(nn.leaky_relu(x, 0.5), [-1, 0, 3])
    np.testing.assert_allclose(nn.elu(x, 2.0), [2 * np.expm1(-2), 0, 3], rtol=1e-6)
    np.testing.assert_allclose(nn.celu(x, 2.0), [2 * np.expm1(-1), 0, 3], rtol=1e-6)
    np.testing.assert_allclose(nn.squareplus(x, 0), [0, 0, 3], atol=1e-7)
    exact = POINTS * sp.ndtr(POINTS)
    np.testing.assert_allclose(nn.gelu(POINTS, approximate=False), exact, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(nn.gelu(np.float32([-INF, INF]), False), [0, INF])
    slopes = np.float32([0.1, 0.2, 0.3])
    np.testing.assert_allclose(nn.leaky_relu(-np.ones(3, np.float32), slopes), -slopes)
    traced = plait.jit(lambda a: nn.elu(x, a))
    np.testing.assert_allclose(traced(2.0), [2 * np.expm1(-2), 0, 3], rtol=1e-6)
    assert nn.relu(np.int32([-2, 3])).tolist() == [0, 3] and nn.relu(-1.0) == 0
    assert nn.relu(np.int32([-2, 3])).dtype == np.int32
    x = np.array([1e-8, 0.1, 0.7, 5.0, 50.0])
    want = [*np.log(-np.expm1(-x[:3])), *np.log1p(-np.exp(-x[3:]))]
    np.testing.assert_allclose(nn.log1mexp(x), want, rtol=1e-12)


def test_glu():
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    np.testing.assert_allclose(nn.glu(x), x[:, :2] * sigmoid(x[:, 2:]), rtol=1e-6)
    with pytest.raises(TypeRule, match="must be even"):
        nn.glu(x, 0)


# ---- sums of exponentials ------------------------------------------------------------------

ROWS = np.array([[0.0, 1.0, -2.0], [1e4, 1e4 - 1, -1e4], [-INF, 0.0, -INF], [88.0, -104.0, 100.0]])


def test_softmax():
    for axis in (-1, 0, None, (0, 1)):
        for f, ref in ((nn.softmax, sp.softmax), (nn.log_softmax, sp.log_softmax)):
            for x in (ROWS[:2], ROWS[[0, 3]]):
                np.testing.assert_allclose(f(x, axis), ref(x, axis), rtol=1e-12, atol=1e-300)
                single = x.astype(np.float32)
                np.testing.assert_allclose(plait.jit(lambda v, f=f, a=axis: f(v, a))(single),
                                           ref(x, axis), rtol=1e-5, atol=1e-6)  # fmt: skip
    np.testing.assert_allclose(nn.softmax(ROWS[2]), [0, 1, 0])
    np.testing.assert_allclose(nn.log_softmax(ROWS[2]), [-INF, 0, -INF])
    assert np.isnan(np.asarray(nn.softmax(np.float32([-INF, -INF])))).all()
    assert np.isnan(np.asarray(nn.softmax(np.float32([INF, 0])))).any()
    assert nn.softmax(ROWS.astype(ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16


def test_softmax_of_some():
    x = np.random.default_rng(1).standard_normal((4, 5))
    where = np.random.default_rng(2).random((4, 5)) > 0.4
    where[0] = False
    for f, fill in ((nn.softmax, 0.0), (nn.log_softmax, -INF)):
        got = np.asarray(f(x, where=where))
        ref = sp.softmax if f is nn.softmax else sp.log_softmax
        for row, w, g in zip(x[1:], where[1:], got[1:]):
            np.testing.assert_allclose(g[w], ref(row[w]), rtol=1e-12)
            assert (g[~w] == fill).all()
    assert (np.asarray(nn.softmax(x, where=where))[0] == 0).all()
    column = np.array([True, True, False, True, True])
    np.testing.assert_allclose(np.asarray(nn.softmax(x, where=column)).sum(1), 1)
    nans = np.where(where, x, np.nan)
    np.testing.assert_allclose(nn.softmax(nans, where=where), nn.softmax(x, where=where))


def test_logsumexp():
    x = np.random.default_rng(3).standard_normal((3, 4)) * 50
    b = np.random.default_rng(4).standard_normal((3, 4))
    for axis in (None, 0, (0, 1)):
        for keep in (False, True):
            got = nn.logsumexp(x, axis, keepdims=keep)
            np.testing.assert_allclose(got, sp.logsumexp(x, axis, keepdims=keep), rtol=1e-12)
            got, sign = nn.logsumexp(x, axis, b, keep, return_sign=True)
            want, s = sp.logsumexp(x, axis, b, keep, return_sign=True)
            np.testing.assert_allclose(got, want, rtol=1e-12)
            np.testing.assert_array_equal(sign, s)
    where = x > 0
    np.testing.assert_allclose(nn.logsumexp(x, where=where), sp.logsumexp(x[where]), rtol=1e-12)
    b = np.abs(b)
    np.testing.assert_allclose(nn.logsumexp(x, b=b), sp.logsumexp(x, b=b), rtol=1e-12)
    edges = [([-INF, -INF], -INF), ([INF, 0], INF), ([INF, INF], INF), ([], -INF),
             ([-INF, 1], 1), ([1e300, 1e300], 1e300)]  # fmt: skip
    for v, want in edges:
        np.testing.assert_allclose(nn.logsumexp(np.array(v, np.float64)), want, rtol=1e-12)
    np.testing.assert_allclose(nn.logsumexp(np.float64([1, INF]), b=np.float64([1, 0])), 1)
    np.testing.assert_allclose(nn.logmeanexp(x, 1), sp.logsumexp(x, 1) - np.log(4), rtol=1e-12)
    want = sp.logsumexp(x[where]) - np.log(where.sum())
    np.testing.assert_allclose(nn.logmeanexp(x, where=where), want, rtol=1e-12)
    z = np.array([1 + 2j, 0.5 - 1j])
    np.testing.assert_allclose(nn.logsumexp(z), np.log(np.exp(z).sum()), rtol=1e-12)


# ---- normalisation, labels, attention ------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["fast", "stable"])
def test_standardize(algorithm):
    x = np.random.default_rng(5).standard_normal((4, 6)) * 3 + 1
    for axis in (-1, 0, (0, 1)):
        want = (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5)
        np.testing.assert_allclose(nn.standardize(x, axis, algorithm=algorithm), want, rtol=1e-9)
    same = np.full((2, 8), 1234.5, np.float32)
    assert np.isfinite(np.asarray(nn.standardize(same, algorithm=algorithm))).all()
    np.testing.assert_allclose(nn.standardize(x, mean=0.0, variance=1.0, epsilon=0.0), x)
    with pytest.raises(TypeRule, match="no algorithm"):
        nn.standardize(x, algorithm="other")


def test_one_hot():
    labels = np.array([[0, 2], [5, -1]])
    want = (labels[..., None] == np.arange(3)).astype(np.float32)
    np.testing.assert_array_equal(nn.one_hot(labels, 3), want)
    np.testing.assert_array_equal(nn.one_hot(labels, 3, axis=0), np.moveaxis(want, -1, 0))
    assert nn.one_hot(1, 3, dtype="int8").dtype == np.int8 and nn.one_hot(1, 3).dtype == np.float32
    np.testing.assert_array_equal(nn.one_hot(np.uint8([1, 255]), 300)[1].argmax(), 255)
    np.testing.assert_array_equal(nn.one_hot(np.array([True, False]), 2), [[0, 1], [1, 0]])


def attention(q, k, v, bias=0.0, mask=None, scale=None):
    """By loops over heads."""
    h, g = q.shape[2], k.shape[2]
    out = np.zeros((*q.shape[:3], v.shape[-1]))
    for i in range(h):
        j = i // (h // g)
        logits = np.einsum("btd,bsd->bts", q[:, :, i], k[:, :, j])
        logits = logits * (scale or 1 / np.sqrt(q.shape[-1]))
        logits = logits + (bias if np.ndim(bias) == 0 else bias[:, i])
        if mask is not None:
            logits = np.where(mask[:, i], logits, -INF)
        top = logits.max(-1, keepdims=True)
        e = np.exp(logits - np.where(np.isfinite(top), top, 0))
        total = e.sum(-1, keepdims=True)
        out[:, :, i] = np.einsum("bts,bsd->btd", e / np.where(total == 0, 1, total), v[:, :, j])
    return out


def test_attention():
    rng = np.random.default_rng(6)
    q = rng.standard_normal((2, 3, 4, 5))
    k, v = rng.standard_normal((2, 6, 2, 5)), rng.standard_normal((2, 6, 2, 5))
    np.testing.assert_allclose(nn.dot_product_attention(q, k, v), attention(q, k, v), rtol=1e-9)
    mask = rng.random((2, 4, 3, 6)) > 0.5
    mask[0, 0, 0] = False
    bias = rng.standard_normal((2, 4, 3, 6))
    got = nn.dot_product_attention(q, k, v, bias, mask, scale=0.3)
    np.testing.assert_allclose(got, attention(q, k, v, bias, mask, 0.3), rtol=1e-9, atol=1e-12)
    causal = np.broadcast_to(np.tri(3, 6, dtype=bool), (2, 4, 3, 6))
    got = plait.jit(lambda *a: nn.dot_product_attention(*a, is_causal=True))(q, k, v)
    np.testing.assert_allclose(got, attention(q, k, v, mask=causal), rtol=1e-9)
    single = nn.dot_product_attention(q[0], k[0], v[0])
    np.testing.assert_allclose(single, attention(q, k, v)[0], rtol=1e-9)
    half = nn.dot_product_attention(*(x.astype(np.float16) for x in (q, k, v)))
    assert half.dtype == np.float16
    with pytest.raises(TypeRule, match="dot_product_attention of"):
        nn.dot_product_attention(q, k[:, :, :, :2], v)


@pytest.mark.parametrize("window", [None, 1, (2, 0)])
def test_attention_to_places(window):
    rng = np.random.default_rng(7)
    q, k, v = (rng.standard_normal((2, n, h, 3)) for n, h in ((4, 4), (6, 2), (6, 2)))
    ends, stops = np.array([3, 4], np.int32), np.array([4, 6], np.int32)
    left, right = (6, 6) if window is None else (1, 1) if window == 1 else window
    i, j = np.arange(4)[:, None], np.arange(6)
    seen = (i - left <= j) & (j <= i + right)
    seen = seen & (i < ends[:, None, None]) & (j < stops[:, None, None])
    mask = np.broadcast_to(seen[:, None], (2, 4, 4, 6))
    out, sums = nn.dot_product_attention(
        q, k, v, query_seq_lengths=ends, key_value_seq_lengths=stops, local_window_size=window,
        return_residual=True, implementation="xla",
    )  # fmt: skip
    np.testing.assert_allclose(out, attention(q, k, v, mask=mask), rtol=1e-9, atol=1e-12)
    logits = np.einsum("bthd,bshd->bhts", q, np.repeat(k, 2, 2)) / np.sqrt(3)
    with np.errstate(divide="ignore"):
        want = np.log(np.where(mask, np.exp(logits), 0).sum(-1))
    np.testing.assert_allclose(sums, want.transpose(0, 2, 1), rtol=1e-9)


BAD_ATTENTION = {
    "floats": dict(query_seq_lengths=np.ones(2, np.float32)),
    "too few": dict(key_value_seq_lengths=np.ones(1, np.int32)),
    "implementation": dict(implementation="cudnn"),
    "three": dict(local_window_size=(1, 2, 3)),
    "negative": dict(local_window_size=-1),
    "fraction": dict(local_window_size=0.5),
    "mask": dict(mask=np.ones((1, 1, 4, 6), np.float32)),
}


@pytest.mark.parametrize("case", BAD_ATTENTION)
def test_bad_attention(case):
    x = np.ones((2, 4, 1, 3), np.float32)
    with pytest.raises(TypeRule):
        nn.dot_product_attention(x, x, x, **BAD_ATTENTION[case])


# ---- few bits --------------------------------------------------------------------------------


def stored(x, mode, whole=1.0):
    """What is read of the rows of `x`, by numpy and ml_dtypes."""
    data, scale, size = {
        "mxfp8": (ml_dtypes.float8_e4m3fn, None, 32),
        "nvfp4": (ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, 16),
    }[mode]
    out, most = np.zeros(x.shape, np.float32), float(ml_dtypes.finfo(data).max)
    for at in np.ndindex(x.shape[:-1]):
        for k in range(0, x.shape[-1], size):
            block = x[at][k : k + size].astype(np.float32) / np.float32(whole)
            s = np.abs(block).max() / np.float32(most)
            s = 2.0 ** np.ceil(np.log2(s)) if scale is None else s.astype(scale)
            s = np.float32(s)
            parts = np.clip(block / s, -most, most) if s else block
            out[at][k : k + size] = parts.astype(data).astype(np.float32) * s * np.float32(whole)
    return out


@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
def test_scaled_dot_general(mode):
    rng = np.random.default_rng(8)
    x, y = (rng.standard_normal((2, n, 40)).astype(np.float32) for n in (3, 4))
    x[0, 0] = 0
    whole = np.array([0.25], np.float32) if mode == "nvfp4" else None
    how = [nn.get_scaled_dot_general_config(mode, whole)] * 3
    got = nn.scaled_dot_general(x, y, (((2,), (2,)), ((0,), (0,))), configs=how)
    by = 1.0 if whole is None else 0.25
    with np.errstate(divide="ignore"):
        a, b = stored(x, mode, by), stored(y, mode, by)
    np.testing.assert_allclose(got, np.einsum("bmk,bnk->bmn", a, b), rtol=1e-5, atol=1e-5)
    turned = nn.scaled_dot_general(x.T, y.T, (((0,), (0,)), ((2,), (2,))), configs=how)
    np.testing.assert_allclose(turned, got, rtol=1e-5, atol=1e-5)
    plain = nn.scaled_dot_general(x, y, (((2,), (2,)), ((0,), (0,))))
    np.testing.assert_allclose(plain, np.einsum("bmk,bnk->bmn", x, y), rtol=1e-4, atol=1e-5)


def test_scaled_matmul():
    rng = np.random.default_rng(9)
    for data, scale in (
        (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu),
        (ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn),
        (ml_dtypes.float8_e5m2, np.float32),
    ):
        x, y = (rng.standard_normal((2, n, 8)).astype(data) for n in (3, 4))
        s, t = (2.0 ** rng.integers(-3, 4, (2, n, 2)) for n in (3, 4))
        s, t = s.astype(scale), t.astype(scale)
        a, b = (v.astype(float) * np.repeat(f.astype(float), 4, -1) for v, f in ((x, s), (y, t)))
        got = nn.scaled_matmul(x, y, s, t, "bfloat16")
        assert got.dtype == ml_dtypes.bfloat16
        want = np.einsum("bmk,bnk->bmn", a, b)
        np.testing.assert_allclose(got.astype("float64"), want, rtol=1e-2)
    f, e = np.ones((2, 3, 8), np.float32), np.ones((2, 3, 2), np.float32)
    for bad in ((f[0], f, e, e), (f, f[:1], e, e[:1]), (f, f[:, :2], e, e), (f, f[..., :4], e, e),
                (f, f, np.ones((2, 3, 3)), e), (f, f, e[..., :0], e)):  # fmt: skip
        with pytest.raises(TypeRule, match="with scales"):
            nn.scaled_matmul(*bad)
    with pytest.raises(TypeRule, match="no mode"):
        nn.get_scaled_dot_general_config("fp2")
    with pytest.raises(TypeRule, match="give floats"):
        how = [nn.get_scaled_dot_general_config("mxfp8")] * 2
        nn.scaled_dot_general(np.ones((2, 2), np.int32), f[0, :2, :2], (((1,), (1,)), ((), ())),
                              configs=how)  # fmt: skip
    with pytest.raises(TypeRule, match="no dtype"):
        nn.scaled_matmul(f, f, e, e, np.int32)


RIGHT = {
    "one_hot": (np.array([1, 0]), 3), "glu": (np.ones((2, 4), np.float32), 1),
    "dot_product_attention": (np.ones((2, 3, 1, 4), np.float32),) * 3,
    "scaled_matmul": (np.ones((1, 2, 4)),) * 2 + (np.ones((1, 2, 1)),) * 2,
    "scaled_dot_general": (np.ones((2, 4)), np.ones((2, 4)), (((1,), (1,)), ((), ()))),
    "get_scaled_dot_general_config": ("mxfp8",),
    **{n: (np.ones((2, 4)), 0) for n in ("softmax", "log_softmax", "logsumexp", "standardize")},
}  # fmt: skip
WRONG = ["text", None, np.ones((3, 4)) * 1j, 1.5, -1, 99, 2**70, np.ones((2, 5)), [[1], [2, 3]]]


def test_wrong_arguments_are_refused_in_three_parts():
    """Or taken, as a number is by most activations: nothing else comes out."""
    for name in nn.__all__:
        arguments = RIGHT.get(name, (np.ones((2, 4), np.float32),))
        if name == "initializers":
            continue
        for i in range(len(arguments)):
            for bad in WRONG:
                call = [*arguments[:i], bad, *arguments[i + 1 :]]
                try:
                    plait.eval_shape(lambda f=getattr(nn, name), call=call: f(*call))
                except PlaitError as e:
                    assert e.fix and __file__ in e.where, (name, i, bad, e)


def test_every_function_is_documented():
    for module in (nn, nn.initializers):
        for name in module.__all__:
            assert len(getattr(module, name).__doc__) > 10 and getattr(module, name).__name__


# ---- initial values ------------------------------------------------------------------------

KEY = plait.random.key(0)
# what JAX 0.10.2 draws from the same key
DRAWN = {
    "glorot_uniform": [0.980789303779602, 1.048516035079956, -0.3674309551715851],
    "glorot_normal": [1.046842336654663, 1.2329133749008179, -0.29671576619148254],
    "he_normal": [1.3514677286148071, 1.5916844606399536, -0.38305842876434326],
    "he_uniform": [1.2661935091018677, 1.3536282777786255, -0.47435131669044495],
    "lecun_normal": [0.9556319713592529, 1.1254907846450806, -0.2708631753921509],
    "lecun_uniform": [0.895334005355835, 0.9571597576141357, -0.3354170322418213],
}


@pytest.mark.parametrize("name", DRAWN)
def test_scaled_draws(name):
    init = getattr(nn.initializers, name)()
    x = init(KEY, (3, 2))
    assert x.shape == (3, 2) and x.dtype == np.float32
    np.testing.assert_allclose(np.asarray(x).ravel()[:3], DRAWN[name], rtol=1e-6)
    large = np.asarray(plait.jit(lambda k: init(k, (300, 200)))(KEY))
    scale, mode = (2, 300) if name.startswith("he") else (1, 300)
    mode = 250 if name.startswith("glorot") else mode
    assert large.var() == pytest.approx(scale / mode, rel=0.05) and abs(large.mean()) < 0.01


def test_other_initial_values():
    I = nn.initializers
    np.testing.assert_allclose(I.normal(0.5)(KEY, (2,)), [0.8113210797, 1.0126323699], rtol=1e-6)
    np.testing.assert_allclose(I.uniform(0.5)(KEY, (2,)), [0.4738335, 0.489289939], rtol=1e-6)
    got = I.truncated_normal(0.5)(KEY, (2,))
    np.testing.assert_allclose(got, [0.7279796004, 0.857374370], rtol=1e-6)
    init = I.variance_scaling(2.0, "fan_avg", "truncated_normal", in_axis=0, out_axis=(1, 2))
    want = [0.8847432732582092, 1.0420019626617432, -0.25077056884765625]
    np.testing.assert_allclose(np.asarray(init(KEY, (2, 3, 4))).ravel()[:3], want, rtol=1e-6)
    kernel = np.asarray(I.glorot_normal()(KEY, (3, 3, 2, 4))).ravel()[:2]
    np.testing.assert_allclose(kernel, [0.3185440003871918, 0.37516361474990845], rtol=1e-6)
    assert I.zeros(KEY, (2,)).tolist() == [0, 0] and I.ones(KEY, (2,), "int8").dtype == np.int8
    assert I.constant(3.0)(KEY, (2, 1)).tolist() == [[3.0], [3.0]]
    assert I.normal(dtype="float16")(KEY, (2,)).dtype == np.float16
    for bad, text in (
        (lambda: I.variance_scaling(1.0, "fan", "normal"), "no mode"),
        (lambda: I.variance_scaling(1.0, "fan_in", "other"), "no distribution"),
        (lambda: I.he_normal()(KEY, (3,)), "not known"),
        (lambda: I.he_normal()(KEY, (3, 2), np.int32), "floating"),
    ):
        with pytest.raises(TypeRule, match=text):
            bad()


def test_orthogonal_matrices():
    """With JAX 0.10.2's draws."""
    for shape, axis, first in (
        ((3, 5), -1, [1.6399839, -0.07945755]),
        ((5, 3), -1, [1.6399839, 1.0768564]),
        ((2, 3, 4), 0, [0.8537054, -0.22812293]),
    ):
        x = np.asarray(nn.initializers.orthogonal(2.0, axis)(KEY, shape))
        np.testing.assert_allclose(x.ravel()[:2], first, rtol=1e-5)
        m = np.moveaxis(x, axis, -1).reshape(-1, shape[axis])
        m = m if m.shape[0] >= m.shape[1] else m.T
        np.testing.assert_allclose(m.T @ m, 4 * np.eye(m.shape[1]), atol=1e-5)
    x = np.asarray(nn.initializers.delta_orthogonal()(KEY, (3, 3, 2, 4)))
    np.testing.assert_allclose(x[1, 1, 0, :2], [0.9220003, -0.24637239], rtol=1e-5)
    np.testing.assert_allclose(x[1, 1] @ x[1, 1].T, np.eye(2), atol=1e-6)
    assert np.count_nonzero(x) == 8
    for bad in (
        lambda: nn.initializers.orthogonal()(KEY, (3,)),
        lambda: nn.initializers.delta_orthogonal()(KEY, (3, 4, 2)),
    ):
        with pytest.raises(AxisError):
            bad()


@pytest.mark.parametrize("distribution", ["uniform", "normal", "truncated_normal"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_initial_values(distribution, dtype):
    """Their variance is what was asked for, in all directions alike, and none is too far away."""
    init = plait.nn.initializers.variance_scaling(2.0, "fan_in", distribution, dtype=dtype)
    z = np.asarray(init(plait.random.key(0), (300, 500))) * float(np.sqrt(300 / 2))
    assert z.dtype == dtype
    np.testing.assert_allclose((abs(z) ** 2).mean(), 1, rtol=2e-2)
    np.testing.assert_allclose([(z**2).mean(), z.mean(), (z**3).mean()], 0, atol=2e-2)
    most = {"uniform": np.sqrt(2), "truncated_normal": 2 / 0.96}.get(distribution, np.inf)
    assert abs(z).max() < most * 1.001
    if distribution == "uniform":  # the area within a radius, of a disc of radius sqrt(2)
        np.testing.assert_allclose((abs(z) < 1).mean(), 0.5, atol=1e-2)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_complex_orthogonal_matrices(shape):
    q = np.asarray(plait.nn.initializers.orthogonal(dtype="complex128")(plait.random.key(1), shape))
    q = q if shape[0] >= shape[1] else q.T
    np.testing.assert_allclose(q.conj().T @ q, np.eye(min(shape)), atol=1e-12)
    assert abs(q.imag).max() > 0.1


def test_a_shape_may_be_one_size():
    for init in (nn.initializers.zeros, nn.initializers.ones, nn.initializers.constant(2.0)):
        assert init(None, 3).shape == (3,)


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("shape", [(), (3,), (1, 3)])
def test_logsumexp_of_factors_with_more_axes(shape, axis):
    x, b = np.full(shape, 0.5, np.float32), np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    got = plait.nn.logsumexp(x, axis=axis, b=b)
    want = np.log((b * np.exp(x)).sum(axis))
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-6)
