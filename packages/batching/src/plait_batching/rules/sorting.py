"""Batching of sorting.

Invariant: all operands have the mapped axis at one position, which does not change.
"""

from collections.abc import Sequence

from plait.ext.ops.sorting import sort_, top_k_
from plait.ext.trace import Value

from ..interpreter import Batch, batching_rules


@batching_rules.rule(sort_)
def _(batch: Batch, xs: Sequence[Value], dims: list[int], /, *, axis: int, **params: object):
    to = next(d for d in dims if d is not None)
    moved = [batch.move(x, d, to) for x, d in zip(xs, dims)]
    return sort_.bind(*moved, axis=axis + (axis >= to), **params), [to] * len(xs)


@batching_rules.rule(top_k_)
def _(batch: Batch, xs: Sequence[Value], dims: list[int], *, k: int):
    return top_k_.bind(batch.front(xs[0], dims[0]), k=k), [0, 0]
