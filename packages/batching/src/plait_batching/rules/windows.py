"""Batching of select-and-scatter-add: the mapped axis goes in front, with windows of size 1.

Invariant: windows never reach across the mapped axis.
"""

from plait.ext.ops.windows import select_and_scatter_add_
from plait.typing import Array

from ..interpreter import batching_rules


@batching_rules.rule(select_and_scatter_add_)
def _(batch, xs: list[Array], dims, *, select, window, strides, padding):
    xs = [batch.move(x, d, 0) for x, d in zip(xs, dims)]
    out = select_and_scatter_add_.bind(
        *xs,
        select=select,
        window=(1, *window),
        strides=(1, *strides),
        padding=((0, 0), *padding),
    )
    return out, 0
