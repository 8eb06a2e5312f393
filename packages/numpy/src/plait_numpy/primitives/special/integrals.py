"""Integrals: exponential integrals and Spence's function.

Invariant: as in `special`, errors are a few units in the last place except close to roots; values
are infinite at poles and nan outside the domain.
"""

import math
from typing import Any

import numpy as np

from plait.ext.ops.elementwise import (
    abs_,
    and_,
    digamma,
    eq,
    exp,
    floor,
    gt,
    le,
    lgamma,
    log,
    log1p,
    lt,
    maximum,
    ne,
    neg,
    select,
)

from .functions import const, define, epsilon, said, series, until_settled

expn = define("expn", 2, "The exponential integral E_n(x) for whole n >= 0 and x >= 0.")


@said(expn)
def _expn(n, x):
    """Use the power series up to 1 (DLMF 8.19.8), the continued fraction beyond (8.19.17)."""
    low = le(x, 1.0)
    near = _expn_series(maximum(n, 1.0), select(and_(low, gt(x, 0.0)), x, 1.0))
    far = _expn_fraction(n, select(low, 2.0, x), gt(x, 1.0))
    out = select(low, near, far)
    at_zero = select(gt(n, 1.0), 1.0 / maximum(n - 1.0, 0.5), math.inf)
    out = select(eq(n, 0.0), exp(neg(x)) / x, select(eq(x, 0.0), at_zero, out))
    out = select(eq(x, math.inf), 0.0, out)
    good = and_(and_(eq(n, floor(n)), n >= 0.0), x >= 0.0)
    return select(good, out, math.nan)


def _expn_series(n: Any, x: Any) -> Any:
    """Sum the power series, in which the term of x ** (n - 1) has a logarithm."""
    total, power = const(0.0, x), const(1.0, x)
    for k in range(20):
        gap = k + 1.0 - n
        total = total - select(eq(gap, 0.0), 0.0, power / select(eq(gap, 0.0), 1.0, gap))
        power = power * x * (-1.0 / (k + 1))
    logs = log(x)
    odd = eq(n, 2.0 * floor(n * 0.5))
    size = exp((n - 1.0) * logs - lgamma(n)) * (digamma(n) - logs)
    return total + select(odd, neg(size), size)


def _expn_fraction(n: Any, x: Any, active: Any) -> Any:
    """Evaluate the fraction by Lentz's method, as modified by Thompson and Barnett."""
    tight = epsilon(x)

    def turn(k, on, n, b, c, d, h):
        a = neg(k) * (n - 1.0 + k)
        b = b + 2.0
        d = 1.0 / (a * d + b)
        c = b + a / c
        change = c * d
        return and_(on, gt(abs_(change - 1.0), tight)), n, b, c, d, select(on, h * change, h)

    b = x + n
    start = 1.0 / b
    h = until_settled(turn, active, n, b, const(1e30, x), start, start)[-1]
    return h * exp(neg(x))


expi = define("expi", 1, "The exponential integral Ei(x), the principal value.")


@said(expi)
def _expi(x):
    """Use -E_1(-x) for x < 0, the power series (DLMF 6.6.1) up to 40, and the asymptotic one
    (6.12.2) beyond."""
    left = neg(_expn(const(1.0, x), select(lt(x, 0.0), neg(x), 1.0)))
    tight = epsilon(x)
    middle = and_(gt(x, 0.0), le(x, 40.0))
    z = select(middle, x, 1.0)

    def turn(k, on, z, power, total):
        power = power * z / k
        term = power / k
        more = and_(on, gt(term, total * tight))
        return more, z, power, select(on, total + term, total)

    total = until_settled(turn, middle, z, const(1.0, z), const(0.0, z))[-1]
    inside = total + log(z) + float(np.euler_gamma)
    y = maximum(x, 40.0)
    factorials = [float(math.factorial(k)) for k in range(30)]
    outside = exp(y - log(y)) * series(1.0 / y, factorials)
    out = select(lt(x, 0.0), left, select(gt(x, 40.0), outside, inside))
    out = select(eq(x, math.inf), math.inf, select(eq(x, 0.0), -math.inf, out))
    return select(ne(x, x), x, out)


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
def _spence(x):
    """Use Debye's series in the logarithm between 1/2 and 2.

    Elsewhere use the reflections x -> 1 - x and x -> 1 / x (Lewin, Polylogarithms and associated
    functions, 1.11 and 1.7).
    """
    large = gt(x, 2.0)
    w = select(large, 1.0 / select(large, x, 2.0), x)
    small = and_(lt(w, 0.5), gt(w, 0.0))
    inner = select(small, w, 0.25)
    u = neg(select(small, log1p(neg(inner)), log(select(small, 1.0, select(gt(w, 0.0), w, 1.0)))))
    core = u * series(u * u, _DEBYE) - 0.25 * u * u
    reflected = math.pi**2 / 6 - log(inner) * log1p(neg(inner)) - core
    out = select(small, reflected, core)
    logs = log(select(large, x, 1.0))
    out = select(large, -0.5 * logs * logs - out, out)
    out = select(eq(x, 0.0), math.pi**2 / 6, out)
    return select(eq(x, math.inf), -math.inf, select(x >= 0.0, out, math.nan))


__all__ = ["expi", "expn", "spence"]
