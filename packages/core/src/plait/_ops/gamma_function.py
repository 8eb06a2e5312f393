"""The logarithm of the gamma function, where the compiler's loses its relative accuracy.

Invariant: lgamma(1) and lgamma(2) are exactly 0, and close to these zeros the error is a few units
in the last place of the result.
"""

from typing import Any

import numpy as np

from .._types.avals import BOOL, Aval
from .._xla.lower import Emitter
from .hyperbolic import log1p, rule

__all__ = ["RULES"]

_SERIES = (
    0.42278433509846713, 0.3224670334241132, -0.0673523010531981, 0.020580808427784546,
    -0.007385551028673986, 0.0028905103307415234, -0.001192753911703261, 0.0005096695247430425,
    -0.00022315475845357939, 9.945751278180853e-05, -4.492623673813314e-05, 2.050721277567069e-05,
    -9.439488275268397e-06, 4.374866789907488e-06, -2.039215753801366e-06, 9.55141213040742e-07,
    -4.492469198764566e-07, 2.1207184805554665e-07, -1.0043224823968099e-07,
    4.7698101693639804e-08, -2.2711094608943164e-08, 1.0838659214896955e-08,
    -5.183475041970047e-09, 2.4836745438024785e-09, -1.1921401405860912e-09,
    5.731367241678862e-10, -2.7595228851242334e-10,
)  # fmt: skip
"""The coefficients of t, t ** 2, ... in lgamma(2 + t): 1 less Euler's constant, then
(-1) ** k (zeta(k) - 1) / k (DLMF 5.7.3)."""


def lgamma(e: Emitter, x: Any, aval: Aval) -> Any:
    """Emit log |Gamma(x)|.

    The compiler's approximation has an absolute error of one unit of 1, which is all that is left
    at the zeros 1 and 2.  The densities of many distributions at their simplest parameters are sums
    of such values.  For 0.5 <= x <= 2.5 this is the series about 2, or that about 1, which is less
    by log(1 + t).
    """
    flags = Aval(aval.shape, BOOL)

    def op(name: str, *xs: Any) -> Any:
        return e.op("stablehlo." + name, xs, aval)

    def number(v: float) -> Any:
        return e.constant(v, aval)

    first = e.compare(x, number(1.5), "LT", flags)
    t = op("subtract", x, op("select", first, number(1.0), number(2.0)))
    terms = _SERIES if aval.dtype == np.float64 else _SERIES[:13]
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
