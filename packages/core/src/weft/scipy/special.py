"""Special functions, element by element, named as in scipy.special.

Operands broadcast together; integers become the default float.  Complex numbers are refused but
where softmax and logsumexp say otherwise.

Invariant: nothing is nan where the limit is a number, nor is its derivative.
"""

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import TypeRule
from ..nn import exponentials
from ..nn.exponentials import logsumexp
from ..ops import elementwise as el
from ..ops import incomplete as inc
from ..ops import integrals as ints
from ..ops import special as sp
from ..ops.shape import convert
from ..ops.subscript import take
from ..surface import binary, fused, unary
from ..types import FLOATING, default_dtype
from ..values import Literal, asarray

# ---- said by one primitive -------------------------------------------------------------------

erf = unary("erf", el.erf, "The error function.")
erfc = unary("erfc", el.erfc, "1 - erf(x), exact for large x.")
erfinv = unary("erfinv", el.erf_inv, "Inverse of the error function.")
gammaln = unary("gammaln", el.lgamma, "log |Gamma(x)|.")
digamma = unary("digamma", el.digamma, "The derivative of gammaln.")
expit = unary("expit", el.logistic, "1 / (1 + e ** -x).")
i0e = unary("i0e", sp.bessel_i0e, "e ** -|x| times the modified Bessel function of order 0.")
i1e = unary("i1e", sp.bessel_i1e, "e ** -|x| times the modified Bessel function of order 1.")
log_ndtr = unary("log_ndtr", sp.log_ndtr, "Logarithm of the normal distribution function, exact\n"
                 "where that underflows or is 1.")  # fmt: skip
ndtri = unary("ndtri", sp.ndtri, "Quantiles of the normal distribution: -inf at 0, inf at 1.")
expi = unary("expi", ints.expi, "The exponential integral Ei(x), the principal value.")
spence = unary("spence", ints.spence, "The integral of log(t) / (1 - t) from 1 to x.")
betaln = binary("betaln", sp.lbeta, "log |B(a, b)|, of the beta function.")
gammainc = binary("gammainc", inc.igamma, "P(a, x), the regularised lower incomplete gamma\n"
                  "function; it has derivatives in both.")  # fmt: skip
gammaincc = binary("gammaincc", inc.igammac, "1 - gammainc(a, x), exact where it is small.")
polygamma = binary("polygamma", sp.polygamma, "The n-th derivative of digamma, for whole n >= 0.")
expn = binary("expn", ints.expn, "The exponential integral E_n(x) for whole n >= 0 and x >= 0.")


def betainc(a: Any, b: Any, x: Any) -> Any:
    """I_x(a, b), the regularised incomplete beta function, for x in [0, 1].

    It has derivatives in all three.

    >>> import weft as wf
    >>> round(float(wf.scipy.special.betainc(2.0, 2.0, 0.5)), 6)
    0.5
    """
    return inc.regularized_incomplete_beta(a, b, x)


def zeta(x: Any, q: Any = 1.0) -> Any:
    """Hurwitz's zeta function, by default Riemann's: the sum of (q + k) ** -x over k >= 0.

    inf for x = 1, nan for x < 1.
    """
    return sp.zeta(x, q)


def exp1(x: Any) -> Any:
    """The exponential integral E_1(x); nan for negative x."""
    return ints.expn(1.0, x)


# ---- composed --------------------------------------------------------------------------------


def _floats(*xs: Any) -> Any:
    vs = el.floating(xs)
    for v in vs:
        if v.aval.category != FLOATING:
            raise TypeRule(
                f"this function is for real numbers, not {v.aval!r}",
                fix="take .real or abs() of complex numbers first",
            )
    return vs


@fused
def ndtr(x: Any) -> Any:
    """The normal distribution function."""
    (x,) = _floats(x)
    return 0.5 * el.erfc(el.neg(x) * math.sqrt(0.5))


@fused
def logit(x: Any) -> Any:
    """log(x / (1 - x))."""
    (x,) = _floats(x)
    return el.log(x) - el.log1p(el.neg(x))


@fused
def xlogy(x: Any, y: Any) -> Any:
    """x log(y), and 0 where x is 0; the derivative in x is log(y), 0 where both are 0."""
    x, y = _floats(x, y)
    nothing = el.and_(el.eq(x, 0.0), el.or_(el.le(y, 0.0), el.eq(y, math.inf)))
    return x * el.log(el.select(nothing, 1.0, y))


