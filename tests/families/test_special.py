"""Special functions against mpmath and SciPy, at ordinary places, in tails and at edges.

Invariant: errors are counted in units of the last place of the true value, and each function
states how many it may have; float32 and float64 are judged at the same places.
"""

import mpmath
import numpy as np
import pytest
import scipy.special as ss

import plait
from plait import lax
from plait.ext.errors import PlaitError, TypeRule
from plait.ext.trace import staged
from plait.ext.types import Aval
from plait.testing import conformance
from plait.text import parse, same_program, show
from plait_autodiff.taylor.laws import numerically
from plait_numpy.ext import special
from plait_numpy.ext import special as incomplete
from plait_numpy.ext import special as integrals

F32, F64 = np.float32, np.float64
INF, NAN = np.inf, np.nan
scipy = plait.scipy.special


@pytest.fixture(autouse=True)
def full_tier():
    """Last places are counted of what users run."""
    before, plait.config.tier = plait.config.tier, "full"
    yield
    plait.config.tier = before


def ulps(got, want):
    """The greatest error in units of the last place; infinite where one is finite only."""
    got, want = np.asarray(got), np.asarray(want, np.float64)
    eps = np.finfo(got.dtype).eps
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(all="ignore"):
        errors = np.abs(got.astype(F64) - want) / (np.abs(want) * eps)
    return np.where(same, 0.0, np.nan_to_num(errors, nan=INF)).max()


def called(f, *xs):
    """f of vectors, all of one length, so that it is compiled once for each dtype."""
    return np.asarray(f(*[np.resize(x, 32) for x in xs]))[: len(xs[0])]


def true(f, *xs):
    """Values of a function of mpmath, at exactly these floats."""
    with mpmath.workdps(40):
        rows = zip(*[np.asarray(x).tolist() for x in xs])
        return [float(mpmath.re(f(*[mpmath.mpf(v) for v in row]))) for row in rows]


def slope(f, i):
    """The derivative of a function of mpmath in operand `i`, by a central difference."""
    h = mpmath.mpf(10) ** -12

    def g(*xs):
        up, down = ([x + s * h * (k == i) for k, x in enumerate(xs)] for s in (1, -1))
        return (f(*up) - f(*down)) / (2 * h)

    return g


def lower(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def sample_slope(a, x):
    density = x ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a)
    return -slope(lower, 0)(a, x) / density


