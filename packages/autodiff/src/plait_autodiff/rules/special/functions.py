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
from plait.ext.ir import Program
from plait.ext.ops.control_flow import call
from plait.ext.ops.elementwise import (
    abs_,
    add,
    and_,
    cos,
    digamma,
    div,
    eq,
    erf,
    exp,
    floor,
    gt,
    imag,
    le,
    log,
    lt,
    maximum,
    minimum,
    mul,
    neg,
    select,
    sign,
    sin,
)
from plait.ext.ops.shape import convert
from plait.ext.rules import expand_rules
from plait.ext.trace import current, opened, staged
from plait.ext.types import Aval
from plait.ext.values import Literal
from plait_numpy.ext.special import (
    bell,
    bessel_i0e,
    bessel_i1e,
    bessel_j,
    beta_density,
    dawsn,
    erfcx,
    expi,
    expn,
    far_left,
    far_right,
    fresnel,
    gamma_density,
    hyp1f1,
    hyp2f1,
    igamma,
    igamma_grad_a,
    igammac,
    lbeta,
    log_ndtr,
    mills,
    ndtri,
    odd_series,
    owens_t,
    polygamma,
    quarter_turns,
    random_gamma_grad,
    regularized_incomplete_beta,
    sici,
    spence,
    wofz,
    zeta,
)
from plait_numpy.ext.special import series as power_series

from ...forward import JVP, ZERO, jvp_rules

# ---- by partial derivatives ------------------------------------------------------------------

Slope = Callable[..., Any] | None


