"""Taylor coefficients of primitives from those of their operands.

The recurrences follow from a differential equation for the function (Griewank and Walther,
"Evaluating Derivatives", 2008, table 13.2): y' = x' cos x, x y' = x', and so on.

Invariant: recurrences divide only by values, never by higher coefficients.  Products skip
coefficients that are known to be zero.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.ir import Primitive
from plait.ext.ops import elementwise as el
from plait.ext.ops import indexing as ix
from plait.ext.ops.collective import pmax_, pmin_
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.convolution import conv_general
from plait.ext.ops.cumulative import cummax_, cummin_, cumprod_, recurrence
from plait.ext.ops.reduction import reduce_max, reduce_min
from plait.ext.ops.shape import barrier, concatenate_, convert_, pad_
from plait.ext.ops.sorting import sort_, top_k_
from plait.ext.rules import Discrete
from plait.ext.rules import Linear as LinearTrait
from plait.ext.trace import Value
from plait.ext.types import COMPLEX
from plait.ext.values import Literal, is_literal_zero

from ..forward import ZERO, jvp_rules
from ..rules.cumulative import previous
from .series import Series, by_derivative, jet_rules, scaled

# ---- arithmetic of coefficients --------------------------------------------------------------


def _plus(a: Value, b: Value) -> Any:
    return b if is_literal_zero(a) else a if is_literal_zero(b) else el.add.bind(a, b)


def _minus(a: Value, b: Value) -> Any:
    return a if is_literal_zero(b) else el.neg.bind(b) if is_literal_zero(a) else el.sub.bind(a, b)


def _times(a: Value, b: Value) -> Any:
    if is_literal_zero(a) or is_literal_zero(b):
        return Literal(0, a.aval)
    return el.mul.bind(a, b)


def _over(a: Value, b: Value) -> Any:
    return a if is_literal_zero(a) else el.div.bind(a, b)


def _total(terms: Sequence[Any], like: Value) -> Any:
    out = Literal(0, like.aval)
    for t in terms:
        out = _plus(out, t)
    return out


def _product(x: Sequence[Any], y: Sequence[Any], k: int) -> Any:
    """Return coefficient `k` of x y."""
    return _total([_times(x[j], y[k - j]) for j in range(k + 1)], x[0])


def _weighted(x: Series, y: Sequence[Any], k: int) -> Any:
    """Return coefficient `k` of the integral of x' y, for k > 0."""
    terms = [scaled(_times(x[j], y[k - j]), j / k) for j in range(1, k + 1)]
    return _total(terms, x[0])


# ---- operations that are linear, at least piecewise --------------------------------------------


@jet_rules.rule(LinearTrait)
def _(prim: Primitive, series: list[tuple[Any, ...]], /, **params: object):
    first = prim.bind(*[s[0] for s in series], **params)
    out = [first]
    for kth in list(zip(*series))[1:]:
        zero = all(map(is_literal_zero, kth))
        out.append(Literal(0, first.aval) if zero else prim.bind(*kth, **params))
    return tuple(out)


@jet_rules.rule(Discrete)
def _(prim: Primitive, series: list[tuple[Any, ...]], /, **params: object):
    own = jvp_rules.own(prim)
    if own is not None:  # discrete for some dtypes only: the sign of a complex number varies
        return by_derivative(prim, own, series, **params)
    first = prim.bind(*[s[0] for s in series], **params)
    order = len(series[0]) - 1
    if prim.many:
        return [(y, *[Literal(0, y.aval)] * order) for y in first]
    return (first, *[Literal(0, first.aval)] * order)


