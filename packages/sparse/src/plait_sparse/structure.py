"""Changes of shape: transposes, pieces, reshapes, broadcasts, concatenations and sums over axes.

Invariant: entries stay entries, so no operation here makes a dense array; padding stays padding.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait import lax
from plait.ext.errors import ArgumentError, AxisError, ShapeError
from plait.ext.trace import Value

from .conversion import laid_out
from .entries import Entries, Shape, accumulator, clean, inside, linear, padded, rebuilt, unravelled
from .ordering import merged

__all__ = [
    "broadcast", "concatenated", "dynamic_piece", "piece", "reshaped", "reversed_along", "squeezed",
    "summed", "transposed",
]  # fmt: skip


def transposed(x: Entries, permutation: Sequence[int] | None = None) -> Any:
    """Return the array with its axes in another order."""
    perm = tuple(range(x.ndim)[::-1] if permutation is None else (int(k) for k in permutation))
    if sorted(perm) != list(range(x.ndim)):
        raise AxisError(
            f"expected a permutation of {x.ndim} axes, got {perm}",
            fix=f"name each of the axes 0 to {x.ndim - 1} once",
        )
    b, s = x.n_batch, x.n_batch + x.n_sparse
    if sorted(perm[:b]) != list(range(b)) or sorted(perm[b:s]) != list(range(b, s)):
        x = laid_out(x, 0, 0)  # an axis changes its kind
        b, s = 0, x.ndim
    batch, dense = perm[:b], [k - s + b + 1 for k in perm[s:]]
    order = [k - b for k in perm[b:s]]
    data = x.data.transpose((*batch, b, *dense))
    indices = x.indices.transpose((*batch, b, b + 1))
    if order:
        indices = pnp.stack([indices[..., k] for k in order], -1)
    sizes = [x.sparse_shape[k] for k in order]
    ordered = x.indices_sorted and order == list(range(len(order)))
    return rebuilt(x, data, indices, sparse_shape=sizes, is_sorted=ordered)


def reversed_along(x: Entries, axes: Sequence[int]) -> Any:
    """Return the array with the order of its elements along some axes reversed."""
    b, s = x.n_batch, x.n_batch + x.n_sparse
    outer = [k for k in axes if k < b]
    data = lax.rev(x.data, [*outer, *(k - s + b + 1 for k in axes if k >= s)])
    indices = lax.rev(x.indices, outer)
    turned = [b <= k < s and k in axes for k in range(b, s)]
    if not any(turned):
        return rebuilt(x, data, indices)
    x = rebuilt(x, data, indices)
    last = np.array(x.sparse_shape, indices.dtype) - 1
    moved = pnp.where(np.array(turned), last - indices, indices)
    return rebuilt(x, data, padded(x, moved, inside(x), x.sparse_shape), is_sorted=False)


def squeezed(x: Entries, axes: Sequence[int]) -> Any:
    """Return the array without some axes of size 1."""
    for k in axes:
        if x.shape[k] != 1:
            raise ShapeError(
                f"squeeze expected size 1 along axis {k}, got {x.shape[k]} in {x.shape}",
                fix="name axes of size 1",
            )
    b, s = x.n_batch, x.n_batch + x.n_sparse
    cut = [k for k in axes if b <= k < s]
    x = clean(x) if cut else x
    outer = tuple(k for k in axes if k < b)
    data = lax.squeeze(x.data, (*outer, *(k - s + b + 1 for k in axes if k >= s)))
    indices = lax.squeeze(x.indices, outer)
    keep = [k - b for k in range(b, s) if k not in cut]
    sizes = [x.sparse_shape[k] for k in keep]
    if cut:
        indices = indices[..., np.array(keep, int)]
    return rebuilt(x, data, indices, sparse_shape=sizes)


def summed(x: Entries, axes: Sequence[int]) -> Any:
    """Return the sums over some axes, as a sparse array."""
    b, s = x.n_batch, x.n_batch + x.n_sparse
    axes = [int(k) for k in axes]
    if not axes:
        return x
    wide = accumulator(x.dtype)
    dtype = wide if x.dtype == np.bool_ else x.dtype
    x = clean(x)
    data = x.data.astype(wide)
    inner = tuple(k - s + b + 1 for k in axes if k >= s)
    data = data.sum(inner) if inner else data
    keep = [k - b for k in range(b, s) if k not in axes]
    indices = x.indices[..., np.array(keep, int)] if len(keep) < x.n_sparse else x.indices
    sizes = [x.sparse_shape[k] for k in keep]
    outer = [k for k in axes if k < b]
    if outer:  # the entries of all batches become those of one
        stay = [k for k in range(b) if k not in outer]
        count = math.prod(x.shape[k] for k in outer) * x.nse
        lead = tuple(x.shape[k] for k in stay)
        rest = range(b + 1, data.ndim)
        data = data.transpose((*stay, *outer, b, *rest)).reshape(
            (*lead, count, *data.shape[b + 1 :])
        )
        indices = indices.transpose((*stay, *outer, b, b + 1)).reshape((*lead, count, len(keep)))
    same = not outer and len(keep) == x.n_sparse
    return rebuilt(
        x, data.astype(dtype), indices, sparse_shape=sizes,
        is_sorted=same and x.indices_sorted, unique=same and x.unique_indices,
    )  # fmt: skip


def piece(
    x: Entries, starts: Sequence[Any], limits: Sequence[Any], strides: Sequence[int] | None = None
) -> Any:
    """Return a piece of the array: a range of each axis."""
    strides = [1] * x.ndim if strides is None else [int(k) for k in strides]
    if not len(starts) == len(limits) == len(strides) == x.ndim:
        raise ArgumentError(
            f"slice expected {x.ndim} starts, limits and strides, got {len(starts)}, "
            f"{len(limits)} and {len(strides)}",
            fix="give one of each for every axis",
        )
    for k, (a, e, st, n) in enumerate(zip(starts, limits, strides, x.shape, strict=True)):
        if not 0 <= a <= e <= n or st < 1:
            raise ShapeError(
                f"slice expected 0 <= start <= limit <= {n} and a stride of at least 1 along axis "
                f"{k}, got {a}, {e} and {st}",
                fix="keep within the shape",
            )
    b, s = x.n_batch, x.n_batch + x.n_sparse
    cut = [slice(a, e, st) for a, e, st in zip(starts, limits, strides, strict=True)]
    x = rebuilt(x, x.data[(*cut[:b], slice(None), *cut[s:])], x.indices[tuple(cut[:b])])
    sizes = [-(-(e - a) // st) for a, e, st in zip(starts[b:s], limits[b:s], strides[b:s])]
    if all(cut[b + k] == slice(0, n, 1) for k, n in enumerate(x.sparse_shape)):
        return x
    like = x.indices.dtype
    low, high, step = (np.array(v[b:s], like) for v in (starts, limits, strides))
    kept = ((x.indices >= low) & (x.indices < high) & ((x.indices - low) % step == 0)).all(-1)
    return _fitting(_kept(x, (x.indices - low) // step, kept, sizes))


def _kept(x: Entries, indices: Value, kept: Value, sizes: Sequence[int]) -> Any:
    """Return the array of some entries at other indices; the others become padding."""
    x = clean(x, kept)
    return rebuilt(x, None, padded(x, indices, kept, sizes), sparse_shape=sizes, is_sorted=False)


def _fitting(x: Entries) -> Any:
    """Return the array with no more entries than it has positions."""
    most = math.prod(x.sparse_shape)
    return merged(x, most) if most < x.nse else x


def dynamic_piece(x: Entries, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Return a box of the array whose start may be traced; it is moved to lie inside."""
    if not len(starts) == len(sizes) == x.ndim:
        raise ArgumentError(
            f"dynamic_slice expected {x.ndim} starts and sizes, got {len(starts)} and {len(sizes)}",
            fix="give one of each for every axis",
        )
    if any(not 0 <= m <= n for m, n in zip(sizes, x.shape, strict=True)):
        raise ShapeError(
            f"dynamic_slice expected sizes of at most {x.shape}, got {tuple(sizes)}",
            fix="keep within the shape",
        )
    b, s = x.n_batch, x.n_batch + x.n_sparse
    like = x.indices.dtype
    at = [pnp.asarray(k) for k in starts]
    at = [pnp.where(k < 0, k + n, k) for k, n in zip(at, x.shape, strict=True)]
    at = [pnp.clip(k, 0, n - m).astype(like) for k, n, m in zip(at, x.shape, sizes, strict=True)]
    none = np.zeros((), like)
    data = lax.dynamic_slice(x.data, [*at[:b], none, *at[s:]], [*sizes[:b], x.nse, *sizes[s:]])
    indices = lax.dynamic_slice(x.indices, [*at[:b], none, none], [*sizes[:b], x.nse, x.n_sparse])
    x = rebuilt(x, data, indices)
    if not x.n_sparse or tuple(sizes[b:s]) == x.sparse_shape:
        return x
    low = pnp.stack(at[b:s])
    moved = x.indices - low
    kept = ((moved >= 0) & (moved < np.array(sizes[b:s], like))).all(-1) & inside(x)
    return _fitting(_kept(x, moved, kept, sizes[b:s]))


