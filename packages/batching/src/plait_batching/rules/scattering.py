"""Batching of scatter.

Invariant: if positions vary, the mapped axis becomes a batching axis of array, indices and updates.
So no position, however far outside, writes to another element.
"""

from typing import Any

from plait.ext.ops.indexing import (
    ScatterDimensionNumbers,
    scatter_,
    scatter_add_,
    scatter_max_,
    scatter_min_,
    scatter_mul_,
)

from ..interpreter import batching_rules
from .indexing import moved_up


def _scatter(prim: Any) -> None:
    @batching_rules.rule(prim)
    def _(batch, xs, dims, *, dimension_numbers, **how):
        (x, indices, updates), (d, e, f) = xs, dims
        n = dimension_numbers
        x, updates = batch.front(x, d), batch.front(updates, f)
        window, inserted, to = map(moved_up, n[:3])
        together, with_ = moved_up(n.operand_batching_dims), n.scatter_indices_batching_dims
        if e is None:
            window = (0, *window)
        else:
            indices = batch.front(indices, e)
            together, with_ = (0, *together), (0, *moved_up(with_))
        numbers = ScatterDimensionNumbers(window, inserted, to, together, with_)
        return prim.bind(x, indices, updates, dimension_numbers=numbers, **how), 0


for _prim in (scatter_, scatter_add_, scatter_mul_, scatter_min_, scatter_max_):
    _scatter(_prim)
