"""Derivatives of cumulative sums, products, extremes, and of linear recurrences.

All but the running sum reduce to linear recurrences, y[i] = a[i] y[i - 1] + u[i].  These are linear
in u.  Their transpose is a recurrence that runs backwards, and their derivative in a is one too.

Invariant: the work is linear to every order, and no rule divides by elements.  All elements up to
i that tie for a running extreme share its derivative equally.
"""

from typing import Any

from plait.ext.ir import Primitive
from plait.ext.ops.cumulative import cumlogsumexp_, cummax_, cummin_, cumprod_, cumsum_, recurrence
from plait.ext.ops.elementwise import add, div, eq, exp, mul, once, select, sub
from plait.ext.ops.shape import convert, pad_
from plait.ext.trace import Value
from plait.ext.types import Aval
from plait.ext.values import Literal

from ..forward import ZERO, jvp_rules
from ..transpose import Linear, is_linear, transpose_rules


def previous(x: Value, axis: int, reverse: bool, first: float) -> Any:
    """Return x[i - 1] (x[i + 1] if `reverse`), and `first` at the end."""
    n = x.aval.ndim
    low, high = (-1, 1) if reverse else (1, -1)
    at = lambda v: tuple([v if i == axis else 0 for i in range(n)])  # noqa: E731
    value = Literal(first, Aval((), x.aval.dtype))
    return pad_.bind(x, value, low=at(low), high=at(high), interior=(0,) * n)


def empty(x: Value, *axes: int) -> bool:
    """Return whether one of these axes is known to have no elements."""
    return any(x.aval.shape[a].__class__ is int and x.aval.shape[a] == 0 for a in axes)


@transpose_rules.rule(cumsum_)
def _(ct: Value, x: object, *, axis: int, reverse: bool):
    return (cumsum_.bind(ct, axis=axis, reverse=not reverse),)


@jvp_rules.rule(cumprod_)
def _(xs: list[Value], ts: list[Value], *, axis: int, reverse: bool):
    """Differentiate p[i] = p[i - 1] x[i]."""
    (x,), (t,) = xs, ts
    out = cumprod_.bind(x, axis=axis, reverse=reverse)
    if empty(x, axis):
        return out, ZERO
    u = mul.bind(t, previous(out, axis, reverse, 1.0))
    return out, recurrence.bind(x, u, axis=axis, reverse=reverse)


def _extreme(prim: Primitive) -> None:
    """Register a rule for a running extreme.

    It divides the sum of the tangents that tie for the extreme, since it last changed, by their
    number.
    """

    @jvp_rules.rule(prim)
    def _(xs: list[Value], ts: list[Value], *, axis: int, reverse: bool):
        x, (t,) = once.bind(*xs), ts
        out = prim.bind(x, axis=axis, reverse=reverse)
        if empty(x, axis):
            return out, ZERO
        along = dict(axis=axis, reverse=reverse)
        same = convert(eq.bind(out, previous(out, axis, reverse, 0.0)), x.aval.dtype)
        there = eq.bind(x, out)
        count = recurrence.bind(same, convert(there, x.aval.dtype), **along)
        moving = select.bind(there, t, Literal(0, t.aval))
        return out, div.bind(recurrence.bind(same, moving, **along), count)


_extreme(cummax_)
_extreme(cummin_)


@jvp_rules.rule(cumlogsumexp_)
def _(xs: list[Value], ts: list[Value], *, axis: int, reverse: bool):
    """Differentiate log(e**out[i - 1] + e**x[i]), whose weights add up to 1."""
    (x,), (t,) = xs, ts
    out = cumlogsumexp_.bind(x, axis=axis, reverse=reverse)
    if empty(x, axis):
        return out, ZERO
    # Where all elements so far are -inf, 0 is subtracted: -inf - -inf would be nan.
    least = Literal(-float("inf"), x.aval)
    safe = select.bind(eq.bind(out, least), Literal(0.0, x.aval), out)
    before = previous(out, axis, reverse, -float("inf"))
    a, b = (exp.bind(sub.bind(v, safe)) for v in (before, x))
    return out, recurrence.bind(a, mul.bind(t, b), axis=axis, reverse=reverse)


@jvp_rules.rule(recurrence)
def _(xs: list[Value], ts: list[Value], *, axis: int, reverse: bool):
    (a, u), (da, du) = xs, ts
    y = recurrence.bind(a, u, axis=axis, reverse=reverse)
    if empty(u, axis):
        return y, ZERO
    if da is not ZERO:
        by_a = mul.bind(da, previous(y, axis, reverse, 0.0))
        du = by_a if du is ZERO else add.bind(du, by_a)
    return y, recurrence.bind(a, du, axis=axis, reverse=reverse)


@transpose_rules.rule(recurrence)
def _(ct: Value, a: Value, u: Linear, *, axis: int, reverse: bool):
    """Transpose in `u`: the cotangent of u[i] is ct[i] plus a[i + 1] times that of u[i + 1]."""
    if not is_linear(u) or is_linear(a):
        return None, None
    after = previous(a, axis, not reverse, 0.0)
    return None, recurrence.bind(after, ct, axis=axis, reverse=not reverse)