SHAPES = [0.01, 0.5, 0.5, 1, 1, 2, 3.5, 10, 10, 100, 100, 7.9, 900, 6000]
AT = [1e-3, 0.1, 3, 0.5, 2, 2, 10, 5, 25, 80, 150, 8, 910, 6200]
TRUE = {
    "zeta": (special.zeta, mpmath.zeta, [[1.5, 2, 3, 10, 30], [1, 0.1, 5, 1e-3, 2]], 8),
    "polygamma": (special.polygamma, lambda n, x: mpmath.psi(int(n), x),
                  [[0, 1, 2, 5, 1, 2, 3], [1.7, 1.5, 0.1, 10, -10.3, -0.5, 1e-3]], 40),
    "lbeta": (special.lbeta, lambda a, b: mpmath.log(mpmath.beta(a, b)),
              [[0.1, 1, 5, 9, 0.5, 100, 1e5, 1e-3, 7.9, 1e5], [0.2, 3, 20, 9, 1e5, 300, 1e5, 1e-3,
                                                              8.1, 10]], 30),
    "bessel_i0e": (special.bessel_i0e, lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
                   [[0, 1e-3, 1, 5, 7.9, 8, 8.5, 100, 1e5, -3, -20]], 6),
    "bessel_i1e": (special.bessel_i1e, lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
                   [[1e-3, 1, 5, 7.9, 8, 8.5, 100, 1e5, -3, -20]], 10),
    "log_ndtr": (special.log_ndtr, lambda x: mpmath.log(mpmath.ncdf(x)),
                 [[-1000, -50, -21, -19.9, -10.1, -9.9, -5, -1, 0, 1, 3]], 20),
    "expn": (integrals.expn, mpmath.expint,
             [np.repeat([0, 1, 2, 5, 20], 5), np.tile([1e-3, 0.3, 1, 1.01, 20], 5)], 40),
    "expi": (integrals.expi, mpmath.ei, [[0.1, 0.5, 1, 5, 20, 39, 41, 60, -0.1, -1, -5, -30]], 50),
    "spence": (integrals.spence, lambda x: mpmath.polylog(2, 1 - x),
               [[1e-9, 0.01, 0.3, 0.5, 0.9, 1.2, 1.9, 2, 2.1, 10, 1e5]], 10),
    "igamma": (incomplete.igamma, lower, [SHAPES, AT], 130),
    "igammac": (incomplete.igammac, lambda a, x: mpmath.gammainc(a, x, regularized=True),
                [SHAPES, AT], 130),
    "igamma_grad_a": (incomplete.igamma_grad_a, slope(lower, 0), [SHAPES, AT], 250),
    "random_gamma_grad": (incomplete.random_gamma_grad, sample_slope, [SHAPES, AT], 250),
    "regularized_incomplete_beta": (
        incomplete.regularized_incomplete_beta,
        lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
        [[0.5, 0.5, 2, 2, 20, 20, 100, 1000, 0.01, 5, 9], [0.5, 0.5, 3, 3, 30, 30, 50, 2000, 10,
                                                           100, 9],
         [0.1, 0.9, 0.3, 0.8, 0.4, 0.1, 0.7, 0.33, 0.1, 0.05, 0.5]], 60),
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", TRUE)
def test_values(name):
    prim, reference, columns, most = TRUE[name]
    for dtype in (F32, F64):
        xs = [np.array(c, dtype) for c in columns]
        assert ulps(called(prim, *xs), true(reference, *xs)) <= most, dtype


def test_quantiles_of_the_normal_distribution():
    p = np.array([1e-300, 1e-30, 1e-5, 0.01, 0.09, 0.11, 0.4, 0.6, 0.95, 0.999])
    assert ulps(special.ndtri(p), ss.ndtri(p)) < 20
    got = special.ndtri(p.astype(F32))
    assert ulps(got, ss.ndtri(p.astype(F32).astype(F64))) < 8


def test_edges():
    def at(f, *xs):
        return called(f, *[np.array(x, F32) for x in xs]).tolist()

    a, x = [0, 0, 1, -1, 2, INF, 2, NAN, INF], [0, 1, 0, 1, INF, 2, -1, 1, INF]
    nan = pytest.approx(NAN, nan_ok=True)
    assert at(incomplete.igamma, a, x) == [nan, 1, 0, nan, 1, 0, nan, nan, nan]
    assert at(incomplete.igammac, a, x) == [nan, 0, 1, nan, 0, 1, nan, nan, nan]
    assert at(incomplete.igamma_grad_a, a, x) == [nan, 0, 0, nan, 0, 0, nan, nan, nan]
    a, b = [0, 1, 0, 1, 1, 1, -1, INF, 1, 0], [1, 0, 0, 1, 1, 1, 1, 1, INF, 1]
    x = [0.5, 0.5, 0.5, 0, 1, 1.5, 0.5, 0.5, 0.5, 0]
    want = [1, 0, nan, 0, 1, nan, nan, 0, 1, 0]
    assert at(incomplete.regularized_incomplete_beta, a, b, x) == want
    assert at(special.zeta, [1, 0.5, 2, 2.5, NAN], [2, 2, 0, -0.5, 1]) == [INF, nan, INF, nan, nan]
    assert at(special.polygamma, [-1, 0.5, 1, 1], [1, 1, 0, -1]) == [nan, nan, INF, INF]
    assert at(special.ndtri, [0, 1, -1, 2, NAN]) == [-INF, INF, nan, nan, nan]
    assert at(integrals.expi, [0, INF, -INF, NAN]) == [-INF, INF, 0, nan]
    n, x = [1, 2, 1, 1, 1.5, -1, 0], [0, 0, -1, INF, 1, 1, 0]
    assert at(integrals.expn, n, x) == [INF, 1, nan, 0, nan, nan, INF]
    assert at(special.bessel_i0e, [INF, -INF, NAN]) == [0, 0, nan]
    assert at(special.lbeta, [0, INF, NAN, -0.5], [1, 1, 1, -0.25])[:3] == [INF, -INF, nan]
    assert at(integrals.spence, [1, 0, -1, INF])[2:] == [nan, -INF]


def test_narrow_floats_and_weak_types():
    x = np.array([0.5, 2, 9], plait.dtypes.bfloat16)
    for prim, args in ((special.bessel_i0e, (x,)), (special.zeta, (x + 1, x))):
        got, want = prim(*args), prim(*[a.astype(F32) for a in args])
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want).astype(x.dtype))
    assert special.lbeta(2.0, 3.0).aval.weak_type
    assert float(incomplete.igamma(1, 2)) == pytest.approx(1 - np.exp(-2), rel=1e-6)


