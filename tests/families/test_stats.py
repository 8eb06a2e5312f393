"""Distributions and statistics against scipy.stats.

Invariant: every function of every family is compared inside its support, outside it, at its ends
and at nan, with and without location and scale.
"""

import inspect
import warnings

import numpy as np
import pytest
import scipy.stats as ss

import plait
from plait.ext.errors import TypeRule
from plait.scipy import stats
from plait_autodiff import check_grads, grad
from plait_autodiff.taylor.laws import numerically

X = np.array([-7, -2, -0.3, 0, 0.2, 0.9, 1, 1.5, 2.5, 6.5, 40, np.nan])
K = np.array([-1, 0, 1, 2, 3, 7, 8, 100, 0.5, np.nan])
Q = np.array([-0.1, 0, 0.01, 0.3, 0.5, 0.99, 1, 1.2])
CONTINUOUS = {
    "norm": (), "truncnorm": (-1.0, 2.0), "lognorm": (0.7,), "t": (3.5,), "gennorm": (1.7,),
    "gamma": (2.3,), "chi2": (5.0,), "beta": (1.5, 0.8), "expon": (), "laplace": (),
    "logistic": (), "gumbel_r": (), "gumbel_l": (), "cauchy": (), "pareto": (2.5,),
    "uniform": (), "vonmises": (1.3,), "wrapcauchy": (0.4,),
}  # fmt: skip
DISCRETE = {
    "bernoulli": (0.3,), "binom": (7, 0.4), "betabinom": (6, 1.2, 2.0), "geom": (0.3,),
    "nbinom": (3.5, 0.4), "poisson": (3.2,),
}  # fmt: skip


def methods(family):
    return [n for n in vars(family) if not n.startswith("_") and n != "entropy"]


def compare(name, shapes, given, at):
    """All functions of a family, as numpy evaluates what they are made of."""
    family, reference = getattr(stats, name), getattr(ss, name)
    names = methods(family)
    points = [Q if n in ("ppf", "isf") else at for n in names]
    run = lambda xs, s, kw: [getattr(family, n)(x, *s, **kw) for n, x in zip(names, xs)]  # noqa: E731
    given_ = {k: np.float64(v) for k, v in given.items()}
    got = numerically(run, points, [np.float64(s) for s in shapes], given_)
    for n, x, g in zip(names, points, got):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            want = getattr(reference, n)(x, *shapes, **given)
        assert g.dtype == np.float64
        np.testing.assert_allclose(np.asarray(g), want, 1e-9, 1e-14, err_msg=f"{name}.{n}")


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    compare(name, CONTINUOUS[name], {"loc": 0.5, "scale": 2.0}, X)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    compare(name, DISCRETE[name], {"loc": 1}, K)


def test_standard_members_and_how_they_are_called():
    x = np.float32([0.25, 1.5])
    for got, want in (
        (stats.norm.logpdf(x), ss.norm.logpdf(x)),
        (stats.norm.cdf(x, 1), ss.norm.cdf(x, 1)),
        (stats.norm.sf(x, scale=2.0), ss.norm.sf(x, scale=2.0)),
        (stats.gamma.pdf(x=x, a=2.5), ss.gamma.pdf(x, 2.5)),
        (stats.poisson.pmf(np.arange(2), 1.5), ss.poisson.pmf(np.arange(2), 1.5)),
    ):
        assert got.dtype == np.float32
        np.testing.assert_allclose(np.asarray(got), want, 1e-5)
    exact = stats.norm.logpdf(np.float64([0.3]), 0.1)  # 0.1 is no float32
    np.testing.assert_allclose(np.asarray(exact), ss.norm.logpdf([0.3], 0.1), 1e-15)
    assert str(inspect.signature(stats.beta.logpdf)) == "(x, a, b, loc=0, scale=1)"
    assert "Logarithm of the density" in stats.beta.logpdf.__doc__
    assert repr(stats.t) == "<plait.scipy.stats.t>"
    with pytest.raises(TypeError, match="missing a required argument"):
        stats.gamma.logpdf(x)
    with pytest.raises(TypeRule, match="real numbers"):
        stats.norm.logpdf(1j * x)


