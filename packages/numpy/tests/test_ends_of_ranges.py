"""Functions at the ends of what their arguments can be: subnormal numbers, least integers, nan
fractions, digits beyond all digits, densities at their simplest parameters, long sums.

Invariant: numpy, scipy, mpmath, the math module or exact integers say what is right.
"""

import math

import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats

import plait
import plait.numpy as pnp
from plait.scipy import linalg, special, stats
from plait_numpy.ext.special import random_gamma

# ---- floats ----------------------------------------------------------------------------------


def _floats(dtype, count=300):
    """Return floats of all exponents, subnormal ones included, and the values at the ends."""
    info, rng = np.finfo(dtype), np.random.default_rng(0)
    powers = rng.integers(info.minexp - info.nmant - 1, info.maxexp - 1, count)
    ends = [0, -0.0, np.inf, -np.inf, np.nan, info.max, info.smallest_subnormal,
            -info.smallest_normal, np.nextafter(info.smallest_normal, dtype(0))]  # fmt: skip
    return np.concatenate([np.ldexp(rng.standard_normal(count), powers), ends]).astype(dtype)


def _bits(x):
    x = np.where(np.isnan(x), np.nan, x).astype(x.dtype)
    return x.view(f"i{x.dtype.itemsize}")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_scaling_by_powers_of_two_is_exact_down_to_subnormal_numbers(dtype):
    xs, info, rng = _floats(dtype), np.finfo(dtype), np.random.default_rng(1)
    ns = rng.integers(-2 * info.maxexp - 60, 2 * info.maxexp + 60, xs.size).astype(np.int32)
    ns[::2] = rng.integers(-20, 20, ns[::2].size)
    with np.errstate(all="ignore"):
        want = np.ldexp(xs, ns)
    for f in (pnp.ldexp, plait.jit(pnp.ldexp)):
        np.testing.assert_array_equal(_bits(np.asarray(f(xs, ns))), _bits(want))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_to_any_number_of_digits(dtype):
    xs = np.array([1.5, -2.5e-3, 123456.0, 0.0, 7e-30, 3e37, np.inf, -np.inf, np.nan], dtype)
    for digits in (-400, -309, -308, -40, -39, -38, -37, -5, -1, 1, 5, 37, 40, 300, 400):
        want = [x if not np.isfinite(x) else round(float(x), digits) for x in xs]
        got = np.asarray(pnp.round(xs, digits))
        np.testing.assert_allclose(got, np.array(want).astype(dtype), 4 * np.finfo(dtype).eps, 0)


def test_the_gamma_function_keeps_digits_at_its_zeros():
    near = [c + s * d for c in (1, 2) for s in (1, -1) for d in np.logspace(-7, -0.4, 40)]
    for dtype in (np.float32, np.float64):
        x = np.array([1, 2, 0.5, 1.5, 2.5, *near], dtype)
        with mpmath.workdps(40):
            want = np.array([float(mpmath.loggamma(mpmath.mpf(float(v)))) for v in x])
        want = np.where((x == 1) | (x == 2), 0.0, want)
        got = np.asarray(special.gammaln(x), np.float64)
        np.testing.assert_allclose(got, want, 12 * np.finfo(dtype).eps, 0)


FLAT = {
    "poisson": [(0, 0.0)], "beta": [(0.0, 1.0, 1.0), (0.5, 1.0, 1.0)], "gamma": [(0.0, 1.0)],
    "binom": [(0, 0, 0.3), (3, 3, 1.0)], "betabinom": [(0, 0, 1.0, 1.0)], "bernoulli": [(1, 1.0)],
    "nbinom": [(0, 1, 1.0)], "geom": [(1, 1.0)], "expon": [(0.0,)], "uniform": [(1.0,)],
    "pareto": [(1.0, 1.0)],
}  # fmt: skip
"""Arguments at which the density is one, by family."""


@pytest.mark.parametrize("family", FLAT)
def test_densities_of_one_have_logarithm_zero(family):
    name = "logpmf" if hasattr(getattr(scipy.stats, family), "pmf") else "logpdf"
    for args in FLAT[family]:
        assert abs(getattr(getattr(scipy.stats, family), name)(*args)) < 1e-14
        got = getattr(getattr(stats, family), name)(*map(np.float32, args))
        assert abs(float(got)) < 1e-8, args


def test_dirichlet_takes_all_components_but_the_last():
    alpha = np.array([1.5, 2.0, 3.0, 4.0])
    x = np.array([[0.1, 0.4], [0.2, 0.2], [0.3, 0.1]])
    want = [scipy.stats.dirichlet.logpdf(v, alpha) for v in x.T]
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), want, 1e-6)
    np.testing.assert_allclose(stats.dirichlet.pdf(x[:, 0], alpha), np.exp(want[0]), 1e-6)
    whole = np.vstack([x, 1 - x.sum(0)])
    np.testing.assert_allclose(stats.dirichlet.logpdf(whole, alpha), want, 1e-6)


