"""BCSR: sparse matrices as compressed rows, with batch and dense axes.

Invariant: operations use the coordinates of the entries, which follow from `indptr`; entries after
the last row are padding.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

import plait.numpy as pnp
from plait import lax
from plait.ext.errors import ArgumentError, ShapeError, border
from plait.ext.trace import Value
from plait.ext.tree import SavedClass
from plait.tree_util import GetAttrKey, register_pytree_with_keys
from plait.typing import Array, ArrayLike, DTypeLike

from .base import JAXSparse
from .bcoo import BCOO
from .checking import here_as_numpy, sizes_of, whole_numbers
from .conversion import laid_out
from .entries import Entries, Shape, clean, inside
from .ordering import in_order, merged
from .saving import read_of_matrix, written

__all__ = ["BCSR"]


class BCSR(JAXSparse):
    """A sparse matrix by rows: values, their columns, and where each row begins.

    Its axes are batch axes, rows, columns, then dense axes.  It is a tree whose leaves are `data`,
    `indices` and `indptr`.

    Args:
      args: (data, indices, indptr), of shapes (*batch, nse, *dense), (*batch, nse) and
        (*batch, rows + 1).  Row k has the entries from indptr[k] to below indptr[k + 1]; later
        entries are padding.
      shape: the sizes of all axes.
      indices_sorted: a promise that the columns of each row are in order.
      unique_indices: a promise that no column occurs twice in a row.

    Raises:
      ShapeError: shapes that do not fit.
      ArgumentError: rows or columns out of bounds, or a promise that does not hold; arrays that are
        traced are not checked.

    >>> import plait
    >>> x = plait.sparse.BCSR(([1.0, 2.0], [1, 0], [0, 1, 2]), shape=(2, 2))
    >>> x.todense().tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """

    data: Any
    indices: Any
    indptr: Any
    _sparse_shape: Shape
    indices_sorted: bool
    unique_indices: bool
    __plait_saved__ = SavedClass("plait.sparse.BCSR", written, read_of_matrix)
    __slots__ = ("_sparse_shape", "data", "indices", "indices_sorted", "indptr", "unique_indices")

    @border
    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        try:
            data, indices, indptr = args
        except (TypeError, ValueError):
            raise ArgumentError(
                f"BCSR expected three arrays, got {type(args).__name__}",
                fix="write BCSR((data, indices, indptr), shape=...)",
            ) from None
        sizes, data = sizes_of(shape), pnp.asarray(data)
        indices, indptr = whole_numbers(indices, "indices"), whole_numbers(indptr, "indptr")
        n = indices.ndim - 1
        _check_shapes(data, indices, indptr, sizes)
        batch = sizes[:n]
        self.data = pnp.broadcast_to(data, (*batch, *data.shape[n:]))
        self.indices = pnp.broadcast_to(indices, (*batch, indices.shape[-1]))
        self.indptr = pnp.broadcast_to(indptr, (*batch, indptr.shape[-1]))
        self._sparse_shape = sizes[n : n + 2]
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        _check_values(self)

    @classmethod
    def made(
        cls,
        data: object,
        indices: object,
        indptr: object,
        sparse_shape: Sequence[int],
        is_sorted: bool,
        unique: bool,
    ) -> Self:
        """Return the array with these fields, which are not checked."""
        out = object.__new__(cls)
        out.data, out.indices, out.indptr = data, indices, indptr
        out._sparse_shape = tuple(sparse_shape)
        out.indices_sorted, out.unique_indices = is_sorted, unique
        return out

    # -- properties ------------------------------------------------------------------------

    n_sparse = 2

    @property
    def n_batch(self) -> int:
        """The number of batch axes."""
        return self.indices.ndim - 1

    @property
    def n_dense(self) -> int:
        """The number of dense axes."""
        return self.data.ndim - self.indices.ndim

    @property
    def shape(self) -> Shape:
        """The sizes of all axes."""
        n = self.n_batch
        return (*self.indices.shape[:n], *self._sparse_shape, *self.data.shape[n + 1 :])

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.data.ndim + 1

    @property
    def size(self) -> int:
        """The number of elements, zeros among them."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.data.dtype

    @property
    def nse(self) -> int:
        """The number of entries of each batch, padding among them."""
        return self.indices.shape[-1]

    # -- conversions -----------------------------------------------------------------------

    def _entries(self) -> Any:
        return self.to_bcoo()

    def _like(self, out: BCOO) -> Any:
        return BCSR.made(
            out.data, self.indices, self.indptr, self._sparse_shape, self.indices_sorted,
            self.unique_indices,
        )  # fmt: skip

    @border
    def to_bcoo(self) -> BCOO:
        """Return the same array by coordinates."""
        rows = _rows(self.indptr, self.nse).astype(self.indices.dtype)
        padding = rows >= self._sparse_shape[0]
        cols = pnp.where(padding, self._sparse_shape[1], self.indices)
        return BCOO.made(
            self.data, pnp.stack([rows, cols], -1), self._sparse_shape, self.indices_sorted,
            self.unique_indices,
        )  # fmt: skip

    @classmethod
    @border
    def from_bcoo(cls, arr: BCOO) -> Self:
        """Return a BCOO with two sparse axes by rows; its entries are put in order.

        Raises ArgumentError for another number of sparse axes.
        """
        if not isinstance(arr, BCOO) or arr.n_sparse != 2:
            raise ArgumentError(
                f"from_bcoo expected a BCOO with two sparse axes, got {arr!r}",
                fix="call .update_layout(n_batch=..., n_dense=...) on it first",
            )
        return cls._by_rows(arr)

    @classmethod
    def _by_rows(cls, x: Entries) -> Self:
        """Return entries with two sparse axes by rows."""
        x = in_order(clean(x))
        rows, cols = x.indices[..., 0], x.indices[..., 1]
        batch, (n, m) = x.batch_shape, x.sparse_shape
        lead = [lax.broadcasted_iota(rows.dtype, rows.shape, k) for k in range(x.n_batch)]
        kept = inside(x).astype(rows.dtype)
        counts = pnp.zeros((*batch, n), rows.dtype).at[(*lead, rows)].add(kept, mode="drop")
        ends = pnp.cumsum(counts, -1).astype(rows.dtype)
        indptr = pnp.concatenate([pnp.zeros((*batch, 1), rows.dtype), ends], -1)
        return cls.made(x.data, cols, indptr, (n, m), True, x.unique_indices)

    @classmethod
    @border
    def fromdense(
        cls,
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> Self:
        """Return the nonzero elements of a dense array by rows; see `BCOO.fromdense`.

        >>> import plait
        >>> plait.sparse.BCSR.fromdense([[0.0, 3.0], [0.0, 0.0]]).indptr.tolist()
        [0, 1, 1]
        """
        found = BCOO.fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )
        return cls.from_bcoo(found)

    @classmethod
    @border
    def from_scipy_sparse(
        cls,
        mat: object,
        *,
        index_dtype: DTypeLike | None = None,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> Self:
        """Return the entries of a sparse matrix of scipy by rows."""
        found = BCOO.from_scipy_sparse(
            mat, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )
        return cls.from_bcoo(found)

    @border
    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> Self:
        """Return the array with one entry for each index, in order; see `BCOO.sum_duplicates`."""
        return type(self)._by_rows(merged(self.to_bcoo(), nse, remove_zeros))

    @border
    def sort_indices(self) -> Self:
        """Return the array with the columns of each row in order."""
        return type(self)._by_rows(self.to_bcoo())

    @border
    def transpose(self, axes: Any = None) -> Any:
        """Return the array with its axes in another order: by rows, if two sparse axes stay."""
        out = super().transpose(axes)
        out = laid_out(out, self.n_batch, self.n_dense) if out.n_sparse != 2 else out
        return type(self)._by_rows(out)

    # -- the tree --------------------------------------------------------------------------

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], Any]:
        """Return the leaves and the static part of the tree."""
        static = (self._sparse_shape, self.indices_sorted, self.unique_indices)
        return (self.data, self.indices, self.indptr), static

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Self:
        """Return the array of these leaves, which are not checked."""
        data, indices, indptr = children
        return cls.made(data, indices, indptr, *aux_data)