# ---- by scipy, over wide grids ------------------------------------------------------------------

WIDE = np.concatenate(
    [-np.logspace(1.2, -6, 40), [0], np.logspace(-6, 5, 90), np.linspace(0.1, 12, 90)]
)
COMPLEX = (np.linspace(-8.9, 9.1, 15) + 1j * np.linspace(-4, 9, 14)[:, None]).ravel()


def apart(got, want, least=0.0):
    """The greatest error in units of the last place of the value, or of `least`."""
    got, want = np.asarray(got), np.asarray(want)
    with np.errstate(all="ignore"):
        far = np.abs(got - want) / np.maximum(np.abs(want), least) / np.finfo(got.dtype).eps
    return np.where((got == want) | (np.isnan(got) & np.isnan(want)), 0.0, far).max()


@pytest.mark.parametrize("dtype", [F32, F64])
def test_relatives_of_erf_and_waves(dtype):
    x = WIDE.astype(dtype)
    x = x[x > (-9 if dtype is F32 else -26)]
    wide = x.astype(F64)
    assert apart(scipy.dawsn(x), ss.dawsn(wide)) < 60
    assert apart(scipy.erfcx(x), ss.erfcx(wide)) < 40
    near = np.abs(x) < 20  # further out scipy loses digits of the angle
    for got, want in zip(scipy.fresnel(x[near]), ss.fresnel(wide[near]), strict=True):
        assert apart(got, want) < 60
    si, ci = scipy.sici(x)
    assert apart(si, ss.sici(wide)[0]) < 10 and apart(ci, ss.sici(np.abs(wide))[1], 0.3) < 60
    js = scipy.bessel_jn(x, v=4)
    assert js.shape == (5, *x.shape)
    assert apart(js, ss.jv(np.arange(5)[:, None], wide), 0.3) < 20
    h, a = np.meshgrid(np.linspace(-6, 6, 14), [-1e3, -2, -0.9, 0, 0.3, 1, 1.5])
    h, a = h.ravel().astype(dtype), a.ravel().astype(dtype)
    assert apart(scipy.owens_t(h, a), ss.owens_t(h.astype(F64), a.astype(F64))) < 100


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_of_complex_numbers(dtype):
    z = COMPLEX.astype(dtype)
    wide = z.astype(complex)
    assert apart(scipy.wofz(z), ss.wofz(wide)) < 300
    assert apart(scipy.erfcx(z), ss.erfcx(wide)) < 300
    assert apart(scipy.loggamma(z), ss.loggamma(wide), 1.0) < 60


