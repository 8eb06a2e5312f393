"""Batching of reductions, of argmax and argmin, and of the primitives that mark extremes.

Invariant: the mapped axis is never among those reduced.  The result loses the reduced axes only,
and the mapped axis moves forward accordingly.
"""

from plait.ext.ir import Primitive
from plait.ext.ops.reduction import argmax_, argmin_, is_max, is_min
from plait.ext.rules import Reduction
from plait.ext.trace import Carrier, Value

from ..interpreter import batching_rules, skip


@batching_rules.rule(Reduction)
def _(
    prim: Primitive,
    batch: Carrier,
    xs: list[Value],
    dims: list[int],
    /,
    *,
    axes: tuple[int, ...],
    **params: object,
):
    (d,) = dims
    return prim.bind(*xs, axes=skip(axes, d), **params), d - sum(a < d for a in axes)


def _place(prim: Primitive):
    @batching_rules.rule(prim)
    def _(batch: object, xs: list[Value], dims, *, axis: int, index_dtype):
        (d,) = dims
        out = prim.bind(*xs, axis=axis + (axis >= d), index_dtype=index_dtype)
        return out, d - (axis < d)


_place(argmax_)
_place(argmin_)


def _marks(prim: Primitive):
    @batching_rules.rule(prim)
    def _(batch: object, xs: list[Value], dims, *, axes):
        (d,) = dims
        return prim.bind(*xs, axes=tuple([a + (a >= d) for a in axes])), d


_marks(is_max)
_marks(is_min)