def test_far_tails():
    x = np.array([-40.0, -12.0])
    np.testing.assert_allclose(np.asarray(stats.norm.logcdf(x)), ss.norm.logcdf(x), 1e-12)
    got = stats.truncnorm.logpdf(np.float64(31.0), 30.0, 32.0)
    np.testing.assert_allclose(float(got), ss.truncnorm.logpdf(31, 30, 32), 1e-6)


def test_entropy_of_poisson():
    mu = np.array([0, 0.5, 3, 30, 99, 101])
    np.testing.assert_allclose(np.asarray(stats.poisson.entropy(mu)), ss.poisson.entropy(mu), 1e-9)


def test_derivatives_are_finite_outside_the_support():
    f = lambda x, a, b: stats.gamma.logpdf(x, a) + stats.beta.logpdf(x, a, b)  # noqa: E731
    check_grads(f, (np.float64(0.4), np.float64(2.5), np.float64(1.5)), order=1, modes="rev")
    for x in (-1.0, 2.0):
        outs = grad(lambda x, a: stats.beta.logpdf(x, a, 1.5), (0, 1))(x, 2.0)
        assert [float(o) for o in outs] == [0, 0]
    slope = grad(lambda s: stats.norm.cdf(1.0, scale=s))(2.0)
    np.testing.assert_allclose(float(slope), -ss.norm.pdf(0.5) * 0.25, 1e-5)


# ---- vectors -------------------------------------------------------------------------------


def test_vectors():
    alpha = np.array([1.0, 2, 3])
    x = np.array([[0.2, 0.1], [0.3, 0.3], [0.5, 0.6]])
    want = [ss.dirichlet.logpdf(x[:, i], alpha) for i in range(2)]
    np.testing.assert_allclose(np.asarray(stats.dirichlet.logpdf(x, alpha)), want, 1e-12)
    assert stats.dirichlet.pdf(2 * x, alpha).tolist() == [0, 0]
    k, n, p = np.array([[1, 2, 3], [0, 1, 1], [1, 1, 1]]), np.array([6, 2, 5]), np.array(
        [0.2, 0.3, 0.5])  # fmt: skip
    want = ss.multinomial.logpmf(k, n, p)
    np.testing.assert_allclose(np.asarray(stats.multinomial.logpmf(k, n, p)), want, 1e-12)
    with pytest.raises(TypeRule, match="one parameter for each row"):
        stats.dirichlet.logpdf(x[:1], alpha)


def test_normal_vectors():
    rng = np.random.default_rng(0)
    x, mean, root = rng.normal(size=(4, 3)), rng.normal(size=3), rng.normal(size=(3, 3))
    cov = root @ root.T + np.eye(3)
    normal = stats.multivariate_normal
    want = ss.multivariate_normal.logpdf(x, mean, cov)
    np.testing.assert_allclose(np.asarray(normal.logpdf(x, mean, cov)), want, 1e-11)
    got = normal.pdf(x[0], mean, np.float64(2.0))
    np.testing.assert_allclose(float(got), ss.multivariate_normal.pdf(x[0], mean, 2.0), 1e-11)
    got = normal.logpdf(x[:, 0], 0.5, 2.0)
    np.testing.assert_allclose(np.asarray(got), ss.norm.logpdf(x[:, 0], 0.5, 2**0.5), 1e-11)
    check_grads(lambda m, c: normal.logpdf(x, m, c), (mean, cov), order=1, modes="rev")
    with pytest.raises(TypeRule, match="matrices of n times n"):
        normal.logpdf(x, mean, cov[:2])


# ---- ranks ---------------------------------------------------------------------------------

Y = np.array([[3, 1, 1, 2], [2, 2, 0, 5.0]])