def reshaped(x: Entries, shape: Sequence[int]) -> Any:
    """Return the array in another shape.

    Batch, sparse and dense axes keep their kind where the new sizes allow it; otherwise all axes
    become sparse.
    """
    shape = tuple(int(n) for n in shape)
    if shape.count(-1) == 1:
        known = math.prod(n for n in shape if n != -1)
        fill = x.size // known if known else 0
        shape = tuple(fill if n == -1 else n for n in shape)
    if math.prod(shape) != x.size:
        raise ShapeError(
            f"reshape expected a shape with {x.size} elements for {x.shape}, got {shape}",
            fix="pass sizes with the same product",
        )
    found = _divided(x, shape)
    if found is None:
        x, found = laid_out(x, 0, 0), (0, len(shape))
    b, s = found
    x = clean(x) if x.n_sparse else x
    batch, sizes, dense = shape[:b], shape[b:s], shape[s:]
    lead = (*batch, x.nse)
    data = x.data.reshape((*lead, *dense))
    if sizes == x.sparse_shape:
        indices = x.indices.reshape((*lead, len(sizes)))
    else:
        if not x.n_sparse:
            at = pnp.zeros(x.indices.shape[:-1], x.indices.dtype)
        else:
            at = linear([x.indices[..., k] for k in range(x.n_sparse)], x.sparse_shape)
        at = unravelled(at, sizes)
        indices = padded(x, at, inside(x), sizes).reshape((*lead, len(sizes)))
    return rebuilt(x, data, indices, sparse_shape=sizes)