def _widened(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a rule for floats of at least 32 bits into one for all floats.

    Factors of a derivative may be infinite in a narrow dtype where the derivative is not.
    """

    def widened(xs: Any, ts: Any, **params: Any) -> Any:
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


def _narrowed(x: Any, dtype: Any, weak: bool) -> Any:
    if isinstance(x, list):
        return [_narrowed(v, dtype, weak) for v in x]
    return x if x is ZERO else convert(x, dtype, weak)


def _partials(prim: Any, *slopes: Slope) -> None:
    """Register partial derivatives: slope(*xs, out) for each operand, in the type of the result.

    None means that there is none.  Narrow floats are widened for the rule, as they are for values.
    """

    @jvp_rules.rule(prim)
    @_widened
    def _(xs, ts):
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
            term = mul.bind(t, slope(*xs, out))
            total = term if total is ZERO else add.bind(total, term)
        return out, total


@functools.cache
def _program(prim: Any, i: int, avals: tuple[Aval, ...]) -> Program:
    """Return the derivative in operand `i`, by differentiating the primitive's expansion."""
    say = expand_rules[prim]

    def slope(*xs: Any) -> list[Any]:
        j = JVP(current())
        with opened(j):
            duals = [j.dual(x, Literal(1, x.aval)) if k == i else x for k, x in enumerate(xs)]
            out = say(*duals)
        form, parts = j.split(out)
        return [parts[1] if form is not None else Literal(0, avals[0])]

    return staged(slope, avals, f"{prim.name.rpartition('.')[2]}_slope")


def _through(prim: Any, i: int) -> Callable[..., Any]:
    def slope(*xs: Any) -> Any:
        *xs_, _out = xs
        avals = tuple([x.aval.strong() for x in xs_])
        return call.bind(*xs_, program=_program(prim, i, avals))[0]

    return slope


# ---- gamma and beta --------------------------------------------------------------------------

_partials(zeta, None, lambda s, q, out: neg(mul(s, zeta(add(s, 1.0), q))))
_partials(polygamma, None, lambda n, x, out: polygamma(add(n, 1.0), x))
_partials(
    lbeta,
    lambda a, b, out: digamma(a) - digamma(add(a, b)),
    lambda a, b, out: digamma(b) - digamma(add(a, b)),
)
_partials(
    igamma,
    lambda a, x, out: igamma_grad_a(a, x),
    lambda a, x, out: gamma_density(a, x),
)
_partials(
    igammac,
    lambda a, x, out: neg(igamma_grad_a(a, x)),
    lambda a, x, out: neg(gamma_density(a, x)),
)
_partials(
    igamma_grad_a,
    _through(igamma_grad_a, 0),
    lambda a, x, out: gamma_density(a, x) * (log(x) - digamma(a)),
)
_partials(random_gamma_grad, _through(random_gamma_grad, 0), _through(random_gamma_grad, 1))
_partials(
    regularized_incomplete_beta,
    _through(regularized_incomplete_beta, 0),
    _through(regularized_incomplete_beta, 1),
    lambda a, b, x, out: beta_density(a, b, x),
)

# ---- Bessel functions ------------------------------------------------------------------------


_I1_BY_X = [0.5 / (4.0**k * math.factorial(k) * math.factorial(k + 1)) for k in range(10)]
"""Coefficients of I_1(x) / x in powers of x^2, DLMF 10.25.2."""


def _i1e_slope(x: Any, out: Any) -> Any:
    """Return the derivative by DLMF 10.29.2.

    Near 0 the function has too few correct digits for derivatives of its quotient by x.  There
    the quotient is a power series.
    """
    near = lt(abs_(x), 1.0)
    # Each branch gets a harmless operand where the other one is selected: an infinite derivative
    # there, times zero, would be nan.
    y = select(near, x, 0.0)
    ratio = exp(neg(abs_(y))) * power_series(y * y, _I1_BY_X)
    ratio = select(near, ratio, out / select(near, 1.0, x))
    return bessel_i0e(x) - sign(x) * out - ratio


_partials(bessel_i0e, lambda x, out: bessel_i1e(x) - sign(x) * out)
_partials(bessel_i1e, _i1e_slope)

# ---- the normal distribution -------------------------------------------------------------------

_LOG_ROOT = 0.5 * math.log(2 * math.pi)


def _hazard(x: Any, out: Any) -> Any:
    """Return the density divided by the distribution function."""
    far = far_left(x)
    left = lt(x, far)
    y, o = select(left, 0.0, x), select(left, 0.0, out)
    z = minimum(x, far)
    return select(left, neg(z) / mills(z), exp(-0.5 * y * y - _LOG_ROOT - o))


_partials(log_ndtr, _hazard)
_partials(ndtri, lambda p, out: exp(0.5 * out * out + _LOG_ROOT))

# ---- integrals -----------------------------------------------------------------------------


def _expn_slope(n: Any, x: Any, out: Any) -> Any:
    """Return the derivative by DLMF 8.19.13; E_0 is e ** -x / x."""
    last = neg(out) * (1.0 + div(1.0, x))
    return select(lt(n, 1.0), last, neg(expn(maximum(n - 1.0, 0.0), x)))


def _spence_slope(x: Any, out: Any) -> Any:
    """Return log(x) / (1 - x); near 1 use its power series, whose derivatives do not cancel."""
    gap = 1.0 - x
    near = lt(abs_(gap), 0.1)
    series = power_series(select(near, gap, 0.0), [-1 / (k + 1) for k in range(18)])
    y = select(near, 2.0, x)
    return select(near, series, log(y) / (1.0 - y))


_partials(expn, None, _expn_slope)
_partials(expi, lambda x, out: exp(x) / x)
_partials(spence, _spence_slope)

# ---- relatives of the error function -----------------------------------------------------------

_TWO = 2 / math.sqrt(math.pi)


def _erfcx_slope(x: Any, out: Any) -> Any:
    """Return 2 x erfcx(x) - 2 / sqrt(pi); far on the right use the series of DLMF 7.12.1."""
    edge = far_right(x.aval.dtype)
    far = gt(x, edge)
    near, r = select(far, 0.0, x), 1.0 / maximum(x, edge)
    tail = (-0.5 * _TWO) * r * r * odd_series(0.5 * r * r, -1.0)
    return select(far, tail, 2.0 * near * out - _TWO)


def _dawsn_slope(x: Any, out: Any) -> Any:
    """Return 1 - 2 x dawsn(x); for large |x| use its series."""
    size, edge = abs_(x), far_right(x.aval.dtype)
    far = gt(size, edge)
    r = 1.0 / maximum(size, edge)
    return select(far, -0.5 * r * r * odd_series(0.5 * r * r, 1.0), 1.0 - 2.0 * x * out)


def _wofz_slope(z: Any, out: Any) -> Any:
    """Return 2 i / sqrt(pi) - 2 z w(z), DLMF 7.10.2.

    For large |z| use the series, plus the part of w that grows in the lower half plane.
    """
    number = lambda v: Literal(v, z.aval.strong())  # noqa: E731
    far = gt(abs_(z), far_right(z.aval.dtype))
    near = number(1j * _TWO) - mul.bind(number(2), mul.bind(select(far, number(0), z), out))
    y = select(far, z, number(100))
    r = div.bind(number(1), mul.bind(y, y))
    total, terms = number(0), [1.0]
    for k in range(16):
        terms.append(terms[-1] * (2 * k + 3) / 2)
    for t in reversed(terms):
        total = add.bind(mul.bind(total, r), number(t))
    tail = mul.bind(number(-0.5j * _TWO), mul.bind(r, total))
    down = lt(imag(y), 0.0)
    low = select(down, y, number(0))
    tail = tail - mul.bind(number(4), mul.bind(low, exp(neg(mul.bind(low, low)))))
    return select(far, tail, near)


def _owens_slopes(i: int) -> Callable[..., Any]:
    def slope(h: Any, a: Any, out: Any) -> Any:
        if i:
            r = 1.0 / (1.0 + a * a)
            return (0.5 / math.pi) * r * exp(-0.5 * h * h * (1.0 + a * a))
        still = eq(h, 0.0)
        along = select(still, 0.0, select(still, 1.0, a) * h)
        size = math.sqrt(0.125 / math.pi)
        return -size * bell(h, 0.5) * erf(along * math.sqrt(0.5))

    return slope


_partials(erfcx, _erfcx_slope)
_partials(dawsn, _dawsn_slope)
_partials(wofz, _wofz_slope)
_partials(owens_t, _owens_slopes(0), _owens_slopes(1))

# ---- waves -------------------------------------------------------------------------------------


def _along(prim: Any, slopes: Callable[..., Any]) -> None:
    """Register several functions of one number; slopes(x, outs) are their derivatives."""

    @jvp_rules.rule(prim)
    @_widened
    def _(xs, ts, **params):
        (x,), (t,) = xs, ts
        outs = prim.bind(x, **params)
        if t is ZERO:
            return outs, [ZERO] * len(outs)
        return outs, [mul.bind(t, s) for s in slopes(x, outs, **params)]


def _fresnel_slopes(x: Any, outs: Any) -> Any:
    angle = (0.5 * math.pi) * quarter_turns(abs_(x))
    return sin(angle), cos(angle)


def _sici_slopes(x: Any, outs: Any) -> Any:
    zero = eq(x, 0.0)
    return select(zero, 1.0, sin(x) / select(zero, 1.0, x)), cos(x) / x


def _bessel_slopes(x: Any, outs: Any, order: int) -> Any:
    """Return the derivatives by DLMF 10.6.1."""
    js = bessel_j.bind(x, order=order + 1)
    return [neg(js[1]), *[0.5 * (js[k - 1] - js[k + 1]) for k in range(1, order + 1)]]


_along(fresnel, _fresnel_slopes)
_along(sici, _sici_slopes)
_along(bessel_j, _bessel_slopes)

# ---- hypergeometric functions ------------------------------------------------------------------


def _numerator(prim: Any, i: int) -> Callable[..., Any]:
    """Return the derivative in a parameter of the numerator, nan where that ends the series."""
    through = _through(prim, i)

    def slope(*xs: Any) -> Any:
        a = xs[i]
        ends = and_(eq(a, floor(a)), le(a, 0.0))
        return select(ends, math.nan, through(*xs))

    return slope


_partials(
    hyp1f1,
    _numerator(hyp1f1, 0),
    _through(hyp1f1, 1),
    lambda a, b, x, out: a / b * hyp1f1(a + 1.0, b + 1.0, x),
)
_partials(
    hyp2f1,
    _numerator(hyp2f1, 0),
    _numerator(hyp2f1, 1),
    _through(hyp2f1, 2),
    lambda a, b, c, x, out: a * b / c * hyp2f1(a + 1.0, b + 1.0, c + 1.0, x),
)
