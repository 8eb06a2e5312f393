"""plait.numpy's reductions, statistics, products, searches and sets against numpy.

Invariant: a case is a function of a namespace and arrays; numpy says what is right; each case runs
at once and compiled.
"""

import ml_dtypes
import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import events
from plait.errors import ArgumentError, AxisError, ConcretizationError, TypeRule

BF16 = np.dtype(ml_dtypes.bfloat16)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)
N = X.copy()
N[X > 0.9] = np.nan
N[1, :, 2] = np.nan
Y = RNG.standard_normal((4, 5)).astype(np.float32)
W = np.abs(RNG.standard_normal((4,))).astype(np.float32)
K = RNG.integers(-5, 6, (3, 4)).astype(np.int32)
V = np.array([3.0, 1.0, 2.0, 5.0, 4.0], np.float32)
U = np.array([0.5, -1.0, 2.0], np.float32)
Z = (RNG.standard_normal((3, 4)) + 1j * RNG.standard_normal((3, 4))).astype(np.complex64)
MASK = X > 0
A2 = RNG.standard_normal((3, 4)).astype(np.float32)
B2 = RNG.standard_normal((4, 2)).astype(np.float32)


def same(got, want, rtol=2e-5):
    if isinstance(got, tuple | list):
        assert isinstance(want, tuple | list) and len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w, rtol)
        return
    want = np.asarray(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    if want.dtype not in (np.int64, np.float64, np.complex128):  # numpy's defaults
        assert got.dtype == want.dtype
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=rtol)


def check(f, *xs):
    with np.errstate(all="ignore"):
        want = f(np, *xs)
    same(f(pnp, *map(pnp.asarray, xs)), want)
    if xs:
        same(plait.jit(lambda *ys: f(pnp, *ys))(*xs), want)


AXES = [None, 0, -1, (0, 2)]
REDUCE = ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "ptp", "count_nonzero",
          "median", "amax", "amin"]  # fmt: skip
NANS = ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian"]


@pytest.mark.sampled(16)
@pytest.mark.filterwarnings("ignore:.*slice:RuntimeWarning", "ignore:Degrees:RuntimeWarning",
                            "ignore:Mean of empty:RuntimeWarning")  # fmt: skip
@pytest.mark.parametrize("name", [*REDUCE, *NANS])
def test_reductions(name):
    x = N if name in NANS else X
    for axis in AXES:
        check(lambda m, v, a=axis: getattr(m, name)(v, axis=a), x)
    check(lambda m, v: getattr(m, name)(v, axis=1, keepdims=True), x)
    for f in (lambda: getattr(pnp, name)(X, 3), lambda: getattr(pnp, name)(X, (0, 0))):
        with pytest.raises(AxisError):
            f()


@pytest.mark.filterwarnings("ignore:Degrees:RuntimeWarning", "ignore:Mean of:RuntimeWarning")
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "any", "all", "var", "std"])
def test_where_and_initial(name):
    how = {"initial": 0.5} if name in ("max", "min") else {}
    check(lambda m, v, w: getattr(m, name)(v, axis=1, where=w, **how), X, MASK)
    if name in ("sum", "prod", "max", "min"):
        check(lambda m, v: getattr(m, name)(v, axis=0, initial=2.0), X)


def test_dtypes_of_reductions():
    for d in (np.int8, np.uint8, np.bool_, np.int16):
        x = np.array([1, 0, 1, 1], d)
        unsigned = np.dtype(d).kind == "u"
        want = np.uint32 if unsigned else np.int32
        for f in (pnp.sum, pnp.prod, pnp.cumsum, pnp.cumprod):
            assert f(x).dtype == want, (f, d)
        assert pnp.mean(x).dtype == np.float32 and pnp.var(x).dtype == np.float32
        assert pnp.sum(x, promote_integers=False).dtype == (np.int32 if d == np.bool_ else d)
    for d in (BF16, np.float16, np.float64):
        x = np.ones(300, d)
        for f in (pnp.sum, pnp.mean, pnp.var, pnp.std, pnp.max, pnp.median, pnp.cumsum):
            assert f(x).dtype == d, (f, d)
        assert float(pnp.sum(x)) == 300 and float(pnp.mean(x)) == 1
    assert pnp.sum(X, dtype=np.float64).dtype == np.float64
    assert pnp.mean(K, dtype=np.float16).dtype == np.float16
    assert pnp.sum(np.ones(2, np.int8), dtype=int).dtype == np.int32
    assert pnp.var(Z).dtype == np.float32
    assert pnp.count_nonzero(X).dtype == np.int32 and pnp.argmax(X).dtype == np.int32


