"""Batching of cumulative sums, products and extremes, by their trait.

Invariant: all operands have the mapped axis at one position, which does not change.
"""

from collections.abc import Sequence

from plait.ext.ir import Primitive
from plait.ext.rules import Cumulative
from plait.ext.trace import Value

from ..interpreter import Batch, batching_rules


@batching_rules.rule(Cumulative)
def _(
    prim: Primitive,
    batch: Batch,
    xs: Sequence[Value],
    dims: list[int],
    /,
    *,
    axis: int,
    **params: bool,
):
    to = next(d for d in dims if d is not None)
    moved = [batch.move(x, d, to) for x, d in zip(xs, dims)]
    return prim.bind(*moved, axis=axis + (axis >= to), **params), to
