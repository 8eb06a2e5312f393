"""Derivatives of bitcasts: there are none.

Invariant: nothing that is differentiated reaches the bits, also where both dtypes are floats.
"""

from plait.ext.ops.elementwise import bitcast_

from ..forward import ZERO, jvp_rules


@jvp_rules.rule(bitcast_)
def _(xs, ts, *, dtype):
    return bitcast_.bind(*xs, dtype=dtype), ZERO
