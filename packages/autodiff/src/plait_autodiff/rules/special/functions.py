"""Derivatives of special functions.

Closed forms are used where they exist.  Other derivatives in shape parameters differentiate the
algorithm that computes the function, along one parameter.  The tangent is multiplied by the
derivative, so that transposition treats it like any factor.

Invariant: the orders n of polygamma and expn and the exponent of zeta have no derivatives; a
tangent of one is refused, not ignored.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plait.ext.errors import ArgumentError
from plait.ext.ir import Primitive, Program
from plait.ext.ops import elementwise as el
from plait.ext.ops.control_flow import call
from plait.ext.ops.shape import convert
from plait.ext.rules import expand_rules
from plait.ext.trace import Value, current, opened, staged
from plait.ext.types import Aval
from plait.ext.values import Literal
from plait.typing import Array
from plait_numpy.ext import special as sp
from plait_numpy.ext.special import series as power_series

from ...forward import JVP, ZERO, Zero, jvp_rules

# ---- by partial derivatives ------------------------------------------------------------------

Slope = Callable[..., Any] | None


def _widened(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a rule for floats of at least 32 bits into one for all floats.

    Factors of a derivative may be infinite in a narrow dtype where the derivative is not.
    """

    def widened(xs: list[Value], ts: list[Any], /, **params: object) -> Any:
        dtype = xs[0].aval.dtype
        if dtype.itemsize >= 4:
            return rule(xs, ts, **params)
        weak = all(x.aval.weak_type for x in xs)
        wide = [convert(x, np.float32) for x in xs]
        out, tangent = rule(
            wide, [t if t is ZERO else convert(t, np.float32) for t in ts], **params
        )
        return _narrowed(out, dtype, weak), _narrowed(tangent, dtype, weak)

    return widened


def _narrowed(x: Array, dtype: Any, weak: bool) -> Any:
    if isinstance(x, list):
        return [_narrowed(v, dtype, weak) for v in x]
    return x if x is ZERO else convert(x, dtype, weak)


def _partials(prim: Primitive, *slopes: Slope) -> None:
    """Register partial derivatives: slope(*xs, out) for each operand, in the type of the result.

    None means that there is none.  Narrow floats are widened for the rule, as they are for values.
    """

    @jvp_rules.rule(prim)
    @_widened
    def _(xs: list[Value], ts: list[Value | Zero]):
        out, total = prim.bind(*xs), ZERO
        for i, (t, slope) in enumerate(zip(ts, slopes, strict=True)):
            if t is ZERO:
                continue
            if slope is None:
                raise ArgumentError(
                    f"{prim} has no derivative in operand {i}",
                    fix="differentiate in the others only, or stop this one: "
                    "plait.lax.stop_gradient(...)",
                )
            term = el.mul.bind(t, slope(*xs, out))
            total = term if total is ZERO else el.add.bind(total, term)
        return out, total


@functools.cache
def _program(prim: Primitive, i: int, avals: tuple[Aval, ...]) -> Program:
    """Return the derivative in operand `i`, by differentiating the primitive's expansion."""
    say = expand_rules[prim]

    def slope(*xs: Value) -> list[Any]:
        j = JVP(current())
        with opened(j):
            duals = [j.dual(x, Literal(1, x.aval)) if k == i else x for k, x in enumerate(xs)]
            out = say(*duals)
        form, parts = j.split(out)
        return [parts[1] if form is not None else Literal(0, avals[0])]

    return staged(slope, avals, f"{prim.name.rpartition('.')[2]}_slope")


def _through(prim: Primitive, i: int) -> Callable[..., Any]:
    def slope(*xs: Value) -> Any:
        *xs_, _out = xs
        avals = tuple([x.aval.strong() for x in xs_])
        return call.bind(*xs_, program=_program(prim, i, avals))[0]

    return slope


# ---- gamma and beta --------------------------------------------------------------------------

_partials(sp.zeta, None, lambda s, q, out: el.neg(el.mul(s, sp.zeta(el.add(s, 1.0), q))))
_partials(sp.polygamma, None, lambda n, x, out: sp.polygamma(el.add(n, 1.0), x))
_partials(
    sp.lbeta,
    lambda a, b, out: el.digamma(a) - el.digamma(el.add(a, b)),
    lambda a, b, out: el.digamma(b) - el.digamma(el.add(a, b)),
)
_partials(
    sp.igamma,
    lambda a, x, out: sp.igamma_grad_a(a, x),
    lambda a, x, out: sp.gamma_density(a, x),
)
_partials(
    sp.igammac,
    lambda a, x, out: el.neg(sp.igamma_grad_a(a, x)),
    lambda a, x, out: el.neg(sp.gamma_density(a, x)),
)
_partials(
    sp.igamma_grad_a,
    _through(sp.igamma_grad_a, 0),
    lambda a, x, out: sp.gamma_density(a, x) * (el.log(x) - el.digamma(a)),
)
_partials(
    sp.random_gamma_grad, _through(sp.random_gamma_grad, 0), _through(sp.random_gamma_grad, 1)
)
_partials(
    sp.regularized_incomplete_beta,
    _through(sp.regularized_incomplete_beta, 0),
    _through(sp.regularized_incomplete_beta, 1),
    lambda a, b, x, out: sp.beta_density(a, b, x),
)

