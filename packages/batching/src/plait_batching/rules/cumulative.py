"""Batching of cumulative sums, products and extremes, by their trait.

Invariant: all operands have the mapped axis at one position, which does not change.
"""

from plait.ext.rules import Cumulative

from ..interpreter import batching_rules


@batching_rules.rule(Cumulative)
def _(prim, batch, xs, dims, *, axis, **params):
    to = next(d for d in dims if d is not None)
    moved = [batch.move(x, d, to) for x, d in zip(xs, dims)]
    return prim.bind(*moved, axis=axis + (axis >= to), **params), to
