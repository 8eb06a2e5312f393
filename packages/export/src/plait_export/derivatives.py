"""Derivatives of calls of exported functions: there are none.

Invariant: only the table of plait_autodiff loads this, and no derivative is dropped silently.
"""

from plait.ext.errors import (
    MissingRule,
)
from plait_autodiff.ext import (
    ZERO,
    jvp_rules,
)

from .calling import call_exported


@jvp_rules.rule(call_exported)
def _(xs, ts, *, artifact):
    outs = call_exported.bind(*xs, artifact=artifact)
    if any(t is not ZERO for t in ts) and any(o.aval.inexact for o in outs):
        raise MissingRule(
            f"{artifact.fun_name} was exported without its derivative",
            fix="export the derivative, too: plait.export.export(plait.grad(f)), and join them by "
            "custom_vjp",
        )
    return outs, [ZERO] * len(outs)
