"""Hypergeometric functions of real numbers: Kummer's 1F1 and Gauss's 2F1.

Both are computed in float64 whatever the dtype, since terms of their series may cancel.

Invariant: a series that ends is summed to its end.  One that has not settled within the turns of
its loop gives nan, not the sum so far.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.ext.ops.elementwise import (
    abs_,
    and_,
    digamma,
    eq,
    exp,
    floor,
    ge,
    gt,
    le,
    lgamma,
    log,
    log1p,
    lt,
    maximum,
    minimum,
    ne,
    neg,
    not_,
    or_,
    round_even,
    select,
)
from plait.ext.ops.shape import convert

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


def _is_pole(x: Any) -> Any:
    """Mark the poles of Gamma."""
    return and_(eq(x, floor(x)), le(x, 0.0))


def _gammas(tops: Sequence[Any], bottoms: Sequence[Any]) -> Any:
    """Return the product of Gammas of `tops` over those of `bottoms`; 0 at a pole of these."""
    size, signs, none = const(0.0, tops[0]), const(1.0, tops[0]), lt(tops[0], -math.inf)
    for x in tops:
        size, signs = size + lgamma(x), signs * _sign(x)
    for x in bottoms:
        pole = _is_pole(x)
        y = select(pole, 1.0, x)
        size, signs, none = size - lgamma(y), signs * _sign(y), or_(none, pole)
    return select(none, 0.0, signs * exp(size))


def _sign(x: Any) -> Any:
    whole = floor(x)
    odd = ne(whole, 2.0 * floor(0.5 * whole))
    return select(and_(lt(x, 0.0), odd), -1.0, 1.0)


# ---- series ----------------------------------------------------------------------------------


def _summed(on: Any, a: Any, b: Any, c: Any, x: Any, falls: bool = False) -> Any:
    """Return the sum of (a)_k (b)_k / (c)_k x ** k / k! where `on`; None leaves out (b)_k or (c)_k.

    The sum ends at two small terms in a row, after all positions where a factor vanishes.  If
    `falls`, terms decrease at first only, and the sum ends before they grow.
    """
    tight, one = epsilon(x) * 0.25, const(1.0, x)
    given = [v for v in (a, b, c) if v is not None]
    lag = neg(minimum(minimum(given[0], given[-1]), given[len(given) // 2]))

    def turn(k: Any, on: Any, term: Any, total: Any, x: Any, lag: Any, left: Any, small: Any, *of):
        n, rest = k - 1.0, list(of)
        up = rest.pop(0) + n
        up = up if b is None else up * (rest.pop(0) + n)
        down = const(1.0, x) if c is None else rest.pop(0) + n
        ended = and_(eq(down, 0.0), or_(eq(up, 0.0), eq(term, 0.0)))
        step = select(ended, 0.0, up) * x / (select(ended, 1.0, down) * k)
        new = term * step
        on = and_(on, le(abs_(new), abs_(term))) if falls else on
        term = select(on, new, term)
        total = select(on, total + term, total)
        little = le(abs_(term), abs_(total) * tight)
        left = and_(on, not_(and_(and_(little, small), gt(n, lag))))
        return left, term, total, x, lag, left, little, *of

    never = lt(x, -math.inf)
    out = until_settled(turn, on, one, one, x, lag, on, never, *given)
    return select(out[4], math.nan, out[1])


# ---- Kummer's function -----------------------------------------------------------------------


@said(hyp1f1)
@_wide
def _hyp1f1(a, b, x):
    """Use the power series; for x < 0 Kummer's transformation (DLMF 13.2.39), and far on the left
    the asymptotic series 13.7.2."""
    ends = _is_pole(a)
    lost = and_(_is_pole(b), not_(and_(ends, ge(a, b))))
    safe = select(lost, 1.0, b)
    left = and_(lt(x, 0.0), not_(ends))
    y, p, q = abs_(x), safe - a, a - safe + 1.0
    far = and_(and_(left, gt(y, 40.0 + 2.0 * abs_(a * q))), not_(_is_pole(p)))
    top, at = select(left, p, a), select(left, y, x)
    near = _summed(not_(far), top, None, safe, select(far, 0.0, at))
    near = select(left, exp(minimum(x, 0.0)) * near, near)
    z = select(far, y, 100.0)
    some, other = select(far, a, 0.5), select(far, q, 0.5)
    tail = _summed(far, some, other, None, 1.0 / z, falls=True)
    size = _gammas([select(far, safe, 1.0)], [select(far, p, 1.0)])
    out = select(far, size * exp(neg(some) * log(z)) * tail, near)
    out = select(or_(eq(a, 0.0), eq(x, 0.0)), 1.0, out)
    bad = or_(or_(ne(a, a), ne(b, b)), ne(x, x))
    return select(bad, math.nan, select(and_(lost, ne(a, 0.0)), math.inf, out))


# ---- Gauss's function ------------------------------------------------------------------------


def _connected(on: Any, a: Any, b: Any, c: Any, rest: Any) -> Any:
    """Evaluate at x = 1 - rest, close to 1: DLMF 15.8.4; c - a - b must not be a whole number."""
    s = select(on, c - a - b, 0.5)
    a, b, c = (select(on, v, 1.0) for v in (a, b, c))
    z = select(on, rest, 0.0)
    first = _gammas([c, s], [c - a, c - b]) * _summed(on, a, b, 1.0 - s, z)
    power = exp(s * log(select(on, rest, 1.0)))
    second = _gammas([c, neg(s)], [a, b]) * power * _summed(on, c - a, c - b, 1.0 + s, z)
    return first + second


def _logarithmic(on: Any, a: Any, b: Any, m: Any, rest: Any) -> Any:
    """Evaluate close to x = 1 where c - a - b is a whole number m >= 0: DLMF 15.8.10."""
    m, a, b = select(on, m, 0.0), select(on, a, 1.0), select(on, b, 1.0)
    z = select(on, rest, 0.5)
    c = a + b + m

    def ahead(k: Any, on: Any, term: Any, total: Any, a: Any, b: Any, m: Any, z: Any):
        total, n = select(on, total + term, total), k - 1.0
        on = and_(on, lt(k, m))
        step = (a + n) * (b + n) * z / (k * (n + 1.0 - m))
        return on, select(on, term * step, term), total, a, b, m, z

    one = const(1.0, z)
    head = until_settled(ahead, and_(on, gt(m, 0.0)), one, const(0.0, z), a, b, m, z)[1]
    some = gt(m, 0.0)
    head = select(some, _gammas([c, select(some, m, 1.0)], [a + m, b + m]) * head, 0.0)
    tight, logs = epsilon(z), log(z)

    def turn(k: Any, on: Any, term: Any, total: Any, a: Any, b: Any, m: Any, z: Any, logs: Any):
        n = k - 1.0
        p, q = a + m + n, b + m + n
        bend = logs - digamma(k) - digamma(k + m) + digamma(p) + digamma(q)
        new = total + term * bend
        on = and_(on, gt(abs_(term * bend), abs_(new) * tight))
        return on, term * (p * q) * z / (k * (k + m)), new, a, b, m, z, logs

    tail = until_settled(turn, on, one, const(0.0, z), a, b, m, z, logs)[1]
    odd = ne(m, 2.0 * floor(0.5 * m))
    size = _gammas([c, a + m, b + m], [a, b, a + m, b + m]) * exp(m * logs - lgamma(m + 1.0))
    return head + select(odd, size, neg(size)) * tail


@said(hyp2f1)
@_wide
def _hyp2f1(a, b, c, x):
    """Use the power series; for x < -1/2 after Pfaff's transformation (DLMF 15.8.1).

    Close to 1, here or after Pfaff's transformation, use the connection formulas.
    """
    a, b = maximum(a, b), minimum(a, b)
    ends = or_(_is_pole(a), _is_pole(b))
    last = select(_is_pole(a), a, b)  # the series that ends first
    lost = and_(_is_pole(c), not_(and_(ends, ge(last, c))))
    beyond = and_(gt(x, 1.0), not_(ends))
    one = and_(eq(x, 1.0), not_(ends))
    plain = not_(or_(or_(lost, or_(beyond, one)), ne(x, x)))
    p, q, r, z = (select(plain, v, w) for v, w in ((a, 1.0), (b, 1.0), (c, 2.0), (x, 0.0)))
    turned = and_(lt(z, -0.5), not_(ends))
    y = select(turned, z, 0.0)
    front = select(turned, exp(neg(p) * log1p(neg(y))), 1.0)
    rest = select(turned, 1.0 / (1.0 - y), 1.0 - z)
    q, w = select(turned, r - q, q), select(turned, y / (y - 1.0), z)
    ends = or_(_is_pole(p), _is_pole(q))
    s = r - p - q
    short = and_(or_(_is_pole(r - p), _is_pole(r - q)), not_(ends))  # Euler's ends: 15.8.1
    short = or_(short, and_(or_(eq(p, r), eq(q, r)), lt(w, 1.0)))
    m = round_even(s)
    flipped = or_(short, and_(and_(gt(w, 0.9), lt(m, 0.0)), not_(ends)))
    safe = select(flipped, rest, 1.0)
    front = front * exp(select(flipped, s, 0.0) * log(safe))
    p, q = select(flipped, r - p, p), select(flipped, r - q, q)
    s, m, gap = select(flipped, neg(s), s), abs_(m), abs_(s - round_even(s))
    # The connection formula loses digits where c - a - b is close to a whole number (`gap`).  There
    # the power series is used instead up to w = 0.996, while it settles within the loop's turns.
    close = and_(and_(gt(w, 0.9), not_(or_(ends, short))), plain)
    hard = gt(w, 0.996)
    joined = and_(close, or_(gt(gap, 0.01), and_(hard, gt(gap, 1e-7))))
    logs = and_(close, and_(hard, le(gap, 1e-7)))
    straight = and_(plain, not_(or_(joined, logs)))
    p1, q1, r1, w1 = (select(straight, v, 1.0) for v in (p, q, r, w))
    out = _summed(straight, p1, q1, r1, select(straight, w1, 0.0))
    out = select(joined, _connected(joined, p, q, r, rest), out)
    out = front * select(logs, _logarithmic(logs, p, q, m, rest), out)
    sure = and_(one, not_(lost))
    top = select(sure, c - a - b, 1.0)
    end = [select(sure, v, 1.0) for v in (c, c - a, c - b)]
    at_one = _gammas([end[0], select(gt(top, 0.0), top, 1.0)], end[1:])
    grows = _sign(a) * _sign(b) * _sign(c) * math.inf
    out = select(one, select(gt(top, 0.0), at_one, grows), out)
    out = select(lost, math.inf, select(beyond, math.nan, out))
    bad = or_(or_(ne(a, a), ne(b, b)), or_(ne(c, c), ne(x, x)))
    return select(bad, math.nan, select(eq(x, 0.0), select(lost, out, 1.0), out))


__all__ = ["hyp1f1", "hyp2f1"]
