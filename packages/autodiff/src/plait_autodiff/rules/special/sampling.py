"""Derivatives of samples in the parameters of their distribution.

A sample is the quantile of a probability that does not vary, so its derivative is that of the
quantile (M. Figurnov, S. Mohamed, A. Mnih: Implicit reparameterization gradients, 2018).

Invariant: streams of random bits do not vary.
"""

from typing import Any

import numpy as np

from plait.ext.ops.elementwise import digamma, div, exp, gt, maximum, mul, select
from plait.ext.trace import Value
from plait.ext.types import FLOAT32
from plait_numpy.ext.special import random_gamma, random_gamma_grad

from ...forward import ZERO, Zero, jvp_rules


@jvp_rules.rule(random_gamma)
def _(xs: list[Value], ts: list[Value | Zero], *, log: bool):
    k1, k2, a = xs
    out, t = random_gamma.bind(k1, k2, a, log=log), ts[2]
    if t is ZERO:
        return out, ZERO
    return out, mul.bind(t, _relative(a, out) if log else random_gamma_grad.bind(a, out))


def _relative(a: Value, logs: Value) -> Any:
    """Return the derivative divided by the sample, given the sample's logarithm.

    Below the least normal number it is the first term of the power series.
    """
    dtype = a.aval.dtype if a.aval.dtype.itemsize >= 4 else FLOAT32
    least = float(np.log(np.finfo(dtype).tiny)) + 1.0
    size = exp(maximum(logs, least))
    near = div(digamma(a + 1.0) - logs, a)
    return select(gt(logs, least), random_gamma_grad(a, size) / size, near)
