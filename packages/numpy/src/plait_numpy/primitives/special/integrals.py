"""Integrals: exponential integrals and Spence's function.

Invariant: as in `special`, errors are a few units in the last place except close to roots; values
are infinite at poles and nan outside the domain.
"""

import math
from typing import Any

import numpy as np

from plait.ext.ops import elementwise as el
from plait.ext.trace import Value
from plait.typing import Array

from .functions import const, define, epsilon, said, series, until_settled

expn = define("expn", 2, "The exponential integral E_n(x) for whole n >= 0 and x >= 0.")


@said(expn)
def _expn(n: Value, x: Value):
    """Use the power series up to 1 (DLMF 8.19.8), the continued fraction beyond (8.19.17)."""
    low = el.le(x, 1.0)
    near = _expn_series(el.maximum(n, 1.0), el.select(el.and_(low, el.gt(x, 0.0)), x, 1.0))
    far = _expn_fraction(n, el.select(low, 2.0, x), el.gt(x, 1.0))
    out = el.select(low, near, far)
    at_zero = el.select(el.gt(n, 1.0), 1.0 / el.maximum(n - 1.0, 0.5), math.inf)
    out = el.select(el.eq(n, 0.0), el.exp(el.neg(x)) / x, el.select(el.eq(x, 0.0), at_zero, out))
    out = el.select(el.eq(x, math.inf), 0.0, out)
    good = el.and_(el.and_(el.eq(n, el.floor(n)), n >= 0.0), x >= 0.0)
    return el.select(good, out, math.nan)


def _expn_series(n: Value, x: Value) -> Any:
    """Sum the power series, in which the term of x ** (n - 1) has a logarithm."""
    total, power = const(0.0, x), const(1.0, x)
    for k in range(20):
        gap = k + 1.0 - n
        total = total - el.select(
            el.eq(gap, 0.0), 0.0, power / el.select(el.eq(gap, 0.0), 1.0, gap)
        )
        power = power * x * (-1.0 / (k + 1))
    logs = el.log(x)
    odd = el.eq(n, 2.0 * el.floor(n * 0.5))
    size = el.exp((n - 1.0) * logs - el.lgamma(n)) * (el.digamma(n) - logs)
    return total + el.select(odd, el.neg(size), size)


def _expn_fraction(n: Value, x: Value, active: Value) -> Any:
    """Evaluate the fraction by Lentz's method, as modified by Thompson and Barnett."""
    tight = epsilon(x)

    def turn(k: Value, on: Value, n: Value, b, c: Array, d, h: Value):
        a = el.neg(k) * (n - 1.0 + k)
        b = b + 2.0
        d = 1.0 / (a * d + b)
        c = b + a / c
        change = c * d
        return (
            el.and_(on, el.gt(el.abs_(change - 1.0), tight)),
            n,
            b,
            c,
            d,
            el.select(on, h * change, h),
        )

    b = x + n
    start = 1.0 / b
    h = until_settled(turn, active, n, b, const(1e30, x), start, start)[-1]
    return h * el.exp(el.neg(x))


expi = define("expi", 1, "The exponential integral Ei(x), the principal value.")


@said(expi)
def _expi(x: Value):
    """Use -E_1(-x) for x < 0, the power series (DLMF 6.6.1) up to 40, and the asymptotic one
    (6.12.2) beyond."""
    left = el.neg(_expn(const(1.0, x), el.select(el.lt(x, 0.0), el.neg(x), 1.0)))
    tight = epsilon(x)
    middle = el.and_(el.gt(x, 0.0), el.le(x, 40.0))
    z = el.select(middle, x, 1.0)

    def turn(k: Array, on: Value, z, power, total: Value):
        power = power * z / k
        term = power / k
        more = el.and_(on, el.gt(term, total * tight))
        return more, z, power, el.select(on, total + term, total)

    total = until_settled(turn, middle, z, const(1.0, z), const(0.0, z))[-1]
    inside = total + el.log(z) + float(np.euler_gamma)
    y = el.maximum(x, 40.0)
    factorials = [float(math.factorial(k)) for k in range(30)]
    outside = el.exp(y - el.log(y)) * series(1.0 / y, factorials)
    out = el.select(el.lt(x, 0.0), left, el.select(el.gt(x, 40.0), outside, inside))
    out = el.select(el.eq(x, math.inf), math.inf, el.select(el.eq(x, 0.0), -math.inf, out))
    return el.select(el.ne(x, x), x, out)


spence = define("spence", 1, "Spence's function: the integral of log(t) / (1 - t) from 1 to x.")

# Coefficients B_2k / (2k + 1)! of Debye's series.
_DEBYE = tuple(
    b / math.factorial(2 * k + 1)
    for k, b in enumerate(
        (1.0, 1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510,
         43867 / 798)
    )
)  # fmt: skip


@said(spence)
def _spence(x: Value):
    """Use Debye's series in the logarithm between 1/2 and 2.

    Elsewhere use the reflections x -> 1 - x and x -> 1 / x (Lewin, Polylogarithms and associated
    functions, 1.11 and 1.7).
    """
    large = el.gt(x, 2.0)
    w = el.select(large, 1.0 / el.select(large, x, 2.0), x)
    small = el.and_(el.lt(w, 0.5), el.gt(w, 0.0))
    inner = el.select(small, w, 0.25)
    u = el.neg(
        el.select(
            small,
            el.log1p(el.neg(inner)),
            el.log(el.select(small, 1.0, el.select(el.gt(w, 0.0), w, 1.0))),
        )
    )
    core = u * series(u * u, _DEBYE) - 0.25 * u * u
    reflected = math.pi**2 / 6 - el.log(inner) * el.log1p(el.neg(inner)) - core
    out = el.select(small, reflected, core)
    logs = el.log(el.select(large, x, 1.0))
    out = el.select(large, -0.5 * logs * logs - out, out)
    out = el.select(el.eq(x, 0.0), math.pi**2 / 6, out)
    return el.select(el.eq(x, math.inf), -math.inf, el.select(x >= 0.0, out, math.nan))


__all__ = ["expi", "expn", "spence"]
