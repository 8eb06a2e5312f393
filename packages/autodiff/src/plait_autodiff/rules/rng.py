"""Derivatives of random bits: there are none.

Invariant: bits do not vary; what is computed from them and from parameters does, by the rules of
the operations that compute it.
"""

from plait.ext.ops.random import threefry2x32

from ..forward import ZERO, jvp_rules


@jvp_rules.rule(threefry2x32)
def _(xs, ts):
    return threefry2x32.bind(*xs), [ZERO, ZERO]
