"""Bessel functions of the first kind and whole order.

Invariant: all orders up to the requested one are computed together.  The error of each is a few
units in the last place of itself or, close to its roots, of its neighbours.
"""

import math
from typing import Any

import numpy as np

from plait.errors import ArgumentError
from plait.ext import Aval, Elementwise, Primitive, expand_rules, staged
from plait.ext.ops import elementwise as el
from plait.ext.ops.control_flow import scan
from plait.ext.ops.shape import convert
from plait.ext.trace import Value
from plait.ext.values import asarray
from plait.typing import Array

from .functions import const, series


def _bessel_j(x: Aval, *, order: int) -> list[Aval]:
    """Return the types of [J_0, J_1, ..., J_order] of floats."""
    if order < 0:
        raise ArgumentError(
            f"bessel_j: there is no order {order} here", fix="give a number from 0 on"
        )
    return [el.agreed("bessel_j", el.FLOAT, x)] * (order + 1)


bessel_j = Primitive(
    "special.bessel_j",
    _bessel_j,
    (Elementwise,),
    many=True,
    prepare=el.floating,
    formerly=("core.bessel_j",),
)


@expand_rules.rule(bessel_j)
def _(x: Value, order: int):
    dtype, weak = x.aval.dtype, x.aval.weak_type
    wide = convert(x, np.float32) if dtype.itemsize < 4 else x
    size, edge = el.abs_(wide), float(max(25, order))
    far = el.gt(size, edge)
    near = _downwards(el.select(far, 1.0, size), order, edge)
    beyond = _upwards(el.select(far, size, edge + 1.0), order)
    both = [el.select(far, b, a) for a, b in zip(near, beyond)]
    left = el.lt(wide, 0.0)
    out = [el.select(left, el.neg(v), v) if k % 2 else v for k, v in enumerate(both)]
    still = el.eq(size, math.inf)
    return [convert(el.select(still, 0.0, v), dtype, weak) for v in out]


def _downwards(x: Value, order: int, edge: float) -> list[Any]:
    """Compute the orders for 0 <= x <= edge by J. C. P. Miller's method (DLMF 3.6 and 10.74).

    It uses ratios r_k = J_k / J_(k-1), from orders so high that they are small.  They are scaled
    by the sum 1 = J_0 + 2 J_2 + 2 J_4 + ...
    """
    start = int(edge + 10 + 8 * edge ** (1 / 3)) // 2 * 2

    def step(x: Value, r: Value, total: Value, k: Value, weight: Value) -> list[Any]:
        r = x / _away(2.0 * k - x * r)
        return [r, weight + r * total]

    avals = [x.aval.strong()] * 3 + [Aval((), x.aval.dtype)] * 2
    body = staged(step, avals, "step")
    ks = np.arange(start, order, -1)
    weights = np.where(ks % 2 == 1, 2.0, 0.0)  # of the order below
    numbers = [asarray(v.astype(x.aval.dtype)) for v in (ks, np.where(ks == 1, 1.0, weights))]
    r, total = scan.bind(
        x, const(0.0, x), const(0.0, x), *numbers,
        body=body, consts=1, carry=2, length=len(ks), reverse=False, unroll=1,
    )  # fmt: skip
    ratios: list[Any] = []
    for k in range(order, 0, -1):
        r = x / _away(2.0 * k - x * r)
        ratios.insert(0, r)
        total = (1.0 if k == 1 else 2.0 * (k % 2)) + r * total
    out = [1.0 / total]
    for r in ratios:
        out.append(out[-1] * r)
    return out


def _away(v: Array) -> Any:
    """Replace zero by 1e-20.  The next ratio multiplies by the divisor again, so this cancels."""
    return el.select(el.eq(v, 0.0), 1e-20, v)


def _upwards(x: Value, order: int) -> list[Any]:
    """Compute the orders for x > 25 and x > order: Hankel's expansions (DLMF 10.17.3), then the
    recurrence."""
    s, c = el.sin(x), el.cos(x)
    scale = 1.0 / el.sqrt(math.pi * x)
    out = []
    for n, (p_angle, q_angle) in enumerate(((c + s, s - c), (s - c, el.neg(c + s)))):
        a = [1.0]
        for k in range(1, 24):
            a.append(a[-1] * (4 * n * n - (2 * k - 1) ** 2) / (8 * k))
        signs = [v * (-1) ** (k // 2) for k, v in enumerate(a)]
        t = 1.0 / (x * x)
        p, q = series(t, signs[::2]), series(t, signs[1::2]) / x
        out.append(scale * (p * p_angle - q * q_angle))
    for k in range(1, order):
        out.append((2.0 * k / x) * out[k] - out[k - 1])
    return out[: order + 1]


__all__ = ["bessel_j"]
