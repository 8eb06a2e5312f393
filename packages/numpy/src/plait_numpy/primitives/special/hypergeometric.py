"""Hypergeometric functions of real numbers: Kummer's 1F1 and Gauss's 2F1.

Both are computed in float64 whatever the dtype, since terms of their series may cancel.

Invariant: a series that ends is summed to its end.  One that has not settled within the turns of
its loop gives nan, not the sum so far.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.ext.ops import elementwise as el
from plait.ext.ops.shape import convert
from plait.ext.trace import Value
from plait.typing import Array

from .functions import const, define, epsilon, said, until_settled

hyp1f1 = define("hyp1f1", 3, "Kummer's function M(a, b, x), the sum of (a)_k / (b)_k x ** k / k!.")
hyp2f1 = define("hyp2f1", 4, "Gauss's function F(a, b; c; x), the sum of (a)_k (b)_k / (c)_k\n"
                "x ** k / k!, and its continuation to x < -1.")  # fmt: skip


def _wide(f: Callable) -> Callable:
    """Return `f`, computed in float64."""

    def wide(*xs: Any) -> Any:
        dtype = xs[0].aval.dtype
        return convert(f(*[convert(x, np.float64) for x in xs]), dtype)

    return wide


# ---- gamma -----------------------------------------------------------------------------------


def _is_pole(x: Array) -> Any:
    """Mark the poles of Gamma."""
    return el.and_(el.eq(x, el.floor(x)), el.le(x, 0.0))


def _gammas(tops: Sequence[Any], bottoms: Sequence[Any]) -> Any:
    """Return the product of Gammas of `tops` over those of `bottoms`; 0 at a pole of these."""
    size, signs, none = const(0.0, tops[0]), const(1.0, tops[0]), el.lt(tops[0], -math.inf)
    for x in tops:
        size, signs = size + el.lgamma(x), signs * _sign(x)
    for x in bottoms:
        pole = _is_pole(x)
        y = el.select(pole, 1.0, x)
        size, signs, none = size - el.lgamma(y), signs * _sign(y), el.or_(none, pole)
    return el.select(none, 0.0, signs * el.exp(size))


def _sign(x: Value) -> Any:
    whole = el.floor(x)
    odd = el.ne(whole, 2.0 * el.floor(0.5 * whole))
    return el.select(el.and_(el.lt(x, 0.0), odd), -1.0, 1.0)


# ---- series ----------------------------------------------------------------------------------


def _summed(on: Value, a: Array, b: Any, c: Any, x: Array, falls: bool = False) -> Any:
    """Return the sum of (a)_k (b)_k / (c)_k x ** k / k! where `on`; None leaves out (b)_k or (c)_k.

    The sum ends at two small terms in a row, after all positions where a factor vanishes.  If
    `falls`, terms decrease at first only, and the sum ends before they grow.
    """
    tight, one = epsilon(x) * 0.25, const(1.0, x)
    given = [v for v in (a, b, c) if v is not None]
    lag = el.neg(el.minimum(el.minimum(given[0], given[-1]), given[len(given) // 2]))

    def turn(
        k: Value,
        on: Value,
        term: Value,
        total: Value,
        x: Value,
        lag: Value,
        left: Value,
        small: Value,
        *of,
    ):
        n, rest = k - 1.0, list(of)
        up = rest.pop(0) + n
        up = up if b is None else up * (rest.pop(0) + n)
        down = const(1.0, x) if c is None else rest.pop(0) + n
        ended = el.and_(el.eq(down, 0.0), el.or_(el.eq(up, 0.0), el.eq(term, 0.0)))
        step = el.select(ended, 0.0, up) * x / (el.select(ended, 1.0, down) * k)
        new = term * step
        on = el.and_(on, el.le(el.abs_(new), el.abs_(term))) if falls else on
        term = el.select(on, new, term)
        total = el.select(on, total + term, total)
        little = el.le(el.abs_(term), el.abs_(total) * tight)
        left = el.and_(on, el.not_(el.and_(el.and_(little, small), el.gt(n, lag))))
        return left, term, total, x, lag, left, little, *of

    never = el.lt(x, -math.inf)
    out = until_settled(turn, on, one, one, x, lag, on, never, *given)
    return el.select(out[4], math.nan, out[1])


# ---- Kummer's function -----------------------------------------------------------------------


@said(hyp1f1)
@_wide
def _hyp1f1(a: Value, b: Value, x: Value):
    """Use the power series; for x < 0 Kummer's transformation (DLMF 13.2.39), and far on the left
    the asymptotic series 13.7.2."""
    ends = _is_pole(a)
    lost = el.and_(_is_pole(b), el.not_(el.and_(ends, el.ge(a, b))))
    safe = el.select(lost, 1.0, b)
    left = el.and_(el.lt(x, 0.0), el.not_(ends))
    y, p, q = el.abs_(x), safe - a, a - safe + 1.0
    far = el.and_(el.and_(left, el.gt(y, 40.0 + 2.0 * el.abs_(a * q))), el.not_(_is_pole(p)))
    top, at = el.select(left, p, a), el.select(left, y, x)
    near = _summed(el.not_(far), top, None, safe, el.select(far, 0.0, at))
    near = el.select(left, el.exp(el.minimum(x, 0.0)) * near, near)
    z = el.select(far, y, 100.0)
    some, other = el.select(far, a, 0.5), el.select(far, q, 0.5)
    tail = _summed(far, some, other, None, 1.0 / z, falls=True)
    size = _gammas([el.select(far, safe, 1.0)], [el.select(far, p, 1.0)])
    out = el.select(far, size * el.exp(el.neg(some) * el.log(z)) * tail, near)
    out = el.select(el.or_(el.eq(a, 0.0), el.eq(x, 0.0)), 1.0, out)
    bad = el.or_(el.or_(el.ne(a, a), el.ne(b, b)), el.ne(x, x))
    return el.select(bad, math.nan, el.select(el.and_(lost, el.ne(a, 0.0)), math.inf, out))


# ---- Gauss's function ------------------------------------------------------------------------


def _connected(on: Value, a: Value, b: Value, c: Value, rest: Value) -> Any:
    """Evaluate at x = 1 - rest, close to 1: DLMF 15.8.4; c - a - b must not be a whole number."""
    s = el.select(on, c - a - b, 0.5)
    a, b, c = (el.select(on, v, 1.0) for v in (a, b, c))
    z = el.select(on, rest, 0.0)
    first = _gammas([c, s], [c - a, c - b]) * _summed(on, a, b, 1.0 - s, z)
    power = el.exp(s * el.log(el.select(on, rest, 1.0)))
    second = _gammas([c, el.neg(s)], [a, b]) * power * _summed(on, c - a, c - b, 1.0 + s, z)
    return first + second


def _logarithmic(on: Value, a: Value, b: Value, m: Value, rest: Value) -> Any:
    """Evaluate close to x = 1 where c - a - b is a whole number m >= 0: DLMF 15.8.10."""
    m, a, b = el.select(on, m, 0.0), el.select(on, a, 1.0), el.select(on, b, 1.0)
    z = el.select(on, rest, 0.5)
    c = a + b + m

    def ahead(
        k: Value, on: Value, term: Value, total: Value, a: Value, b: Value, m: Value, z: Value
    ):
        total, n = el.select(on, total + term, total), k - 1.0
        on = el.and_(on, el.lt(k, m))
        step = (a + n) * (b + n) * z / (k * (n + 1.0 - m))
        return on, el.select(on, term * step, term), total, a, b, m, z

    one = const(1.0, z)
    head = until_settled(ahead, el.and_(on, el.gt(m, 0.0)), one, const(0.0, z), a, b, m, z)[1]
    some = el.gt(m, 0.0)
    head = el.select(some, _gammas([c, el.select(some, m, 1.0)], [a + m, b + m]) * head, 0.0)
    tight, logs = epsilon(z), el.log(z)

    def turn(
        k: Value,
        on: Value,
        term: Value,
        total: Value,
        a: Value,
        b: Value,
        m: Value,
        z: Value,
        logs: Value,
    ):
        n = k - 1.0
        p, q = a + m + n, b + m + n
        bend = logs - el.digamma(k) - el.digamma(k + m) + el.digamma(p) + el.digamma(q)
        new = total + term * bend
        on = el.and_(on, el.gt(el.abs_(term * bend), el.abs_(new) * tight))
        return on, term * (p * q) * z / (k * (k + m)), new, a, b, m, z, logs

    tail = until_settled(turn, on, one, const(0.0, z), a, b, m, z, logs)[1]
    odd = el.ne(m, 2.0 * el.floor(0.5 * m))
    size = _gammas([c, a + m, b + m], [a, b, a + m, b + m]) * el.exp(m * logs - el.lgamma(m + 1.0))
    return head + el.select(odd, size, el.neg(size)) * tail


@said(hyp2f1)
@_wide
def _hyp2f1(a: Value, b: Value, c, x: Value):
    """Use the power series; for x < -1/2 after Pfaff's transformation (DLMF 15.8.1).

    Close to 1, here or after Pfaff's transformation, use the connection formulas.
    """
    a, b = el.maximum(a, b), el.minimum(a, b)
    ends = el.or_(_is_pole(a), _is_pole(b))
    last = el.select(_is_pole(a), a, b)  # the series that ends first
    lost = el.and_(_is_pole(c), el.not_(el.and_(ends, el.ge(last, c))))
    beyond = el.and_(el.gt(x, 1.0), el.not_(ends))
    one = el.and_(el.eq(x, 1.0), el.not_(ends))
    plain = el.not_(el.or_(el.or_(lost, el.or_(beyond, one)), el.ne(x, x)))
    p, q, r, z = (el.select(plain, v, w) for v, w in ((a, 1.0), (b, 1.0), (c, 2.0), (x, 0.0)))
    turned = el.and_(el.lt(z, -0.5), el.not_(ends))
    y = el.select(turned, z, 0.0)
    front = el.select(turned, el.exp(el.neg(p) * el.log1p(el.neg(y))), 1.0)
    rest = el.select(turned, 1.0 / (1.0 - y), 1.0 - z)
    q, w = el.select(turned, r - q, q), el.select(turned, y / (y - 1.0), z)
    ends = el.or_(_is_pole(p), _is_pole(q))
    s = r - p - q
    short = el.and_(el.or_(_is_pole(r - p), _is_pole(r - q)), el.not_(ends))  # Euler's ends: 15.8.1
    short = el.or_(short, el.and_(el.or_(el.eq(p, r), el.eq(q, r)), el.lt(w, 1.0)))
    m = el.round_even(s)
    flipped = el.or_(short, el.and_(el.and_(el.gt(w, 0.9), el.lt(m, 0.0)), el.not_(ends)))
    safe = el.select(flipped, rest, 1.0)
    front = front * el.exp(el.select(flipped, s, 0.0) * el.log(safe))
    p, q = el.select(flipped, r - p, p), el.select(flipped, r - q, q)
    s, m, gap = el.select(flipped, el.neg(s), s), el.abs_(m), el.abs_(s - el.round_even(s))
    # The connection formula loses digits where c - a - b is close to a whole number (`gap`).  There
    # the power series is used instead up to w = 0.996, while it settles within the loop's turns.
    close = el.and_(el.and_(el.gt(w, 0.9), el.not_(el.or_(ends, short))), plain)
    hard = el.gt(w, 0.996)
    joined = el.and_(close, el.or_(el.gt(gap, 0.01), el.and_(hard, el.gt(gap, 1e-7))))
    logs = el.and_(close, el.and_(hard, el.le(gap, 1e-7)))
    straight = el.and_(plain, el.not_(el.or_(joined, logs)))
    p1, q1, r1, w1 = (el.select(straight, v, 1.0) for v in (p, q, r, w))
    out = _summed(straight, p1, q1, r1, el.select(straight, w1, 0.0))
    out = el.select(joined, _connected(joined, p, q, r, rest), out)
    out = front * el.select(logs, _logarithmic(logs, p, q, m, rest), out)
    sure = el.and_(one, el.not_(lost))
    top = el.select(sure, c - a - b, 1.0)
    end = [el.select(sure, v, 1.0) for v in (c, c - a, c - b)]
    at_one = _gammas([end[0], el.select(el.gt(top, 0.0), top, 1.0)], end[1:])
    grows = _sign(a) * _sign(b) * _sign(c) * math.inf
    out = el.select(one, el.select(el.gt(top, 0.0), at_one, grows), out)
    out = el.select(lost, math.inf, el.select(beyond, math.nan, out))
    bad = el.or_(el.or_(el.ne(a, a), el.ne(b, b)), el.or_(el.ne(c, c), el.ne(x, x)))
    return el.select(bad, math.nan, el.select(el.eq(x, 0.0), el.select(lost, out, 1.0), out))


__all__ = ["hyp1f1", "hyp2f1"]
