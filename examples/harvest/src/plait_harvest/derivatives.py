"""The derivative of a sown value, imported where derivatives are.

Invariant: what is sown is the value, and never its tangent.
"""

from plait_autodiff.ext import jvp_rules

from . import sow_p


@jvp_rules.rule(sow_p)
def _(xs, ts, /, **params):
    return sow_p.bind(*xs, **params), ts[0]