def test_zeta_far_out():
    """Where the first term is all, or what a float can hold of all others is nothing."""
    s = np.array([1e14, 1e30, INF, 200, 60, 25, 1e14, INF, INF, 5, 50, 40])
    q = np.array([1, 1, 1, 1, 1, 1, 1e20, 3, 0.5, 1e6, 0.5, 3.5])
    want = [
        1,
        1,
        1,
        *true(mpmath.zeta, s[3:6], q[3:6]),
        0,
        0,
        INF,
        *true(mpmath.zeta, s[9:], q[9:]),
    ]
    for dtype in (F32, F64):
        assert ulps(called(special.zeta, s.astype(dtype), q.astype(dtype)), want) < 16
    assert float(plait.grad(lambda q: scipy.zeta(F64(1e14), q))(F64(1))) == -1e14


@pytest.mark.wide
def test_incomplete_beta_function_of_huge_shapes():
    """At the mean and some deviations from it, against scipy; of one half by symmetry."""
    a = np.array([1e8, 2e8, 1e9, 3e12, 1e12, 1e9, 5e9, 2e9, 1e10])
    b = np.array([1e8, 3e8, 2e8, 1e12, 1e12, 1e9, 1e9, 1e8, 1e10])
    mean = a / (a + b)
    x = mean + np.sqrt(mean * (1 - mean) / (a + b)) * np.array([0, 0.3, -1, -2, 0.5, 3, -4, 0, 1])
    got = called(incomplete.regularized_incomplete_beta, a, b, x)
    np.testing.assert_allclose(got, ss.betainc(a, b, x), 1e-9)
    x = x.astype(F32)  # how well this says what is meant is a matter of float32
    wide = ss.betainc(*[v.astype(F32).astype(F64) for v in (a, b, x)])
    got = called(incomplete.regularized_incomplete_beta, *[v.astype(F32) for v in (a, b, x)])
    np.testing.assert_allclose(got[a < 1e12], wide[a < 1e12], 0, 3e-6)
    for size in (1e4, 1e5, 1e7, 1e10, 1e17, 1e25):
        for dtype, most in ((F32, 1e-4), (F64, 1e-10)):
            assert abs(float(scipy.betainc(dtype(size), dtype(size), dtype(0.5))) - 0.5) < most
    slope = plait.grad(lambda a: scipy.betainc(a, F64(1e10), F64(0.5)))(F64(1e10))
    h = 1e3
    want = (ss.betainc(1e10 + h, 1e10, 0.5) - ss.betainc(1e10 - h, 1e10, 0.5)) / (2 * h)
    assert float(slope) == pytest.approx(want, rel=1e-4)


@pytest.mark.wide
def test_hypergeometric_functions():
    grid = np.meshgrid([0.3, 2.5, -2, 7], [0.7, 2, 3.5], [-900, -60, -5, -0.5, 0.1, 3, 30])
    a, b, x = (v.ravel() for v in grid)
    for dtype, most in ((F64, 1e3), (F32, 2)):
        xs = [v.astype(dtype) for v in (a, b, x)]
        assert ulps(scipy.hyp1f1(*xs), true(mpmath.hyp1f1, *xs)) < most
    grid = np.meshgrid(
        [0.3, 1, -2], [0.7, -0.4], [1.5, 3, 4.2], [-300, -2, -0.7, 0.3, 0.95, 0.9999]
    )
    a, b, c, x = (v.ravel() for v in grid)
    got, want = scipy.hyp2f1(a, b, c, x), true(mpmath.hyp2f1, a, b, c, x)
    assert ulps(got, want) < 500
    assert np.isnan(scipy.hyp2f1(1.0, 2.0, 3.0, 1.5)) and np.isinf(scipy.hyp1f1(1.0, -2.0, 0.5))


def test_spherical_harmonics():
    n, m = (v.ravel() for v in np.meshgrid(np.arange(6), np.arange(-6, 7)))
    phi = np.linspace(-3, 6, n.size)
    f = plait.jit(lambda *xs: scipy.sph_harm_y(*xs, n_max=5))
    for low, high in ((0, np.pi), (-9, 0), (3, 20)):  # and where the sine is negative
        theta = np.linspace(low, high, n.size)
        got = f(n, m, theta, phi)
        np.testing.assert_allclose(np.asarray(got), ss.sph_harm_y(n, m, theta, phi), 0, 1e-14)
    assert np.isnan(np.asarray(scipy.sph_harm_y(7, 1, 0.1, 0.2, n_max=5)))
    with pytest.raises(TypeRule, match="degrees are integers"):
        scipy.sph_harm_y(1.0, 0, 0.1, 0.2)
    with pytest.raises(PlaitError, match="not known while"):
        plait.jit(scipy.sph_harm_y)(n, m, theta, phi)


