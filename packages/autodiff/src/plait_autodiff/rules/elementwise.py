"""Derivatives of elementwise primitives.

Invariant: forward rules only multiply tangents by factors, so few of these primitives are ever
transposed.  Where a function has no derivative, the rule states the value that is used.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from plait.ext.ops.elementwise import (
    PLAIN,
    abs_,
    accurate,
    acos,
    acosh,
    add,
    and_,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitcast_,
    cbrt,
    clamp,
    complex_,
    conj,
    cos,
    cosh,
    digamma,
    div,
    eq,
    erf,
    erf_inv,
    erfc,
    exp,
    expm1,
    ge,
    gt,
    imag,
    integer_pow,
    is_finite,
    le,
    lgamma,
    log,
    log1p,
    logistic,
    lt,
    maximum,
    minimum,
    mul,
    neg,
    nextafter,
    not_,
    once,
    or_,
    pow_,
    real,
    reduce_precision,
    relu,
    rem,
    round_even,
    rsqrt,
    select,
    sign,
    sin,
    sinh,
    sqrt,
    stop,
    sub,
    tan,
    tanh,
)
from plait.ext.rules import Discrete
from plait.ext.rules import Linear as LinearTrait
from plait.ext.types import COMPLEX, FLOATING
from plait.ext.values import Literal

from ..forward import ZERO, instantiate, jvp_rules
from ..transpose import is_linear, transpose_rules


def one(x: Any) -> Literal:
    """Return ones like `x`."""
    return Literal(1, x.aval)


def const(value: float, x: Any) -> Literal:
    """Return a constant like `x`."""
    return Literal(value, x.aval)


# ---- by trait ------------------------------------------------------------------------------


@jvp_rules.rule(LinearTrait)
def _(prim, xs, ts, **params):
    out = prim.bind(*xs, **params)
    if all(t is ZERO for t in ts):
        return out, ZERO
    return out, prim.bind(*[instantiate(t, x) for t, x in zip(ts, xs)], **params)


@jvp_rules.rule(Discrete)
def _(prim, xs, ts, **params):
    return prim.bind(*xs, **params), ZERO


# ---- one operand ---------------------------------------------------------------------------


def _unary(prim: Any, slope: Callable[[Any, Any], Any]) -> None:
    """Register slope(x, y), the derivative at x, where y = prim(x)."""

    @jvp_rules.rule(prim)
    def _(xs, ts):
        (x,) = xs
        y = prim.bind(x)
        return y, mul.bind(ts[0], slope(x, y))


def _quotient(a: Any, b: Any) -> Any:
    return div.bind(a, b)


def _squared(x: Any) -> Any:
    return mul.bind(x, x)


_unary(sin, lambda x, y: cos.bind(x))
_unary(cos, lambda x, y: neg.bind(sin.bind(x)))
_unary(tan, lambda x, y: add.bind(one(x), _squared(y)))
_unary(exp, lambda x, y: y)
_unary(expm1, lambda x, y: exp.bind(x))  # y + 1 would lose all digits for x far below 0
_unary(log, lambda x, y: _quotient(one(x), x))
_unary(log1p, lambda x, y: _quotient(one(x), add.bind(x, one(x))))
_unary(tanh, lambda x, y: sub.bind(one(x), _squared(y)))
_unary(sinh, lambda x, y: cosh.bind(x))
_unary(cosh, lambda x, y: sinh.bind(x))


def _is_complex(x: Any) -> bool:
    return x.aval.category == COMPLEX


def _turned(x: Any) -> Any:
    """Return x times the imaginary unit, to the sign of each zero."""
    return complex_.bind(neg.bind(imag.bind(x)), real.bind(x))


def _far(x: Any) -> tuple[Any, Any]:
    """Return where |x| > 1, and 1 / x there, x elsewhere: its square is at most 1."""
    far = gt.bind(abs_.bind(x), one(x))
    inverse = div.bind(one(x), select.bind(far, x, one(x)))
    return far, select.bind(far, inverse, x)


def _root_of_less_square(x: Any) -> Any:
    """Return 1 / sqrt(1 - x^2), without the square: that of a complex number may be infinite."""
    below, above = sub.bind(one(x), x), add.bind(one(x), x)
    if _is_complex(x):
        return mul.bind(rsqrt.bind(below), rsqrt.bind(above))
    return rsqrt.bind(mul.bind(below, above))


def _root_of_more_square(x: Any) -> Any:
    """Return 1 / sqrt(1 + x^2), which for |x| > 1 is r / sqrt(1 + r^2) with r = 1 / |x|."""
    if _is_complex(x):
        return _root_of_less_square(_turned(x))
    far, u = _far(x)
    root = rsqrt.bind(add.bind(_squared(u), one(x)))
    return mul.bind(select.bind(far, abs_.bind(u), one(x)), root)


def _by_less_square(x: Any) -> Any:
    """Return 1 / (1 - x^2)."""
    below, above = sub.bind(one(x), x), add.bind(one(x), x)
    if _is_complex(x):
        return mul.bind(_quotient(one(x), below), _quotient(one(x), above))
    return _quotient(one(x), mul.bind(below, above))


def _by_more_square(x: Any) -> Any:
    """Return 1 / (1 + x^2), which for |x| > 1 is r^2 / (1 + r^2) with r = 1 / |x|."""
    if _is_complex(x):
        return _by_less_square(_turned(x))
    far, u = _far(x)
    square = _squared(u)
    return _quotient(select.bind(far, square, one(x)), add.bind(square, one(x)))


_unary(asin, lambda x, y: _root_of_less_square(x))
_unary(acos, lambda x, y: neg.bind(_root_of_less_square(x)))
_unary(atan, lambda x, y: _by_more_square(x))
_unary(asinh, lambda x, y: _root_of_more_square(x))
_unary(
    acosh,
    lambda x, y: mul.bind(rsqrt.bind(sub.bind(x, one(x))), rsqrt.bind(add.bind(x, one(x)))),
)
_unary(atanh, lambda x, y: _by_less_square(x))
_unary(sqrt, lambda x, y: _quotient(const(0.5, x), y))
_unary(rsqrt, lambda x, y: mul.bind(const(-0.5, x), _quotient(y, x)))
_unary(cbrt, lambda x, y: _quotient(const(1 / 3, x), _squared(y)))
_unary(logistic, lambda x, y: mul.bind(y, sub.bind(one(x), y)))
_ROOT_PI = float(np.sqrt(np.pi))
_unary(erf, lambda x, y: mul.bind(const(2 / _ROOT_PI, x), exp.bind(neg.bind(_squared(x)))))
_unary(erfc, lambda x, y: mul.bind(const(-2 / _ROOT_PI, x), exp.bind(neg.bind(_squared(x)))))
_unary(erf_inv, lambda x, y: mul.bind(const(_ROOT_PI / 2, x), exp.bind(_squared(y))))
_unary(lgamma, lambda x, y: digamma.bind(x))


@jvp_rules.rule(digamma)
def _(xs, ts):
    """Use the recurrence psi1(x) = psi1(x + 1) + 1 / x^2 up to x >= 8.

    From there use the asymptotic series (Abramowitz and Stegun 6.4.12), and for x < 0.5 the
    reflection formula (6.4.7).
    """
    (x,) = xs
    return digamma.bind(x), mul.bind(ts[0], _trigamma(x))


def _trigamma(x: Any) -> Any:
    low = lt(x, 0.5)
    z = select(low, sub.bind(one(x), x), x)
    total = const(0.0, x)
    for k in range(8):
        y = add.bind(z, const(float(k), x))
        total = add.bind(total, _quotient(one(x), _squared(y)))
    y = add.bind(z, const(8.0, x))
    r = _quotient(one(x), y)
    r2 = _squared(r)
    series = const(0.0, x)
    for c in (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):
        series = add.bind(mul.bind(series, r2), const(c, x))
    tail = add.bind(r, mul.bind(r2, add.bind(const(0.5, x), mul.bind(series, r))))
    total = add.bind(total, tail)
    # Reduced to half a turn, so that the sine is zero at the poles only.
    turn = select.bind(low, sub.bind(x, round_even.bind(x)), const(0.5, x))
    s = _quotient(const(float(np.pi), x), sin.bind(mul.bind(const(float(np.pi), x), turn)))
    return select(low, sub.bind(_squared(s), total), total)


@jvp_rules.rule(abs_)
def _(xs, ts):
    """Use 1 as the derivative at 0 for real numbers, and 0 for complex ones."""
    (x,) = xs
    y = abs_.bind(x)
    if x.aval.category == COMPLEX:
        return y, real.bind(mul.bind(ts[0], conj.bind(sign.bind(x))))
    slope = select.bind(ge.bind(x, const(0, x)), one(x), const(-1, x))
    return y, mul.bind(ts[0], slope)


@jvp_rules.rule(sign)
def _(xs, ts):
    (x,) = xs
    y = sign.bind(x)
    if x.aval.category != COMPLEX:
        return y, ZERO
    # The phase z / |z| varies: its derivative is the part of t / |z| perpendicular to z.
    r = abs_.bind(x)
    across = imag.bind(mul.bind(ts[0], conj.bind(y)))
    turn = complex_.bind(Literal(0, r.aval), div.bind(across, r))
    return y, mul.bind(y, turn)


@jvp_rules.rule(integer_pow)
def _(xs, ts, *, exponent):
    (x,) = xs
    y = integer_pow.bind(x, exponent=exponent)
    if exponent == 0:
        return y, ZERO
    if exponent == 1:
        return y, ts[0]
    lower = x if exponent == 2 else integer_pow.bind(x, exponent=exponent - 1)
    return y, mul.bind(ts[0], mul.bind(const(exponent, x), lower))


@jvp_rules.rule(reduce_precision)
def _(xs, ts, **params):
    return reduce_precision.bind(*xs, **params), reduce_precision.bind(*ts, **params)


@jvp_rules.rule(relu)
def _(xs, ts):
    """Use 0 as the derivative at 0."""
    (x,) = xs
    return relu.bind(x), select.bind(gt.bind(x, const(0, x)), ts[0], const(0, x))


# ---- two operands --------------------------------------------------------------------------


def _sum(a: Any, b: Any) -> Any:
    return b if a is ZERO else a if b is ZERO else add.bind(a, b)


def _binary(prim: Any, left: Callable, right: Callable) -> None:
    """Register partial derivatives left(x, y, out), right(x, y, out), computed only if needed."""

    @jvp_rules.rule(prim)
    def _(xs, ts):
        x, y = xs
        t, u = ts
        out = prim.bind(x, y)
        return out, _sum(
            ZERO if t is ZERO else mul.bind(t, left(x, y, out)),
            ZERO if u is ZERO else mul.bind(u, right(x, y, out)),
        )


@jvp_rules.rule(add)
def _(xs, ts):
    return add.bind(*xs), _sum(*ts)


@jvp_rules.rule(sub)
def _(xs, ts):
    t, u = ts
    if u is ZERO:
        return sub.bind(*xs), t
    return sub.bind(*xs), neg.bind(u) if t is ZERO else sub.bind(t, u)


@jvp_rules.rule(nextafter)
def _(xs, ts):
    """Return the tangent of x: the result is one step away from x and varies as x does."""
    return nextafter.bind(*xs), ts[0]


@jvp_rules.rule(mul)
def _(xs, ts):
    x, y = xs
    t, u = ts
    return mul.bind(x, y), _sum(
        ZERO if t is ZERO else mul.bind(t, y), ZERO if u is ZERO else mul.bind(u, x)
    )


@jvp_rules.rule(div)
def _(xs, ts):
    x, y = xs
    t, u = ts
    out = div.bind(x, y)
    return out, _sum(
        ZERO if t is ZERO else div.bind(t, y),
        ZERO if u is ZERO else mul.bind(u, _by_denominator(x, y, out)),
    )


_PLAIN = 2.0**8
"""Range of constants whose product with a power overflows hardly earlier than the power itself."""


def _by_denominator(x: Any, y: Any, out: Any) -> Any:
    """Return -x / y**2; for constant x as a power of y, whose derivatives are powers again."""
    if x.__class__ is Literal and 1 / _PLAIN <= abs(x.value) <= _PLAIN:
        square = integer_pow.bind(y, exponent=-2)
        return neg.bind(square) if x.value == 1 else mul.bind(const(-x.value, y), square)
    return neg.bind(div.bind(out, y))


def _pow_base(x: Any, y: Any, out: Any) -> Any:
    """Return y x^(y-1), and 0 where y is 0, also for x = 0 and infinite x."""
    if y.__class__ is Literal:
        less = Literal(y.value - 1, y.aval)
        return mul.bind(y, pow_.bind(x, less)) if y.value else const(0, x)
    bad = eq.bind(x, const(0, x))
    if x.aval.category != COMPLEX:
        bad = or_.bind(bad, not_.bind(is_finite.bind(x)))
    still = and_.bind(eq.bind(y, const(0, y)), bad)
    return mul.bind(y, pow_.bind(select.bind(still, one(x), x), sub.bind(y, one(y))))


def _pow_exponent(x: Any, y: Any, out: Any) -> Any:
    """Return x^y log x, which tends to 0 at x = 0 for y > 0; 0 also for y = 0."""
    zero = eq.bind(x, const(0, x))
    if y.aval.category != COMPLEX:
        zero = and_.bind(zero, ge.bind(y, const(0, y)))
    safe = select.bind(zero, one(x), x)
    return select.bind(zero, const(0, x), mul.bind(log.bind(safe), out))


_binary(pow_, _pow_base, _pow_exponent)


@jvp_rules.rule(atan2)
def _(xs, ts):
    """Divide the smaller coordinate by the greater, because their squares may overflow or vanish.

    With u this quotient and k = 1 / (1 + u^2), the partial derivatives are k / greater and
    u k / greater.
    """
    x, y = xs
    out = atan2.bind(x, y)
    if _is_complex(x):
        radius = add.bind(_squared(x), _squared(y))
        left, right = div.bind(y, radius), neg.bind(div.bind(x, radius))
    else:
        flat = ge.bind(abs_.bind(y), abs_.bind(x))
        greater, lesser = select.bind(flat, y, x), select.bind(flat, x, y)
        u = div.bind(lesser, greater)
        along = div.bind(_quotient(one(u), add.bind(one(u), _squared(u))), greater)
        across = mul.bind(u, along)
        left, right = select.bind(flat, along, across), neg.bind(select.bind(flat, across, along))
    parts = [ZERO if t is ZERO else mul.bind(t, d) for t, d in zip(ts, (left, right))]
    return out, _sum(*parts)


def _share(beats: Any, x: Any, y: Any, out: Any) -> Any:
    """Return 1 where `x` is the result, 0 where `y` is, a half at a tie.

    Operands are compared with each other, not with the result: if an operand is computed twice,
    it may be rounded differently and no longer equal the result.
    """
    ordered = x.aval.category != COMPLEX
    wins = select.bind(beats.bind(x, y) if ordered else eq.bind(x, out), one(x), const(0, x))
    return select.bind(eq.bind(x, y), const(0.5, x), wins)


for _prim, _beats in ((maximum, gt), (minimum, lt)):
    _binary(
        _prim,
        lambda x, y, out, beats=_beats: _share(beats, x, y, out),
        lambda x, y, out, beats=_beats: _share(beats, y, x, out),
    )


def _towards_zero(x: Any, y: Any) -> Any:
    """Return -trunc(x / y), the factor of y in rem."""
    q = div.bind(sub.bind(x, rem.bind(x, y)), y)
    return neg.bind(q)


_binary(rem, lambda x, y, out: one(x), lambda x, y, out: _towards_zero(x, y))


# ---- selection -----------------------------------------------------------------------------


@jvp_rules.rule(select)
def _(xs, ts):
    p, x, y = xs
    out = select.bind(p, x, y)
    if ts[1] is ZERO and ts[2] is ZERO:
        return out, ZERO
    return out, select.bind(p, instantiate(ts[1], x), instantiate(ts[2], y))


@jvp_rules.rule(clamp)
def _(xs, ts):
    """Return the tangent of x inside the bounds, and that of the bound outside and at it."""
    low, x, high = xs
    out = clamp.bind(low, x, high)
    below, above = ge.bind(low, x), le.bind(high, x)
    a, t, b = (instantiate(t, v) for t, v in zip(ts, xs))
    return out, select.bind(below, a, select.bind(above, b, t))


# ---- transposes ----------------------------------------------------------------------------


def _scaled(ct: Any, y: Any) -> Any:
    """Return ct * y, or y where ct is 1: the seed of a gradient is 1 and meets products first."""
    if ct.__class__ is Literal and ct.value == 1 and (y.aval is ct.aval or ct.aval.weak_type):
        return y
    return mul.bind(ct, y)


@transpose_rules.rule(once)
def _(ct, x):
    return (ct,)


@transpose_rules.rule(neg)
def _(ct, x):
    if ct.__class__ is Literal and ct.aval.category == FLOATING:
        return (Literal(-ct.value, ct.aval),)
    return (neg.bind(ct),)


@transpose_rules.rule(add)
def _(ct, x, y):
    return ct, ct


@transpose_rules.rule(sub)
def _(ct, x, y):
    return ct, neg.bind(ct) if is_linear(y) else None


@transpose_rules.rule(mul)
def _(ct, x, y):
    return (_scaled(ct, y), None) if is_linear(x) else (None, _scaled(ct, x))


@transpose_rules.rule(div)
def _(ct, x, y):
    return div.bind(ct, y), None


@transpose_rules.rule(select)
def _(ct, p, x, y):
    zero = Literal(0, ct.aval)
    left = select.bind(p, ct, zero) if is_linear(x) else None
    return None, left, select.bind(p, zero, ct) if is_linear(y) else None


@transpose_rules.rule(stop)
def _(ct, x):
    """Return no cotangent.

    Linear programs contain `stop` where a mapped branch takes a value that must not vary; no
    cotangent of that value is wanted.
    """
    return (None,)


@transpose_rules.rule(real)
def _(ct, x):
    return (complex_.bind(ct, Literal(0, ct.aval)),)


@transpose_rules.rule(imag)
def _(ct, x):
    # The pairing is bilinear: Im z = Re(-i z).
    return (complex_.bind(Literal(0, ct.aval), neg.bind(ct)),)


@transpose_rules.rule(complex_)
def _(ct, x, y):
    return (
        real.bind(ct) if is_linear(x) else None,
        neg.bind(imag.bind(ct)) if is_linear(y) else None,
    )


@transpose_rules.rule(conj)
def _(ct, x):
    return (conj.bind(ct),)


@transpose_rules.rule(reduce_precision)
def _(ct, x, **params):
    return (reduce_precision.bind(ct, **params),)


@jvp_rules.rule(bitcast_)
def _(xs, ts, *, dtype):
    return bitcast_.bind(*xs, dtype=dtype), ZERO


@jvp_rules.rule(accurate)
def _(xs, ts, *, of, mode, tolerance):
    _, tangent = jvp_rules[PLAIN[of]](xs, ts)
    return accurate.bind(*xs, of=of, mode=mode, tolerance=tolerance), tangent
