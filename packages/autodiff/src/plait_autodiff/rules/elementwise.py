"""Derivatives of elementwise primitives.

Invariant: forward rules only multiply tangents by factors, so few of these primitives are ever
transposed.  Where a function has no derivative, the rule states the value that is used.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from plait.ext.ir import Primitive
from plait.ext.ops import elementwise as el
from plait.ext.rules import Discrete
from plait.ext.rules import Linear as LinearTrait
from plait.ext.trace import Value
from plait.ext.types import COMPLEX, FLOATING
from plait.ext.values import Literal

from ..forward import ZERO, Zero, instantiate, jvp_rules
from ..transpose import Linear, is_linear, transpose_rules


def one(x: Any) -> Literal:
    """Return ones like `x`."""
    return Literal(1, x.aval)


def const(value: float, x: Any) -> Literal:
    """Return a constant like `x`."""
    return Literal(value, x.aval)


# ---- by trait ------------------------------------------------------------------------------


@jvp_rules.rule(LinearTrait)
def _(prim: Primitive, xs: list[Value], ts: list[Any], /, **params: object):
    out = prim.bind(*xs, **params)
    if all(t is ZERO for t in ts):
        return out, ZERO
    return out, prim.bind(*[instantiate(t, x) for t, x in zip(ts, xs)], **params)


@jvp_rules.rule(Discrete)
def _(prim: Primitive, xs: list[Value], ts: list[Any], /, **params: object):
    return prim.bind(*xs, **params), ZERO


# ---- one operand ---------------------------------------------------------------------------


def _unary(prim: Primitive, slope: Callable[[Any, Any], Any]) -> None:
    """Register slope(x, y), the derivative at x, where y = prim(x)."""

    @jvp_rules.rule(prim)
    def _(xs: list[Value], ts: list[Value]):
        (x,) = xs
        y = prim.bind(x)
        return y, el.mul.bind(ts[0], slope(x, y))


def _quotient(a: Value, b: Value) -> Any:
    return el.div.bind(a, b)


def _squared(x: Value) -> Any:
    return el.mul.bind(x, x)


_unary(el.sin, lambda x, y: el.cos.bind(x))
_unary(el.cos, lambda x, y: el.neg.bind(el.sin.bind(x)))
_unary(el.tan, lambda x, y: el.add.bind(one(x), _squared(y)))
_unary(el.exp, lambda x, y: y)
_unary(el.expm1, lambda x, y: el.exp.bind(x))  # y + 1 would lose all digits for x far below 0
_unary(el.log, lambda x, y: _quotient(one(x), x))
_unary(el.log1p, lambda x, y: _quotient(one(x), el.add.bind(x, one(x))))
_unary(el.tanh, lambda x, y: el.sub.bind(one(x), _squared(y)))
_unary(el.sinh, lambda x, y: el.cosh.bind(x))
_unary(el.cosh, lambda x, y: el.sinh.bind(x))


def _is_complex(x: Value) -> bool:
    return x.aval.category == COMPLEX


def _turned(x: Value) -> Any:
    """Return x times the imaginary unit, to the sign of each zero."""
    return el.complex_.bind(el.neg.bind(el.imag.bind(x)), el.real.bind(x))


def _far(x: Value) -> tuple[Any, Any]:
    """Return where |x| > 1, and 1 / x there, x elsewhere: its square is at most 1."""
    far = el.gt.bind(el.abs_.bind(x), one(x))
    inverse = el.div.bind(one(x), el.select.bind(far, x, one(x)))
    return far, el.select.bind(far, inverse, x)


def _root_of_less_square(x: Value) -> Any:
    """Return 1 / sqrt(1 - x^2), without the square: that of a complex number may be infinite."""
    below, above = el.sub.bind(one(x), x), el.add.bind(one(x), x)
    if _is_complex(x):
        return el.mul.bind(el.rsqrt.bind(below), el.rsqrt.bind(above))
    return el.rsqrt.bind(el.mul.bind(below, above))


def _root_of_more_square(x: Value) -> Any:
    """Return 1 / sqrt(1 + x^2), which for |x| > 1 is r / sqrt(1 + r^2) with r = 1 / |x|."""
    if _is_complex(x):
        return _root_of_less_square(_turned(x))
    far, u = _far(x)
    root = el.rsqrt.bind(el.add.bind(_squared(u), one(x)))
    return el.mul.bind(el.select.bind(far, el.abs_.bind(u), one(x)), root)


def _by_less_square(x: Value) -> Any:
    """Return 1 / (1 - x^2)."""
    below, above = el.sub.bind(one(x), x), el.add.bind(one(x), x)
    if _is_complex(x):
        return el.mul.bind(_quotient(one(x), below), _quotient(one(x), above))
    return _quotient(one(x), el.mul.bind(below, above))


def _by_more_square(x: Value) -> Any:
    """Return 1 / (1 + x^2), which for |x| > 1 is r^2 / (1 + r^2) with r = 1 / |x|."""
    if _is_complex(x):
        return _by_less_square(_turned(x))
    far, u = _far(x)
    square = _squared(u)
    return _quotient(el.select.bind(far, square, one(x)), el.add.bind(square, one(x)))


_unary(el.asin, lambda x, y: _root_of_less_square(x))
_unary(el.acos, lambda x, y: el.neg.bind(_root_of_less_square(x)))
_unary(el.atan, lambda x, y: _by_more_square(x))
_unary(el.asinh, lambda x, y: _root_of_more_square(x))
_unary(
    el.acosh,
    lambda x, y: el.mul.bind(
        el.rsqrt.bind(el.sub.bind(x, one(x))), el.rsqrt.bind(el.add.bind(x, one(x)))
    ),
)
_unary(el.atanh, lambda x, y: _by_less_square(x))
_unary(el.sqrt, lambda x, y: _quotient(const(0.5, x), y))
_unary(el.rsqrt, lambda x, y: el.mul.bind(const(-0.5, x), _quotient(y, x)))
_unary(el.cbrt, lambda x, y: _quotient(const(1 / 3, x), _squared(y)))
_unary(el.logistic, lambda x, y: el.mul.bind(y, el.sub.bind(one(x), y)))
_ROOT_PI = float(np.sqrt(np.pi))
_unary(
    el.erf, lambda x, y: el.mul.bind(const(2 / _ROOT_PI, x), el.exp.bind(el.neg.bind(_squared(x))))
)
_unary(
    el.erfc,
    lambda x, y: el.mul.bind(const(-2 / _ROOT_PI, x), el.exp.bind(el.neg.bind(_squared(x)))),
)
_unary(el.erf_inv, lambda x, y: el.mul.bind(const(_ROOT_PI / 2, x), el.exp.bind(_squared(y))))
_unary(el.lgamma, lambda x, y: el.digamma.bind(x))


@jvp_rules.rule(el.digamma)
def _(xs: list[Value], ts: list[Value]):
    """Use the recurrence psi1(x) = psi1(x + 1) + 1 / x^2 up to x >= 8.

    From there use the asymptotic series (Abramowitz and Stegun 6.4.12), and for x < 0.5 the
    reflection formula (6.4.7).
    """
    (x,) = xs
    return el.digamma.bind(x), el.mul.bind(ts[0], _trigamma(x))


def _trigamma(x: Value) -> Any:
    low = el.lt(x, 0.5)
    z = el.select(low, el.sub.bind(one(x), x), x)
    total = const(0.0, x)
    for k in range(8):
        y = el.add.bind(z, const(float(k), x))
        total = el.add.bind(total, _quotient(one(x), _squared(y)))
    y = el.add.bind(z, const(8.0, x))
    r = _quotient(one(x), y)
    r2 = _squared(r)
    series = const(0.0, x)
    for c in (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):
        series = el.add.bind(el.mul.bind(series, r2), const(c, x))
    tail = el.add.bind(r, el.mul.bind(r2, el.add.bind(const(0.5, x), el.mul.bind(series, r))))
    total = el.add.bind(total, tail)
    # Reduced to half a turn, so that the sine is zero at the poles only.
    turn = el.select.bind(low, el.sub.bind(x, el.round_even.bind(x)), const(0.5, x))
    s = _quotient(const(float(np.pi), x), el.sin.bind(el.mul.bind(const(float(np.pi), x), turn)))
    return el.select(low, el.sub.bind(_squared(s), total), total)


@jvp_rules.rule(el.abs_)
def _(xs: list[Value], ts: list[Value]):
    """Use 1 as the derivative at 0 for real numbers, and 0 for complex ones."""
    (x,) = xs
    y = el.abs_.bind(x)
    if x.aval.category == COMPLEX:
        return y, el.real.bind(el.mul.bind(ts[0], el.conj.bind(el.sign.bind(x))))
    slope = el.select.bind(el.ge.bind(x, const(0, x)), one(x), const(-1, x))
    return y, el.mul.bind(ts[0], slope)


@jvp_rules.rule(el.sign)
def _(xs: list[Value], ts: list[Value]):
    (x,) = xs
    y = el.sign.bind(x)
    if x.aval.category != COMPLEX:
        return y, ZERO
    # The phase z / |z| varies: its derivative is the part of t / |z| perpendicular to z.
    r = el.abs_.bind(x)
    across = el.imag.bind(el.mul.bind(ts[0], el.conj.bind(y)))
    turn = el.complex_.bind(Literal(0, r.aval), el.div.bind(across, r))
    return y, el.mul.bind(y, turn)


@jvp_rules.rule(el.integer_pow)
def _(xs: list[Value], ts: list[Value], *, exponent: int):
    (x,) = xs
    y = el.integer_pow.bind(x, exponent=exponent)
    if exponent == 0:
        return y, ZERO
    if exponent == 1:
        return y, ts[0]
    lower = x if exponent == 2 else el.integer_pow.bind(x, exponent=exponent - 1)
    return y, el.mul.bind(ts[0], el.mul.bind(const(exponent, x), lower))


@jvp_rules.rule(el.reduce_precision)
def _(xs: list[Value], ts, /, **params: object):
    return el.reduce_precision.bind(*xs, **params), el.reduce_precision.bind(*ts, **params)


@jvp_rules.rule(el.relu)
def _(xs: list[Value], ts: list[Value]):
    """Use 0 as the derivative at 0."""
    (x,) = xs
    return el.relu.bind(x), el.select.bind(el.gt.bind(x, const(0, x)), ts[0], const(0, x))


# ---- two operands --------------------------------------------------------------------------


def _sum(a: Value | Zero, b: Value | Zero) -> Any:
    return b if a is ZERO else a if b is ZERO else el.add.bind(a, b)


def _binary(prim: Primitive, left: Callable, right: Callable) -> None:
    """Register partial derivatives left(x, y, out), right(x, y, out), computed only if needed."""

    @jvp_rules.rule(prim)
    def _(xs: list[Value], ts: list[Any]):
        x, y = xs
        t, u = ts
        out = prim.bind(x, y)
        return out, _sum(
            ZERO if t is ZERO else el.mul.bind(t, left(x, y, out)),
            ZERO if u is ZERO else el.mul.bind(u, right(x, y, out)),
        )


@jvp_rules.rule(el.add)
def _(xs: list[Value], ts: list[Any]):
    return el.add.bind(*xs), _sum(*ts)


@jvp_rules.rule(el.sub)
def _(xs: list[Value], ts: list[Any]):
    t, u = ts
    if u is ZERO:
        return el.sub.bind(*xs), t
    return el.sub.bind(*xs), el.neg.bind(u) if t is ZERO else el.sub.bind(t, u)


@jvp_rules.rule(el.nextafter)
def _(xs: list[Value], ts):
    """Return the tangent of x: the result is one step away from x and varies as x does."""
    return el.nextafter.bind(*xs), ts[0]


@jvp_rules.rule(el.mul)
def _(xs: list[Value], ts: list[Any]):
    x, y = xs
    t, u = ts
    return el.mul.bind(x, y), _sum(
        ZERO if t is ZERO else el.mul.bind(t, y), ZERO if u is ZERO else el.mul.bind(u, x)
    )


@jvp_rules.rule(el.div)
def _(xs: list[Value], ts: list[Any]):
    x, y = xs
    t, u = ts
    out = el.div.bind(x, y)
    if t is not ZERO and u is not ZERO and _is_wide(out):
        # One division for both operands, forwards and backwards.  A broadcast divisor then has its
        # derivative summed from a product, where x / y / y is a second array of that size.
        return out, el.div.bind(el.sub.bind(t, el.mul.bind(out, u)), y)
    return out, _sum(
        ZERO if t is ZERO else el.div.bind(t, y),
        ZERO if u is ZERO else el.mul.bind(u, _by_denominator(x, y, out)),
    )


def _is_wide(x: Value) -> bool:
    """Return whether a dtype has room for a quotient times another, as float16 has not."""
    return x.aval.category == FLOATING and x.aval.dtype.itemsize >= 4


_PLAIN = 2.0**8
"""Range of constants whose product with a power overflows hardly earlier than the power itself."""


def _by_denominator(x: Any, y: Any, out: Value) -> Any:
    """Return -x / y**2; for constant x as a power of y, whose derivatives are powers again."""
    if x.__class__ is Literal and 1 / _PLAIN <= abs(x.value) <= _PLAIN:
        square = el.integer_pow.bind(y, exponent=-2)
        return el.neg.bind(square) if x.value == 1 else el.mul.bind(const(-x.value, y), square)
    return el.neg.bind(el.div.bind(out, y))


def _pow_base(x: Any, y: Any, out: Value) -> Any:
    """Return y x^(y-1), and 0 where y is 0, also for x = 0 and infinite x."""
    if y.__class__ is Literal:
        less = Literal(y.value - 1, y.aval)
        return el.mul.bind(y, el.pow_.bind(x, less)) if y.value else const(0, x)
    bad = el.eq.bind(x, const(0, x))
    if x.aval.category != COMPLEX:
        bad = el.or_.bind(bad, el.not_.bind(el.is_finite.bind(x)))
    still = el.and_.bind(el.eq.bind(y, const(0, y)), bad)
    return el.mul.bind(y, el.pow_.bind(el.select.bind(still, one(x), x), el.sub.bind(y, one(y))))


def _pow_exponent(x: Value, y: Value, out: Value) -> Any:
    """Return x^y log x, which tends to 0 at x = 0 for y > 0; 0 also for y = 0."""
    zero = el.eq.bind(x, const(0, x))
    if y.aval.category != COMPLEX:
        zero = el.and_.bind(zero, el.ge.bind(y, const(0, y)))
    safe = el.select.bind(zero, one(x), x)
    return el.select.bind(zero, const(0, x), el.mul.bind(el.log.bind(safe), out))


_binary(el.pow_, _pow_base, _pow_exponent)


@jvp_rules.rule(el.atan2)
def _(xs: list[Value], ts: list[Value]):
    """Divide the smaller coordinate by the greater, because their squares may overflow or vanish.

    With u this quotient and k = 1 / (1 + u^2), the partial derivatives are k / greater and
    u k / greater.
    """
    x, y = xs
    out = el.atan2.bind(x, y)
    if _is_complex(x):
        radius = el.add.bind(_squared(x), _squared(y))
        left, right = el.div.bind(y, radius), el.neg.bind(el.div.bind(x, radius))
    else:
        flat = el.ge.bind(el.abs_.bind(y), el.abs_.bind(x))
        greater, lesser = el.select.bind(flat, y, x), el.select.bind(flat, x, y)
        u = el.div.bind(lesser, greater)
        along = el.div.bind(_quotient(one(u), el.add.bind(one(u), _squared(u))), greater)
        across = el.mul.bind(u, along)
        left, right = (
            el.select.bind(flat, along, across),
            el.neg.bind(el.select.bind(flat, across, along)),
        )
    parts = [ZERO if t is ZERO else el.mul.bind(t, d) for t, d in zip(ts, (left, right))]
    return out, _sum(*parts)


def _share(beats: Primitive, x: Value, y: Value, out: Value) -> Any:
    """Return 1 where `x` is the result, 0 where `y` is, a half at a tie.

    Operands are compared with each other, not with the result: if an operand is computed twice,
    it may be rounded differently and no longer equal the result.
    """
    ordered = x.aval.category != COMPLEX
    wins = el.select.bind(beats.bind(x, y) if ordered else el.eq.bind(x, out), one(x), const(0, x))
    return el.select.bind(el.eq.bind(x, y), const(0.5, x), wins)


for _prim, _beats in ((el.maximum, el.gt), (el.minimum, el.lt)):
    _binary(
        _prim,
        lambda x, y, out, beats=_beats: _share(beats, x, y, out),
        lambda x, y, out, beats=_beats: _share(beats, y, x, out),
    )


def _towards_zero(x: Value, y: Value) -> Any:
    """Return -trunc(x / y), the factor of y in rem."""
    q = el.div.bind(el.sub.bind(x, el.rem.bind(x, y)), y)
    return el.neg.bind(q)


_binary(el.rem, lambda x, y, out: one(x), lambda x, y, out: _towards_zero(x, y))


# ---- selection -----------------------------------------------------------------------------


@jvp_rules.rule(el.select)
def _(xs: list[Value], ts: list[Any]):
    p, x, y = xs
    out = el.select.bind(p, x, y)
    if ts[1] is ZERO and ts[2] is ZERO:
        return out, ZERO
    return out, el.select.bind(p, instantiate(ts[1], x), instantiate(ts[2], y))


@jvp_rules.rule(el.clamp)
def _(xs: list[Value], ts: list[Value | Zero]):
    """Return the tangent of x inside the bounds, and that of the bound outside and at it."""
    low, x, high = xs
    out = el.clamp.bind(low, x, high)
    below, above = el.ge.bind(low, x), el.le.bind(high, x)
    a, t, b = (instantiate(t, v) for t, v in zip(ts, xs))
    return out, el.select.bind(below, a, el.select.bind(above, b, t))


# ---- transposes ----------------------------------------------------------------------------


def _scaled(ct: Any, y: Any) -> Any:
    """Return ct * y, or y where ct is 1: the seed of a gradient is 1 and meets products first."""
    if ct.__class__ is Literal and ct.value == 1 and (y.aval is ct.aval or ct.aval.weak_type):
        return y
    return el.mul.bind(ct, y)


@transpose_rules.rule(el.once)
def _(ct: Value, x: object):
    return (ct,)


@transpose_rules.rule(el.neg)
def _(ct, x: Linear):
    if ct.__class__ is Literal and ct.aval.category == FLOATING:
        return (Literal(-ct.value, ct.aval),)
    return (el.neg.bind(ct),)


@transpose_rules.rule(el.add)
def _(ct: Value, x: Value | Linear, y: Value | Linear):
    return ct, ct


@transpose_rules.rule(el.sub)
def _(ct: Value, x: Value | Linear, y: Value | Linear):
    return ct, el.neg.bind(ct) if is_linear(y) else None


@transpose_rules.rule(el.mul)
def _(ct: Value, x: Value | Linear, y: Value | Linear):
    return (_scaled(ct, y), None) if is_linear(x) else (None, _scaled(ct, x))


@transpose_rules.rule(el.div)
def _(ct: Value, x: Linear, y: Value):
    return el.div.bind(ct, y), None


@transpose_rules.rule(el.select)
def _(ct: Value, p: Value, x: Value | Linear, y: Value | Linear):
    zero = Literal(0, ct.aval)
    left = el.select.bind(p, ct, zero) if is_linear(x) else None
    return None, left, el.select.bind(p, zero, ct) if is_linear(y) else None


@transpose_rules.rule(el.stop)
def _(ct: Value, x: object):
    """Return no cotangent.

    Linear programs contain `stop` where a mapped branch takes a value that must not vary; no
    cotangent of that value is wanted.
    """
    return (None,)


@transpose_rules.rule(el.real)
def _(ct: Value, x: Linear):
    return (el.complex_.bind(ct, Literal(0, ct.aval)),)


@transpose_rules.rule(el.imag)
def _(ct: Value, x: Linear):
    # The pairing is bilinear: Im z = Re(-i z).
    return (el.complex_.bind(Literal(0, ct.aval), el.neg.bind(ct)),)


@transpose_rules.rule(el.complex_)
def _(ct: Value, x: Value | Linear, y: Value | Linear):
    return (
        el.real.bind(ct) if is_linear(x) else None,
        el.neg.bind(el.imag.bind(ct)) if is_linear(y) else None,
    )


@transpose_rules.rule(el.conj)
def _(ct: Value, x: Linear):
    return (el.conj.bind(ct),)


@transpose_rules.rule(el.reduce_precision)
def _(ct: Value, x: object, /, **params: object):
    return (el.reduce_precision.bind(ct, **params),)


@jvp_rules.rule(el.bitcast_)
def _(xs: list[Value], ts: object, *, dtype: np.dtype):
    return el.bitcast_.bind(*xs, dtype=dtype), ZERO


@jvp_rules.rule(el.accurate)
def _(xs: list[Value], ts, *, of, mode, tolerance):
    _, tangent = jvp_rules[el.PLAIN[of]](xs, ts)
    return el.accurate.bind(*xs, of=of, mode=mode, tolerance=tolerance), tangent
