"""Derivatives of elementwise functions with an `accuracy` argument.

Invariant: the function has the requested accuracy; its derivative is the default one.
"""

from plait.ext.ops.elementwise import PLAIN, accurate

from ..forward import jvp_rules


@jvp_rules.rule(accurate)
def _(xs, ts, *, of, mode, tolerance):
    _, tangent = jvp_rules[PLAIN[of]](xs, ts)
    return accurate.bind(*xs, of=of, mode=mode, tolerance=tolerance), tangent
