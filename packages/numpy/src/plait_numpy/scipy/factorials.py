"""Gamma, beta, factorials and counts built on them, with the names of scipy.special.

Invariant: integer results of integers are exact as far as the dtype holds them.
"""

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from plait.errors import OperandTypeError, ShapeError
from plait.ext import Literal
from plait.ext.errors import border
from plait.ext.ops import elementwise as el
from plait.ext.ops.shape import convert
from plait.ext.ops.taking import take
from plait.ext.surface import fixed, fused
from plait.ext.trace import Value
from plait.ext.types import COMPLEX, FLOATING, default_dtype
from plait.ext.values import asarray
from plait.typing import Array, ArrayLike

from ..primitives.special import functions as sp
from .pointwise import floats


@fused
def gammasgn(x: ArrayLike) -> Array:
    """Return the sign of Gamma(x): nan at negative integers; the sign of the zero at 0.

    x: real, any shape; the result has the same shape, and a floating dtype.

    >>> import plait
    >>> print(f"{plait.scipy.special.gammasgn(-0.5).item():.4f}")
    -1.0000
    """
    (x,) = floats(x)
    odd = el.ne(el.floor(x), 2.0 * el.floor(0.5 * el.floor(x)))
    left = el.select(el.eq(x, el.floor(x)), math.nan, el.select(odd, -1.0, 1.0))
    zero = el.sign(1.0 / el.select(el.eq(x, 0.0), x, 1.0))
    right = el.select(el.eq(x, 0.0), zero, el.select(el.ne(x, x), math.nan, 1.0))
    return el.stop(el.select(el.lt(x, 0.0), left, right))


@fused
def gamma(x: ArrayLike) -> Array:
    """Return the gamma function; inf at 0, nan at negative integers.

    x: numbers, any shape; the result has the same shape, and a floating or complex dtype.

    >>> import plait
    >>> print(f"{plait.scipy.special.gamma(5.0).item():.4f}")
    24.0000
    """
    (x,) = el.floating((x,))
    if x.aval.category == COMPLEX:
        return _complex_gamma(x)
    (x,) = floats(x)
    return gammasgn(x) * el.exp(el.lgamma(x))


_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
    1.5056327351493116e-7,
)  # fmt: skip
"""Coefficients of Lanczos' approximation (J. SIAM Numer. Anal. B 1, 1964), g = 7, by P.
Godfrey."""


def _complex_gamma(z: Value) -> Any:
    """Apply Lanczos' approximation in double precision.  The half plane left of 1/2 is reflected
    above the real axis, so that no exponential overflows, and conjugated below it."""
    given = z.aval.dtype
    z = convert(z, np.complex128)
    below = el.lt(el.imag(z), 0.0)
    z = el.select(below, el.conj(z), z)
    left = el.lt(el.real(z), 0.5)
    u = el.select(left, el.neg(z), z - 1.0)  # Lanczos' formula approximates Gamma(u + 1)
    t = u + 7.5
    series = _LANCZOS[0] + sum((c / (u + float(k)) for k, c in enumerate(_LANCZOS[1:], 1)), 0.0)
    log = (u + 0.5) * el.log(t) - t
    right = math.sqrt(2 * math.pi) * el.exp(log) * series
    x, y = el.real(z), el.imag(z)
    near = x - 2.0 * el.round_even(0.5 * x)  # exact; e ** (pi i x) has this period
    turned = math.pi * el.complex_(el.neg(y), near)
    other = math.sqrt(2 * math.pi) * series * el.expm1(2.0 * turned)
    reflected = 2j * math.pi * el.exp(turned - log) / other
    pole = el.and_(left, el.and_(el.eq(y, 0.0), el.eq(x, el.floor(x))))
    out = el.select(pole, complex(math.nan, math.nan), el.select(left, reflected, right))
    return convert(el.select(below, el.conj(out), out), given)