def test_variance():
    for ddof in (0, 1, 2):
        check(lambda m, v, d=ddof: m.var(v, axis=0, ddof=d), X)
        check(lambda m, v, d=ddof: m.std(v, axis=(0, 1), ddof=d, keepdims=True), X)
    check(lambda m, v: m.var(v, axis=1), Z)
    check(lambda m, v: m.var(v), K)
    same(pnp.var(X, correction=1), np.var(X, ddof=1))
    same(pnp.var(X, axis=0, mean=X.mean(0, keepdims=True)), np.var(X, 0))
    far = (np.float32(1e4) + X).astype(np.float32)
    same(pnp.var(far), np.var(far.astype(np.float64)), rtol=1e-3)
    assert np.isnan(float(pnp.var(np.float32([1.0]), ddof=1)))


def test_average():
    check(lambda m, v: m.average(v), X)
    check(lambda m, v: m.average(v, axis=1), X)
    check(lambda m, v, w: m.average(v, axis=1, weights=w), X, W)
    check(lambda m, v, w: m.average(v, weights=w), X, np.abs(X))
    check(lambda m, v, w: m.average(v, axis=1, weights=w, returned=True), X, W)
    check(lambda m, v: m.average(v, axis=0, returned=True), K)
    check(lambda m, v: m.average(v, axis=0, keepdims=True), K)
    for bad in (lambda: pnp.average(X, weights=W), lambda: pnp.average(X, 0, W)):
        with pytest.raises(TypeRule, match="weights"):
            bad()


def test_positions_of_extremes():
    for name in ("argmax", "argmin"):
        for axis in (None, 0, -1):
            check(lambda m, v, a=axis, n=name: getattr(m, n)(v, a), X)
        check(lambda m, v, n=name: getattr(m, n)(v, 1, keepdims=True), X)
        ties = np.array([[1, 1, 0], [0, 2, 2]])
        check(lambda m, v, n=name: getattr(m, n)(v, axis=1), ties)
    odd = np.array([[np.nan, 1, 2, np.nan], [np.nan, 5, np.nan, -np.inf], [3, 1, 2, np.inf]])
    for name in ("nanargmax", "nanargmin"):
        for sign in (1, -1):
            check(lambda m, v, n=name: getattr(m, n)(v, axis=1), odd * sign)
        assert int(getattr(pnp, name)(np.array([np.nan, np.nan]))) == -1
        end = -np.inf if name == "nanargmax" else np.inf  # numpy points at the nan here
        assert int(getattr(pnp, name)(np.array([np.nan, end, end]))) == 1
        check(lambda m, v, n=name: getattr(m, n)(v), K)
    for name in ("nanmax", "nanmin"):
        assert np.isnan(float(getattr(pnp, name)(np.array([np.nan, np.nan]))))
        check(lambda m, v, n=name: getattr(m, n)(v), K)


def test_empty_reductions():
    empty = np.zeros((0, 3), np.float32)
    for name in ("sum", "prod", "any", "all"):
        check(lambda m, v, n=name: getattr(m, n)(v, axis=0), empty)
    for name in ("max", "min", "argmax", "argmin", "ptp"):
        with pytest.raises(AxisError):
            getattr(pnp, name)(empty, axis=0)
    assert np.isnan(np.asarray(pnp.mean(empty, axis=0))).all()
    assert pnp.max(empty, axis=0, initial=1.0).tolist() == [1.0] * 3


def test_running():
    for axis in (None, 0, -1):
        check(lambda m, v, a=axis: m.cumsum(v, axis=a), X)
        check(lambda m, v, a=axis: m.cumprod(v, axis=a), X)
        check(lambda m, v, a=axis: m.nancumsum(v, axis=a), N)
        check(lambda m, v, a=axis: m.nancumprod(v, axis=a), N)
    for name in ("cumulative_sum", "cumulative_prod"):
        check(lambda m, v, n=name: getattr(m, n)(v, axis=1, include_initial=True), X)
        check(lambda m, v, n=name: getattr(m, n)(v), V)
        with pytest.raises(TypeRule, match="axis is needed"):
            getattr(pnp, name)(X)


# ---- quantiles -----------------------------------------------------------------------------

METHODS = ["linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf", "hazen", "weibull",
           "median_unbiased", "normal_unbiased", "interpolated_inverted_cdf"]  # fmt: skip