@fused
def xlog1py(x: Any, y: Any) -> Any:
    """x log(1 + y), and 0 where x is 0."""
    x, y = _floats(x, y)
    nothing = el.and_(el.eq(x, 0.0), el.or_(el.le(y, -1.0), el.eq(y, math.inf)))
    return x * el.log1p(el.select(nothing, 0.0, y))


@fused
def entr(x: Any) -> Any:
    """-x log(x): 0 at 0, -inf for negative x."""
    (x,) = _floats(x)
    low = el.lt(x, 0.0)
    return el.select(low, -math.inf, el.neg(xlogy(el.select(low, 1.0, x), x)))


@fused
def rel_entr(p: Any, q: Any) -> Any:
    """p log(p / q): 0 where p is 0 and q is not negative, inf where either is out of range."""
    p, q = _floats(p, q)
    both = el.and_(el.gt(p, 0.0), el.gt(q, 0.0))
    ratio = el.log(el.select(both, p, 1.0)) - el.log(el.select(both, q, 1.0))
    nothing = el.and_(el.eq(p, 0.0), q >= 0.0)
    out = el.select(both, p * ratio, el.select(nothing, 0.0, math.inf))
    return el.select(el.or_(el.ne(p, p), el.ne(q, q)), math.nan, out)


@fused
def kl_div(p: Any, q: Any) -> Any:
    """p log(p / q) - p + q; ranges are those of rel_entr."""
    p, q = _floats(p, q)
    return rel_entr(p, q) - p + q


@fused
def boxcox(x: Any, lmbda: Any) -> Any:
    """(x ** lmbda - 1) / lmbda, and log(x) where lmbda is 0."""
    x, p = _floats(x, lmbda)
    return _boxcox(el.log(x), p)


@fused
def boxcox1p(x: Any, lmbda: Any) -> Any:
    """boxcox(1 + x, lmbda), exact for small x."""
    x, p = _floats(x, lmbda)
    return _boxcox(el.log1p(x), p)


def _boxcox(logs: Any, p: Any) -> Any:
    """To the second order around p = 0, so that its derivative in p is right there."""
    small = el.or_(el.eq(p, 0.0), el.lt(el.abs_(p * logs), 1e-5))
    safe = el.select(small, 1.0, p)
    bend = el.select(el.is_finite(logs), 0.5 * p * logs, 0.0)
    return el.select(small, logs * (1.0 + bend), el.expm1(safe * logs) / safe)


# ---- gamma and beta ---------------------------------------------------------------------------


@fused
def gammasgn(x: Any) -> Any:
    """The sign of Gamma(x): nan at negative whole numbers; that of the zero at 0."""
    (x,) = _floats(x)
    odd = el.ne(el.floor(x), 2.0 * el.floor(0.5 * el.floor(x)))
    left = el.select(el.eq(x, el.floor(x)), math.nan, el.select(odd, -1.0, 1.0))
    zero = el.sign(1.0 / el.select(el.eq(x, 0.0), x, 1.0))
    right = el.select(el.eq(x, 0.0), zero, el.select(el.ne(x, x), math.nan, 1.0))
    return el.stop(el.select(el.lt(x, 0.0), left, right))


@fused
def gamma(x: Any) -> Any:
    """The gamma function; inf at 0, nan at negative whole numbers."""
    (x,) = _floats(x)
    return gammasgn(x) * el.exp(el.lgamma(x))


@fused
def beta(a: Any, b: Any) -> Any:
    """The beta function Gamma(a) Gamma(b) / Gamma(a + b)."""
    a, b = _floats(a, b)
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * el.exp(sp.lbeta(a, b))


def factorial(n: Any, exact: bool = False) -> Any:
    """Gamma(n + 1), and 0 of negative numbers; rounded to whole numbers of whole numbers.

    Raises TypeRule for `exact`: results are floats.
    """
    if exact:
        raise TypeRule(
            "factorial: results are floats, which hold no large whole number exactly",
            fix="use math.factorial for exact ones",
        )
    return _factorial(n)


_WHOLE = tuple([float(math.factorial(n)) for n in range(171)])


@fused
def _factorial(n: Any) -> Any:
    """Of whole numbers from a table: what the logarithm gives is off by some units."""
    (n,) = _floats(n)
    out = el.exp(el.lgamma(el.maximum(n, 0.0) + 1.0))
    with np.errstate(over="ignore"):
        table = asarray(np.array(_WHOLE, n.aval.dtype))
    whole = el.and_(el.eq(n, el.floor(n)), el.le(n, 170.0))
    known = take(table, convert(el.clamp(0.0, n, 170.0), np.int32), 0, mode="promise_in_bounds")
    out = el.select(whole, _moved(out, known), out)
    return el.select(el.lt(n, 0.0), 0.0, out)


