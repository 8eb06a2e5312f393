"""Conversions between dense and sparse arrays, and between layouts of sparse arrays.

Invariant: a conversion drops no element that is not zero, unless the caller fixed the number of
entries of a traced array.
"""

import math
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait.ext.errors import ArgumentError
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike

from .checking import here_as_numpy
from .entries import (
    Entries,
    accumulator,
    clean,
    columns,
    compiled,
    computed,
    flat,
    inside,
    linear,
    padded,
    rebuilt,
    unravelled,
)

__all__ = ["densified", "extracted", "laid_out", "positions", "sparsified"]


@compiled()
def densified(x: Entries) -> Any:
    """Return the dense array."""
    x = clean(x)
    if not x.n_sparse:  # the sum of the entries, which have no index
        return computed(x.data.astype(accumulator(x.dtype)).sum(x.n_batch), x.dtype)
    dtype = x.dtype if x.unique_indices and x.dtype != np.bool_ else accumulator(x.dtype)
    out = pnp.zeros(x.shape, dtype).at[tuple(columns(x))]
    added = out.add(
        x.data.astype(dtype),
        mode="drop",
        indices_are_sorted=x.indices_sorted,
        unique_indices=False,  # padding entries share an index
    )
    return computed(added, x.dtype)


def extracted(x: Entries, dense: Array) -> Any:
    """Return the values of a dense array at the entries; zeros in padding."""
    if not x.n_sparse:
        wide = dense[(slice(None),) * x.n_batch + (None,)]
        out = pnp.broadcast_to(wide, (*x.batch_shape, x.nse, *x.dense_shape))
        return out
    kept = clean(x)
    return dense.at[tuple(columns(kept))].get(mode="fill", fill_value=0)


def count_of(mask: Array, nse: int | None, name: str) -> int:
    """Return the number of entries: the one given, or the largest number in any batch."""
    found = here_as_numpy(mask)
    if found is None:
        if nse is None:
            raise ArgumentError(
                f"{name} needs `nse` while the array is traced: the number of entries must not "
                "depend on its values",
                fix=f"pass nse=N to {name}, a bound of the number of nonzero elements",
            )
        return int(nse)
    most = int(found.sum(tuple(range(1, found.ndim))).max(initial=0))
    if nse is None:
        return most
    if int(nse) < most:
        raise ArgumentError(
            f"expected `nse` of at least {most}, the number of entries, got {nse}",
            fix=f"pass nse={most} or leave nse out",
        )
    return int(nse)


@compiled("nse", "dtype")
def positions(mask: Value, nse: int, dtype: np.dtype) -> Any:
    """Return the first `nse` positions along the last axis where a mask is True.

    Missing ones are the size of that axis.
    """
    batch, n = mask.shape
    if n > np.iinfo(dtype).max:
        linear([np.zeros((), dtype)], (n,))
    slot = pnp.where(mask, pnp.cumsum(mask.astype(dtype), 1) - 1, nse)
    rows = pnp.broadcast_to(pnp.arange(batch, dtype=dtype)[:, None], mask.shape)
    numbers = pnp.broadcast_to(pnp.arange(n, dtype=dtype), mask.shape)
    return pnp.full((batch, nse), n, dtype).at[rows, slot].set(numbers, mode="drop")