@pytest.mark.sampled(10)
@pytest.mark.parametrize("method", METHODS)
def test_quantiles(method):
    q = np.array([[0.0, 0.31], [0.77, 1.0]])
    wide = X.astype(np.float64)  # a position between elements depends on the last bits of q
    check(lambda m, v: m.quantile(v, q, axis=1, method=method), wide)
    check(lambda m, v: m.quantile(v, 0.4, method=method, keepdims=True), wide)
    check(lambda m, v: m.quantile(v, 0.31, axis=(0, 2), method=method), wide)
    if method in ("linear", "lower", "higher", "midpoint", "hazen"):
        with np.errstate(all="ignore"):
            want = np.nanquantile(N.astype(np.float64)[0], 0.3, axis=0, method=method)
        same(pnp.nanquantile(N.astype(np.float64)[0], 0.3, axis=0, method=method), want)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quantiles_at_random_and_exact_positions(method, dtype):
    rng = np.random.default_rng(1)
    for n in (1, 2, 5, 6, 40):
        x = rng.standard_normal(n).astype(dtype)
        positions = [
            np.arange(2 * n - 1) / max(2 * (n - 1), 1),
            np.arange(n + 1) / n,
            rng.random(9),
        ]
        for q in positions:
            same(pnp.quantile(x, q, method=method), np.quantile(x, q, method=method))
        # the place is found in the dtype of q, as numpy has it: float32(0.1) of 5 is a half
        tenths = np.float32([0.1, 0.3, 0.5, 0.7, 0.9])
        want = np.quantile(x, tenths, method=method)
        same(pnp.quantile(x, tenths, method=method), want, rtol=1e-4)
        same(pnp.percentile(x, 25, method=method), np.percentile(x, 25, method=method))


def test_medians_and_percentiles():
    for n in range(1, 6):
        check(lambda m, v: m.median(v), V[:n])
        check(lambda m, v: m.percentile(v, np.array([0, 25, 90])), V[:n])
    assert np.isnan(float(pnp.median(np.float32([1, np.nan, 2]))))
    check(lambda m, v: m.median(v), np.float32([np.inf, np.inf, -np.inf, 1]))
    check(lambda m, v: m.nanpercentile(v, 30, axis=1), N[0].T)
    traced = plait.jit(lambda x, q: pnp.quantile(x, q))
    same(traced(V, np.float32(0.3)), np.quantile(V, 0.3))
    for bad, text in (
        (lambda: pnp.quantile(V, 1.5), "not between"),
        (lambda: pnp.median(V[:0]), "nothing"),
        (lambda: pnp.quantile(V, 0.5, method="x"), "no method"),
    ):
        with pytest.raises(TypeRule, match=text):
            bad()


# ---- covariances, histograms, counts -------------------------------------------------------


def test_covariances():
    check(lambda m, v: m.cov(v), A2)
    check(lambda m, v: m.cov(v), V)
    check(lambda m, v, w: m.cov(v, w), V, V**2)
    check(lambda m, v: m.cov(v, rowvar=False, bias=True), A2)
    check(lambda m, v: m.cov(v, ddof=0), Z)
    for shape in [(1, 3), (3, 1), (1, 1), (3,)]:
        x = A2.ravel()[: int(np.prod(shape))].reshape(shape)
        for rowvar in (True, False):
            check(lambda m, v: m.cov(v, rowvar=rowvar, ddof=0), x)
    check(lambda m, v, w: m.cov(v, w, rowvar=False, ddof=0), A2[:, :1], A2[:, 1:])
    check(lambda m, v, w: m.cov(v, w, rowvar=False, ddof=0), A2[:, :1], A2[:, 0][None])
    f, a = np.array([1, 2, 1, 3]), np.array([0.5, 1.0, 2.0, 1.5], np.float32)
    check(lambda m, v, w: m.cov(v, fweights=w), A2, f)
    check(lambda m, v, w: m.cov(v, aweights=w), A2, a)
    check(lambda m, v, w, u: m.cov(v, fweights=w, aweights=u), A2, f, a)
    check(lambda m, v: m.corrcoef(v), A2)
    check(lambda m, v, w: m.corrcoef(v, w), V, V[::-1] * V)
    check(lambda m, v: m.corrcoef(v), Z)
    with pytest.raises(TypeRule, match="covariances"):
        pnp.cov(X)


def test_counts():
    x = np.array([0, 3, 1, 3, 3])
    check(lambda m, v: m.bincount(x), x)
    same(pnp.bincount(x), np.bincount(x))
    same(pnp.bincount(x, minlength=6), np.bincount(x, minlength=6))
    same(pnp.bincount(x, V), np.bincount(x, V))
    same(plait.jit(lambda x: pnp.bincount(x, length=3))(x), [1, 1, 0])
    same(pnp.bincount(np.array([], int), minlength=2), [0, 0])
    with pytest.raises(ConcretizationError, match="length"):
        plait.jit(pnp.bincount)(x)
    with pytest.raises(TypeRule, match="vector of integers"):
        pnp.bincount(V)


def test_histograms():
    data = X.ravel()
    edges = np.array([-1.0, -0.2, 0.0, 0.7, 1.1], np.float32)
    check(lambda m, v: m.histogram(v, 7), data)
    check(lambda m, v: m.histogram(v, edges), data)
    check(lambda m, v: m.histogram(v, edges, density=True), data)
    check(lambda m, v: m.histogram(v, 4, range=(-1.0, 1.0)), data)
    check(lambda m, v, w: m.histogram(v, edges, weights=w), data, np.abs(data))
    check(lambda m, v: m.histogram(v), np.ones(3, np.float32))
    check(lambda m, v: m.histogram_bin_edges(v, 5), data)
    points = X.reshape(-1, 5)[:, :2]
    check(lambda m, v: m.histogramdd(v, (3, 4)), points)
    check(lambda m, v: m.histogramdd(v, 3, density=True), points)
    check(lambda m, v, w: m.histogram2d(v, w, bins=4), points[:, 0], points[:, 1])
    with pytest.raises(TypeRule, match="number of bins"):
        pnp.histogram(data, "auto")


