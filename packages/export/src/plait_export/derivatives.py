"""Derivatives of calls of exported functions: calls of their exported derivatives.

A function that was saved with a derivative uses it.  Only pullbacks are saved; forward mode
transposes one.  Other functions are read back and differentiated as programs.

Invariant: only rule tables of plait_autodiff load this module; no derivative is dropped silently.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import plait
from plait.ext.errors import MissingRule
from plait.ext.types import Aval, ShapeDtypeStruct, float0
from plait_autodiff.ext import ZERO, instantiate, is_linear, jvp_rules, transpose_rules

from .artifact import Exported
from .calling import call_exported
from .errors import NotReadable
from .pullbacks import by_reading, with_pullback


@jvp_rules.rule(call_exported)
def _(xs: Sequence[Any], ts, *, artifact):
    front = len(artifact.held)  # weights, which are constants
    xs, ts = xs[front:], ts[front:]
    if all(t is ZERO for t in ts) or not any(a.varies for a in artifact.out_avals):
        outs = artifact.bind(xs)
        return outs, [ZERO] * len(outs)
    tangents = [
        instantiate(t, x) if x.aval.varies else np.zeros(x.aval.shape, float0)
        for x, t in zip(xs, ts, strict=True)
    ]
    outs, dots = plait.jvp(_function(artifact, [x.aval for x in xs]), tuple(xs), tuple(tangents))
    return outs, [d if o.aval.varies else ZERO for o, d in zip(outs, dots, strict=True)]


def _function(artifact: Any, given: Sequence[Any]) -> Any:
    """Return the function of flat values of these types to differentiate.

    Raises MissingRule if it was saved without a derivative and cannot be read back.
    """
    if not isinstance(artifact, Exported):
        raise MissingRule(
            f"{artifact.fun_name} is differentiated where it is laid out in memory",
            fix="differentiate the function that calls it",
        )
    if artifact.has_vjp():
        return with_pullback(artifact, lambda *xs: artifact.bind(xs))
    try:
        artifact.expect_rules("differentiated")
        artifact.read_for(given)
    except NotReadable as e:
        raise MissingRule(f"{artifact.fun_name} was saved without its derivative: {e.what}",
                          fix=e.fix) from None  # fmt: skip
    return by_reading(artifact)


@transpose_rules.rule(call_exported)
def _(cts, *args, artifact):
    front = len(artifact.held)
    return [None] * front + _transposed(cts, args[front:], artifact)


def _transposed(cts: Sequence[Any], args: Sequence[Any], artifact: Any) -> list:
    """Return the cotangents of the arguments, without the weights."""
    start = artifact.linear_from
    if start is None or any(map(is_linear, args[:start])):
        raise MissingRule(
            f"{artifact.fun_name} was exported, and nothing says that it is linear",
            fix="transpose the function, and export that",
        )
    outs = artifact.result_types([a.aval for a in args])
    given = [_zeros(o) if c is None else c for c, o in zip(cts, outs, strict=True)]
    if not artifact.has_vjp():
        return _read_transposed(artifact, args, given)
    values = [_zeros(a.aval) if is_linear(a) else a for a in args]
    found = artifact.vjp().call(*values, *given)
    return [ct if is_linear(a) else None for ct, a in zip(found, args)]


def _read_transposed(artifact: Exported, args: Sequence[Any], cts: Sequence[Any]) -> list:
    """Return the cotangents by transposing the program that was read back.

    The transpose of a linear function needs no custom rules, so losing them is harmless.
    """
    linear = [a for a in args if is_linear(a)]

    def of_linear(*xs: Any) -> list:
        rest = iter(xs)
        return by_reading(artifact)(*[next(rest) if is_linear(a) else a for a in args])

    # Releases of plait-autodiff up to 0.2 take shapes, which do not hold the mesh axes along which
    # a value varies.
    like = [a if a.aval.vma else ShapeDtypeStruct(a.aval.shape, a.aval.dtype) for a in linear]
    found = iter(plait.linear_transpose(of_linear, *like)(list(cts)))
    return [next(found) if is_linear(a) else None for a in args]


def _zeros(aval: Aval) -> Any:
    if aval.dtype == float0:
        return np.zeros(aval.shape, float0)
    return plait.numpy.zeros(aval.shape, aval.dtype)
