"""Gives a second forward-mode rule for `core.sin`.

Invariant: the rule is wrong, so that a test can tell whether it was ever used.
"""

from plait.ext.ops.elementwise import sin
from plait_autodiff.ext import jvp_rules


@jvp_rules.rule(sin)
def _(xs, ts, **params):
    return xs[0], xs[0]