def _rows(indptr: Value, nse: int) -> Any:
    """Return the row of each entry; the number of rows for padding."""
    shape = indptr.shape[:-1]
    ends = indptr[..., 1:]
    lead = [lax.broadcasted_iota(np.int32, ends.shape, k) for k in range(len(shape))]
    marks = pnp.zeros((*shape, nse), np.int32).at[(*lead, ends)].add(1, mode="drop")
    return pnp.cumsum(marks, -1)


def _check_shapes(data: Array, indices: Value, indptr: Value, sizes: Shape) -> None:
    """Raise ShapeError unless the shapes of the three arrays fit the shape of the matrix."""
    n = indices.ndim - 1
    if n < 0 or len(sizes) < n + 2:
        raise ShapeError(
            f"BCSR expected indices of shape (*batch, nse) and a shape with two more axes than the "
            f"batch, got {tuple(indices.shape)} and {sizes}",
            fix="shape counts batch axes, rows, columns and dense axes",
        )
    batch, dense = sizes[:n], sizes[n + 2 :]
    wanted = [("data", data, (*batch, indices.shape[-1], *dense)),
              ("indices", indices, (*batch, indices.shape[-1])),
              ("indptr", indptr, (*batch, sizes[n] + 1))]  # fmt: skip
    for name, x, want in wanted:
        got = tuple(x.shape)
        fits = [g == w or (k < n and g == 1) for k, (g, w) in enumerate(zip(got, want))]
        if len(got) != len(want) or not all(fits):
            raise ShapeError(
                f"BCSR expected {name} of shape {want} for shape {sizes}, got {got}",
                fix="indptr has one more element than there are rows; data has a value, and "
                "indices a column, for each entry",
            )