def test_derivatives_far_out():
    """Where formulas with the function itself cancel."""
    for f, g in ((scipy.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x)),
                 (scipy.dawsn, lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x)
                  * mpmath.erfi(x))):  # fmt: skip
        for x, dtype, most in ((7.0, F32, 1e-5), (30.0, F64, 1e-12), (9.0, F64, 1e-12)):
            got = plait.grad(f)(dtype(x))
            with mpmath.workdps(500):
                want = mpmath.diff(g, mpmath.mpf(x))
                assert abs((mpmath.mpf(float(got)) - want) / want) < most


X = np.float64([[0.5, 2.5], [12.0, 0.75]])


def test_conformance():
    report = conformance(special.bessel_i0e, [X], ss.i0e, tol=1e-11)
    asked = {"type", "value", "jit", "text", "symbolic", "law jvp", "law batching"}
    assert asked <= {*report.checks}


def test_text_of_those_with_loops():
    aval = Aval((2,), F32)
    for prim in (incomplete.igamma, incomplete.random_gamma_grad, special.zeta):
        p = staged(lambda a, x, prim=prim: [prim.bind(a, x)], [aval, aval])
        assert same_program(p, parse(show(p)))


def test_errors():
    x = np.ones(3, F32)
    with pytest.raises(TypeRule, match="igamma is for floating arrays"):
        incomplete.igamma.bind(*[plait.numpy.arange(3)] * 2)
    with pytest.raises(TypeRule, match="takes 2 operands, and 1 were given"):
        special.zeta.bind(plait.numpy.asarray(x))
    with pytest.raises(TypeRule, match="one dtype"):
        lax.igamma(x, x.astype(F64))
    with pytest.raises(TypeRule, match="for real numbers"):
        scipy.xlogy(1j * x, x)
    with pytest.raises(TypeRule, match="no Bernoulli number"):
        scipy.bernoulli(-1)
    with pytest.raises(TypeRule, match="hold no large whole number"):
        scipy.factorial(x, exact=True)


# ---- named as in scipy.special -----------------------------------------------------------------

GRID = np.array([-3.5, -1.0, -0.5, 0.0, 0.2, 0.5, 1.0, 2.0, 3.7, 10.0, NAN])
ONE = [
    "erf", "erfc", "erfinv", "gammaln", "expit", "i0e", "i1e", "i0", "i1", "log_ndtr", "ndtr",
    "ndtri", "expi", "exp1", "spence", "gamma", "gammasgn", "entr", "logit", "factorial",
]  # fmt: skip
TWO = ["xlogy", "xlog1py", "rel_entr", "kl_div", "boxcox", "boxcox1p", "gammainc", "gammaincc",
       "comb"]  # fmt: skip


def test_of_one_operand():
    got = numerically(lambda x: [getattr(scipy, n)(x) for n in ONE], GRID)
    with np.errstate(all="ignore"):
        for name, g in zip(ONE, got):
            np.testing.assert_allclose(np.asarray(g), getattr(ss, name)(GRID), 1e-12, err_msg=name)
    x = GRID[4:]
    np.testing.assert_allclose(np.asarray(scipy.digamma(x)), ss.digamma(x), 1e-12)


