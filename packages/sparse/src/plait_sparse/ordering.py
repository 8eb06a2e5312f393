"""The order of entries, and sums of entries that have the same index.

Invariant: an array keeps its value; padding comes last.
"""

from typing import Any

import numpy as np

import plait.numpy as pnp
from plait import lax
from plait.ext.trace import Value

from .checking import here_as_numpy
from .conversion import count_of
from .entries import Entries, accumulator, clean, compiled, computed, inside, rebuilt

__all__ = ["in_order", "merged", "with_single_entries"]


@compiled()
def in_order(x: Entries) -> Any:
    """Return the array with its entries in lexicographic order of their indices."""
    if x.indices_sorted or not x.n_sparse:
        return rebuilt(x, is_sorted=True)
    x = clean(x)
    numbers = lax.broadcasted_iota(x.indices.dtype, x.indices.shape[:-1], x.n_batch)
    cols = [x.indices[..., k] for k in range(x.n_sparse)]
    *cols, order = lax.sort([*cols, numbers], dimension=-1, num_keys=x.n_sparse)
    shown = order.reshape((*order.shape, *(1,) * x.n_dense))
    data = pnp.take_along_axis(x.data, shown, x.n_batch)
    return rebuilt(x, data, pnp.stack(cols, -1), is_sorted=True)


def merged(x: Entries, nse: int | None = None, remove_zeros: bool = False) -> Any:
    """Return the array with one entry for each index, in order, and with `nse` entries."""
    x = clean(x)
    if remove_zeros:  # dropped entries become padding, which is not at the end yet
        axes = tuple(range(x.n_batch + 1, x.data.ndim))
        x = clean(x, inside(x) & (x.data != 0).any(axes))
    x = in_order(rebuilt(x, is_sorted=x.indices_sorted and not remove_zeros))
    if not x.n_sparse:
        total = x.data.astype(accumulator(x.dtype)).sum(x.n_batch, keepdims=True)
        out = rebuilt(x, computed(total, x.dtype), x.indices[..., :1, :], unique=True)
        return out if x.nse else rebuilt(x, unique=True)
    kept = inside(x)
    begins = (x.indices[..., 1:, :] != x.indices[..., :-1, :]).any(-1)
    begins = pnp.concatenate([pnp.ones((*x.batch_shape, min(x.nse, 1)), bool), begins], -1) & kept
    shape = begins.reshape((-1, x.nse)) if begins.size else begins.reshape((0, x.nse))
    count = count_of(shape, nse, "sum_duplicates")
    slot = pnp.where(kept, pnp.cumsum(begins.astype(np.int32), -1) - 1, count)
    return _collected(x, slot, count)


@compiled("count")
def _collected(x: Entries, slot: Value, count: int) -> Any:
    """Return the array whose entry number `slot[k]` is the sum of the entries k."""
    lead = [lax.broadcasted_iota(np.int32, slot.shape, k) for k in range(x.n_batch)]
    at = (*lead, slot)
    limits = np.array(x.sparse_shape, x.indices.dtype)
    empty = pnp.broadcast_to(limits, (*x.batch_shape, count, x.n_sparse))
    indices = empty.at[at].set(x.indices, mode="drop")
    dtype = accumulator(x.dtype)
    zeros = pnp.zeros((*x.batch_shape, count, *x.dense_shape), dtype)
    data = zeros.at[at].add(x.data.astype(dtype), mode="drop")
    return rebuilt(x, computed(data, x.dtype), indices, is_sorted=True, unique=True)


def with_single_entries(x: Entries) -> Any:
    """Return the array with at most one entry for each index, for functions that are not linear."""
    if x.unique_indices:
        return x
    return merged(x, x.nse) if here_as_numpy(x.indices) is None else merged(x)
