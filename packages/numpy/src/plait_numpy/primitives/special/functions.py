"""Special functions of one or two floats: zeta, polygamma, Bessel, beta, normal quantiles.

Each is elementwise.  Functions that the compiler lacks are composed of other primitives, in
float32 for narrower floats.

Invariant: finite values are within a few units in the last place of the true ones, except close to
roots and where a function's documentation differs.  Poles are infinite, and values outside a
function's domain are nan.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.errors import ArgumentError
from plait.ext import (
    Aval,
    Elementwise,
    Increasing,
    Literal,
    Primitive,
    expand_rules,
    lower_rules,
    staged,
)
from plait.ext.lower import Emitter, IrValue, simple
from plait.ext.ops import elementwise as el
from plait.ext.ops.control_flow import while_
from plait.ext.ops.reduction import reduce_or
from plait.ext.ops.shape import convert
from plait.ext.trace import Value
from plait.typing import Array

# ---- definitions ---------------------------------------------------------------------------


_ONCE_OF_CORE = frozenset(
    [
        "bessel_i0e",
        "bessel_i1e",
        "dawsn",
        "erfcx",
        "expi",
        "expn",
        "fresnel",
        "hyp1f1",
        "hyp2f1",
        "igamma",
        "igamma_grad_a",
        "igammac",
        "lbeta",
        "log_ndtr",
        "ndtri",
        "owens_t",
        "polygamma",
        "random_gamma_grad",
        "regularized_incomplete_beta",
        "sici",
        "spence",
        "zeta",
    ]
)
"""Primitives that releases up to 0.2 named `core.zeta` and its like.  Later ones are not added."""


def define(name: str, count: int, doc: str, *traits: Any, results: int = 0) -> Primitive:
    """Define a primitive of `count` floats of one shape and dtype.

    Its result has their type; if `results` is given, it returns a list of so many.
    """

    def rule(*xs: Aval) -> Any:
        if len(xs) != count:
            raise ArgumentError(
                f"{name} takes {count} operands, and {len(xs)} were given",
                fix=f"give {count} arrays of floats",
            )
        out = el.agreed(name, el.FLOAT, *xs)
        return [out] * results if results else out

    rule.__doc__ = doc
    return Primitive(
        f"special.{name}",
        rule,
        (*traits, Elementwise),
        prepare=el.floating,
        many=bool(results),
        formerly=(f"core.{name}",) if name in _ONCE_OF_CORE else (),
    )


def said(prim: Primitive) -> Callable[[Callable], Callable]:
    """Decorate the definition of a special function, for floats of at least 32 bits."""

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        @expand_rules.rule(prim)
        def _(*xs):
            dtype, weak = xs[0].aval.dtype, all(x.aval.weak_type for x in xs)
            if dtype.itemsize < 4:
                xs = [convert(x, np.float32) for x in xs]
            out = f(*xs)
            if isinstance(out, tuple):
                return [convert(o, dtype, weak) for o in out]
            return convert(out, dtype, weak)

        return f

    return register


def epsilon(x: Any) -> float:
    """Return the distance between 1 and the next float."""
    return float(np.finfo(x.aval.dtype).eps)


def const(value: float, like: Any) -> Literal:
    """Return a scalar that stands for an array like another."""
    return Literal(value, like.aval.strong())


def series(x: Array, coefficients: Sequence[float]) -> Any:
    """Return c[0] + c[1] x + c[2] x^2 + ..."""
    total: Any = const(coefficients[-1], x)
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


MOST_TURNS = 10_000
"""The most turns of a loop that iterates until convergence."""


def until_settled(turn: Callable[..., Sequence[Any]], active: Array, *state: Any) -> Sequence[Any]:
    """Repeat `active, *state = turn(number, active, *state)` while an element is active.

    `number` is 1, 2, ... as a float.  Return the last state.
    """
    number = Literal(1.0, Aval((), state[0].aval.dtype))
    avals = [v.aval.strong() for v in (number, active, *state)]

    def going(k: Value, on: Value, *_: Value) -> list[Any]:
        some = reduce_or.bind(on, axes=tuple(range(on.aval.ndim))) if on.aval.ndim else on
        return [el.and_(some, el.lt(k, float(MOST_TURNS)))]

    body = staged(lambda k, on, *vs: [k + 1.0, *turn(k, on, *vs)], avals, "turn")
    cond = staged(going, avals, "going")
    outs = while_.bind(number, active, *state, cond=cond, body=body, cond_consts=0, body_consts=0)
    return outs[2:]


# ---- the gamma function's relatives ----------------------------------------------------------

zeta = define("zeta", 2, "Hurwitz's zeta function: the sum of (q + k) ** -s over k >= 0; of\n"
               "negative q only for whole s.")  # fmt: skip

_TERMS = 9
_EULER_MACLAURIN = tuple(
    [b / math.factorial(2 * k) for k, b in enumerate((
        1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
        -174611 / 330, 854513 / 138, -236364091 / 2730,
    ), 1)]
)  # fmt: skip
"""Bernoulli's numbers B(2), B(4), ..., each divided by the factorial of its index."""