def test_of_two_operands():
    x, y = (v.ravel() for v in np.meshgrid(GRID, GRID))
    got = numerically(lambda x, y: [getattr(scipy, n)(x, y) for n in TWO], x, y)
    with np.errstate(all="ignore"):
        for name, g in zip(TWO, got):
            want = getattr(ss, name)(x, y)
            np.testing.assert_allclose(np.asarray(g), want, 2e-11, 1e-14, err_msg=name)
    a, b = x[(x > 0) & (y > 0)], y[(x > 0) & (y > 0)]
    for name in ("beta", "betaln", "poch"):
        want = getattr(ss, name)(a, b)
        np.testing.assert_allclose(np.asarray(getattr(scipy, name)(a, b)), want, 1e-12, 1e-14)
    np.testing.assert_allclose(np.asarray(scipy.beta(-0.5, 0.2)), ss.beta(-0.5, 0.2), 1e-5)


def test_the_rest():
    np.testing.assert_array_equal(np.asarray(scipy.factorial(np.arange(11))), ss.factorial(
        np.arange(11)))  # fmt: skip
    np.testing.assert_allclose(np.asarray(scipy.bernoulli(20)), ss.bernoulli(20), 1e-6, 1e-7)
    assert scipy.bernoulli(0).tolist() == [1.0]
    np.testing.assert_allclose(float(scipy.multigammaln(5.5, 3)), ss.multigammaln(5.5, 3), 1e-6)
    np.testing.assert_allclose(float(scipy.zeta(3.0)), ss.zeta(3.0), 1e-6)
    np.testing.assert_array_equal(
        np.asarray(scipy.comb(np.arange(12.0), 4, repetition=True)),
        [ss.comb(n, 4, repetition=True) for n in range(12)],
    )
    x = np.random.default_rng(0).normal(size=(3, 4))
    np.testing.assert_allclose(np.asarray(scipy.softmax(x)), ss.softmax(x), 1e-12)
    np.testing.assert_allclose(np.asarray(scipy.log_softmax(x, axis=1)), ss.log_softmax(x, 1))
    np.testing.assert_allclose(float(scipy.logsumexp(x)), ss.logsumexp(x), 1e-12)
    got = scipy.betainc(2.0, 3.0, np.float32([0.1, 0.5]))
    np.testing.assert_allclose(np.asarray(got), ss.betainc(2, 3, [0.1, 0.5]), 1e-5)
    assert lax.betainc is lax.regularized_incomplete_beta
    np.testing.assert_allclose(float(lax.polygamma(1.0, 2.0)), ss.polygamma(1, 2), 1e-6)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        plait.scipy.nothing_like_it  # noqa: B018


# ---- complex numbers -------------------------------------------------------------------------


def test_gamma_of_complex_numbers():
    """Right and left of 1/2, near the poles and far from the real axis, against scipy."""
    rng = np.random.default_rng(0)
    z = np.concatenate([
        rng.normal(size=300) * 4 + 1j * rng.normal(size=300) * 4,
        rng.normal(size=100) * 40 + 1j * rng.normal(size=100) * 60,
        np.arange(-5.0, 5.0) + 0.25, [0.5 + 1e-9j, -3.001 + 1e-6j, 200j, -20 + 150j, 5.0, 100],
    ])  # fmt: skip
    want = ss.gamma(z)
    z, want = z[abs(want) > 1e-290], want[abs(want) > 1e-290]
    got = np.asarray(plait.jit(plait.scipy.special.gamma)(z))
    assert got.dtype == np.complex128 and (abs(got - want) / abs(want)).max() < 1e-10
    near = z[abs(np.log(abs(want))) < 30].astype(np.complex64)
    got = np.asarray(plait.scipy.special.gamma(near))
    assert got.dtype == np.complex64
    want = ss.gamma(near.astype(np.complex128))
    assert (abs(got - want) / abs(want)).max() < 1e-6
    assert np.isnan(np.asarray(plait.scipy.special.gamma(np.array([0j, -1, -2])))).all()
    x = complex(1.3, 0.7)
    slope = plait.grad(plait.scipy.special.gamma, holomorphic=True)(np.complex128(x))
    assert complex(slope) == pytest.approx(ss.gamma(x) * ss.psi(x), rel=1e-10)
