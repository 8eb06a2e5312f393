"""Wave integrals, harmonics and relatives of gamma and erf, with the names of scipy.special.

Invariant: real operands give the function on the real line, in a floating dtype; complex operands
are accepted only where documented.
"""

import math
from typing import Any

import numpy as np

from plait.errors import ArgumentError, ConcretizationError, OperandTypeError
from plait.ext import Array, Literal
from plait.ext.control import fori_loop
from plait.ext.errors import border
from plait.ext.ops import elementwise as el
from plait.ext.ops.shape import convert, stack
from plait.ext.surface import fixed, fused, value
from plait.ext.trace import Value
from plait.ext.types import COMPLEX, FLOATING, INTEGER, default_dtype
from plait.typing import Array as AnyArray
from plait.typing import ArrayLike

from ..primitives.special import hypergeometric as hyp
from ..primitives.special import trigonometric_integrals
from ..primitives.special.bessel import bessel_j
from ..primitives.special.error_functions import erfcx as _erfcx
from ..primitives.special.error_functions import wofz as _wofz

# ---- relatives of the error function ---------------------------------------------------------


def _as_complex(x: Any) -> Any:
    (x,) = el.floating((x,))
    if x.aval.category == COMPLEX:
        return x
    wide = x if x.aval.dtype.itemsize >= 4 else convert(x, np.float32)
    return el.complex_(wide, Literal(0.0, wide.aval))


@fused
def wofz(z: ArrayLike) -> AnyArray:
    """Return Faddeeva's function w(z) = e ** (-z * z) erfc(-i z).

    Args:
      z: real or complex, any shape; the result has the same shape, and a complex dtype.

    Within 100 units in the last place of |w|, as measured against scipy; the derivative is
    2 i / sqrt(pi) - 2 z w(z).  Source: J. A. C. Weideman, SIAM J. Numer. Anal. 31 (1994).

    >>> import plait
    >>> print(f"{plait.scipy.special.wofz(1.0).item():.4f}")
    0.3679+0.6072j
    """
    return _wofz(_as_complex(z))


@fused
def erfcx(x: ArrayLike) -> AnyArray:
    """Return e ** (x * x) erfc(x), which does not underflow.

    Args:
      x: real or complex, any shape; the result has the same shape and dtype, at least floating.

    Within 5 units in the last place for real x in float64, 40 in float32.  Source: Chebyshev's
    series in (x - 3.75) / (x + 3.75); for complex numbers w(i x).

    >>> import plait
    >>> print(f"{plait.scipy.special.erfcx(100.0).item():.6f}")
    0.005642
    """
    (x,) = el.floating((x,))
    if x.aval.category == COMPLEX:
        return _wofz(el.complex_(el.neg(el.imag(x)), el.real(x)))
    return _erfcx(x)


# ---- gamma -----------------------------------------------------------------------------------

_SHIFT = 9


@fused
def loggamma(x: ArrayLike) -> AnyArray:
    """Return the principal branch of the logarithm of Gamma.

    Args:
      x: real or complex, any shape; the result has the same shape and dtype, at least floating.  It
        is nan for negative real numbers: pass complex ones.

    For complex numbers within 50 units in the last place of the absolute value, away from the zeros
    at 1 and 2.  Source: Stirling's series (DLMF 5.11.1), after recurrence and reflection.

    >>> import plait
    >>> print(f"{plait.scipy.special.loggamma(-0.5 + 0j).item():.4f}")
    1.2655-3.1416j
    """
    (x,) = el.floating((x,))
    if x.aval.category == FLOATING:
        below = el.lt(x, 0.0)
        return el.select(below, math.nan, el.lgamma(el.select(below, 1.0, x)))
    return _loggamma(x)


def _loggamma(z: Value) -> Any:
    """Shift arguments in the right half plane to where the series holds.  Reflect the left one
    by Gamma(z) Gamma(1 - z) = pi / sin(pi z), on the branch that is real for positive z."""
    left = el.lt(el.real(z), 0.5)
    w = el.select(left, 1.0 - z, z)
    shifted, total = w + float(_SHIFT), el.log(w)
    for k in range(1, _SHIFT):
        total = total + el.log(w + float(k))
    r = 1.0 / shifted
    out = (shifted - 0.5) * el.log(shifted) - shifted + 0.5 * math.log(2 * math.pi)
    terms = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
    tail: Any = Literal(terms[-1], z.aval.strong())
    for t in reversed(terms[:-1]):
        tail = tail * (r * r) + t
    right = out + tail * r - total
    y = el.imag(z)
    up = el.select(el.lt(y, 0.0), el.conj(z), z)
    up = el.select(left, up, 0.25j)
    turn = el.exp(up * (2j * math.pi))
    # log(sin(pi z)) for Im z >= 0: sin(pi z) = e ** (-i pi z) (1 - e ** (2 i pi z)) i / 2
    sine = el.log1p(el.neg(turn)) - up * (1j * math.pi) + (0.5j * math.pi - math.log(2))
    sine = el.select(el.lt(y, 0.0), el.conj(sine), sine)
    return el.select(left, math.log(math.pi) - sine - right, right)