# ---- integers --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_divisors_of_all_small_integers(dtype):
    every = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
    pairs = [(int(a), int(b)) for a in every for b in every]
    x, y = np.array(pairs).astype(dtype).T
    for f, exact in ((pnp.gcd, math.gcd), (pnp.lcm, math.lcm)):
        want = np.array([exact(a, b) for a, b in pairs]).astype(dtype)  # wraps around
        np.testing.assert_array_equal(np.asarray(f(x, y)), want)


FLOAT_VALUED = {
    "mean": pnp.mean, "average": pnp.average, "std": pnp.std, "var": pnp.var, "median": pnp.median,
    "trapezoid": pnp.trapezoid, "cov": pnp.cov, "corrcoef": pnp.corrcoef,
    "quantile": lambda x: pnp.quantile(x, 0.3), "percentile": lambda x: pnp.percentile(x, 80.0),
    "nanmean": pnp.nanmean, "nanstd": pnp.nanstd, "nanmedian": pnp.nanmedian,
    "gradient": pnp.gradient, "interp": lambda x: pnp.interp(0.5, np.arange(4.0), x),
    "edges": lambda x: pnp.histogram_bin_edges(x, 5), "vector norm": pnp.linalg.norm,
    "logsumexp": lambda x: special.logsumexp(x), "trapezoid, x": lambda x: pnp.trapezoid(x, x * 1.),
    "zscore": lambda x: plait.nn.standardize(x), "sem": lambda x: stats.sem(x),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOAT_VALUED)
def test_functions_with_float_results_do_not_wrap_integers_around(name):
    f = FLOAT_VALUED[name]
    for dtype in (np.uint8, np.int8, np.int16, np.uint16):
        info = np.iinfo(dtype)
        x = np.array([info.max, info.max - 1, info.min, info.max], dtype)
        got, want = np.asarray(f(x)), np.asarray(f(x.astype(np.float64)))
        np.testing.assert_allclose(got, want, 1e-3, 1e-5 * info.max)


# ---- statistics and sums ---------------------------------------------------------------------


@pytest.mark.parametrize("method", ["linear", "lower", "nearest", "midpoint", "hazen"])
def test_the_quantile_at_nan_is_nan(method):
    x, q = np.arange(6.0).reshape(2, 3), np.array([0.5, np.nan, 1.0])
    got = np.asarray(pnp.quantile(x, q, axis=1, method=method))
    want = np.quantile(x, [0.5, 1.0], axis=1, method=method)
    np.testing.assert_allclose(got[[0, 2]], want, 1e-6)
    assert np.isnan(got[1]).all()
    assert np.isnan(pnp.percentile(x, np.nan))
    assert np.isnan(pnp.quantile(x, np.nan, method="inverted_cdf", weights=np.ones((2, 3))))


def test_running_sums_of_many_numbers():
    for x in (np.full(300_000, 0.1, np.float32), np.full(300_000, 0.1 - 0.3j, np.complex64)):
        want = np.cumsum(x.astype(np.complex128))
        np.testing.assert_allclose(np.asarray(pnp.cumsum(x)), want, 1e-6)
        back = plait.lax.cumsum(x, reverse=True)
        np.testing.assert_allclose(np.asarray(back), want[::-1], 1e-6)


def test_functions_of_matrices_with_equal_eigenvalues():
    q = scipy.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    for a in (q @ np.diag([1.0, 1.0, 3.0]) @ q.T, 2 * np.eye(3)):
        np.testing.assert_allclose(linalg.funm(a, pnp.exp), scipy.linalg.expm(a), 1e-8, 1e-8)
    for a in (np.eye(3) + np.eye(3, k=1), np.diag([1.0, 2.0, 1.0]) + np.eye(3, k=1)):
        assert np.isnan(np.asarray(linalg.funm(a, pnp.exp))).all()


def test_gamma_samples_of_shape_zero_are_zero():
    # The uniform number of each stream is 0.
    streams = np.zeros(2, np.uint32), np.array([2667181, 12355856], np.uint32)
    given = [pnp.asarray(x) for x in (*streams, np.array([0.0, 0.5], np.float32))]
    got = np.asarray(random_gamma.bind(*given, log=False))
    logs = np.asarray(random_gamma.bind(*given, log=True))
    np.testing.assert_allclose(np.exp(logs), got, 1e-5)
    assert got[0] == 0 < got[1] < np.inf


def test_infinities_survive_rounding_to_blocks():
    config = plait.nn.get_scaled_dot_general_config("mxfp8")
    x, y = np.ones((1, 2, 32), np.float32), np.ones((1, 1, 32), np.float32)
    x[0, 0, 0] = np.inf
    dims = (((2,), (2,)), ((0,), (0,)))
    got = plait.nn.scaled_dot_general(x, y, dims, configs=[config] * 3)
    assert np.asarray(got).tolist() == [[[np.inf], [32.0]]]