# ---- Bessel functions ------------------------------------------------------------------------


_I1_BY_X = [0.5 / (4.0**k * math.factorial(k) * math.factorial(k + 1)) for k in range(10)]
"""Coefficients of I_1(x) / x in powers of x^2, DLMF 10.25.2."""


def _i1e_slope(x: Value, out: Value) -> Any:
    """Return the derivative by DLMF 10.29.2.

    Near 0 the function has too few correct digits for derivatives of its quotient by x.  There
    the quotient is a power series.
    """
    near = el.lt(el.abs_(x), 1.0)
    # Each branch gets a harmless operand where the other one is selected: an infinite derivative
    # there, times zero, would be nan.
    y = el.select(near, x, 0.0)
    ratio = el.exp(el.neg(el.abs_(y))) * power_series(y * y, _I1_BY_X)
    ratio = el.select(near, ratio, out / el.select(near, 1.0, x))
    return sp.bessel_i0e(x) - el.sign(x) * out - ratio


_partials(sp.bessel_i0e, lambda x, out: sp.bessel_i1e(x) - el.sign(x) * out)
_partials(sp.bessel_i1e, _i1e_slope)

# ---- the normal distribution -------------------------------------------------------------------

_LOG_ROOT = 0.5 * math.log(2 * math.pi)


def _hazard(x: Value, out: Value) -> Any:
    """Return the density divided by the distribution function."""
    far = sp.far_left(x)
    left = el.lt(x, far)
    y, o = el.select(left, 0.0, x), el.select(left, 0.0, out)
    z = el.minimum(x, far)
    return el.select(left, el.neg(z) / sp.mills(z), el.exp(-0.5 * y * y - _LOG_ROOT - o))


_partials(sp.log_ndtr, _hazard)
_partials(sp.ndtri, lambda p, out: el.exp(0.5 * out * out + _LOG_ROOT))

# ---- integrals -----------------------------------------------------------------------------


def _expn_slope(n: Value, x: Value, out: Value) -> Any:
    """Return the derivative by DLMF 8.19.13; E_0 is e ** -x / x."""
    last = el.neg(out) * (1.0 + el.div(1.0, x))
    return el.select(el.lt(n, 1.0), last, el.neg(sp.expn(el.maximum(n - 1.0, 0.0), x)))


def _spence_slope(x: Value, out: Value) -> Any:
    """Return log(x) / (1 - x); near 1 use its power series, whose derivatives do not cancel."""
    gap = 1.0 - x
    near = el.lt(el.abs_(gap), 0.1)
    series = power_series(el.select(near, gap, 0.0), [-1 / (k + 1) for k in range(18)])
    y = el.select(near, 2.0, x)
    return el.select(near, series, el.log(y) / (1.0 - y))


_partials(sp.expn, None, _expn_slope)
_partials(sp.expi, lambda x, out: el.exp(x) / x)
_partials(sp.spence, _spence_slope)

# ---- relatives of the error function -----------------------------------------------------------

_TWO = 2 / math.sqrt(math.pi)


def _erfcx_slope(x: Value, out: Value) -> Any:
    """Return 2 x erfcx(x) - 2 / sqrt(pi); far on the right use the series of DLMF 7.12.1."""
    edge = sp.far_right(x.aval.dtype)
    far = el.gt(x, edge)
    near, r = el.select(far, 0.0, x), 1.0 / el.maximum(x, edge)
    tail = (-0.5 * _TWO) * r * r * sp.odd_series(0.5 * r * r, -1.0)
    return el.select(far, tail, 2.0 * near * out - _TWO)


def _dawsn_slope(x: Value, out: Value) -> Any:
    """Return 1 - 2 x dawsn(x); for large |x| use its series."""
    size, edge = el.abs_(x), sp.far_right(x.aval.dtype)
    far = el.gt(size, edge)
    r = 1.0 / el.maximum(size, edge)
    return el.select(far, -0.5 * r * r * sp.odd_series(0.5 * r * r, 1.0), 1.0 - 2.0 * x * out)


