"""Derivatives of calls of exported functions: calls of their exported derivatives.

Only pullbacks are exported.  Forward mode transposes one, by the pullback of the pullback: it
needs one order more than reverse mode.

Invariant: only tables of plait_autodiff load this, and no derivative is dropped silently.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import plait
from plait.ext.errors import (
    MissingRule,
)
from plait.ext.types import (
    float0,
)
from plait_autodiff.ext import (
    ZERO,
    instantiate,
    is_linear,
    jvp_rules,
    transpose_rules,
)

from .artifact import Exported
from .calling import call_exported


@jvp_rules.rule(call_exported)
def _(xs, ts, *, artifact):
    if all(t is ZERO for t in ts) or not any(a.varies for a in artifact.out_avals):
        outs = call_exported.bind(*xs, artifact=artifact)
        return outs, [ZERO] * len(outs)
    _expect_derivative(artifact)
    tangents = [
        instantiate(t, x) if x.aval.varies else np.zeros(x.aval.shape, float0)
        for x, t in zip(xs, ts, strict=True)
    ]
    outs, dots = plait.jvp(_with_pullback(artifact), tuple(xs), tuple(tangents))
    return outs, [d if o.aval.varies else ZERO for o, d in zip(outs, dots, strict=True)]


def _with_pullback(artifact: Exported) -> Any:
    """The function of flat values, with its exported pullback as its own."""

    def apply(*xs: Any) -> list:
        return call_exported.bind(*xs, artifact=artifact)

    def pullback(xs: Sequence[Any], cts: Sequence[Any]) -> tuple:
        return artifact.vjp().call(*xs, *cts)

    apply.__name__ = artifact.fun_name
    function = plait.custom_vjp(apply)
    function.defvjp(lambda *xs: (apply(*xs), xs), pullback)
    return function


def _expect_derivative(artifact: Any) -> None:
    if not (isinstance(artifact, Exported) and artifact.has_vjp()):
        raise MissingRule(
            f"{artifact.fun_name} was saved without its derivative",
            fix="where it is exported, save it with Exported.serialize(vjp_order=1), or a greater "
            "order: forward mode needs one more than reverse mode, each further derivative too",
        )


@transpose_rules.rule(call_exported)
def _(cts, *args, artifact):
    start = getattr(artifact, "linear_from", None)
    if start is None or any(map(is_linear, args[:start])):
        raise MissingRule(
            f"{artifact.fun_name} was exported, and nothing says that it is linear",
            fix="transpose the function, and export that",
        )
    _expect_derivative(artifact)
    outs = artifact.result_types([a.aval for a in args])
    values = [_zeros(a.aval) if is_linear(a) else a for a in args]
    given = [_zeros(o) if c is None else c for c, o in zip(cts, outs, strict=True)]
    found = artifact.vjp().call(*values, *given)
    return [ct if is_linear(a) else None for ct, a in zip(found, args)]


def _zeros(aval: Any) -> Any:
    if aval.dtype == float0:
        return np.zeros(aval.shape, float0)
    return plait.numpy.zeros(aval.shape, aval.dtype)
