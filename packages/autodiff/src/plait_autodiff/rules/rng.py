"""Derivatives of random bits: they are zero.

Invariant: bits have no derivative.  Values computed from bits and parameters do, by the rules of
the operations that compute them.
"""

from plait.ext.ops.random import threefry2x32

from ..forward import ZERO, jvp_rules


@jvp_rules.rule(threefry2x32)
def _(xs, ts):
    return threefry2x32.bind(*xs), [ZERO, ZERO]
