"""Products of many numbers, without overflow of intermediate results.

Invariant: the result is infinite or zero only if the product is, whatever the order of the numbers.
"""

import math
from typing import Any

import numpy as np

from plait.ext import Aval, Literal
from plait.ext.ops import elementwise as el
from plait.ext.ops.reduction import reduce_prod, reduce_sum
from plait.ext.ops.shape import broadcast_to, concatenate, reshape
from plait.ext.trace import Value
from plait.ext.types import COMPLEX

__all__ = ["scaled_product"]

_MOST = 128
"""The most factors between 2 ** -0.5 and 2 ** 0.5, some up to 4, with a finite float32 product."""


def scaled_product(x: Value) -> Any:
    """Return the product along the last axis, of floats or complex numbers of 32 bits or more.

    Each number is divided by a power of two near its size, and the exponents are added.  Source:
    G. E. Forsythe and C. B. Moler, Computer Solution of Linear Algebraic Systems, 1967, section 16
    (the determinant as a fraction and an exponent).
    """
    product, exponent = _apart(x)
    most = Literal(_range(x), exponent.aval)
    least = Literal(-_range(x), exponent.aval)
    quarter = el.round_even.bind(el.mul.bind(exponent, Literal(0.25, exponent.aval)))
    quarter = el.clamp.bind(least, quarter, most)
    last = el.sub.bind(exponent, el.mul.bind(quarter, Literal(3, quarter.aval)))
    for part in (quarter, quarter, quarter, el.clamp.bind(least, last, most)):
        product = _times(product, el.pow_.bind(Literal(2, part.aval), part))
    return product


def _range(x: Value) -> int:
    """Return the greatest exponent of two of a normal number whose reciprocal is normal, too."""
    # Not log2 of the greatest number, which is rounded up to a whole number in float64.
    return math.frexp(float(np.finfo(x.aval.dtype).max))[1] - 2


def _apart(x: Value) -> tuple[Any, Any]:
    """Return (product of the scaled numbers, exponent of two) along the last axis."""
    n, axes = x.aval.shape[-1], (x.aval.ndim - 1,)
    power = _power_near(el.abs_.bind(x))
    exponent = el.mul.bind(el.log.bind(power), Literal(1 / math.log(2), power.aval))
    near, total = _divided(x, power), reduce_sum.bind(el.round_even.bind(exponent), axes=axes)
    if n.__class__ is not int or n <= _MOST:
        return reduce_prod.bind(near, axes=axes), total
    blocks = -(-n // _MOST)
    lead = x.aval.shape[:-1]
    ones = broadcast_to(Literal(1, Aval((), x.aval.dtype)), (*lead, blocks * _MOST - n))
    near = reshape(concatenate([near, ones], -1), (*lead, blocks, _MOST))
    product, more = _apart(reduce_prod.bind(near, axes=(near.aval.ndim - 1,)))
    return product, el.add.bind(total, more)


def _power_near(size: Value) -> Any:
    """Return the power of two nearest to a size, as a constant for derivatives.

    It is at least the least normal number, so that division by it is safe.  It is at most half the
    greatest power, so that it is finite.
    """
    aval, info = size.aval, np.finfo(size.aval.dtype)
    bits = 8 if aval.dtype.itemsize == 4 else 11
    power = el.reduce_precision.bind(el.stop.bind(size), exponent_bits=bits, mantissa_bits=0)
    return el.clamp.bind(Literal(float(info.tiny), aval), power, Literal(2.0 ** _range(size), aval))


def _divided(x: Value, power: Value) -> Any:
    if x.aval.category != COMPLEX:
        return el.div.bind(x, power)
    return el.complex_.bind(
        el.div.bind(el.real.bind(x), power), el.div.bind(el.imag.bind(x), power)
    )


def _times(x: Value, power: Value) -> Any:
    if x.aval.category != COMPLEX:
        return el.mul.bind(x, power)
    return el.complex_.bind(
        el.mul.bind(el.real.bind(x), power), el.mul.bind(el.imag.bind(x), power)
    )
