"""Derivatives of foreign calls.

Invariant: no derivative is dropped silently; the call runs once, on primals.
"""

from plait.ext.errors import MissingRule
from plait.ext.ops.callbacks import foreign

from ..forward import ZERO, jvp_rules


@jvp_rules.rule(foreign)
def _(xs, ts, **params):
    outs = params["outs"]
    if any(o.inexact for o in outs) and any(t is not ZERO for t in ts):
        raise MissingRule(
            f"nothing is known of the derivative of the foreign function {params['target']}",
            fix="wrap the call in custom_jvp or custom_vjp, or stop_gradient its arguments",
        )
    return foreign.bind(*xs, **params), [ZERO] * len(outs)