def _moved(x: Any, to: Any) -> Any:
    """The value `to`, varying as `x` does."""
    both = el.and_(el.is_finite(x), el.is_finite(to))
    gap = el.stop(el.select(both, to - el.select(both, x, 0.0), 0.0))
    return el.select(both, x + gap, el.stop(to))


@fused
def poch(z: Any, m: Any) -> Any:
    """Gamma(z + m) / Gamma(z), the rising factorial; 1 where m is 0."""
    z, m = _floats(z, m)
    none = el.eq(m, 0.0)
    start = el.select(none, 1.0, z)
    size = el.exp(el.lgamma(start + m) - el.lgamma(start))
    return el.select(none, 1.0, gammasgn(start + m) * gammasgn(start) * size)


def comb(N: Any, k: Any, *, repetition: bool = False) -> Any:  # noqa: N803
    """The number of ways to choose k of N, as floats; with `repetition`, of N + k - 1.

    0 where k is greater than N, or either is negative.
    """
    return _comb(N, k, repetition=bool(repetition))


@fused
def _comb(n: Any, k: Any, *, repetition: bool) -> Any:
    n, k = _floats(n, k)
    n = n + k - 1.0 if repetition else n
    good = el.and_(el.and_(el.le(k, n), k >= 0.0), n >= 0.0)
    n, k = el.select(good, n, 1.0), el.select(good, k, 0.0)
    out = el.exp(el.neg(el.log(n + 1.0)) - sp.lbeta(n - k + 1.0, k + 1.0))
    whole = el.and_(el.eq(n, el.floor(n)), el.eq(k, el.floor(k)))
    out = el.select(whole, _moved(out, el.round_even(out)), out)
    return el.select(good, out, 0.0)


def multigammaln(a: Any, d: int) -> Any:
    """Logarithm of the multivariate gamma function of dimension `d`, a Python integer."""
    return _multigammaln(a, d=d.__index__())


@fused
def _multigammaln(a: Any, *, d: int) -> Any:
    (a,) = _floats(a)
    total: Any = Literal(d * (d - 1) / 4 * math.log(math.pi), a.aval)
    for j in range(d):
        total = total + el.lgamma(a - 0.5 * j)
    return total


@functools.cache
def _bernoulli(n: int) -> tuple[float, ...]:
    """By the recurrence of DLMF 24.5.3, in fractions."""
    found = [Fraction(1)]
    for m in range(1, n + 1):
        odd = m > 1 and m % 2
        total = sum((math.comb(m + 1, k) * found[k] for k in range(m)), Fraction(0))
        found.append(Fraction(0) if odd else -total / (m + 1))
    return tuple([_float(b) for b in found])


def _float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def bernoulli(n: int) -> Any:
    """Bernoulli's numbers B_0 to B_n, with B_1 = -1/2; `n` is a Python integer.

    >>> import weft as wf
    >>> wf.scipy.special.bernoulli(4).tolist()[:3]
    [1.0, -0.5, 0.1666666716337204]
    """
    n = n.__index__()
    if n < 0:
        raise TypeRule(f"there is no Bernoulli number {n}", fix="count from 0")
    with np.errstate(over="ignore"):
        return asarray(np.array(_bernoulli(n), default_dtype(FLOATING)))


# ---- Bessel functions ------------------------------------------------------------------------


@fused
def i0(x: Any) -> Any:
    """The modified Bessel function of order 0."""
    (x,) = _floats(x)
    return el.exp(el.abs_(x)) * sp.bessel_i0e(x)


@fused
def i1(x: Any) -> Any:
    """The modified Bessel function of order 1."""
    (x,) = _floats(x)
    return el.exp(el.abs_(x)) * sp.bessel_i1e(x)


# ---- sums of exponentials --------------------------------------------------------------------


def softmax(x: Any, /, *, axis: Any = None) -> Any:
    """e ** x divided by its sum along axes (all by default); see weft.nn.softmax."""
    return exponentials.softmax(x, axis)


def log_softmax(x: Any, /, *, axis: Any = None) -> Any:
    """log(softmax(x, axis=axis)), exact where that underflows."""
    return exponentials.log_softmax(x, axis)


__all__ = [
    "bernoulli",
    "beta",
    "betainc",
    "betaln",
    "boxcox",
    "boxcox1p",
    "comb",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "exp1",
    "expi",
    "expit",
    "expn",
    "factorial",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "poch",
    "polygamma",
    "rel_entr",
    "softmax",
    "spence",
    "xlog1py",
    "xlogy",
    "zeta",
]
