"""Derivatives of bitcasts: they are zero.

Invariant: a bitcast has no derivative, not even between two floating dtypes.
"""

from plait.ext.ops.elementwise import bitcast_

from ..forward import ZERO, jvp_rules


@jvp_rules.rule(bitcast_)
def _(xs, ts, *, dtype):
    return bitcast_.bind(*xs, dtype=dtype), ZERO
