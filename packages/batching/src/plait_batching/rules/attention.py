"""Batching of attention: a mapped axis becomes a leading axis of all operands.

Invariant: only the table `batching` loads this, when it meets a primitive of `nn`.
"""

from typing import Any

from plait.typing import Array
from plait_numpy.ext.attention import attention_, attention_cotangent, attention_tangent

from ..interpreter import batching_rules


def _stacked(prim: Any) -> None:
    @batching_rules.rule(prim)
    def _(batch: Any, xs: list[Array], dims: Any, **how: Any) -> tuple:
        out = prim.bind(*[batch.front(x, d) for x, d in zip(xs, dims)], **how)
        return (out, [0] * len(out)) if prim.many else (out, 0)


for _p in (attention_, attention_tangent, attention_cotangent):
    _stacked(_p)