# ---- products ------------------------------------------------------------------------------

PRODUCTS = [
    (lambda m, x, y: m.dot(x, y), A2, B2),
    (lambda m, x, y: m.dot(x, y), A2, W),
    (lambda m, x: m.dot(x, 2.0), A2),
    (lambda m, x, y: m.matmul(x, y), X, Y.T),
    (lambda m, x, y: m.vdot(x, y), Z, Z + 1),
    (lambda m, x, y: m.inner(x, y), A2, W),
    (lambda m, x, y: m.outer(x, y), V, U),
    (lambda m, x, y: m.tensordot(x, y), X, Y),
    (lambda m, x, y: m.tensordot(x, y, ((1, 2), (0, 1))), X, Y),
    (lambda m, x, y: m.tensordot(x, y, 0), U, V),
    (lambda m, x, y: m.vecdot(x, y), Z, Z + 1),
    (lambda m, x, y: m.vecdot(x, y, axis=0), A2, A2 + 1),
    (lambda m, x, y: m.matvec(x, y), A2, W),
    (lambda m, x, y: m.vecmat(x, y), W, B2),
    (lambda m, x, y: m.kron(x, y), A2, B2),
    (lambda m, x, y: m.kron(x, y), U, V),
    (lambda m, x, y: m.kron(x, y), X, U),
    (lambda m, x, y: m.cross(x, y), U, U[::-1]),
    (lambda m, x, y: m.cross(x, y, axis=0), A2, A2[::-1]),
    (lambda m, x, y: m.cross(x, y, axisa=0, axisb=0), A2, A2[::-1]),
    *[(lambda m, x, y, mode=mode: m.convolve(x, y, mode), a, b)
      for mode in ("full", "same", "valid") for a, b in ((V, U), (U, V), (V, V[:2]))],
    *[(lambda m, x, y, mode=mode: m.correlate(x, y, mode), a, b)
      for mode in ("full", "same", "valid") for a, b in ((V, U), (U, V), (V, V[:2]))],
    (lambda m, x, y: m.convolve(x, y), K[0], K[1]),
    (lambda m, x, y: m.correlate(x, y, "same"), K[0], K[1, :2]),
    (lambda m, x, y: m.correlate(x, y, "full"), Z[0], Z[1]),
    (lambda m, x, y: m.polyval(x, y), V, U),
    (lambda m, x, y: m.polyval(x, y), V, 2.0),
    (lambda m, x, y: m.polyadd(x, y), V, U),
    (lambda m, x, y: m.polysub(x, y), U, V),
    (lambda m, x, y: m.polymul(x, y), U, V),
    (lambda m, x: m.polyder(x), V),
    (lambda m, x: m.polyder(x, 3), V),
    (lambda m, x: m.polyint(x, 2), V),
    (lambda m, x: m.polyint(x, 2, k=[1.0, 2.0] if m is np else np.float32([1, 2])), V),
    (lambda m, x: m.poly(x), U),
    (lambda m: m.hanning(5), ), (lambda m: m.hamming(6), ), (lambda m: m.blackman(4), ),
    (lambda m: m.bartlett(7), ), (lambda m: m.kaiser(6, 8.0), ),
]  # fmt: skip


@pytest.mark.sampled(16)
@pytest.mark.parametrize("case", PRODUCTS, ids=lambda c: None)
def test_products(case):
    f, *xs = case
    check(f, *xs)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.complex64])
def test_convolutions_of_vectors_of_any_length(mode, dtype):
    rng = np.random.default_rng(2)
    draw = lambda n: (rng.integers(-9, 9, n) + (1j * rng.integers(-9, 9, n) if dtype is np.complex64  # noqa: E731
                                                else 0)).astype(dtype)  # fmt: skip
    for n, m in [(1, 1), (1, 4), (2, 3), (2, 5), (3, 2), (3, 3), (4, 7), (5, 4), (6, 3)]:
        a, v = draw(n), draw(m)
        for name in ("correlate", "convolve"):
            same(getattr(pnp, name)(a, v, mode), getattr(np, name)(a, v, mode))


def test_cross_of_plane_vectors():
    x, y = np.float32([[1, 2], [3, 4]]), np.float32([[5, 6], [7, 9]])
    same(pnp.cross(x, y), x[:, 0] * y[:, 1] - x[:, 1] * y[:, 0])
    same(pnp.cross(x[0], U), np.cross([*x[0], 0], U))
    with pytest.raises(AxisError, match="2 or 3 components"):
        pnp.cross(V, V)