@pytest.mark.parametrize("axis", [None, 1])
def test_ranks(axis):
    for method in ("average", "min", "max", "dense", "ordinal"):
        got = stats.rankdata(Y, method, axis=axis)
        np.testing.assert_array_equal(np.asarray(got), ss.rankdata(Y, method, axis=axis))
    for keep in (False, True):
        got, want = stats.mode(Y, axis, keepdims=keep), ss.mode(Y, axis, keepdims=keep)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(np.asarray(g), w)
    got = stats.sem(Y, axis, ddof=0, keepdims=axis == 1)
    np.testing.assert_allclose(np.asarray(got), ss.sem(Y, axis, 0, keepdims=axis == 1))


def test_nans():
    y = Y.copy()
    y[0, 1] = np.nan
    ranks = np.asarray(stats.rankdata(y, axis=1))
    assert np.isnan(ranks[0]).all() and ranks[1].tolist() == [2.5, 2.5, 1, 4]
    found = stats.mode(y, 1)
    np.testing.assert_array_equal(np.asarray(found.mode), [np.nan, 2])
    assert found.count.tolist() == [1, 2]
    got, want = stats.sem(y, 1, nan_policy="omit"), ss.sem(y, 1, nan_policy="omit")
    np.testing.assert_allclose(np.asarray(got), want)
    with pytest.raises(TypeRule, match="no nan_policy 'raise'"):
        stats.sem(y, nan_policy="raise")
    with pytest.raises(TypeRule, match="no method 'least'"):
        stats.rankdata(y, "least")
    with pytest.raises(TypeRule, match="mode of nothing"):
        stats.mode(y[:0])


def test_densities_of_samples():
    rng = np.random.default_rng(0)
    make = plait.scipy.stats.gaussian_kde
    for samples in (rng.normal(size=30), rng.normal(size=(2, 30))):
        weights = rng.uniform(0.1, 1, 30)
        for method in (None, "silverman", 0.7):
            got, want = make(samples, method, weights), ss.gaussian_kde(samples, method, weights)
            for name in ("covariance", "inv_cov", "neff"):
                np.testing.assert_allclose(
                    np.asarray(getattr(got, name)), getattr(want, name), 1e-12
                )
        at = rng.normal(size=(want.d, 5))
        for name in ("pdf", "logpdf", "evaluate"):
            np.testing.assert_allclose(
                np.asarray(getattr(got, name)(at)), getattr(want, name)(at), 1e-12
            )
        mean, cov = np.zeros(want.d), np.eye(want.d)
        both = want.integrate_kde(want), want.integrate_gaussian(mean, cov)
        for a, b in zip((got.integrate_kde(got), got.integrate_gaussian(mean, cov)), both):
            np.testing.assert_allclose(float(a), b, 1e-12)
    drawn = np.asarray(got.resample(plait.random.key(0), (2000,)))
    np.testing.assert_allclose(np.cov(drawn), np.cov(samples, aweights=weights) * 1.49, 0.15, 0.05)
    assert plait.jit(lambda k, x: k(x))(got, at).shape == (5,)
    line = make(samples[0])
    want = ss.gaussian_kde(samples[0]).integrate_box_1d(-1, 0.5)
    np.testing.assert_allclose(float(line.integrate_box_1d(-1, 0.5)), want, 1e-12)
    for bad in (lambda: make([1.0]), lambda: make(samples, "wide"), lambda: make(samples, None, at),
                lambda: got.integrate_box_1d(0, 1), lambda: got(np.ones((3, 2))),
                lambda: make(1j * samples), lambda: line.integrate_kde(got)):  # fmt: skip
        with pytest.raises(TypeRule):
            bad()


@pytest.mark.parametrize("what", ["pdf", "logpdf", "cdf", "sf", "logcdf", "logsf"])
def test_there_is_no_normal_distribution_between_ends_in_the_wrong_order(what):
    for low, high in ((2.0, 1.0), (1.0, 1.0), (2.0, -2.0), (np.inf, -np.inf), (-1.0, 2.0)):
        x = np.array([-3.0, 0.5, 1.0, 1.5, 5.0])
        with np.errstate(all="ignore"):
            want = getattr(ss.truncnorm, what)(x, low, high)
        np.testing.assert_allclose(getattr(stats.truncnorm, what)(x, low, high), want, rtol=1e-6)