def _check_values(x: BCSR) -> None:
    """Raise ArgumentError for rows and columns out of bounds, and for promises that do not hold."""
    indptr, cols = here_as_numpy(x.indptr), here_as_numpy(x.indices)
    if indptr is None or cols is None or not indptr.size:
        return
    nse = x.nse
    steps = np.diff(indptr, axis=-1)
    if (indptr[..., 0] != 0).any() or (steps < 0).any() or (indptr[..., -1] > nse).any():
        raise ArgumentError(
            f"BCSR expected an indptr that begins with 0, never falls, and ends at {nse} at most, "
            "the number of entries, got another",
            fix="indptr[k] is the number of entries in the rows before row k",
        )
    used = np.arange(nse) < indptr[..., -1:]
    wrong = ((cols < 0) | (cols >= x._sparse_shape[1])) & used
    if wrong.any():
        at = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ArgumentError(
            f"BCSR expected columns from 0 to below {x._sparse_shape[1]}, got {cols[at]} at "
            f"indices[{', '.join(map(str, at))}]",
            fix="columns count from 0",
        )
    _check_promises(x, cols, used, indptr)


def _check_promises(x: BCSR, cols: np.ndarray, used: np.ndarray, indptr: np.ndarray) -> None:
    """Raise ArgumentError unless the columns of each row keep the promises."""
    if not (x.indices_sorted or x.unique_indices):
        return
    for at in np.ndindex(cols.shape[:-1]):
        count = int(indptr[at][-1])
        rows = np.repeat(np.arange(len(indptr[at]) - 1), np.diff(indptr[at]))
        pairs = rows * max(x._sparse_shape[1], 1) + cols[at][:count]
        falls = (np.diff(pairs) < 0).any()
        if x.indices_sorted and falls:
            raise ArgumentError(
                "BCSR expected sorted columns in each row, because indices_sorted=True, got others",
                fix="leave indices_sorted out, then call .sort_indices()",
            )
        if x.unique_indices and len(np.unique(pairs)) < count:
            raise ArgumentError(
                "BCSR expected each column once in a row, because unique_indices=True, got "
                "duplicates",
                fix="leave unique_indices out, then call .sum_duplicates()",
            )


def _with_keys(x: BCSR) -> Any:
    leaves, static = x.tree_flatten()
    names = ("data", "indices", "indptr")
    return [(GetAttrKey(n), leaf) for n, leaf in zip(names, leaves, strict=True)], static


register_pytree_with_keys(
    BCSR, _with_keys, lambda static, leaves: BCSR.tree_unflatten(static, leaves), BCSR.tree_flatten
)
