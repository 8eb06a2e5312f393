"""Continuous families of distributions.

Invariant: tails are computed by functions that do not cancel: sf is never 1 - cdf where that loses
digits.
"""

import math
from typing import Any

from plait.ext.ops import elementwise as el
from plait.ext.trace import Value
from plait.typing import Array

from ...primitives.special import functions as sp
from ...primitives.special import incomplete as inc
from ..special import expit, logit, ndtr, xlog1py, xlogy
from .family import continuous

__all__ = [
    "beta", "cauchy", "chi2", "expon", "gamma", "gennorm", "gumbel_l", "gumbel_r", "laplace",
    "logistic", "lognorm", "norm", "pareto", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
]  # fmt: skip

_LOG_ROOT = 0.5 * math.log(2 * math.pi)


def _positive(*shapes: object) -> tuple[Any, Any]:
    return 0.0, None


def _unit(*shapes: object) -> tuple[Any, Any]:
    return 0.0, 1.0


def _zero(*shapes: object) -> float:
    return 0.0


# ---- the normal family and its relatives -------------------------------------------------------

norm = continuous(
    "norm", "The normal distribution.",
    logpdf=lambda z: -0.5 * z * z - _LOG_ROOT,
    cdf=ndtr,
    sf=lambda z: ndtr(el.neg(z)),
    logcdf=sp.log_ndtr,
    logsf=lambda z: sp.log_ndtr(el.neg(z)),
    ppf=sp.ndtri,
    isf=lambda q: el.neg(sp.ndtri(q)),
)  # fmt: skip


def _log_mass(a: Value, b: Value) -> Any:
    """Return the logarithm of the normal probability of (a, b), from the side where it is small."""
    right = el.gt(a, 0.0)
    low, high = el.select(right, el.neg(b), a), el.select(right, el.neg(a), b)
    u, v = sp.log_ndtr(low), sp.log_ndtr(high)
    empty = el.le(v, u)
    gap = el.select(empty, -1.0, u - el.select(empty, 0.0, v))
    return el.select(empty, -math.inf, v + el.log(el.neg(el.expm1(gap))))


def _finite_between(a: Value, b: Value) -> Any:
    """Return a point between two numbers that may be infinite."""
    a, b = el.promoted((a, b))
    left, right = el.is_finite(a), el.is_finite(b)
    x, y = el.select(left, a, 0.0), el.select(right, b, 0.0)
    both = 0.5 * (x + y)
    return el.select(el.and_(left, right), both, el.select(left, x, y))


truncnorm = continuous(
    "truncnorm", "The standard normal distribution between `a` and `b`, moved and scaled.", "a b",
    support=lambda a, b: (a, b),
    inner=_finite_between,
    valid=lambda a, b: el.lt(a, b),
    logpdf=lambda z, a, b: -0.5 * z * z - _LOG_ROOT - _log_mass(a, b),
    cdf=lambda z, a, b: el.exp(_log_mass(a, z) - _log_mass(a, b)),
    sf=lambda z, a, b: el.exp(_log_mass(z, b) - _log_mass(a, b)),
    logcdf=lambda z, a, b: _log_mass(a, z) - _log_mass(a, b),
    logsf=lambda z, a, b: _log_mass(z, b) - _log_mass(a, b),
)  # fmt: skip

lognorm = continuous(
    "lognorm", "Of which the logarithm is normal, with deviation `s`.", "s",
    support=_positive,
    logpdf=lambda z, s: _lognormal(z, s),
    cdf=lambda z, s: ndtr(el.log(z) / s),
    sf=lambda z, s: ndtr(el.neg(el.log(z)) / s),
    logcdf=lambda z, s: sp.log_ndtr(el.log(z) / s),
    logsf=lambda z, s: sp.log_ndtr(el.neg(el.log(z)) / s),
    ppf=lambda q, s: el.exp(s * sp.ndtri(q)),
)  # fmt: skip


def _lognormal(z: Value, s: Value) -> Any:
    zero = el.eq(z, 0.0)
    logs = el.log(el.select(zero, 1.0, z))
    out = -0.5 * (logs / s) * (logs / s) - logs - el.log(s) - _LOG_ROOT
    return el.select(zero, -math.inf, out)


def _log1p_square(z: Array) -> Any:
    """Return log(1 + z^2), even where the square overflows."""
    far = el.gt(el.abs_(z), 1e9)
    near = el.select(far, 0.0, z)
    return el.select(far, 2.0 * el.log(el.abs_(el.select(far, z, 1.0))), el.log1p(near * near))


