"""Sparse arrays that are made of nothing: empty ones, identities, and random ones.

Invariant: no dense array is made on the way.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait import random
from plait.ext.errors import ArgumentError, border
from plait.typing import ArrayLike, DTypeLike

from .base import JAXSparse
from .bcoo import BCOO
from .bcsr import BCSR
from .checking import sizes_of
from .entries import unravelled
from .matrices import COO, CSC, CSR

__all__ = ["empty", "eye", "random_bcoo"]

FORMATS = {"bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def _of_format(x: BCOO, name: str) -> Any:
    """Return an array in the format of a name."""
    if name not in FORMATS:
        raise ArgumentError(
            f"expected sparse_format to be one of {', '.join(FORMATS)}, got {name!r}",
            fix="write sparse_format='bcoo'",
        )
    if name in ("bcoo", "bcsr"):
        return x if name == "bcoo" else BCSR.from_bcoo(x)
    if x.ndim != 2 or x.n_sparse != 2:
        raise ArgumentError(
            f"{name!r} expected a matrix without batch and dense axes, got {x.n_batch} and "
            f"{x.n_dense} of {x.ndim} axes",
            fix="write sparse_format='bcoo'",
        )
    return FORMATS[name].of_entries(x)


@border
def empty(
    shape: Sequence[int], dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo", *, n_batch: int = 0, n_dense: int = 0, nse: int = 0,
) -> JAXSparse:  # fmt: skip
    """Return a sparse array of zeros, without entries.

    >>> import plait
    >>> plait.sparse.empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    sizes = sizes_of(shape)
    if min(n_batch, n_dense) < 0 or n_batch + n_dense > len(sizes):
        raise ArgumentError(
            f"expected n_batch and n_dense of together at most {len(sizes)}, got {n_batch} and "
            f"{n_dense}",
            fix="the axes that are neither batch nor dense axes are sparse",
        )
    sparse = sizes[n_batch : len(sizes) - n_dense]
    lead, dense = (*sizes[:n_batch], nse), sizes[len(sizes) - n_dense :]
    data = pnp.zeros((*lead, *dense), dtype)
    fill = np.array(sparse, np.dtype(index_dtype))
    indices = pnp.broadcast_to(fill, (*lead, len(sparse)))
    return _of_format(BCOO.made(data, indices, sparse, True, True), sparse_format)


@border
def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32", sparse_format: str = "bcoo", *, n_batch: int = 0,
    n_dense: int = 0,
) -> JAXSparse:  # fmt: skip
    """Return ones on a diagonal: `k` above the main diagonal.

    >>> import plait
    >>> plait.sparse.eye(2, 3, k=1).todense().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    M = N if M is None else M
    first = max(0, -k)
    count = max(0, min(N - first, M - first - k))
    rows = pnp.arange(first, first + count, dtype=np.dtype(index_dtype))
    indices = pnp.stack([rows, rows + k], -1)
    out = BCOO.made(pnp.ones(count, dtype), indices, (N, M), True, True)
    if n_batch or n_dense:
        out = out.update_layout(n_batch=n_batch, n_dense=n_dense, on_inefficient=None)
        if n_batch or n_dense == 2:  # a batch holds one row, or all entries have the same index
            out = out.sum_duplicates(nse=min(count, 1))
    return _of_format(out, sparse_format)


@border
def random_bcoo(
    key: ArrayLike, shape: Sequence[int], *, dtype: DTypeLike | None = None,
    indices_dtype: DTypeLike | None = None, nse: float = 0.2, n_batch: int = 0, n_dense: int = 0,
    unique_indices: bool = True, sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform, **kwds: object,
) -> BCOO:  # fmt: skip
    """Return a random sparse array.

    Args:
      key: a random key.
      shape: the sizes of all axes.
      dtype: the dtype of the values, by default float32 (or float64 in 64-bit mode).
      indices_dtype: the dtype of the indices, by default int32.
      nse: the number of entries of each batch; below 1, the part of the positions.
      n_batch, n_dense: the numbers of batch and dense axes.
      unique_indices: whether each index occurs once.
      sorted_indices: whether the indices are in order.
      generator: makes the values: `generator(key, shape=..., dtype=..., **kwds)`.

    >>> import plait
    >>> plait.sparse.random_bcoo(plait.random.key(0), (4, 5), nse=3)
    BCOO(float32[4, 5], nse=3)
    """
    sizes = sizes_of(shape)
    end = len(sizes) - n_dense
    batch, sparse, dense = sizes[:n_batch], sizes[n_batch:end], sizes[end:]
    most = math.prod(sparse)
    count = int(nse * most) if 0 < nse < 1 else int(nse)
    if (
        n_batch < 0
        or n_dense < 0
        or n_batch > end
        or count < 0
        or (unique_indices and count > most)
    ):
        raise ArgumentError(
            f"random_bcoo expected n_batch + n_dense of at most {len(sizes)} and nse from 0 to "
            f"{most}, got {n_batch}, {n_dense} and {nse}",
            fix="more entries need unique_indices=False",
        )
    for_values, for_places = random.split(key)
    many = math.prod(batch)
    if unique_indices:
        draw = random.uniform(for_places, (many, most))
        at = pnp.argsort(draw, 1)[:, :count]
    else:
        at = random.randint(for_places, (many, count), 0, most)
    at = pnp.sort(at, 1) if sorted_indices else at
    like = np.dtype(np.int32 if indices_dtype is None else indices_dtype)
    indices = unravelled(at.astype(like), sparse).reshape((*batch, count, len(sparse)))
    dtype = pnp.zeros(()).dtype if dtype is None else dtype
    data = generator(for_values, shape=(*batch, count, *dense), dtype=dtype, **kwds)
    return BCOO.made(data, indices, sparse, sorted_indices, unique_indices)
