"""The logarithm of the gamma function, where the compiler's loses its relative accuracy.

Invariant: lgamma(1) and lgamma(2) are exactly 0, and close to these zeros the error is a few units
in the last place of the result.
"""

from typing import Any

import numpy as np

from .._base.jaxlib_api import IrValue
from .._types.avals import BOOL, Aval
from .._xla.lower import Emitter
from .composed import LGAMMA_SERIES
from .hyperbolic import log1p, rule

__all__ = ["RULES"]


def lgamma(e: Emitter, x: IrValue, aval: Aval) -> Any:
    """Emit log |Gamma(x)|.

    The compiler's approximation has an absolute error of one unit of 1, which is all that is left
    at the zeros 1 and 2.  The densities of many distributions at their simplest parameters are sums
    of such values.  For 0.5 <= x <= 2.5 this is the series about 2, or that about 1, which is less
    by log(1 + t).
    """
    flags = Aval(aval.shape, BOOL)

    def op(name: str, *xs: IrValue) -> Any:
        return e.op("stablehlo." + name, xs, aval)

    def number(v: float) -> Any:
        return e.constant(v, aval)

    first = e.compare(x, number(1.5), "LT", flags)
    t = op("subtract", x, op("select", first, number(1.0), number(2.0)))
    terms = LGAMMA_SERIES if aval.dtype == np.float64 else LGAMMA_SERIES[:13]
    total = number(terms[-1])
    for c in reversed(terms[:-1]):
        total = op("add", op("multiply", total, t), number(c))
    total = op("multiply", total, t)
    total = op("select", first, op("subtract", total, log1p(e, t, aval)), total)
    far = e.op("chlo.lgamma", [x], aval)
    near = e.op("stablehlo.and", [e.compare(x, number(0.5), "GE", flags),
                                  e.compare(x, number(2.5), "LE", flags)], flags)  # fmt: skip
    return op("select", near, total, far)


RULES = {"lgamma": rule(lgamma)}
"""The lowering rule of the function by its name."""