def _t_logpdf(z: Value, df: Value) -> Any:
    """Return the log-density, which is the normal one for infinitely many degrees of freedom."""
    normal = el.eq(df, math.inf)
    df = el.select(normal, 1.0, df)
    half = 0.5 * df
    tail = (half + 0.5) * _log1p_square(z / el.sqrt(df))
    out = -0.5 * el.log(df) - sp.lbeta(half, 0.5) - tail
    return el.select(normal, -0.5 * z * z - _LOG_ROOT, out)


t = continuous("t", "Student's t with `df` degrees of freedom.", "df", logpdf=_t_logpdf)

gennorm = continuous(
    "gennorm", "The generalised normal: density proportional to e ** -|x| ** beta.", "beta",
    logpdf=lambda z, beta: el.log(0.5 * beta) - el.lgamma(1.0 / beta) - _size_power(z, beta),
    cdf=lambda z, beta: _gennorm_cdf(z, beta),
    sf=lambda z, beta: _gennorm_cdf(el.neg(z), beta),
)  # fmt: skip


def _gennorm_cdf(z: Value, beta: Value) -> Any:
    tail = 0.5 * inc.igammac(1.0 / beta, _size_power(z, beta))
    return el.select(el.lt(z, 0.0), tail, 1.0 - tail)


def _size_power(z: Value, beta: Value) -> Any:
    return el.pow_(el.abs_(z), beta)


# ---- gamma and beta ----------------------------------------------------------------------------

gamma = continuous(
    "gamma", "The gamma distribution of shape `a`.", "a",
    support=_positive,
    logpdf=lambda z, a: xlogy(a - 1.0, z) - z - el.lgamma(a),
    cdf=lambda z, a: inc.igamma(a, z),
    sf=lambda z, a: inc.igammac(a, z),
)  # fmt: skip

chi2 = continuous(
    "chi2", "The chi-squared distribution with `df` degrees of freedom.", "df",
    support=_positive,
    logpdf=lambda z, df: (
        xlogy(0.5 * df - 1.0, z) - 0.5 * z - el.lgamma(0.5 * df) - 0.5 * math.log(2.0) * df
    ),
    cdf=lambda z, df: inc.igamma(0.5 * df, 0.5 * z),
    sf=lambda z, df: inc.igammac(0.5 * df, 0.5 * z),
)  # fmt: skip

beta = continuous(
    "beta", "The beta distribution of shapes `a` and `b`.", "a b",
    support=_unit,
    logpdf=lambda z, a, b: xlogy(a - 1.0, z) + xlog1py(b - 1.0, el.neg(z)) - sp.lbeta(a, b),
    cdf=lambda z, a, b: inc.regularized_incomplete_beta(a, b, z),
    sf=lambda z, a, b: inc.regularized_incomplete_beta(b, a, 1.0 - z),
)  # fmt: skip

# ---- exponential families ----------------------------------------------------------------------

expon = continuous(
    "expon", "The exponential distribution.",
    support=_positive,
    logpdf=el.neg,
    cdf=lambda z: el.neg(el.expm1(el.neg(z))),
    sf=lambda z: el.exp(el.neg(z)),
    logsf=el.neg,
    ppf=lambda q: el.neg(el.log1p(el.neg(q))),
)  # fmt: skip


def _halves(z: Value) -> tuple[Any, Any]:
    """Return (the small tail, whether z is on the left) of the Laplace distribution."""
    return 0.5 * el.exp(el.neg(el.abs_(z))), el.lt(z, 0.0)


def _laplace_cdf(z: Value) -> Any:
    tail, left = _halves(z)
    return el.select(left, tail, 1.0 - tail)


laplace = continuous(
    "laplace", "The Laplace distribution.",
    logpdf=lambda z: el.neg(el.abs_(z)) - math.log(2.0),
    cdf=_laplace_cdf,
    sf=lambda z: _laplace_cdf(el.neg(z)),
)  # fmt: skip

logistic = continuous(
    "logistic", "The logistic distribution.",
    logpdf=lambda z: el.neg(el.abs_(z)) - 2.0 * el.log1p(el.exp(el.neg(el.abs_(z)))),
    cdf=expit,
    sf=lambda z: expit(el.neg(z)),
    logcdf=lambda z: _log_expit(z),
    logsf=lambda z: _log_expit(el.neg(z)),
    ppf=logit,
    isf=lambda q: el.neg(logit(q)),
)  # fmt: skip