# ---- wave integrals --------------------------------------------------------------------------


@border
def fresnel(x: ArrayLike) -> tuple[Any, Any]:
    """Return Fresnel's integrals (S, C): of sin and cos of pi t * t / 2 from 0 to x.

    Args:
      x: real, any shape; the results have the same shape, and a floating dtype.

    Within 3 units in the last place, also for large x.  Source: Chebyshev's series; beyond 2.5
    those of the auxiliary functions of DLMF 7.5.  Raises TypeRule for complex numbers.

    >>> import plait
    >>> print("{:.4f} {:.4f}".format(*[v.item() for v in plait.scipy.special.fresnel(1.0)]))
    0.4383 0.7799
    """
    s, c = trigonometric_integrals.fresnel(x)
    return s, c


@border
def sici(x: ArrayLike) -> tuple[Any, Any]:
    """Return the sine and cosine integrals (Si, Ci): of sin(t) / t from 0 to x, and of cos(t) / t
    from infinity to x; Ci depends on |x| only.

    Args:
      x: real, any shape; the results have the same shape, and a floating dtype.

    Within 3 units in the last place, except near the roots of Ci, where the error is 1e-15 in
    float64 and 1e-6 in float32.  Source: Chebyshev's series; beyond 8 those of the auxiliary
    functions of DLMF 6.2.  Raises TypeRule for complex numbers.

    >>> import plait
    >>> print("{:.4f} {:.4f}".format(*[v.item() for v in plait.scipy.special.sici(1.0)]))
    0.9461 0.3374
    """
    si, ci = trigonometric_integrals.sici(x)
    return si, ci


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> AnyArray:
    """Return Bessel functions of the first kind, J_0 to J_v.

    Args:
      z: real, any shape; any sign and size.
      v: the highest order, a Python integer from 0 on.
      n_iter: accepted for compatibility; the number of steps does not depend on it.

    Returns (v + 1, *z.shape), a floating dtype.  Within 5e-16 absolutely in float64 for v <= 5.
    Source: J. C. P. Miller's recurrence (DLMF 3.6), Hankel's expansion (10.17.3) for large z.
    Raises TypeRule for other orders, and for complex numbers.

    >>> import plait
    >>> [round(x, 4) for x in plait.scipy.special.bessel_jn(1.0, v=2).tolist()]
    [0.7652, 0.4401, 0.1149]
    """
    fixed("bessel_jn", "n_iter", n_iter)
    return _bessel_jn(value(z), order=fixed("bessel_jn", "v", v))


@fused
def _bessel_jn(z: Value, *, order: int) -> Any:
    return stack(list(bessel_j(z, order=order)), 0)


# ---- hypergeometric functions ----------------------------------------------------------------


@fused
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> AnyArray:
    """Return Kummer's confluent hypergeometric function M(a, b, x).

    Args:
      a, b, x: real, of shapes that broadcast; the result is floating.

    Within a relative error of 1e-13 where no terms cancel.  They do for x < 0 and a far above b: 8
    digits remain for (20, 1, -20).  inf where b is 0, -1, ... and the series does not end before.
    Differentiable in all three, except in `a` at 0, -1, ...  Computed in float64.  Source: the
    power series, DLMF 13.2.39 and 13.7.2.

    >>> import plait
    >>> print(f"{plait.scipy.special.hyp1f1(1.0, 2.0, -3.0).item():.4f}")
    0.3167
    """
    return hyp.hyp1f1(a, b, x)


@fused
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> AnyArray:
    """Return Gauss's hypergeometric function F(a, b; c; x), for x <= 1; for x > 1, where it is
    complex, nan unless the series ends.

    Args:
      a, b, c, x: real, of shapes that broadcast; the result is floating.

    Mostly within a relative error of 1e-14; 1e-9 very close to 1 where c - a - b is nearly an
    integer.  Differentiable in all four, except in `a` and `b` at 0, -1, ...  Computed in float64.
    Source: the power series, and transformations of DLMF 15.8.

    >>> import plait
    >>> print(f"{plait.scipy.special.hyp2f1(1.0, 1.0, 2.0, -1.0).item():.4f}")
    0.6931
    """
    return hyp.hyp2f1(a, b, c, x)


# ---- spherical harmonics ---------------------------------------------------------------------