def _piecewise(prim: Primitive) -> None:
    """Register a rule for a primitive that is linear where it is differentiable.

    Each coefficient is mapped like a tangent.
    """

    @jet_rules.rule(prim)
    def _(series: list[tuple[Any, ...]], /, **params: object):
        derivative = jvp_rules[prim]
        xs = [s[0] for s in series]
        columns = []
        for kth in list(zip(*series))[1:]:
            ts = [ZERO if not c.aval.inexact or is_literal_zero(c) else c for c in kth]
            still = all(t is ZERO for t in ts)
            columns.append((None, None) if still else derivative(xs, ts, **params))
        out = next(o for o, _ in columns if o is not None)
        outs = out if prim.many else [out]
        found: list[list] = [[y] for y in outs]
        for _, dot in columns:
            dots = [ZERO] * len(outs) if dot is None else dot if prim.many else [dot]
            for row, y, d in zip(found, outs, dots, strict=True):
                row.append(Literal(0, y.aval) if d is ZERO else d)
        return [tuple(row) for row in found] if prim.many else tuple(found[0])


for _p in (
    barrier, el.clamp, concatenate_, convert_, cummax_, cummin_, ix.dynamic_slice_,
    ix.dynamic_update_slice_, ix.gather_, el.maximum, el.minimum, el.nextafter, pad_, pmax_, pmin_,
    reduce_max, reduce_min, el.reduce_precision, el.relu, el.rem, ix.scatter_, ix.scatter_add_,
    ix.scatter_max_, ix.scatter_min_, el.select, sort_, top_k_,
):  # fmt: skip
    _piecewise(_p)


@jet_rules.rule(el.abs_)
def _(series: list[tuple[Any, ...]]):
    (x,) = series
    if x[0].aval.category == COMPLEX:
        return by_derivative(el.abs_, jvp_rules[el.abs_], series)
    y, slope = jvp_rules[el.abs_]([x[0]], [Literal(1, x[0].aval)])
    return (y, *[_times(c, slope) for c in x[1:]])


# ---- products ----------------------------------------------------------------------------------


def _bilinear(prim: Primitive) -> None:
    @jet_rules.rule(prim)
    def _(series: list[tuple[Any, ...]], /, **params: object):
        x, y = series
        out = []
        for k in range(len(x)):
            pairs = [(x[j], y[k - j]) for j in range(k + 1)]
            terms = [
                prim.bind(a, b, **params)
                for a, b in pairs
                if k == 0 or not (is_literal_zero(a) or is_literal_zero(b))
            ]
            out.append(_total(terms, out[0] if out else terms[0]))
        return tuple(out)


for _p in (el.mul, dot_general, conv_general):
    _bilinear(_p)


@jet_rules.rule(el.div)
def _(series: list[tuple[Any, ...]]):
    x, y = series
    z = [el.div.bind(x[0], y[0])]
    for k in range(1, len(x)):
        known = _total([_times(y[j], z[k - j]) for j in range(1, k + 1)], x[0])
        z.append(_over(_minus(x[k], known), y[0]))
    return tuple(z)


def _multiplied(x: Sequence[Any], y: Sequence[Any]) -> list:
    return [_product(x, y, k) for k in range(len(x))]


@jet_rules.rule(el.integer_pow)
def _(series: list[tuple[Any, ...]], *, exponent: int):
    """Square repeatedly, which is correct at zero."""
    (x,) = series
    if exponent < 0:
        one = (Literal(1, x[0].aval), *[Literal(0, x[0].aval)] * (len(x) - 1))
        power = jet_rules[el.integer_pow]([x], exponent=-exponent)
        return jet_rules[el.div]([one, power])
    out, square, left = None, list(x), exponent
    while left:
        if left & 1:
            out = square if out is None else _multiplied(out, square)
        left >>= 1
        square = _multiplied(square, square) if left else square
    first = el.integer_pow.bind(x[0], exponent=exponent)
    rest = [Literal(0, first.aval)] * (len(x) - 1) if out is None else out[1:]
    return (first, *rest)


