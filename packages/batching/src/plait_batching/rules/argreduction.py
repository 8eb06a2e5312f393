"""Batching of argmax, argmin, and the primitives that mark extremes.

Invariant: the position of the reduced axis skips the mapped axis, which stays where it is.
"""

from plait.ext.ops.reduction import argmax_, argmin_, is_max, is_min

from ..interpreter import batching_rules


def _place(prim):
    @batching_rules.rule(prim)
    def _(batch, xs, dims, *, axis, index_dtype):
        (d,) = dims
        out = prim.bind(*xs, axis=axis + (axis >= d), index_dtype=index_dtype)
        return out, d - (axis < d)


_place(argmax_)
_place(argmin_)


def _marks(prim):
    @batching_rules.rule(prim)
    def _(batch, xs, dims, *, axes):
        (d,) = dims
        return prim.bind(*xs, axes=tuple([a + (a >= d) for a in axes])), d


_marks(is_max)
_marks(is_min)
