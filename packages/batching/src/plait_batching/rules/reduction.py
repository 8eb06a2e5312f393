"""Batching of reductions: the mapped axis is never among those reduced.

Invariant: the result loses the reduced axes only, and the mapped axis moves forward accordingly.
"""

from plait.ext.rules import Reduction

from ..interpreter import batching_rules, skip


@batching_rules.rule(Reduction)
def _(prim, batch, xs, dims, *, axes, **params):
    (d,) = dims
    return prim.bind(*xs, axes=skip(axes, d), **params), d - sum(a < d for a in axes)
