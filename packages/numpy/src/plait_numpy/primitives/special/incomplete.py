"""The incomplete gamma and beta functions, and derivatives in the shape, also of gamma samples.

Power series are used on one side of the mean, continued fractions on the other.  Large shapes of
the gamma function use Temme's uniform expansion.  The derivatives in the shape are those of the
series, term by term.

Invariant: for large shapes, prefactors are computed from log(1 + m) - m with m = x / a - 1, so that
no digits cancel.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.ext.ops import elementwise as el
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike

from .functions import (
    const,
    define,
    epsilon,
    lbeta,
    log1p_less,
    said,
    series,
    stirling,
    until_settled,
)

igamma = define("igamma", 2, "P(a, x), the regularised incomplete gamma function: the integral\n"
                 "from 0 to x.")  # fmt: skip
igammac = define("igammac", 2, "Q(a, x) = 1 - P(a, x), exact where it is small.")
igamma_grad_a = define("igamma_grad_a", 2, "The derivative of igamma in a.")
random_gamma_grad = define("random_gamma_grad", 2, "The derivative in a of a sample x "
                            "of the gamma\ndistribution with shape a.")  # fmt: skip
regularized_incomplete_beta = define(
    "regularized_incomplete_beta", 3,
    "I_x(a, b), the regularised incomplete beta function: the integral from 0 to x.",
)  # fmt: skip


# ---- gamma: the factor -----------------------------------------------------------------------


def _factor(a: Any, x: Value) -> Any:
    """Return x ** a e ** -x / Gamma(a + 1)."""
    large = a >= 8.0
    b = el.select(large, a, 8.0)
    y = el.select(large, x, 8.0)
    m = (y - b) / b
    # Far from the peak it is the logarithm of 1 + m, close to 0, that loses its digits.
    far = el.gt(el.abs_(m), 0.5)
    less = el.select(far, el.log(el.select(far, y / b, 2.0)) - m, log1p_less(m))
    peak = el.exp(b * less - stirling(b)) / el.sqrt(2 * math.pi * b)
    small, half = el.select(large, 1.0, a), el.exp(-0.5 * x)
    plain = half * el.pow_(x, small) * half * el.exp(el.neg(lgamma1p(small)))
    return el.select(large, peak, plain)


# The powers of t <= 1 / 2 from 0 to 25 in lgamma(2 + t).
_LGAMMA2 = (0.0, *el.LGAMMA_SERIES[:25])


def lgamma1p(a: Value) -> Any:
    """Return lgamma(1 + a) for a >= 0, exact for small `a`."""
    near = el.le(a, 0.5)
    t = el.select(near, a, 0.0)
    return el.select(near, series(t, _LGAMMA2) - el.log1p(t), el.lgamma(a + 1.0))


def _small_complement(a: Value, x: Value) -> Any:
    """Return Q(a, x) for a <= 1/2 and x <= 1, where P is close to 1 (from DLMF 8.7.1).

    It is 1 - G (1 + a S) with G = x ** a / Gamma(a + 1).  S is the sum of (-x) ** n / ((a + n) n!)
    over n >= 1.
    """
    logs = a * el.log(x) - lgamma1p(a)
    term, total = const(1.0, x), const(0.0, x)
    for n in range(1, 19 if epsilon(x) < 1e-8 else 12):
        term = term * x * (-1.0 / n)
        total = total + term / (a + float(n))
    return el.neg(el.expm1(logs) + el.exp(logs) * a * total)


def gamma_density(a: ArrayLike, x: ArrayLike) -> Any:
    """Return the derivative of igamma in x, also at 0."""
    inside = el.gt(x, 0.0)
    y = el.select(inside, x, 1.0)
    edge = el.select(el.lt(a, 1.0), math.inf, el.select(el.eq(a, 1.0), 1.0, 0.0))
    return el.select(inside, _factor(a, y) * a / y, edge)


# ---- gamma: series, continued fraction ---------------------------------------------------------


def _power_series(a: Value, x: Value, active: Value, slope: bool) -> Sequence[Any]:
    """Return (S, dS/da); S is the sum over n of x ** n / ((a + 1) ... (a + n)): DLMF 8.11.4."""
    tight = epsilon(x)

    def turn(k: Value, on: Value, a: Value, x: Value, term: Array, total: Value, *slopes):
        r = a + k
        q = x / r
        again = el.gt(term, total * tight)
        if slope:
            d, ds = slopes
            d = (d - term / r) * q
            ds = ds + d
            again = el.or_(again, el.gt(el.abs_(d), el.abs_(ds) * tight))
            slopes = d, ds
        term = term * q
        return el.and_(on, again), a, x, term, total + term, *slopes

    zero, one = const(0.0, x), const(1.0, x)
    start = [a, x, one, one, *([zero, zero] if slope else [])]
    out = until_settled(turn, active, *start)
    return out[3], out[5] if slope else zero


def _fraction(a: Value, x: Value, active: Value, slope: bool) -> Sequence[Any]:
    """Return (F, dF/da), where Q(a, x) is F x ** a e ** -x / Gamma(a).

    This is DLMF 8.9.2, contracted to its even part, by Lentz's method as modified by Thompson and
    Barnett.
    """
    tight = epsilon(x)

    def turn(k: Value, on: Value, a: Value, b: Array, c: Value, d: Value, h: Value, *slopes):
        top = k * (a - k)
        b = b + 2.0
        new = 1.0 / (top * d + b)
        ahead = b + top / c
        change = ahead * new
        again = el.gt(el.abs_(change - 1.0), tight)
        if slope:
            dc, dd, dh = slopes
            dd = el.neg(new * new) * (k * d + top * dd - 1.0)
            dc = (k - top * dc / c) / c - 1.0
            more = dc * new + ahead * dd
            dh = el.select(on, dh * change + h * more, dh)
            again = el.or_(again, el.gt(el.abs_(h * more), el.abs_(dh) * tight))
            slopes = dc, dd, dh
        h = el.select(on, h * change, h)
        return el.and_(on, again), a, b, ahead, new, h, *slopes

    b = x + 1.0 - a
    first = 1.0 / b
    rest = [const(0.0, x), first * first, first * first] if slope else []
    out = until_settled(turn, active, a, b, const(1e30, x), first, first, *rest)
    return out[4], out[7] if slope else const(0.0, x)


# ---- gamma: large shapes -----------------------------------------------------------------------

# Taylor coefficients in eta of the functions C_k of DLMF 8.12.8, computed from the recurrence
# 8.12.9 in rational numbers.
_TEMME = (
    (-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
     0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06,
     -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
     1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10),
    (-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596,
     0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06,
     -1.6120900894563446e-06),
    (0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049),
)  # fmt: skip
_LARGE = 5_000.0
"""The least shape for which the expansion is used, where |eta| < 1/2."""


def _slopes(coefficients: Sequence[float]) -> list[float]:
    return [k * c for k, c in enumerate(coefficients)][1:]


def _temme(a: Value, x: Value) -> dict[str, Any]:
    """Return the parts of the expansion.

    With z = eta sqrt(a) and the density n of the normal distribution, P is
    N(z) - n(z) tail / sqrt(a).
    """
    m = (x - a) / a
    eta = el.sign(m) * el.sqrt(-2.0 * log1p_less(m))
    near = el.and_(a >= _LARGE, el.lt(el.abs_(eta), 0.5))
    a, m, eta = el.select(near, a, _LARGE), el.select(near, m, 0.0), el.select(near, eta, 0.0)
    c = [series(eta, cs) for cs in _TEMME]
    dc = [series(eta, _slopes(cs)) for cs in _TEMME]
    r, root = 1.0 / a, el.sqrt(a)
    ratio = el.select(el.eq(eta, 0.0), 1.0, m / el.select(el.eq(eta, 0.0), 1.0, eta))
    tail = c[0] + r * (c[1] + r * c[2])
    along = el.neg(ratio) * r  # d eta / da
    z = eta * root
    shift = along * root + 0.5 * eta / root  # dz / da
    change = (dc[0] + r * (dc[1] + r * dc[2])) * along - r * r * (c[1] + 2.0 * r * c[2])
    slope = shift * (1.0 + z * tail / root) - change / root + 0.5 * tail * r / root
    return dict(near=near, a=a, z=z, root=root, tail=tail, slope=slope)


def _bell(z: Value) -> Any:
    return el.exp(-0.5 * z * z) * (1 / math.sqrt(2 * math.pi))


# ---- gamma: the four functions ------------------------------------------------------------------


class Gamma:
    """The common parts of all four functions; `lower` marks where P is computed rather than Q."""

    def __init__(self, a: Value, x: Value, slope: bool):
        self.bad = el.or_(el.or_(el.lt(x, 0.0), el.lt(a, 0.0)), el.or_(el.ne(a, a), el.ne(x, x)))
        plain = el.and_(
            el.and_(el.gt(x, 0.0), el.lt(x, math.inf)), el.and_(el.gt(a, 0.0), el.lt(a, math.inf))
        )
        self.plain = el.and_(plain, el.not_(self.bad))
        self.a, self.x = el.select(self.plain, a, 1.0), el.select(self.plain, x, 1.0)
        self.temme = _temme(self.a, self.x)
        self.near = self.temme["near"]
        self.lower = el.or_(el.le(self.x, 1.0), el.le(self.x, self.a))
        run = el.not_(self.near)
        left, right = el.and_(run, self.lower), el.and_(run, el.not_(self.lower))
        b, y = (el.select(left, v, 1.0) for v in (self.a, self.x))
        self.sum, self.dsum = _power_series(b, y, left, slope)
        b, y = el.select(right, self.a, 1.0), el.select(right, self.x, 2.0)
        self.fraction, self.dfraction = _fraction(b, y, right, slope)

    def value(self, complement: bool) -> Any:
        """Return P, or Q if `complement`."""
        factor = _factor(self.a, self.x)
        p, q = factor * self.sum, factor * self.a * self.fraction
        z, correction = self.temme["z"], self.temme["tail"] / self.temme["root"]
        half = math.sqrt(0.5)
        if complement:
            close = 0.5 * el.erfc(z * half) + _bell(z) * correction
            small = el.and_(el.le(self.a, 0.5), el.le(self.x, 1.0))
            b, y = el.select(small, self.a, 0.5), el.select(small, self.x, 1.0)
            out = el.select(small, _small_complement(b, y), 1.0 - p)
            out = el.select(self.lower, out, q)
        else:
            close = 0.5 * el.erfc(el.neg(z) * half) - _bell(z) * correction
            out = el.select(self.lower, p, 1.0 - q)
        return el.select(self.near, close, out)

    def growth(self) -> Any:
        """Return dP/da, divided by x ** a e ** -x / Gamma(a + 1)."""
        logs = el.log(self.x)
        left = self.dsum + self.sum * (logs - el.digamma(self.a + 1.0))
        right = el.neg(self.a * (self.dfraction + self.fraction * (logs - el.digamma(self.a))))
        return el.select(self.lower, left, right)

    def edges(self, a: Value, x: Value, out: Value, low: float, high: float) -> Any:
        """Return `out` with its limits at the edges.

        It is `low` where x is 0 or a is infinite, and `high` where x is infinite or a is 0.  Where
        both hold it is nan.
        """
        first, last = (
            el.or_(el.eq(x, 0.0), el.eq(a, math.inf)),
            el.or_(el.eq(x, math.inf), el.eq(a, 0.0)),
        )
        out = el.select(self.plain, out, el.select(first, low, high))
        return el.select(el.or_(self.bad, el.and_(first, last)), math.nan, out)


@said(igamma)
def _igamma(a, x: Value):
    g = Gamma(a, x, False)
    return g.edges(a, x, g.value(False), 0.0, 1.0)


@said(igammac)
def _igammac(a, x: Value):
    g = Gamma(a, x, False)
    return g.edges(a, x, g.value(True), 1.0, 0.0)


@said(igamma_grad_a)
def _igamma_grad_a(a: Value, x: Value):
    g = Gamma(a, x, True)
    close = g.temme["slope"] * _bell(g.temme["z"])
    out = el.select(g.near, close, _factor(g.a, g.x) * g.growth())
    return g.edges(a, x, out, 0.0, 0.0)


@said(random_gamma_grad)
def _random_gamma_grad(a: Value, x: Value):
    """Return -(dP/da) / (dP/dx), without their common factor."""
    g = Gamma(a, x, True)
    b = g.temme["a"]
    close = el.neg(g.temme["slope"]) * g.x / el.sqrt(b) * el.exp(stirling(b))
    out = el.select(g.near, close, el.neg(g.growth()) * g.x / g.a)
    return g.edges(a, x, out, 0.0, math.inf)


# ---- beta -----------------------------------------------------------------------------------


def _beta_factor(a: Any, b: Any, x: Value) -> Any:
    """Return x ** a (1 - x) ** b / B(a, b).

    Source: Didonato and Morris, Significant digit computation of the incomplete beta function
    ratios (1992), section 4.
    """
    large = el.and_(a >= 8.0, b >= 8.0)
    p, q = el.select(large, a, 8.0), el.select(large, b, 8.0)
    n = p + q
    gap = p - n * x
    rate = p * log1p_less(el.neg(gap) / p) + q * log1p_less(gap / q)
    fine = stirling(p) + stirling(q) - stirling(n)
    peak = el.sqrt(p * (q / n) * (1 / (2 * math.pi))) * el.exp(rate - fine)
    return el.select(large, peak, el.exp(a * el.log(x) + b * el.log1p(el.neg(x)) - lbeta(a, b)))


def beta_density(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Any:
    """Return the derivative of the incomplete beta function in x, also at 0 and 1."""
    inside = el.and_(el.gt(x, 0.0), el.lt(x, 1.0))
    y = el.select(inside, x, 0.5)
    at = el.select(el.gt(x, 0.5), b, a)
    other = el.select(el.gt(x, 0.5), a, b)
    edge = el.select(el.lt(at, 1.0), math.inf, el.select(el.eq(at, 1.0), other, 0.0))
    return el.select(inside, _beta_factor(a, b, y) / (y * (1.0 - y)), edge)


def _beta_fraction(a: Value, b: Value, x: Value, active: Value) -> Any:
    """Evaluate DLMF 8.17.22, two steps a turn, by Lentz's method as modified by Thompson and
    Barnett."""
    tight = epsilon(x)
    tiny = 1e-30

    def away(v: Array) -> Any:
        return el.select(el.lt(el.abs_(v), tiny), tiny, v)

    def turn(k: Value, on: Value, a: Value, b: Value, x: Value, c: Value, d: Value, h):
        m = a + 2.0 * k
        even = k * (b - k) * x / ((m - 1.0) * m)
        odd = el.neg((a + k) * (a + b + k)) * x / (m * (m + 1.0))
        for top in (even, odd):
            d = 1.0 / away(1.0 + top * d)
            c = away(1.0 + top / c)
            change = c * d
            h = el.select(on, h * change, h)
        return el.and_(on, el.gt(el.abs_(change - 1.0), tight)), a, b, x, c, d, h

    one = const(1.0, x)
    d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0))
    return until_settled(turn, active, a, b, x, one, d, d)[-1]


def _huge(like: Value) -> float:
    """Return the least shape for which the beta function uses the uniform expansion.

    The error of the expansion falls as the shape to the power -3/2.  The number of turns of the
    fraction grows as the root of the shape.
    """
    return 1e8 if like.aval.dtype == np.float64 else 3e4


def _bend(m: Array) -> Any:
    """Return (log(1 + m) - m) / m ** 2, smooth at 0."""
    near = el.lt(el.abs_(m), 0.01)
    small = series(el.select(near, m, 0.0), [(-1) ** (k + 1) / (k + 2) for k in range(8)])
    far = el.select(near, 1.0, m)
    return el.select(near, small, log1p_less(far) / (far * far))


def _beta_uniform(a: Value, b: Value, x: Value) -> Any:
    """Return I_x(a, b) for huge a and b, within 1e-9: the first term of DLMF 8.18.9."""
    n = a + b
    gap = a - n * x
    z = el.neg(gap) * el.sqrt(el.neg(_bend(el.neg(gap) / a) / a + _bend(gap / b) / b))
    left, right = a / n, b / n
    eta = z * el.sqrt(2.0 / n)
    close = el.lt(el.abs_(eta), 1e-5)
    mean = (right - left) / (3.0 * el.sqrt(left * right))
    off, at = el.select(close, 1.0, gap), el.select(close, 1.0, eta)
    slope = el.select(close, mean, 1.0 / at + el.sqrt(left * right) * (n / off))
    return 0.5 * el.erfc(el.neg(z)) + el.exp(el.neg(z * z)) * slope / el.sqrt(2.0 * math.pi * n)


@said(regularized_incomplete_beta)
def _betainc(a, b, x: Value):
    """Use the side on which the fraction converges fast: I_x(a, b) = 1 - I_(1-x)(b, a).

    Huge shapes use an expansion that is uniform in x.
    """
    infinite = el.or_(el.eq(a, math.inf), el.eq(b, math.inf))
    bad = el.or_(el.or_(el.lt(a, 0.0), el.lt(b, 0.0)), el.or_(el.lt(x, 0.0), el.gt(x, 1.0)))
    bad = el.or_(el.or_(bad, el.ne(x, x)), el.or_(el.ne(a, a), el.ne(b, b)))
    inside = el.and_(el.and_(el.gt(x, 0.0), el.lt(x, 1.0)), el.and_(el.gt(a, 0.0), el.gt(b, 0.0)))
    plain = el.and_(inside, el.not_(el.or_(bad, infinite)))
    p, q, z = (el.select(plain, v, w) for v, w in ((a, 1.0), (b, 1.0), (x, 0.5)))
    least = _huge(x)
    huge = el.and_(p >= least, q >= least)
    uniform = _beta_uniform(
        el.select(huge, p, least), el.select(huge, q, least), el.select(huge, z, 0.5)
    )
    p, q, z = (el.select(huge, v, w) for v, w in ((1.0, p), (1.0, q), (0.5, z)))
    swap = el.gt(z, (p + 1.0) / (p + q + 2.0))
    factor = _beta_factor(p, q, z)
    p, q, z = el.select(swap, q, p), el.select(swap, p, q), el.select(swap, 1.0 - z, z)
    part = factor * _beta_fraction(p, q, z, el.and_(plain, el.not_(huge))) / p
    out = el.select(huge, uniform, el.select(swap, 1.0 - part, part))
    # All of the mass is at 0 where a is 0 or b infinite, and at 1 where b is 0 or a infinite.
    left, right = (
        el.or_(el.eq(a, 0.0), el.eq(b, math.inf)),
        el.or_(el.eq(b, 0.0), el.eq(a, math.inf)),
    )
    edge = el.select(el.or_(el.eq(x, 1.0), el.and_(left, el.gt(x, 0.0))), 1.0, 0.0)
    return el.select(el.or_(bad, el.and_(left, right)), math.nan, el.select(plain, out, edge))


__all__ = ["igamma", "igamma_grad_a", "igammac", "random_gamma_grad", "regularized_incomplete_beta"]