@said(zeta)
def _zeta(s: Value, q: Value):
    """Sum the terms with q + k < 0, then those from there on; at q + k = 0 there is a pole."""

    def turn(k: Value, on: Value, total: Value, s: Value, q: Value):
        total = el.select(on, total + el.pow_(q, el.neg(s)), total)
        q = el.select(on, q + 1.0, q)
        return el.lt(q, 0.0), total, s, q

    total, _, q = until_settled(turn, el.lt(q, 0.0), const(0.0, q), s, q)
    pole = el.and_(el.eq(q, 0.0), el.gt(s, 1.0))
    inside = el.and_(el.gt(s, 1.0), el.gt(q, 0.0))
    rest = _zeta_of_positive(el.select(inside, s, 2.0), el.select(inside, q, 1.0))
    at_one = el.and_(el.eq(s, 1.0), el.eq(q, q))
    rest = el.select(inside, rest, el.select(el.or_(pole, at_one), math.inf, math.nan))
    return total + rest


def _zeta_of_positive(s: Value, q: Value) -> Any:
    """Return q ** (1 - s) times the sum of (1 + k / q) ** -s / q, for s > 1 and q > 0.

    The scaled sum is an ordinary number wherever the result is: terms far below the least float
    have a sum above it.  Its first terms are added, and the others are an integral with
    corrections (Euler and Maclaurin, DLMF 25.11.7).
    """
    r = 1.0 / q
    total: Any = const(1.0, q)
    for k in range(1, _TERMS):
        total = total + el.exp(el.neg(s * el.log1p(k * r)))
    w = q + float(_TERMS)
    logs = el.log1p(_TERMS * r)
    last = el.exp(el.neg(s * logs))
    # Beyond this the corrections are 0 times infinity: s is large where the last term is small.
    few = el.gt(last, 1e-3 * epsilon(q) ** 2)
    t, v = el.select(few, s, 2.0), el.select(few, 1.0 / w, 0.1)
    rising, corrections = t * v, const(0.5, q)
    for k, c in enumerate(_EULER_MACLAURIN):
        corrections = corrections + c * rising
        rising = rising * ((t + (2.0 * k + 1.0)) * v) * ((t + (2.0 * k + 2.0)) * v)
    total = total + el.select(few, last * corrections, 0.0)
    integral = el.exp((1.0 - s) * logs) / (s - 1.0)  # times q, which r takes away
    low = el.lt(q, 1.0)  # where q ** (1 - s) is finite, and its product with r may not be
    most = el.pow_(q, el.select(low, el.neg(s), 1.0 - s))
    return most * (el.select(low, total + integral * q, total * r + integral))


polygamma = define("polygamma", 2, "The n-th derivative of digamma, for whole n >= 0.")