def _wofz_slope(z: Any, out: Value) -> Any:
    """Return 2 i / sqrt(pi) - 2 z w(z), DLMF 7.10.2.

    For large |z| use the series, plus the part of w that grows in the lower half plane.
    """
    number = lambda v: Literal(v, z.aval.strong())  # noqa: E731
    far = el.gt(el.abs_(z), sp.far_right(z.aval.dtype))
    near = number(1j * _TWO) - el.mul.bind(
        number(2), el.mul.bind(el.select(far, number(0), z), out)
    )
    y = el.select(far, z, number(100))
    r = el.div.bind(number(1), el.mul.bind(y, y))
    total, terms = number(0), [1.0]
    for k in range(16):
        terms.append(terms[-1] * (2 * k + 3) / 2)
    for t in reversed(terms):
        total = el.add.bind(el.mul.bind(total, r), number(t))
    tail = el.mul.bind(number(-0.5j * _TWO), el.mul.bind(r, total))
    down = el.lt(el.imag(y), 0.0)
    low = el.select(down, y, number(0))
    tail = tail - el.mul.bind(number(4), el.mul.bind(low, el.exp(el.neg(el.mul.bind(low, low)))))
    return el.select(far, tail, near)


def _owens_slopes(i: int) -> Callable[..., Any]:
    def slope(h: Any, a: Any, out: Value) -> Any:
        if i:
            r = 1.0 / (1.0 + a * a)
            return (0.5 / math.pi) * r * el.exp(-0.5 * h * h * (1.0 + a * a))
        still = el.eq(h, 0.0)
        along = el.select(still, 0.0, el.select(still, 1.0, a) * h)
        size = math.sqrt(0.125 / math.pi)
        return -size * sp.bell(h, 0.5) * el.erf(along * math.sqrt(0.5))

    return slope


_partials(sp.erfcx, _erfcx_slope)
_partials(sp.dawsn, _dawsn_slope)
_partials(sp.wofz, _wofz_slope)
_partials(sp.owens_t, _owens_slopes(0), _owens_slopes(1))

# ---- waves -------------------------------------------------------------------------------------


def _along(prim: Primitive, slopes: Callable[..., Any]) -> None:
    """Register several functions of one number; slopes(x, outs) are their derivatives."""

    @jvp_rules.rule(prim)
    @_widened
    def _(xs: list[Value], ts, /, **params: object):
        (x,), (t,) = xs, ts
        outs = prim.bind(x, **params)
        if t is ZERO:
            return outs, [ZERO] * len(outs)
        return outs, [el.mul.bind(t, s) for s in slopes(x, outs, **params)]


def _fresnel_slopes(x: Value, outs: object) -> Any:
    angle = (0.5 * math.pi) * sp.quarter_turns(el.abs_(x))
    return el.sin(angle), el.cos(angle)


def _sici_slopes(x: Value, outs: object) -> Any:
    zero = el.eq(x, 0.0)
    return el.select(zero, 1.0, el.sin(x) / el.select(zero, 1.0, x)), el.cos(x) / x


def _bessel_slopes(x: Value, outs: object, order: int) -> Any:
    """Return the derivatives by DLMF 10.6.1."""
    js = sp.bessel_j.bind(x, order=order + 1)
    return [el.neg(js[1]), *[0.5 * (js[k - 1] - js[k + 1]) for k in range(1, order + 1)]]


_along(sp.fresnel, _fresnel_slopes)
_along(sp.sici, _sici_slopes)
_along(sp.bessel_j, _bessel_slopes)

# ---- hypergeometric functions ------------------------------------------------------------------


def _numerator(prim: Primitive, i: int) -> Callable[..., Any]:
    """Return the derivative in a parameter of the numerator, nan where that ends the series."""
    through = _through(prim, i)

    def slope(*xs: Value) -> Any:
        a = xs[i]
        ends = el.and_(el.eq(a, el.floor(a)), el.le(a, 0.0))
        return el.select(ends, math.nan, through(*xs))

    return slope


_partials(
    sp.hyp1f1,
    _numerator(sp.hyp1f1, 0),
    _through(sp.hyp1f1, 1),
    lambda a, b, x, out: a / b * sp.hyp1f1(a + 1.0, b + 1.0, x),
)
_partials(
    sp.hyp2f1,
    _numerator(sp.hyp2f1, 0),
    _numerator(sp.hyp2f1, 1),
    _through(sp.hyp2f1, 2),
    lambda a, b, c, x, out: a * b / c * sp.hyp2f1(a + 1.0, b + 1.0, c + 1.0, x),
)