@fused
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the beta function Gamma(a) Gamma(b) / Gamma(a + b).

    a, b: real, of shapes that broadcast; the result is floating.

    >>> import plait
    >>> print(f"{plait.scipy.special.beta(2.0, 3.0).item():.4f}")
    0.0833
    """
    a, b = floats(a, b)
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * el.exp(sp.lbeta(a, b))


@border
def factorial(n: Any, exact: bool = False) -> Array:
    """Return Gamma(n + 1), rounded to an integer for integers; 0 for negative numbers.

    Raises TypeRule for `exact`: results are floats.

    n: real, any shape; the result has the same shape, and a floating dtype.

    >>> import plait
    >>> print(f"{plait.scipy.special.factorial(5).item():.4f}")
    120.0000
    """
    if exact:
        raise OperandTypeError(
            "factorial: results are floats, which hold no large whole number exactly",
            fix="use math.factorial for exact ones",
        )
    return _factorial(n)


_WHOLE = tuple([float(math.factorial(n)) for n in range(171)])


@fused
def _factorial(n: Value | list[Value]) -> Any:
    """Look up integers in a table: the logarithm would be off by some units."""
    (n,) = floats(n)
    out = el.exp(el.lgamma(el.maximum(n, 0.0) + 1.0))
    with np.errstate(over="ignore"):
        table = asarray(np.array(_WHOLE, n.aval.dtype))
    whole = el.and_(el.eq(n, el.floor(n)), el.le(n, 170.0))
    known = take(table, convert(el.clamp(0.0, n, 170.0), np.int32), 0, mode="promise_in_bounds")
    out = el.select(whole, _moved(out, known), out)
    return el.select(el.lt(n, 0.0), 0.0, out)


def _moved(x: Value, to: Value) -> Any:
    """Return the value `to` with the derivative of `x`."""
    both = el.and_(el.is_finite(x), el.is_finite(to))
    gap = el.stop(el.select(both, to - el.select(both, x, 0.0), 0.0))
    return el.select(both, x + gap, el.stop(to))


@fused
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Return Gamma(z + m) / Gamma(z), the rising factorial; 1 where m is 0.

    z, m: real, of shapes that broadcast; the result is floating.

    >>> import plait
    >>> print(f"{plait.scipy.special.poch(2.0, 3.0).item():.4f}")
    24.0000
    """
    z, m = floats(z, m)
    none = el.eq(m, 0.0)
    start = el.select(none, 1.0, z)
    size = el.exp(el.lgamma(start + m) - el.lgamma(start))
    return el.select(none, 1.0, gammasgn(start + m) * gammasgn(start) * size)


@border
def comb(N: object, k: object, *, repetition: bool = False) -> Array:
    """Count the ways to choose k of N, as floats; with `repetition`, of N + k - 1.

    0 where k is greater than N, or either is negative.

    N, k: real, of shapes that broadcast; the result is floating.

    Raises NotAnArrayError for operands that are not arrays.

    >>> import plait
    >>> print(f"{plait.scipy.special.comb(5, 2).item():.4f}")
    10.0000
    """
    return _comb(N, k, repetition=bool(repetition))


@fused
def _comb(n: Any, k: Any, *, repetition: bool) -> Any:
    n, k = floats(n, k)
    n = n + k - 1.0 if repetition else n
    good = el.and_(el.and_(el.le(k, n), k >= 0.0), n >= 0.0)
    n, k = el.select(good, n, 1.0), el.select(good, k, 0.0)
    out = el.exp(el.neg(el.log(n + 1.0)) - sp.lbeta(n - k + 1.0, k + 1.0))
    whole = el.and_(el.eq(n, el.floor(n)), el.eq(k, el.floor(k)))
    out = el.select(whole, _moved(out, el.round_even(out)), out)
    return el.select(good, out, 0.0)


def multigammaln(a: ArrayLike, d: int) -> Array:
    """Return the logarithm of the multivariate gamma function of dimension `d`, a Python integer.

    a: real, any shape; the result has the same shape, and a floating dtype.

    Raises OperandTypeError if d is not an integer, and ShapeError if it is less than 1.

    >>> import plait
    >>> print(f"{plait.scipy.special.multigammaln(3.0, 2).item():.4f}")
    1.5502
    """
    size = fixed("multigammaln", "d", d)
    if size < 1:
        raise ShapeError(f"multigammaln: dimension {size}", fix="give a number from 1 on")
    return _multigammaln(a, d=size)


@fused
def _multigammaln(a: Any, *, d: int) -> Any:
    (a,) = floats(a)
    total: Any = Literal(d * (d - 1) / 4 * math.log(math.pi), a.aval)
    for j in range(d):
        total = total + el.lgamma(a - 0.5 * j)
    return total


@functools.cache
def _bernoulli(n: int) -> tuple[float, ...]:
    """Return Bernoulli's numbers by the recurrence of DLMF 24.5.3, in fractions."""
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


def bernoulli(n: int) -> Array:
    """Return Bernoulli's numbers B_0 to B_n, with B_1 = -1/2; `n` is a Python integer.

    Raises OperandTypeError if n is not an integer from 0 on.

    >>> import plait
    >>> plait.scipy.special.bernoulli(4).tolist()[:3]
    [1.0, -0.5, 0.1666666716337204]
    """
    n = fixed("bernoulli", "n", n)
    if n < 0:
        raise OperandTypeError(f"there is no Bernoulli number {n}", fix="count from 0")
    with np.errstate(over="ignore"):
        return asarray(np.array(_bernoulli(n), default_dtype(FLOATING)))


__all__ = ["bernoulli", "beta", "comb", "factorial", "gamma", "gammasgn", "multigammaln", "poch"]
