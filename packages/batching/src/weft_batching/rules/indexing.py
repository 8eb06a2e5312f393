"""Batching of indexing.

Invariant: where places vary, the mapped axis becomes a batching axis of the operation, of array
and indices together: no place, however far outside, reads or writes another example.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.ops.indexing import (
    CLIP,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    dynamic_slice_,
    dynamic_update_slice_,
    gather_,
    scatter_,
    scatter_add_,
    scatter_max_,
    scatter_min_,
    scatter_mul_,
)
from weft.ops.shape import broadcast_in_dim, concatenate, reshape
from weft.types import Aval
from weft.values import Literal

from ..interpreter import Batch, batching_rules, insert, skip

# ---- boxes ---------------------------------------------------------------------------------


def _with_zero(starts: Sequence[Any], d: int) -> tuple:
    """Places on the axes of a stack, all of whose rows are taken."""
    dtype = starts[0].aval.dtype if starts else np.dtype(np.int32)
    return insert(starts, d, Literal(0, Aval((), dtype)))


def _indices(batch: Batch, starts: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """Places that vary, as indices: [size, number of axes]."""
    shape = (batch.size, 1)
    columns = [
        broadcast_in_dim.bind(s, shape=shape, dims=()) if d is None else reshape(s, shape)
        for s, d in zip(starts, dims)
    ]
    return concatenate(columns, 1)


@batching_rules.rule(dynamic_slice_)
def _(batch, xs, dims, *, sizes):
    (x, *starts), (d, *ds) = xs, dims
    if all(e is None for e in ds):
        places = _with_zero(starts, d)
        return dynamic_slice_.bind(x, *places, sizes=insert(sizes, d, batch.size)), d
    window = tuple(range(1, len(sizes) + 1))
    if d is None:
        numbers = GatherDimensionNumbers(window, (), tuple(range(len(sizes))))
    else:
        x = batch.front(x, d)
        numbers = GatherDimensionNumbers(window, (), window, (0,), (0,))
        sizes = (1, *sizes)
    out = gather_.bind(
        x,
        _indices(batch, starts, ds),
        dimension_numbers=numbers,
        slice_sizes=sizes,
        mode=CLIP,
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=d is not None,
    )
    return out, 0


@batching_rules.rule(dynamic_update_slice_)
def _(batch, xs, dims):
    (x, box, *starts), (d, e, *ds) = xs, dims
    if all(k is None for k in ds):
        to = d if d is not None else e
        x, box = batch.move(x, d, to), batch.move(box, e, to)
        return dynamic_update_slice_.bind(x, box, *_with_zero(starts, to)), to
    window = tuple(range(1, len(starts) + 1))
    out = scatter_.bind(
        batch.front(x, d),
        _indices(batch, starts, ds),
        batch.front(box, e),
        dimension_numbers=ScatterDimensionNumbers(window, (), window, (0,), (0,)),
        mode=CLIP,
        indices_are_sorted=False,
        unique_indices=True,
    )
    return out, 0


# ---- gather --------------------------------------------------------------------------------


def _up(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple([a + 1 for a in axes])


@batching_rules.rule(gather_)
def _(
    batch, xs, dims, *, dimension_numbers, slice_sizes, indices_are_sorted, unique_indices, **how
):
    (x, indices), (d, e) = xs, dims
    n = dimension_numbers
    to = 0
    if e is None:
        numbers, to = _wider_window(n, x.aval.ndim, d)
        slice_sizes = insert(slice_sizes, d, batch.size)
    elif d is None:
        indices = batch.front(indices, e)
        numbers = n._replace(
            offset_dims=_up(n.offset_dims),
            start_indices_batching_dims=_up(n.start_indices_batching_dims),
        )
        indices_are_sorted = unique_indices = False  # examples read the same places
    else:
        x, indices = batch.front(x, d), batch.front(indices, e)
        numbers = GatherDimensionNumbers(
            _up(n.offset_dims),
            _up(n.collapsed_slice_dims),
            _up(n.start_index_map),
            (0, *_up(n.operand_batching_dims)),
            (0, *_up(n.start_indices_batching_dims)),
        )
        slice_sizes = (1, *slice_sizes)
    out = gather_.bind(
        x,
        indices,
        dimension_numbers=numbers,
        slice_sizes=slice_sizes,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        **how,
    )
    return out, to


def _wider_window(n: GatherDimensionNumbers, ndim: int, d: int) -> tuple:
    """Numbers for a stack along axis `d`, all rows of which are read; where they are then."""
    dropped = {*skip(n.collapsed_slice_dims, d), *skip(n.operand_batching_dims, d)}
    before = len([a for a in range(d) if a not in dropped])
    offset = n.offset_dims
    to = offset[before] if before < len(offset) else (offset[-1] + 1 if offset else 0)
    numbers = n._replace(
        offset_dims=(*offset[:before], to, *_up(offset[before:])),
        collapsed_slice_dims=skip(n.collapsed_slice_dims, d),
        start_index_map=skip(n.start_index_map, d),
        operand_batching_dims=skip(n.operand_batching_dims, d),
    )
    return numbers, to


# ---- scatter -------------------------------------------------------------------------------


def _scatter(prim: Any) -> None:
    @batching_rules.rule(prim)
    def _(batch, xs, dims, *, dimension_numbers, **how):
        (x, indices, updates), (d, e, f) = xs, dims
        n = dimension_numbers
        x, updates = batch.front(x, d), batch.front(updates, f)
        window, inserted, to = map(_up, n[:3])
        together, with_ = _up(n.operand_batching_dims), n.scatter_indices_batching_dims
        if e is None:
            window = (0, *window)
        else:
            indices = batch.front(indices, e)
            together, with_ = (0, *together), (0, *_up(with_))
        numbers = ScatterDimensionNumbers(window, inserted, to, together, with_)
        return prim.bind(x, indices, updates, dimension_numbers=numbers, **how), 0


for _prim in (scatter_, scatter_add_, scatter_mul_, scatter_min_, scatter_max_):
    _scatter(_prim)