@said(polygamma)
def _polygamma(n: Value, x: Value):
    """Return (-1)^(n+1) n! zeta(n + 1, x): DLMF 5.15.1 and 25.11.12."""
    s = n + 1.0
    odd = el.eq(s, 2.0 * el.floor(s * 0.5))
    size = el.exp(el.lgamma(s)) * zeta(s, x)
    out = el.select(el.eq(n, 0.0), el.digamma(x), el.select(odd, size, el.neg(size)))
    return el.select(el.and_(el.eq(n, el.floor(n)), n >= 0.0), out, math.nan)


_STIRLING = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400,
    43867 / 244188,
)  # fmt: skip


def stirling(x: Array) -> Any:
    """Return lgamma(x) less its main part (x - 1/2) log x - x + log(2 pi) / 2, for x >= 8.

    Source: DLMF 5.11.1.
    """
    r = 1.0 / x
    return r * series(r * r, _STIRLING)


def log1p_less(x: Array) -> Any:
    """Return log(1 + x) - x, exact for small x: with r = x / (2 + x) it is 2 artanh(r) - x."""
    near = el.le(el.abs_(x), 0.5)
    r = el.select(near, x, 0.0)
    r = r / (2.0 + r)
    odd = [1 / (2 * k + 3) for k in range(16)]
    small = r * (2.0 * r * r * series(r * r, odd) - x)
    return el.select(near, small, el.log1p(x) - x)


lbeta = define("lbeta", 2, "log |B(a, b)|, of the beta function.")


@said(lbeta)
def _lbeta(a, b):
    """Use differences of lgamma, or of its asymptotic series where these would cancel."""
    p, q = el.minimum(a, b), el.maximum(a, b)
    some, large = q >= 8.0, p >= 8.0
    p8, q8 = el.select(large, p, 8.0), el.select(some, q, 8.0)
    sum8 = q8 + el.select(some, p, 0.0)
    ratio = p / q8
    # This is lgamma(q) - lgamma(p + q), by the asymptotic series.
    tail = stirling(q8) - stirling(sum8) + p - p * el.log(sum8) - (q8 - 0.5) * el.log1p(ratio)
    plain = el.lgamma(p) + el.lgamma(q) - el.lgamma(p + q)
    both = (
        0.5 * math.log(2 * math.pi) - 0.5 * el.log(q8)
        + stirling(p8) + stirling(q8) - stirling(sum8)
        + (p8 - 0.5) * el.log(p8 / sum8) - q8 * el.log1p(ratio)
    )  # fmt: skip
    out = el.select(large, both, el.select(some, el.lgamma(p) + tail, plain))
    out = el.select(el.eq(q, math.inf), -math.inf, out)
    out = el.select(el.eq(p, 0.0), math.inf, out)
    out = el.select(el.lt(p, 0.0), plain, out)
    return el.select(el.or_(el.ne(a, a), el.ne(b, b)), math.nan, out)


# ---- Bessel functions ------------------------------------------------------------------------

bessel_i0e = define("bessel_i0e", 1, "e ** -|x| times the modified Bessel function of order 0.")
bessel_i1e = define("bessel_i1e", 1, "e ** -|x| times the modified Bessel function of order 1.")
_i1e = simple("chlo.bessel_i1e")

# Chebyshev coefficients of the function on |x| <= 8, in |x| / 4 - 1, and of it times sqrt(|x|)
# beyond, in 16 / |x| - 1.  They are the cosine transform of values to 40 digits.
_NEAR = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764,
    0.04930528423967071, -0.02373741480589947, 0.010546460394594998, -0.004324309995050576,
    0.0016394756169413357, -0.0005763755745385824, 0.00018850288509584165,
    -5.754195010082104e-05, 1.6448448070728896e-05, -4.4167383584587505e-06,
    1.1173875391201037e-06, -2.670793853940612e-07, 6.046995022541919e-08,
    -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10,
    9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13,
    7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16,
    3.3307945188222384e-17,
)  # fmt: skip
_FAR = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
    2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
    1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11,
    -1.7941785315068062e-12, 7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14,
    -4.150569347287222e-14, -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15,
    -3.425485619677219e-16, -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17,
)  # fmt: skip


