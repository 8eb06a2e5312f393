"""Batching of dynamic slices.

Invariant: if all elements share one position, the slice takes the whole mapped axis.  If positions
vary, they become indices of a gather, with the mapped axis as a batching axis.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.ext.ops import indexing as ix
from plait.ext.ops.shape import broadcast_in_dim, concatenate, reshape
from plait.ext.types import Aval
from plait.ext.values import Literal

from ..interpreter import Batch, batching_rules, insert


def _with_zero(starts: Sequence[Any], d: int) -> tuple:
    """Return positions on the axes of a stack, 0 for the mapped axis, which is taken whole."""
    dtype = starts[0].aval.dtype if starts else np.dtype(np.int32)
    return insert(starts, d, Literal(0, Aval((), dtype)))


def _indices(batch: Batch, starts: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """Return positions that vary as indices: [size, number of axes]."""
    shape = (batch.size, 1)
    columns = [
        broadcast_in_dim.bind(s, shape=shape, dims=()) if d is None else reshape(s, shape)
        for s, d in zip(starts, dims)
    ]
    return concatenate(columns, 1)


@batching_rules.rule(ix.dynamic_slice_)
def _(batch: Batch, xs, dims, *, sizes):
    (x, *starts), (d, *ds) = xs, dims
    if all(e is None for e in ds):
        positions = _with_zero(starts, d)
        return ix.dynamic_slice_.bind(x, *positions, sizes=insert(sizes, d, batch.size)), d
    window = tuple(range(1, len(sizes) + 1))
    if d is None:
        numbers = ix.GatherDimensionNumbers(window, (), tuple(range(len(sizes))))
    else:
        x = batch.front(x, d)
        numbers = ix.GatherDimensionNumbers(window, (), window, (0,), (0,))
        sizes = (1, *sizes)
    out = ix.gather_.bind(
        x,
        _indices(batch, starts, ds),
        dimension_numbers=numbers,
        slice_sizes=sizes,
        mode=ix.CLIP,
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=d is not None,
    )
    return out, 0


@batching_rules.rule(ix.dynamic_update_slice_)
def _(batch, xs, dims):
    (x, box, *starts), (d, e, *ds) = xs, dims
    if all(k is None for k in ds):
        to = d if d is not None else e
        x, box = batch.move(x, d, to), batch.move(box, e, to)
        return ix.dynamic_update_slice_.bind(x, box, *_with_zero(starts, to)), to
    window = tuple(range(1, len(starts) + 1))
    out = ix.scatter_.bind(
        batch.front(x, d),
        _indices(batch, starts, ds),
        batch.front(box, e),
        dimension_numbers=ix.ScatterDimensionNumbers(window, (), window, (0,), (0,)),
        mode=ix.CLIP,
        indices_are_sorted=False,
        unique_indices=True,
    )
    return out, 0