def _divided(x: Entries, shape: Shape) -> tuple[int, int] | None:
    """Return the numbers of axes that the batch axes, and these with the sparse ones, become."""
    batch, sparse, dense = (math.prod(v) for v in (x.batch_shape, x.sparse_shape, x.dense_shape))
    firsts = [k for k in range(len(shape) + 1) if math.prod(shape[:k]) == batch]
    lasts = [k for k in range(len(shape) + 1) if math.prod(shape[k:]) == dense]
    if not x.n_batch:
        firsts = [k for k in firsts if k == 0]
    if not x.n_dense:
        lasts = [k for k in lasts if k == len(shape)]
    if x.n_batch and x.n_batch in firsts:
        firsts.insert(0, x.n_batch)
    if x.n_dense and len(shape) - x.n_dense in lasts:
        lasts.insert(0, len(shape) - x.n_dense)
    for b in firsts:
        for s in lasts:
            if b <= s and math.prod(shape[b:s]) == sparse and (s > b or not x.n_sparse):
                return b, s
    return None


def broadcast(x: Entries, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """Return the array in a larger shape, where axis k of it is axis `axes[k]`.

    Axes before the first sparse axis become batch axes if there are any axes to batch over; entries
    are repeated along other axes.
    """
    shape, axes = tuple(int(n) for n in shape), tuple(int(k) for k in axes)
    good = len(axes) == x.ndim and all(0 <= k < len(shape) for k in axes)
    good = good and list(axes) == sorted(set(axes))
    if not good or any(n != 1 and n != shape[k] for n, k in zip(x.shape, axes, strict=True)):
        raise ShapeError(
            f"{x.shape} does not broadcast to {shape} with its axes at {axes}",
            fix="sizes must be equal or 1, and axes in order",
        )
    b, s = x.n_batch, x.n_batch + x.n_sparse
    first = axes[b] if x.n_sparse else (axes[b - 1] + 1 if b else (axes[0] if axes else 0))
    last = axes[s - 1] + 1 if x.n_sparse else first
    lasting = last if x.n_dense else len(shape)
    lasting = lasting if x.n_sparse or x.n_dense else first
    batch, sizes, dense = shape[:first], shape[first:lasting], shape[lasting:]
    x = _wide_batch(x, batch, axes[:b], dense, [k - lasting for k in axes[s:]])
    return _repeated(x, sizes, [k - first for k in axes[b:s]])


def _wide_batch(
    x: Entries, batch: Shape, outer: Sequence[int], dense: Shape, inner: Sequence[int]
) -> Any:
    """Return the array with other batch and dense axes."""
    n = len(batch)
    middle = (n, n + 1)
    data = lax.broadcast_in_dim(
        x.data, (*batch, x.nse, *dense), (*outer, n, *(n + 1 + k for k in inner))
    )
    indices = lax.broadcast_in_dim(x.indices, (*batch, x.nse, x.n_sparse), (*outer, *middle))
    return rebuilt(x, data, indices)


def _repeated(x: Entries, sizes: Shape, at: Sequence[int]) -> Any:
    """Return the array with its sparse axes at `at` among axes of these sizes."""
    have = dict(zip(at, range(x.n_sparse), strict=True))
    spread = [k for k, n in enumerate(sizes) if k not in have or x.sparse_shape[have[k]] != n]
    many = math.prod(sizes[k] for k in spread)
    if not spread:
        return x
    x = clean(x)
    kept = inside(x)
    like = x.indices.dtype
    grid = unravelled(pnp.arange(many, dtype=like), [sizes[k] for k in spread])
    lead, count = (*x.batch_shape, x.nse, many), x.nse * many
    cols = []
    for k in range(len(sizes)):
        one = grid[:, spread.index(k)] if k in spread else x.indices[..., have[k]][..., None]
        cols.append(pnp.broadcast_to(one, lead))
    indices = pnp.where(kept[..., None, None], pnp.stack(cols, -1), np.array(sizes, like))
    wide = (*lead, *x.dense_shape)
    data = pnp.broadcast_to(pnp.expand_dims(x.data, x.n_batch + 1), wide)
    return rebuilt(
        x, data.reshape((*x.batch_shape, count, *x.dense_shape)),
        indices.reshape((*x.batch_shape, count, len(sizes))), sparse_shape=sizes, is_sorted=False,
    )  # fmt: skip


def concatenated(xs: Sequence[Entries], axis: int) -> Any:
    """Return arrays one after the other along an axis."""
    first = xs[0]
    xs = [laid_out(x, first.n_batch, first.n_dense) for x in xs]
    for x in xs:
        same = [a == c for k, (a, c) in enumerate(zip(x.shape, first.shape)) if k != axis]
        if x.ndim != first.ndim or not all(same):
            raise ShapeError(
                f"concatenate expected arrays that differ along axis {axis} only, got shapes "
                f"{[v.shape for v in xs]}",
                fix="choose another axis, or cut the arrays to equal sizes",
            )
    b, s = first.n_batch, first.n_batch + first.n_sparse
    dtype = pnp.result_type(*(x.dtype for x in xs))
    xs = [rebuilt(clean(x), clean(x).data.astype(dtype)) for x in xs]
    if axis < b:
        nse = max(x.nse for x in xs)
        xs = [lengthened(x, nse) for x in xs]
        data = pnp.concatenate([x.data for x in xs], axis)
        ordered, unique = (all(getattr(x, n) for x in xs)
                           for n in ("indices_sorted", "unique_indices"))  # fmt: skip
        indices = pnp.concatenate([x.indices for x in xs], axis)
        return rebuilt(first, data, indices, is_sorted=ordered, unique=unique)
    if axis < s:
        return _joined_sparse(xs, axis - b)
    return _joined_dense(xs, axis - s)


def lengthened(x: Entries, nse: int) -> Any:
    """Return the array with padding after its entries, up to `nse` of them."""
    more = nse - x.nse
    if more <= 0:
        return x
    limits = np.array(x.sparse_shape, x.indices.dtype)
    empty = pnp.broadcast_to(limits, (*x.batch_shape, more, x.n_sparse))
    zeros = pnp.zeros((*x.batch_shape, more, *x.dense_shape), x.dtype)
    data = pnp.concatenate([x.data, zeros], x.n_batch)
    return rebuilt(x, data, pnp.concatenate([x.indices, empty], x.n_batch))


def _joined_sparse(xs: Sequence[Entries], k: int) -> Any:
    """Return arrays one after the other along the sparse axis `k`."""
    first, start, parts = xs[0], 0, []
    total = sum(x.sparse_shape[k] for x in xs)
    sizes = (*first.sparse_shape[:k], total, *first.sparse_shape[k + 1 :])
    for x in xs:
        shift = np.zeros(x.n_sparse, x.indices.dtype)
        shift[k] = start
        parts.append(padded(x, x.indices + shift, inside(x), sizes))
        start += x.sparse_shape[k]
    like = np.result_type(*(p.dtype for p in parts))
    indices = pnp.concatenate([p.astype(like) for p in parts], first.n_batch)
    data = pnp.concatenate([x.data for x in xs], first.n_batch)
    unique = all(x.unique_indices for x in xs)
    return rebuilt(first, data, indices, sparse_shape=sizes, is_sorted=False, unique=unique)


def _joined_dense(xs: Sequence[Entries], k: int) -> Any:
    """Return arrays one after the other along the dense axis `k`."""
    first, start, parts = xs[0], 0, []
    total = sum(x.dense_shape[k] for x in xs)
    for x in xs:
        n = x.dense_shape[k]
        width = [(0, 0)] * x.data.ndim
        width[x.n_batch + 1 + k] = (start, total - start - n)
        parts.append(pnp.pad(x.data, width))
        start += n
    data = pnp.concatenate(parts, first.n_batch)
    indices = pnp.concatenate([x.indices for x in xs], first.n_batch)
    return rebuilt(first, data, indices, is_sorted=False, unique=False)