def _log_expit(z: Value) -> Any:
    return el.minimum(z, 0.0) - el.log1p(el.exp(el.neg(el.abs_(z))))


gumbel_r = continuous(
    "gumbel_r", "Gumbel's distribution of greatest values.",
    logpdf=lambda z: el.neg(z) - el.exp(el.neg(z)),
    cdf=lambda z: el.exp(el.neg(el.exp(el.neg(z)))),
    logcdf=lambda z: el.neg(el.exp(el.neg(z))),
    sf=lambda z: el.neg(el.expm1(el.neg(el.exp(el.neg(z))))),
    ppf=lambda q: el.neg(el.log(el.neg(el.log(q)))),
)  # fmt: skip

gumbel_l = continuous(
    "gumbel_l", "Gumbel's distribution of least values.",
    logpdf=lambda z: z - el.exp(z),
    cdf=lambda z: el.neg(el.expm1(el.neg(el.exp(z)))),
    sf=lambda z: el.exp(el.neg(el.exp(z))),
    logsf=lambda z: el.neg(el.exp(z)),
    ppf=lambda q: el.log(el.neg(el.log1p(el.neg(q)))),
)  # fmt: skip

# ---- power laws, intervals, circles ----------------------------------------------------------

cauchy = continuous(
    "cauchy", "The Cauchy distribution.",
    logpdf=lambda z: -math.log(math.pi) - _log1p_square(z),
    cdf=lambda z: el.atan2(1.0, el.neg(z)) * (1 / math.pi),
    sf=lambda z: el.atan2(1.0, z) * (1 / math.pi),
    ppf=lambda q: el.neg(_cotan(q)),
    isf=lambda q: _cotan(q),
)  # fmt: skip


def _cotan(q: Value) -> Any:
    """Return 1 / tan(pi q), accurate close to 1 too."""
    left = el.lt(q, 0.5)
    out = 1.0 / el.tan(math.pi * el.select(left, q, 1.0 - q))
    return el.select(left, out, el.neg(out))


pareto = continuous(
    "pareto", "Pareto's distribution of index `b`, from 1 on.", "b",
    support=lambda b: (1.0, None),
    inner=lambda b: 2.0,
    logpdf=lambda z, b: el.log(b) - (b + 1.0) * el.log(z),
    cdf=lambda z, b: el.neg(el.expm1(el.neg(b * el.log(z)))),
    sf=lambda z, b: el.pow_(z, el.neg(b)),
    logsf=lambda z, b: el.neg(b * el.log(z)),
    ppf=lambda q, b: el.exp(el.neg(el.log1p(el.neg(q))) / b),
)  # fmt: skip

uniform = continuous(
    "uniform", "The uniform distribution from loc to loc + scale.",
    support=_unit,
    logpdf=lambda z: el.mul(z, 0.0),
    cdf=lambda z: z,
    sf=lambda z: 1.0 - z,
    ppf=lambda q: q,
)  # fmt: skip

vonmises = continuous(
    "vonmises", "Von Mises's distribution of angles, of concentration `kappa`.", "kappa",
    valid=lambda kappa: el.ge(kappa, 0.0),
    logpdf=lambda z, kappa: (
        kappa * (el.cos(z) - 1.0) - el.log(2 * math.pi * sp.bessel_i0e(kappa))
    ),
)  # fmt: skip

wrapcauchy = continuous(
    "wrapcauchy", "The wrapped Cauchy distribution of angles in [0, 2 pi].", "c",
    support=lambda c: (0.0, 2 * math.pi),
    valid=lambda c: el.and_(el.gt(c, 0.0), el.lt(c, 1.0)),
    logpdf=lambda z, c: (
        el.log((1.0 - c) * (1.0 + c)) - math.log(2 * math.pi)
        - el.log(1.0 + c * c - 2.0 * c * el.cos(z))
    ),
)  # fmt: skip

FAMILIES = {
    f.__name__: f
    for f in (
        beta, cauchy, chi2, expon, gamma, gennorm, gumbel_l, gumbel_r, laplace, logistic, lognorm,
        norm, pareto, t, truncnorm, uniform, vonmises, wrapcauchy,
    )
}  # fmt: skip
"""Every family of this module by its name."""