def test_errors_of_products():
    for f, text in (
        (lambda: pnp.matmul(A2, A2), "meets"),
        (lambda: pnp.matmul(A2, 1.0), "with axes"),
        (lambda: pnp.convolve(A2, V), "vectors"),
        (lambda: pnp.convolve(V, V, "x"), "no mode"),
        (lambda: pnp.polyval(1.0, V), "a vector"),
        (lambda: pnp.outer(V, V, V), "out"),
    ):
        with pytest.raises(TypeRule, match=text):
            f()


EINSUMS = [
    ("ij,jk->ik", (3, 4), (4, 2)), ("ij,jk", (3, 4), (4, 2)), ("ij->ji", (3, 4)), ("ii->i", (4, 4)),
    ("ii", (4, 4)), ("ij->", (3, 4)), ("ij->j", (3, 4)), ("i,i", (5,), (5,)), ("i,j", (5,), (3,)),
    ("i,j->ji", (5,), (3,)), ("ij,ij->ij", (3, 4), (3, 4)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("...ij,...jk->...ik", (2, 3, 4), (4, 5)), ("...ij,...jk", (2, 3, 4), (2, 4, 5)),
    ("...i->...", (2, 3, 4)), ("i...->...i", (2, 3, 4)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ijk,ilm,njm,nlk,abc->", (2, 3, 4), (2, 5, 6), (7, 3, 6), (7, 5, 4), (1, 2, 3)),
    ("iij->j", (3, 3, 2)), ("iji,j->i", (3, 2, 3), (2,)), ("iii->i", (3, 3, 3)),
    ("ij,kj->", (2, 3), (4, 3)), ("a,ab,abc->abc", (2,), (2, 3), (2, 3, 4)),
    ("ij,i->j", (3, 4), (3,)), ("ij,kl->", (2, 3), (3, 4)), ("ba", (2, 3)),
    ("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)), ("i j, jk -> ik", (3, 4), (4, 2)),
    ("...,...->...", (3, 1), (1, 4)), ("ij,ij->i", (3, 4), (1, 4)), ("i,->i", (3,), ()),
    ("ab,b,b->a", (2, 3), (3,), (3,)), (",", (), ()), ("ij,jk,ki->", (2, 3), (3, 4), (4, 2)),
]  # fmt: skip


@pytest.mark.sampled(16)
@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum(case):
    text, *shapes = case
    xs = [RNG.standard_normal(s).astype(np.float32) for s in shapes]
    want = np.einsum(text, *xs)
    same(plait.jit(lambda *ys: pnp.einsum(text, *ys))(*xs), want, rtol=2e-4)
    if len(xs) > 2:
        for optimize in (False, "optimal", "greedy", True):
            same(pnp.einsum(text, *xs, optimize=optimize), want, rtol=2e-4)


def test_options_of_einsum():
    x, y = A2, B2
    same(pnp.einsum(x, [0, 1], y, [1, 2], [0, 2]), x @ y)
    same(pnp.einsum(x, [0, 1], y, [1, 2]), x @ y)
    same(pnp.einsum(x, [3, 9], y, [9, 1]), np.einsum(x, [3, 9], y, [9, 1]))
    same(pnp.einsum(x, [Ellipsis, 1], [Ellipsis]), x.sum(1))
    assert pnp.einsum("ij,jk", K, K.T).dtype == np.int32
    narrow = V.astype(BF16)
    assert pnp.einsum("i,i", narrow, narrow, preferred_element_type="float32").dtype == np.float32
    same(pnp.einsum("ij,jk", K > 0, K.T > 0), np.einsum("ij,jk", K > 0, K.T > 0))
    same(pnp.einsum("ij,jk,kl->il", x, y, y.T, optimize=[(1, 2), (0, 1)]), x @ y @ y.T)
    path, text = pnp.einsum_path("ij,jk,kl->il", x, y, y.T)
    assert path[0] == "einsum_path" and len(path) == 3 and "->" in text
    eqns = plait.make_program(lambda x, y: pnp.einsum("bqhd,bkhd->bhqk", x, y))(
        np.ones((2, 3, 4, 5)), np.ones((2, 6, 4, 5))
    ).eqns
    assert [e.prim.name for e in eqns] == ["core.dot_general"]


@pytest.mark.parametrize(("text", "shapes", "why"), [
    ("ij,jk->ik", [(3, 4), (5, 2)], "'j' has sizes 4 and 5"), ("ij->ik", [(3, 4)], "'k'"),
    ("ij,jk", [(3, 4)], "names 2 operands"), ("ijk->i", [(3, 4)], "names 3 axes"),
    ("ij->ii", [(3, 4)], "twice"), ("i+->i", [(3, 4)], "letters"),
])  # fmt: skip
def test_errors_of_einsum(text, shapes, why):
    with pytest.raises(TypeRule, match=why):
        pnp.einsum(text, *[np.ones(s) for s in shapes])


@pytest.mark.parametrize(("text", "spelled", "shapes"), [
    ("...i->i", "ji->i", [(3, 4)]), ("i...->i", "ijk->i", [(2, 3, 4)]), ("...->", "ij->", [(2, 3)]),
    ("ab...d,ej...f->adef", "abcd,ejcf->adef", [(1, 2, 3, 4), (5, 6, 3, 7)]),
    ("a...d,ej...f->adef", "acd,ejcf->adef", [(2, 3, 4), (5, 6, 1, 7)]),
    ("i...,...->i", "ij,j->i", [(2, 3), (3,)]), ("...i,i->i", "i,i->i", [(3,), (3,)]),
])  # fmt: skip
def test_axes_of_an_ellipsis_that_the_result_lacks_are_summed(text, spelled, shapes):
    """As in JAX; numpy wants them named.  Axes of size 1 broadcast."""
    xs = [RNG.normal(size=s) for s in shapes]
    longest = {c: max(x.shape[t.index(c)] for t, x in zip(spelled.split("->")[0].split(","), xs)
                      if c in t) for c in set(spelled) - set(",->")}  # fmt: skip
    full = [np.broadcast_to(x, [longest[c] for c in t])
            for t, x in zip(spelled.split("->")[0].split(","), xs)]  # fmt: skip
    for f in (pnp.einsum, plait.jit(pnp.einsum, static_argnums=0)):
        np.testing.assert_allclose(f(text, *xs), np.einsum(spelled, *full), rtol=1e-12)


# ---- searching and sets --------------------------------------------------------------------


@pytest.mark.sampled(10)
@pytest.mark.parametrize("n", [0, 1, 5, 40, 1000])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(n, side):
    a = np.sort(RNG.integers(0, 50, n)).astype(np.float32)
    v = np.array([[-1, 0, 7, 7.5], [50, np.inf, -np.inf, np.nan]], np.float32)
    check(lambda m, a, v: m.searchsorted(a, v, side=side), a, v)
    check(lambda m, a, v: m.searchsorted(a, v, side), a.astype(np.int32), v[0].astype(np.int32))
    if n:
        ended = np.append(a, np.nan).astype(np.float32)
        check(lambda m, a, v: m.searchsorted(a, v, side), ended, v)
        order = RNG.permutation(n)
        check(lambda m, a, v, s: m.searchsorted(a, v, side, s), a[order], v, np.argsort(order))
    for method in ("scan", "compare_all"):
        same(pnp.searchsorted(a, v, side, method=method), np.searchsorted(a, v, side))


def test_digitize_and_interp():
    bins = np.array([0.0, 1.0, 2.5, 4.0], np.float32)
    x = np.array([-1.0, 0.0, 0.5, 1.0, 3.0, 4.0, 5.0], np.float32)
    for right in (False, True):
        check(lambda m, x, b, r=right: m.digitize(x, b, r), x, bins)
        check(lambda m, x, b, r=right: m.digitize(x, b, r), x, bins[::-1])
    data = np.array([10.0, -2.0, 3.0, 7.0], np.float32)
    check(lambda m, *a: m.interp(*a), x, bins, data)
    check(lambda m, *a: m.interp(*a, left=-1.0, right=9.0), x, bins, data)
    check(lambda m, *a: m.interp(*a, period=3.0), x, bins, data)
    check(lambda m, x: m.interp(x, bins, data), np.float32(1.2))
    check(lambda m, *a: m.interp(*a), x, bins[:1], data[:1])
    check(lambda m, *a: m.interp(*a), x, bins, data * (1 + 2j))
    for f, text in ((lambda: pnp.interp(x, bins, data[:2]), "equal vectors"),
                    (lambda: pnp.digitize(x, A2), "must be a vector"),
                    (lambda: pnp.searchsorted(A2, 1), "a vector is needed"),
                    (lambda: pnp.searchsorted(V, 1, "middle"), "side")):  # fmt: skip
        with pytest.raises(TypeRule, match=text):
            f()


def test_partition():
    for k in range(5):
        got = np.asarray(pnp.partition(V, k))
        assert got[k] == np.sort(V)[k] and (got[:k] <= got[k]).all() and (got[k:] >= got[k]).all()
        assert V[np.asarray(pnp.argpartition(V, k))][k] == np.sort(V)[k]


def test_unique():
    x = np.array([[3, 1, 2], [1, 3, 3]])
    same(pnp.unique(x), np.unique(x))
    every = dict(return_index=True, return_inverse=True, return_counts=True)
    same(pnp.unique(x, **every), np.unique(x, **every))
    rows = np.array([[1, 2], [0, 5], [1, 2], [0, 4]])
    got, want = pnp.unique(rows, axis=0, **every), np.unique(rows, axis=0, **every)
    same(got, [np.asarray(w).reshape(g.shape) for g, w in zip(got, want)])
    same(pnp.unique(rows.T, axis=1), np.unique(rows.T, axis=1))
    nans = np.array([np.nan, 1, np.nan, 2])
    for equal in (True, False):
        same(pnp.unique(nans, equal_nan=equal), np.unique(nans, equal_nan=equal))
    same(pnp.unique(Z), np.unique(Z))
    same(pnp.unique(np.zeros(0)), np.unique(np.zeros(0)))
    same(pnp.unique_all(x), tuple(np.unique_all(x)))
    same(pnp.unique_counts(x), tuple(np.unique_counts(x)))
    same(pnp.unique_inverse(x), tuple(np.unique_inverse(x)))
    same(pnp.unique_values(x), np.unique(x))
    same(plait.jit(lambda x: pnp.unique(x, size=5))(x), [1, 2, 3, 1, 1])
    same(plait.jit(lambda x: pnp.unique(x, size=2))(x), [1, 2])
    filled = plait.jit(lambda x: pnp.unique(x, size=4, fill_value=-7, **every))(x)
    same(filled, ([1, 2, 3, -7], [1, 2, 0, 1], [[2, 0, 1], [0, 2, 2]], [2, 1, 3, 0]))
    with pytest.raises(ConcretizationError, match="size"):
        plait.jit(pnp.unique)(x)


def test_sets():
    x, y = np.array([3, 1, 2, 3, 9]), np.array([[2, 3], [5, 5]])
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        same(getattr(pnp, name)(x, y), getattr(np, name)(x, y))
        want = getattr(np, name)(x, y)
        f = plait.jit(lambda a, b, n=name: getattr(pnp, n)(a, b, size=6, fill_value=-1))
        got = np.asarray(f(x, y))
        assert got[: len(want)].tolist() == want.tolist() and (got[len(want) :] == -1).all()
        with pytest.raises(ConcretizationError, match="size"):
            plait.jit(getattr(pnp, name))(x, y)
    same(pnp.intersect1d(x, y, return_indices=True), np.intersect1d(x, y, return_indices=True))
    check(lambda m, x, y: m.isin(x, y), x, y)
    check(lambda m, x, y: m.isin(x, y, invert=True), x, y)
    check(lambda m, x, y: m.isin(x, y), X, X[:1])
    check(lambda m, x, y: m.isin(x, y), Z, Z[0])
    check(lambda m, x, y: m.isin(x, y), x, y[:0])


def test_compositions_are_one_program_when_called_on_arrays(monkeypatch):
    compiled = []
    monkeypatch.setattr(events, "happened", lambda what, why=None: compiled.append(what))
    x = pnp.asarray(RNG.standard_normal((6, 7)).astype(np.float32))
    for i, f in enumerate((lambda: pnp.var(x, axis=1), lambda: pnp.median(x, 1),
                           lambda: pnp.isclose(x, x), lambda: pnp.hypot(x, x)), 1):  # fmt: skip
        f()
        assert compiled.count("compile") == i
        f()
        assert compiled.count("compile") == i


# ---- functions along axes ------------------------------------------------------------------


def test_functions_along_axes():
    for axis in (0, 1, -1):
        check(lambda m, v, a=axis: m.apply_along_axis(lambda r: r.sum() * r[0], a, v), X)
        check(lambda m, v, a=axis: m.apply_along_axis(lambda r: r[::-1] * 2, a, v), X)
        check(lambda m, v, a=axis: m.apply_along_axis(lambda r: r[:2, None] * r[None], a, v), X)
    check(lambda m, v: m.apply_along_axis(lambda r: r.max(), 0, v), V)
    check(lambda m, v: m.apply_over_axes(m.sum, v, (0, 2)), X)
    with pytest.raises(TypeRule, match="apply_over_axes"):
        pnp.apply_over_axes(lambda x, a: pnp.sum(x), X, 0)


def test_vectorize():
    f = pnp.vectorize(lambda a, b: pnp.where(a > b, a - b, a + b))
    check(lambda m, a, b: f(a, b) if m is pnp else np.where(a > b, a - b, a + b), X, Y)
    same(f(np.float32(1), np.float32(3)), np.float32(4))
    g = pnp.vectorize(lambda m, v: m @ v, signature="(n,m),(m)->(n)")
    check(lambda m, a, b: g(a, b) if m is pnp else a @ b, X, Y[0])
    rows = RNG.standard_normal((3, 5)).astype(np.float32)
    same(g(X, rows), np.einsum("knm,km->kn", X, rows))
    h = pnp.vectorize(lambda x: (x.sum(), x * 2), signature="(n)->(),(n)")
    same(h(X), (X.sum(-1), X * 2))
    k = pnp.vectorize(lambda x, n: x**n, excluded={1})
    same(k(X, 3), X**3)
    for bad, text in (
        (lambda: g(X, Y[0, :2]), "sizes 5 and 2"),
        (lambda: g(X), "1 arguments"),
        (lambda: g(V, V), "axes"),
        (lambda: pnp.vectorize(f, signature="x"), "not a sig"),
    ):
        with pytest.raises((AxisError, TypeRule), match=text):
            bad()


HALVES = {
    "average": lambda m, x: m.average(x),
    "average of axes": lambda m, x: m.average(x, axis=(0, 1)),
    "average with weights": lambda m, x: m.average(x, axis=0, weights=x[:, 0] ** 2),
    "average and count": lambda m, x: m.average(x, axis=1, returned=True),
    "cov": lambda m, x: m.cov(x),
    "cov by columns": lambda m, x: m.cov(x, rowvar=False),
    "cov of one": lambda m, x: m.cov(x[0]),
    "corrcoef": lambda m, x: m.corrcoef(x),
    "corrcoef of two": lambda m, x: m.corrcoef(x[0], x[1]),
    "polyder": lambda m, x: m.polyder(x[0]),
    "polyder twice": lambda m, x: m.polyder(x[0], 2),
    "polyder of none": lambda m, x: m.polyder(x[0], 0),
    "polyint": lambda m, x: m.polyint(x[0]),
    "polyint twice": lambda m, x: m.polyint(x[0], 2),
    "var": lambda m, x: m.var(x, axis=0),
    "median": lambda m, x: m.median(x, axis=1),
    "gradient": lambda m, x: m.gradient(x[0]),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype, name", [
    (dtype, name) for dtype in (np.float16, BF16, np.float32, np.float64, np.complex64)
    for name in HALVES if (dtype, name) != (np.complex64, "median")
])  # fmt: skip
def test_no_precision_is_lost_or_gained(name, dtype):
    x = np.array([[1, 2, 4.5, 3], [2, -1, 0.5, 8], [0, 1, 1, -3]]).astype(dtype)
    wide = x.astype(np.complex128 if dtype is np.complex64 else np.float64)
    f = HALVES[name]
    got = f(pnp, x)
    want = f(np, wide)
    tolerance = {2: 2e-2 if dtype == BF16 else 3e-3, 4: 1e-5}.get(np.dtype(dtype).itemsize, 1e-5)
    real = np.zeros(0, np.float32).dtype if dtype is np.complex64 and name == "var" else dtype
    for g, w in zip(*[v if isinstance(v, tuple) else (v,) for v in (got, want)], strict=True):
        assert g.dtype == real, g.dtype
        wider = np.asarray(g).astype(np.complex128 if np.iscomplexobj(w) else np.float64)
        np.testing.assert_allclose(wider, w, rtol=tolerance, atol=tolerance)


def test_covariances_of_halves_are_summed_in_more_than_that():
    x = (np.arange(4000) % 7).astype(np.float16)  # sums of these are not halves
    np.testing.assert_allclose(float(pnp.cov(x)), np.cov(x.astype(np.float64)), rtol=2e-3)
    pair = pnp.corrcoef(x, x[::-1])
    want = np.corrcoef(x.astype(np.float64), x[::-1].astype(np.float64))
    np.testing.assert_allclose(np.asarray(pair, np.float64), want, atol=2e-3)


def test_a_signature_names_no_axes_of_none():
    f = pnp.vectorize(lambda x, y: x if y is None else x + y, signature="(k),(k)->(k)")
    np.testing.assert_array_equal(f(np.float32([1, 2]), np.float32([3, 4])), np.float32([4, 6]))
    with pytest.raises(ArgumentError, match="argument 1 is None") as e:
        f(np.float32([1, 2]), None)
    assert "excluded={1}" in str(e.value)
    g = pnp.vectorize(f.__wrapped__, signature="(k)->(k)", excluded={1})
    np.testing.assert_array_equal(g(np.float32([1, 2]), None), np.float32([1, 2]))


def test_vectorized_functions_give_what_their_signature_says():
    pair = lambda a, b: (a + b, a * b)  # noqa: E731
    good = pnp.vectorize(pair, signature="(),()->(),()")
    for a, b in ((2, 3), (np.arange(3), 2), (np.ones((2, 1)), np.arange(3))):
        for got, want in zip(good(a, b), pair(a, b), strict=True):
            assert isinstance(got, plait.Array)
            np.testing.assert_array_equal(got, want)
    for signature in ("(),()->()", "(),()->(),(),()"):
        for a in (1, np.arange(3)):
            with pytest.raises(plait.errors.TypeRule, match="2 results"):
                pnp.vectorize(pair, signature=signature)(a, 2)
    kept = []
    pnp.vectorize(lambda a: kept.append(a) or a)(1.5)
    assert isinstance(kept[0], plait.Array)  # a Python number is an array there, too