@jet_rules.rule(recurrence)
def _(series: list[tuple[Any, ...]], **along):
    """Solve y[i] = a[i] y[i - 1] + u[i], coefficient by coefficient."""
    a, u = series
    out: list = []
    for k in range(len(a)):
        terms = [
            el.mul.bind(a[j], previous(out[k - j], along["axis"], along["reverse"], 0.0))
            for j in range(1, k + 1)
            if not is_literal_zero(a[j])
        ]
        known = _plus(u[k], _total(terms, u[0]))
        out.append(known if k and is_literal_zero(known) else recurrence.bind(a[0], known, **along))
    return tuple(out)


@jet_rules.rule(cumprod_)
def _(series: list[tuple[Any, ...]], **along):
    """Solve p[i] = p[i - 1] x[i], coefficient by coefficient."""
    (x,) = series
    out = [cumprod_.bind(x[0], **along)]
    for k in range(1, len(x)):
        terms = [
            el.mul.bind(x[j], previous(out[k - j], along["axis"], along["reverse"], float(k == j)))
            for j in range(1, k + 1)
            if not is_literal_zero(x[j])
        ]
        known = _total(terms, x[0])
        out.append(known if is_literal_zero(known) else recurrence.bind(x[0], known, **along))
    return tuple(out)


# ---- functions of one operand ------------------------------------------------------------------


def _slope(prim: Primitive, slope: Callable[[Sequence[Any], int], Any]) -> None:
    """Register y' = w x', where `slope(y, k)` is coefficient `k` of w, given those of y up to k."""

    @jet_rules.rule(prim)
    def _(series: list[tuple[Any, ...]]):
        (x,) = series
        y = [prim.bind(x[0])]
        w: list = []
        for k in range(1, len(x)):
            w.append(slope(y, k - 1))
            y.append(_weighted(x, w, k))
        return tuple(y)


def _one(y: Sequence[Any], k: int) -> Any:
    return Literal(1 if k == 0 else 0, y[0].aval)


_slope(el.exp, lambda y, k: y[k])
_slope(el.expm1, lambda y, k: _plus(y[k], _one(y, k)))
_slope(el.tanh, lambda y, k: _minus(_one(y, k), _product(y, y, k)))
_slope(el.tan, lambda y, k: _plus(_one(y, k), _product(y, y, k)))
_slope(el.logistic, lambda y, k: _minus(y[k], _product(y, y, k)))


def _pair(prim: Primitive, other: Primitive, sign: int) -> None:
    """Register two functions with y' = x' z and z' = sign x' y."""

    def both(x: Series) -> tuple[list, list]:
        y, z = [prim.bind(x[0])], [other.bind(x[0])]
        for k in range(1, len(x)):
            y.append(_weighted(x, z, k))
            z.append(scaled(_weighted(x, y, k), sign))
        return y, z

    jet_rules.rule(prim)(lambda series: tuple(both(series[0])[0]))
    jet_rules.rule(other)(lambda series: tuple(both(series[0])[1]))


_pair(el.sin, el.cos, -1)
_pair(el.sinh, el.cosh, 1)


def _logarithm(prim: Primitive, shift: int) -> None:
    @jet_rules.rule(prim)
    def _(series: list[tuple[Any, ...]]):
        (x,) = series
        base = el.add.bind(x[0], Literal(1, x[0].aval)) if shift else x[0]
        y = [prim.bind(x[0])]
        for k in range(1, len(x)):
            terms = [scaled(_times(y[j], x[k - j]), j / k) for j in range(1, k)]
            y.append(_over(_minus(x[k], _total(terms, x[0])), base))
        return tuple(y)


_logarithm(el.log, 0)
_logarithm(el.log1p, 1)


@jet_rules.rule(el.sqrt)
def _(series: list[tuple[Any, ...]]):
    (x,) = series
    y = [el.sqrt.bind(x[0])]
    for k in range(1, len(x)):
        known = _total([_times(y[j], y[k - j]) for j in range(1, k)], x[0])
        y.append(_over(_minus(x[k], known), scaled(y[0], 2)))
    return tuple(y)
