"""Derivatives of arrays with opaque elements: their tangents, if they have any, are numbers.

Invariant: a tangent of an opaque value is an array of numbers, of `aval.tangent_type`; no
operation is linear in an opaque operand.
"""

from plait.ext.ops.opaque import unwrap_, wrap_
from plait.ext.ops.shape import convert
from plait.ext.trace import Value

from ..forward import ZERO, jvp_rules


@jvp_rules.rule(wrap_)
def _(xs: list[Value], ts, *, dtype):
    out = wrap_.bind(*xs, dtype=dtype)
    same = out.aval.varies and not dtype.shape
    return out, convert(ts[0], dtype.tangent_dtype) if same and ts[0] is not ZERO else ZERO


@jvp_rules.rule(unwrap_)
def _(xs: list[Value], ts):
    out = unwrap_.bind(*xs)
    same = out.aval.inexact and out.aval.shape == xs[0].aval.shape
    return out, convert(ts[0], out.aval.dtype) if same and ts[0] is not ZERO else ZERO
