"""Derivatives of callbacks, foreign calls and checks.

Invariant: calls and side effects happen once, on primals; no derivative is dropped silently.
"""

from collections.abc import Callable
from typing import Any

from plait.ext.errors import MissingRule, where_defined
from plait.ext.ops.callbacks import foreign, host
from plait.ext.ops.checks import check_p
from plait.ext.trace import Value

from ..forward import ZERO, jvp_rules
from ..transpose import Linear, transpose_rules


class CallbackDerivative(MissingRule, ValueError):
    """A derivative or transpose of the result of a Python callback."""


@jvp_rules.rule(host)
def _(xs: list[Value], ts: list[Value], /, **params):
    if any(o.inexact for o in params["outs"]) and any(t is not ZERO for t in ts):
        raise CallbackDerivative(
            "the result of a Python callback has no derivative",
            fix="wrap the function in custom_jvp or custom_vjp, or stop_gradient its arguments",
        )
    outs = host.bind(*xs, **params)
    return outs, [ZERO] * len(outs)


@jvp_rules.rule(check_p)
def _(xs: list[Value], ts: object, /, **params: object):
    return check_p.bind(*xs, **params), []


@jvp_rules.rule(foreign)
def _(xs, ts, /, **params):
    outs = params["outs"]
    if any(o.inexact for o in outs) and any(t is not ZERO for t in ts):
        raise MissingRule(
            f"nothing is known of the derivative of the foreign function {params['target']}",
            fix="wrap the call in custom_jvp or custom_vjp, or stop_gradient its arguments",
        )
    return foreign.bind(*xs, **params), [ZERO] * len(outs)


@transpose_rules.rule(host)
def _(cts: list[Any], /, *args: Value | Linear, f: Callable[..., Any], **params):
    raise CallbackDerivative(
        f"the callback {where_defined(f)} cannot be transposed: whether it is linear is not known",
        fix="wrap the function in custom_vjp",
    )
