"""Batching of gather and scatter.

Invariant: if positions vary, the mapped axis becomes a batching axis of array, indices and updates.
So no position, however far outside, reads or writes another element.
"""

from collections.abc import Sequence

from plait.ext.ir import Primitive
from plait.ext.ops import indexing as ix

from ..interpreter import Batch, batching_rules, insert, skip


def moved_up(axes: Sequence[int]) -> tuple[int, ...]:
    """Renumber axes of an array that gained one in front."""
    return tuple([a + 1 for a in axes])


@batching_rules.rule(ix.gather_)
def _(
    batch: Batch,
    xs,
    dims,
    *,
    dimension_numbers,
    slice_sizes,
    indices_are_sorted,
    unique_indices,
    **how,
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
            offset_dims=moved_up(n.offset_dims),
            start_indices_batching_dims=moved_up(n.start_indices_batching_dims),
        )
        indices_are_sorted = unique_indices = False  # examples read the same positions
    else:
        x, indices = batch.front(x, d), batch.front(indices, e)
        numbers = ix.GatherDimensionNumbers(
            moved_up(n.offset_dims),
            moved_up(n.collapsed_slice_dims),
            moved_up(n.start_index_map),
            (0, *moved_up(n.operand_batching_dims)),
            (0, *moved_up(n.start_indices_batching_dims)),
        )
        slice_sizes = (1, *slice_sizes)
    out = ix.gather_.bind(
        x,
        indices,
        dimension_numbers=numbers,
        slice_sizes=slice_sizes,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        **how,
    )
    return out, to


def _wider_window(n: ix.GatherDimensionNumbers, ndim: int, d: int) -> tuple:
    """Return the dimension numbers for a stack along axis `d` whose rows are all read, and the
    position of the mapped axis in the result."""
    dropped = {*skip(n.collapsed_slice_dims, d), *skip(n.operand_batching_dims, d)}
    before = len([a for a in range(d) if a not in dropped])
    offset = n.offset_dims
    to = offset[before] if before < len(offset) else (offset[-1] + 1 if offset else 0)
    numbers = n._replace(
        offset_dims=(*offset[:before], to, *moved_up(offset[before:])),
        collapsed_slice_dims=skip(n.collapsed_slice_dims, d),
        start_index_map=skip(n.start_index_map, d),
        operand_batching_dims=skip(n.operand_batching_dims, d),
    )
    return numbers, to


def _scatter(prim: Primitive) -> None:
    @batching_rules.rule(prim)
    def _(batch: Batch, xs, dims, *, dimension_numbers, **how):
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
        numbers = ix.ScatterDimensionNumbers(window, inserted, to, together, with_)
        return prim.bind(x, indices, updates, dimension_numbers=numbers, **how), 0


for _prim in (ix.scatter_, ix.scatter_add_, ix.scatter_mul_, ix.scatter_min_, ix.scatter_max_):
    _scatter(_prim)