def sph_harm_y(
    n: object, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, diff_n: int | None = None,
    n_max: int | None = None,
) -> AnyArray:  # fmt: skip
    """Return spherical harmonics, orthonormal and with Condon and Shortley's sign.

    Args:
      n: degrees, integers from 0 on.
      m: orders, integers; the result is 0 where |m| > n.
      theta: angles from the pole; outside of [0, pi] the associated Legendre functions are those of
        cos(theta), as in scipy.
      phi: angles around the pole.
      diff_n: must be None; transformations give derivatives.
      n_max: the highest degree, a Python integer; needed where `n` is traced.

    Operands broadcast; the result is complex, and nan where n is negative or above `n_max`.
    Source: the recurrence in the degree, DLMF 14.10.3 with 14.30.1.
    Raises TypeRule for degrees and orders that are not integers, and ConcretizationError without
    `n_max` where `n` is traced.

    >>> import plait
    >>> print(f"{plait.scipy.special.sph_harm_y(1, 0, 0.0, 0.0).item():.4f}")
    0.4886+0.0000j
    """
    n, m = value(n), value(m)
    for x, what in ((n, "degrees"), (m, "orders")):
        if x.aval.category != INTEGER:
            raise OperandTypeError(
                f"sph_harm_y: {what} are integers, not {x.aval!r}", fix="use .astype"
            )
    if diff_n is not None:
        raise ArgumentError(
            "sph_harm_y has no diff_n", fix="differentiate it with a transformation"
        )
    most = _highest(n) if n_max is None else fixed("sph_harm_y", "n_max", n_max)
    theta, phi = el.floating((theta, phi))
    if theta.aval.category != FLOATING:
        raise ArgumentError(f"sph_harm_y: angles are real, not {theta.aval!r}", fix="take .real")
    return _harmonics(n, m, theta, phi, most=max(most, 0))


def _highest(n: Any) -> int:
    if n.__class__ is Literal:
        return int(n.value)
    if n.__class__ is Array:
        return int(np.max(np.asarray(n), initial=0))
    raise ConcretizationError(
        "sph_harm_y: how many degrees there are is not known while a function is traced",
        fix="pass n_max, the highest degree",
    )


@fused
def _harmonics(n: Value, m: Value, theta: Value, phi: Value, *, most: int) -> Any:
    dtype = theta.aval.dtype if theta.aval.dtype.itemsize >= 4 else default_dtype(FLOATING)
    theta, phi = convert(theta, dtype), convert(phi, dtype)
    whole = [convert(v, dtype) for v in (n, m)]
    k, j, theta, phi = el.promoted([*whole, theta, phi])
    size = el.abs_(j)
    # The root of 1 - c ** 2 is the factor for polar angles outside of [0, pi] too.
    s, c = el.abs_(el.sin(theta)), el.cos(theta)

    def raised(i: Value, p: Value) -> Any:
        """Return the function of degree and order i from that of i - 1."""
        i = convert(i, dtype)
        return el.select(el.le(i, size), el.neg(el.sqrt((2.0 * i + 1.0) / (2.0 * i))) * s * p, p)

    start = Literal(math.sqrt(0.25 / math.pi), theta.aval.strong())
    first = fori_loop(1, most + 1, raised, start + 0.0 * s)

    def climbed(i: Value, state: tuple[Value, ...]) -> Any:
        """Return the function of degree i from those of the two degrees below."""
        below, p = state
        i = convert(i, dtype)
        on = el.and_(el.gt(i, size), el.le(i, k))
        width = el.select(on, i * i - size * size, 1.0)
        up = el.sqrt((4.0 * i * i - 1.0) / width)
        last = el.select(on, (i - 1.0) * (i - 1.0) - size * size, 0.0)
        down = el.sqrt(last) * el.sqrt(1.0 / (4.0 * (i - 1.0) * (i - 1.0) - 1.0 + 4.0 * (i < 1.5)))
        new = up * (c * p - down * below)
        return el.select(on, p, below), el.select(on, new, p)

    _, p = fori_loop(1, most + 1, climbed, (0.0 * first, first))
    p = el.select(el.gt(size, k), 0.0, p)
    p = el.select(el.or_(el.lt(k, 0.0), el.gt(k, float(most))), math.nan, p)
    odd = el.ne(size, 2.0 * el.floor(0.5 * size))
    p = el.select(el.and_(el.lt(j, 0.0), odd), el.neg(p), p)
    angle = j * phi
    return el.complex_(p * el.cos(angle), p * el.sin(angle))


__all__ = [
    "bessel_jn", "erfcx", "fresnel", "hyp1f1", "hyp2f1", "loggamma", "sici", "sph_harm_y", "wofz",
]  # fmt: skip