def sparsified(
    kind: type[Entries],
    dense: ArrayLike,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> Any:
    """Return a sparse array with the nonzero elements of a dense one."""
    x = pnp.asarray(dense)
    n_sparse = x.ndim - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise ArgumentError(
            f"expected n_batch and n_dense of together at most {x.ndim}, the number of axes, got "
            f"{n_batch} and {n_dense}",
            fix="the axes that are neither batch nor dense axes are sparse",
        )
    batch, sizes = x.shape[:n_batch], x.shape[n_batch : x.ndim - n_dense]
    mask = (x != 0).any(tuple(range(n_batch + n_sparse, x.ndim)))
    mask = mask.reshape((math.prod(batch), math.prod(sizes)))
    nse = count_of(mask, nse, f"{kind.__name__}.fromdense")
    dtype = np.dtype(index_dtype)
    at = positions(mask, nse, dtype)
    beyond = at < math.prod(sizes)
    indices = pnp.where(beyond[..., None], unravelled(at, sizes), np.array(sizes, dtype))
    indices = indices.reshape((*batch, nse, n_sparse))
    out = kind.made(x, indices, sizes, True, True)
    if not n_sparse:  # an entry that is missing has no index to tell
        shown = beyond.reshape((*batch, nse, *(1,) * n_dense))
        empty = np.zeros((), x.dtype)
        wide = x[(slice(None),) * n_batch + (None,)]
        return kind.made(pnp.where(shown, wide, empty), indices, sizes, True, True)
    return rebuilt(out, x.at[tuple(columns(out))].get(mode="fill", fill_value=0))


@compiled("n_batch", "n_dense")
def laid_out(x: Entries, n_batch: int | None = None, n_dense: int | None = None) -> Any:
    """Return the array with other numbers of batch and dense axes."""
    n_batch = x.n_batch if n_batch is None else n_batch
    n_dense = x.n_dense if n_dense is None else n_dense
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > x.ndim:
        raise ArgumentError(
            f"expected n_batch and n_dense of together at most {x.ndim}, got {n_batch} and "
            f"{n_dense}",
            fix="name axes of the array",
        )
    if x.ndim - n_dense < x.n_batch:  # a batch axis is about to be dense: by way of sparse axes
        x = _fewer_batch(x, x.ndim - n_dense)
    if n_dense < x.n_dense:
        x = _fewer_dense(x, n_dense)
    if n_batch < x.n_batch:
        x = _fewer_batch(x, n_batch)
    if n_dense > x.n_dense:
        x = _more_dense(x, n_dense)
    return _more_batch(x, n_batch) if n_batch > x.n_batch else x


def _fewer_batch(x: Entries, n_batch: int) -> Any:
    """Turn the last batch axes into sparse axes."""
    keep, fold = x.batch_shape[:n_batch], x.batch_shape[n_batch:]
    count = math.prod(fold) * x.nse
    x = clean(x)
    cols = [c.reshape((*keep, count)) for c in columns(x)[n_batch:]]
    kept = inside(x).reshape((*keep, count))
    sizes = (*fold, *x.sparse_shape)
    data = x.data.reshape((*keep, count, *x.dense_shape))
    indices = pnp.where(kept[..., None], pnp.stack(cols, -1), np.array(sizes, x.indices.dtype))
    ordered = x.indices_sorted and math.prod(fold) <= 1
    return rebuilt(x, data, indices, sparse_shape=sizes, is_sorted=ordered)


def _fewer_dense(x: Entries, n_dense: int) -> Any:
    """Turn the first dense axes into sparse axes: each element becomes an entry."""
    fold, keep = x.dense_shape[: x.n_dense - n_dense], x.dense_shape[x.n_dense - n_dense :]
    many = math.prod(fold)
    x = clean(x)
    kept = inside(x)
    grid = unravelled(pnp.arange(many, dtype=x.indices.dtype), fold)
    lead = (*x.batch_shape, x.nse, many)
    own = pnp.broadcast_to(x.indices[..., None, :], (*lead, x.n_sparse))
    indices = pnp.concatenate([own, pnp.broadcast_to(grid, (*lead, len(fold)))], -1)
    sizes = (*x.sparse_shape, *fold)
    indices = pnp.where(kept[..., None, None], indices, np.array(sizes, x.indices.dtype))
    count = x.nse * many
    indices = indices.reshape((*x.batch_shape, count, len(sizes)))
    data = x.data.reshape((*x.batch_shape, count, *keep))
    return rebuilt(x, data, indices, sparse_shape=sizes)


def _more_dense(x: Entries, n_dense: int) -> Any:
    """Turn the last sparse axes into dense axes: each entry becomes a box with one element."""
    cut = x.n_sparse - (n_dense - x.n_dense)
    x = clean(x)
    kept, fold = inside(x), x.sparse_shape[cut:]
    at = linear([x.indices[..., k] for k in range(cut, x.n_sparse)], fold)
    hot = (at[..., None] == pnp.arange(math.prod(fold), dtype=at.dtype)) & kept[..., None]
    hot = hot.reshape((*x.batch_shape, x.nse, *fold, *(1,) * x.n_dense))
    wide = x.data.reshape((*x.batch_shape, x.nse, *(1,) * len(fold), *x.dense_shape))
    data = pnp.where(hot, wide, np.zeros((), x.dtype))
    indices = padded(x, x.indices[..., :cut], kept, x.sparse_shape[:cut])
    return rebuilt(x, data, indices, sparse_shape=x.sparse_shape[:cut], unique=False)


def _more_batch(x: Entries, n_batch: int) -> Any:
    """Turn the first sparse axes into batch axes: each row has all entries, most are padding."""
    more = n_batch - x.n_batch
    fold, sizes = x.sparse_shape[:more], x.sparse_shape[more:]
    x = clean(x)
    many = math.prod(fold)
    at = linear([x.indices[..., k] for k in range(more)], fold)
    own = at[..., None, :] == pnp.arange(many, dtype=at.dtype)[:, None]
    own = own & inside(x)[..., None, :]
    indices = pnp.where(own[..., None], x.indices[..., None, :, more:], np.array(sizes, at.dtype))
    shown = own.reshape((*own.shape, *(1,) * x.n_dense))
    rows = x.data[(slice(None),) * x.n_batch + (None,)]
    data = pnp.where(shown, rows, np.zeros((), x.dtype))
    lead = (*x.batch_shape, *fold, x.nse)
    data = data.reshape((*lead, *x.dense_shape))
    indices = indices.reshape((*lead, len(sizes)))
    return rebuilt(x, data, indices, sparse_shape=sizes, is_sorted=False)


def flat_entries(x: Entries) -> Any:
    """Return an array without batch axes whose padding is clean."""
    return clean(flat(x))
