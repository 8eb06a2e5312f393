"""Derivatives of reductions.

Invariant: elements that tie for an extreme share its derivative equally.  The derivative of a
product uses no division, so zeros are correct to every order.  Sums are linear, logical reductions
and positions of extremes are constant (by traits).
"""

from math import prod
from typing import Any

from plait.ext.ir import Primitive
from plait.ext.ops.cumulative import cumprod_
from plait.ext.ops.elementwise import div, eq, mul, select
from plait.ext.ops.reduction import is_max, is_min, reduce_max, reduce_min, reduce_prod, reduce_sum
from plait.ext.ops.shape import convert, reshape, transpose
from plait.ext.trace import Value
from plait.ext.values import Literal

from ..forward import ZERO, jvp_rules
from ..transpose import Linear, transpose_rules
from .cumulative import empty, previous
from .shape import spread_back


@transpose_rules.rule(reduce_sum)
def _(ct: Value, x: Linear, *, axes: tuple[int, ...]):
    return (spread_back(ct, x.aval.shape, axes),)


def _extreme(prim: Primitive, marks: Primitive) -> None:
    @jvp_rules.rule(prim)
    def _(xs: list[Value], ts: list[Value], *, axes: tuple[int, ...]):
        (x,), (t,) = xs, ts
        out = prim.bind(x, axes=axes)
        if empty(x, *axes):
            return out, ZERO
        # If there is a nan, no element is marked, and the derivative is 0 / 0: nan.
        there = marks.bind(x, axes=axes)
        shares = convert(there, x.aval.dtype)
        count = reduce_sum.bind(shares, axes=axes)
        if x.aval.dims:  # of no elements, known only when it runs: zero, and not 0 / 0
            number = reduce_sum.bind(Literal(1, x.aval), axes=axes)
            count = select.bind(eq.bind(number, Literal(0, out.aval)), Literal(1, out.aval), count)
        return out, div.bind(reduce_sum.bind(mul.bind(t, shares), axes=axes), count)


_extreme(reduce_max, is_max)
_extreme(reduce_min, is_min)


def _others(x: Value, axis: int, reverse: bool) -> Any:
    """Return products of the elements before each one (after it, if `reverse`) along `axis`."""
    return previous(cumprod_.bind(x, axis=axis, reverse=reverse), axis, reverse, 1.0)


@jvp_rules.rule(reduce_prod)
def _(xs: list[Value], ts: list[Value], *, axes: tuple[int, ...]):
    """Multiply each tangent by all other elements: those before it and those after it."""
    (x,), (t,) = xs, ts
    out = reduce_prod.bind(x, axes=axes)
    if empty(x, *axes):
        return out, ZERO
    kept = tuple([i for i in range(x.aval.ndim) if i not in axes])
    flat = (*out.aval.shape, prod([x.aval.shape[i] for i in axes]))
    x, t = (reshape(transpose(v, (*kept, *axes)), flat) for v in (x, t))
    last = x.aval.ndim - 1
    rest = mul.bind(_others(x, last, False), _others(x, last, True))
    return out, reduce_sum.bind(mul.bind(t, rest), axes=(last,))
