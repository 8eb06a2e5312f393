"""Derivatives of attention as one operation.

Only the operands are kept for the reverse pass.  The weights are computed again, because there is
one for each pair of a query and a key.

Invariant: the tangent is linear in the tangents of queries, keys and values; its transpose is the
cotangent.
"""

from plait.ext.ops.shape import fill
from plait.ext.trace import Value
from plait_numpy.ext.attention import attention_, attention_cotangent, attention_tangent

from ..forward import ZERO, jvp_rules
from ..transpose import Linear, is_linear, transpose_rules


@jvp_rules.rule(attention_)
def _(xs: list[Value], ts: list[Value], **how: object):
    out = attention_.bind(*xs, **how)
    ts = [fill(0, x.aval.tangent_type) if t is ZERO else t for x, t in zip(xs, ts, strict=True)]
    return out, attention_tangent.bind(*xs, *ts, **how)


@transpose_rules.rule(attention_tangent)
def _(ct: Value, q: Value, k: Value, v: Value, *ts: Linear, **how: object):
    cts = attention_cotangent.bind(q, k, v, ct, **how)
    return [None] * 3 + [c if is_linear(t) else None for c, t in zip(cts, ts, strict=True)]