@pytest.mark.parametrize("name", ["norm", "laplace", "logistic", "uniform", "expon", "cauchy"])
@pytest.mark.parametrize("what", ["pdf", "logpdf", "cdf", "sf", "logcdf", "logsf"])
def test_there_is_no_distribution_whose_scale_is_not_positive(name, what):
    x, scale = np.array([-0.5, 0.5, 3.0])[:, None], np.array([-1.0, 0.0, 2.0])
    with np.errstate(all="ignore"):
        want = getattr(getattr(ss, name), what)(x, scale=scale)
    got = getattr(getattr(stats, name), what)(x, scale=scale)
    np.testing.assert_allclose(got, want, rtol=1e-6)


# ---- outside of the domain ---------------------------------------------------------------------

OUTSIDE = {"truncnorm": [(2.0, -1.0), (1.0, 1.0), (np.nan, 1.0)], "wrapcauchy": [(1.0,), (1.5,)],
           "bernoulli": [(1.5,)], "binom": [(7, 1.5), (2.5, 0.4)], "geom": [(1.5,)],
           "nbinom": [(3.5, 1.5)], "betabinom": [(2.5, 1.2, 2.0)]}  # fmt: skip
EDGES = {"bernoulli": [(0.0,), (1.0,)], "binom": [(0, 0.3), (7, 0.0), (7, 1.0)], "geom": [(1.0,)],
         "nbinom": [(3.5, 1.0)], "poisson": [(0.0,)], "beta": [(1.0, 1.0), (0.5, 1.0)],
         "gamma": [(1.0,), (0.5,)], "chi2": [(2.0,), (1.0,)], "vonmises": [(0.0,)],
         "t": [(np.inf,), (1e12,), (1e-3,)]}  # fmt: skip


def around(good):
    """Parameters one of which is negative, 0 or nan."""
    return [
        (*good[:i], bad, *good[i + 1 :]) for i in range(len(good)) for bad in (-1.5, 0.0, np.nan)
    ]


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_parameters_at_and_outside_of_the_domain(name):
    """Densities of invalid parameters are nan, inside of the support and outside."""
    good = CONTINUOUS.get(name, DISCRETE.get(name))
    at = X if name in CONTINUOUS else K
    bad = [] if name == "truncnorm" else around(good)  # its bounds may have either sign
    for shapes in [*bad, *OUTSIDE.get(name, []), *EDGES.get(name, [])]:
        compare(name, shapes, {}, at)
    if name in CONTINUOUS:
        for given in ({"scale": 0.0}, {"scale": -2.0}, {"scale": np.nan}, {"loc": np.nan}):
            compare(name, good, given, at)


def test_points_far_out():
    for x in (1e25, -3e30, 1e38):
        x = np.float32(x)
        for f, g in (
            (lambda v: stats.cauchy.logpdf(v), lambda v: ss.cauchy.logpdf(v)),
            (lambda v: stats.t.logpdf(v, 3.5), lambda v: ss.t.logpdf(v, 3.5)),
        ):
            assert float(f(x)) == pytest.approx(float(g(np.float64(x))), rel=1e-6)
            slope = float(grad(f)(x))
            assert np.isfinite(slope)
            wide = np.float64(x)
            want = (g(wide * (1 + 1e-6)) - g(wide * (1 - 1e-6))) / (2e-6 * wide)
            assert slope == pytest.approx(want, rel=1e-4)
    assert float(stats.binom.logpmf(0, 0, 0.3)) == 0.0
    got = grad(lambda df: stats.t.logpdf(np.float64(1.0), df))(np.float64(np.inf))
    assert np.isfinite(float(got))
    for df in (1e9, 1e100, 1e300):
        far = float(stats.t.logpdf(np.float64(1.5), np.float64(df)))
        assert far == pytest.approx(ss.norm.logpdf(1.5), rel=1e-8)
