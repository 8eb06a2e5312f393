"""Batching of reductions: the mapped axis is never among those reduced.

Invariant: the reduced axes, and no others, come off in front of the mapped one.
"""

from weft.ops.reduction import argmax_, argmin_
from weft.traits import Reduction

from ..interpreter import batching_rules, skip


@batching_rules.rule(Reduction)
def _(prim, batch, xs, dims, *, axes, **params):
    (d,) = dims
    return prim.bind(*xs, axes=skip(axes, d), **params), d - sum(a < d for a in axes)


def _place(prim):
    @batching_rules.rule(prim)
    def _(batch, xs, dims, *, axis, index_dtype):
        (d,) = dims
        out = prim.bind(*xs, axis=axis + (axis >= d), index_dtype=index_dtype)
        return out, d - (axis < d)


_place(argmax_)
_place(argmin_)