def chebyshev(x: Array, coefficients: Sequence[float]) -> Any:
    """Return the sum of c[k] T_k(x), by Clenshaw's recurrence; negligible terms are left out."""
    least = 0.01 * epsilon(x) * max(map(abs, coefficients))
    coefficients = [c for c in coefficients if abs(c) > least]
    twice = x + x
    ahead: Any = const(coefficients[-1], x)
    total = twice * coefficients[-1] + coefficients[-2]
    for c in reversed(coefficients[1:-2]):
        ahead, total = total, twice * total + (c - ahead)
    return x * total + (coefficients[0] - ahead)


@said(bessel_i0e)
def _i0e(x: Value):
    x = el.abs_(x)
    inside = chebyshev(el.minimum(x, 8.0) * 0.25 - 1.0, _NEAR)
    outside = el.maximum(x, 8.0)
    return el.select(
        el.le(x, 8.0), inside, chebyshev(16.0 / outside - 1.0, _FAR) * el.rsqrt(outside)
    )


@lower_rules.rule(bessel_i1e)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    return _i1e(e, xs, ins, outs)


# ---- the normal distribution -------------------------------------------------------------------


def far_left(x: Value) -> float:
    """Return the greatest x for which the series in 1 / x ** 2 is exact."""
    return -20.0 if x.aval.dtype == np.float64 else -10.0


log_ndtr = define("log_ndtr", 1, "Logarithm of the normal distribution function.", Increasing)


@said(log_ndtr)
def _log_ndtr(x: Value):
    """Use erfc; far on the left use the asymptotic series of Mills's ratio, DLMF 7.12.1."""
    far = far_left(x)
    tail = 0.5 * el.erfc(el.abs_(el.maximum(x, far)) * math.sqrt(0.5))
    middle = el.select(el.gt(x, 0.0), el.log1p(el.neg(tail)), el.log(tail))
    z = el.minimum(x, far)
    left = -0.5 * z * z - el.log(el.neg(z)) - 0.5 * math.log(2 * math.pi) + el.log(mills(z))
    return el.select(el.lt(x, far), left, middle)


def mills(z: Value) -> Any:
    """Return -z times the distribution function at z over the density, for z far on the left."""
    terms = [1.0]
    for k in range(10):
        terms.append(-terms[-1] * (2 * k + 1))
    return series(1.0 / (z * z), terms)


ndtri = define("ndtri", 1, "Quantiles of the normal distribution: the inverse of its "
                "distribution\nfunction.", Increasing)  # fmt: skip


@said(ndtri)
def _ndtri(p: Value):
    """Use erf_inv; in the tails use a rational approximation (Abramowitz and Stegun 26.2.23),
    refined twice with Halley's method on the logarithm of the tail."""
    middle = el.erf_inv(2.0 * p - 1.0) * math.sqrt(2.0)
    tail = el.minimum(p, 1.0 - p)
    inside = el.and_(el.gt(tail, 0.0), el.lt(tail, 0.1))
    goal = el.log(el.select(inside, tail, 0.05))
    t = el.sqrt(-2.0 * goal)
    top, bottom = series(t, (2.515517, 0.802853, 0.010328)), series(t, (1.0, 1.432788, 0.189269,
                                                                        0.001308))  # fmt: skip
    x = top / bottom - t
    for _ in range(2):
        now = _log_ndtr(x)
        slope = el.exp(-0.5 * x * x - 0.5 * math.log(2 * math.pi) - now)
        step = (now - goal) / slope
        x = x - step / (1.0 + 0.5 * step * (x + slope))
    x = el.select(el.lt(p, 0.5), x, el.neg(x))
    edge = el.select(el.eq(p, 0.0), -math.inf, el.select(el.eq(p, 1.0), math.inf, middle))
    return el.select(inside, x, edge)


__all__ = ["bessel_i0e", "bessel_i1e", "lbeta", "log_ndtr", "ndtri", "polygamma", "zeta"]
