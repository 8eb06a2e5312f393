"""BCOO: sparse arrays as coordinates and values, with batch and dense axes.

Invariant: every operation is a function of the arrays `data` and `indices`, so the transformations
apply; a constructor checks its arguments, and results of operations are not checked again.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

import plait.numpy as pnp
from plait.ext.errors import ArgumentError, border
from plait.ext.tree import SavedClass
from plait.tree_util import GetAttrKey, register_pytree_with_keys
from plait.typing import ArrayLike, DTypeLike

from .base import JAXSparse
from .checking import check_coordinates, check_fields, sizes_of, whole_numbers
from .conversion import laid_out, sparsified
from .entries import Entries
from .foreign import entries_of_scipy
from .ordering import in_order, merged
from .saving import read, written

__all__ = ["BCOO"]


class BCOO(Entries, JAXSparse):
    """A sparse array: batched coordinates and values.

    Its axes are `n_batch` batch axes, then sparse axes, then `n_dense` dense axes.  It is a tree
    whose leaves are `data` and `indices`.  Entries with equal indices are added.  An entry whose
    indices equal the sizes of the sparse axes is padding.

    Args:
      args: (data, indices), of shapes (*batch, nse, *dense) and (*batch, nse, n_sparse).
      shape: the sizes of all axes.
      indices_sorted: a promise that indices are in lexicographic order.
      unique_indices: a promise that no index occurs twice.

    Raises:
      ShapeError: shapes that do not fit.
      ArgumentError: indices out of bounds, or a promise that does not hold; arrays that are traced
        are not checked, and their entries out of bounds are padding.

    >>> import plait
    >>> x = plait.sparse.BCOO(([1.0, 2.0], [[0, 1], [1, 0]]), shape=(2, 2))
    >>> x
    BCOO(float32[2, 2], nse=2)
    >>> (x @ plait.numpy.array([10.0, 1.0])).tolist()
    [1.0, 20.0]
    """

    __slots__ = ()
    __plait_saved__ = SavedClass("plait.sparse.BCOO", written, read)

    @border
    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        try:
            data, indices = args
        except (TypeError, ValueError):
            raise ArgumentError(
                f"BCOO expected a pair of arrays, got {type(args).__name__}",
                fix="write BCOO((data, indices), shape=...)",
            ) from None
        sizes, found = sizes_of(shape), whole_numbers(indices, "indices")
        data = pnp.asarray(data)
        check_fields(data, found, sizes)
        n_batch, n_sparse = found.ndim - 2, found.shape[-1]
        sparse = sizes[n_batch : n_batch + n_sparse]
        check_coordinates(found, sparse, indices_sorted, unique_indices)
        batch = sizes[:n_batch]
        if tuple(found.shape[:n_batch]) != batch:
            found = pnp.broadcast_to(found, (*batch, *found.shape[n_batch:]))
        if tuple(data.shape[:n_batch]) != batch:
            data = pnp.broadcast_to(data, (*batch, *data.shape[n_batch:]))
        self.data, self.indices, self.sparse_shape = data, found, sparse
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)

    def _entries(self) -> Any:
        return self

    # -- conversions -----------------------------------------------------------------------

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
        """Return the nonzero elements of a dense array as a sparse one.

        Args:
          mat: an array.
          nse: the number of entries of each batch.  It is needed where the array is traced; further
            nonzero elements are then left out.
          index_dtype: the dtype of the indices.
          n_dense, n_batch: the numbers of dense and of batch axes.

        Raises ArgumentError if `nse` is too small, or is missing for a traced array.

        >>> import plait
        >>> plait.sparse.BCOO.fromdense([[0.0, 3.0], [0.0, 0.0]]).indices.tolist()
        [[0, 1]]
        """
        return sparsified(cls, mat, nse, n_batch, n_dense, index_dtype)

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
        """Return the entries of a sparse array or matrix of scipy."""
        if n_dense or n_batch:
            raise ArgumentError(
                f"from_scipy_sparse expected n_dense=0 and n_batch=0, got {n_dense} and {n_batch}",
                fix="call .update_layout(n_batch=..., n_dense=...) on the result",
            )
        data, indices, shape = entries_of_scipy(mat, index_dtype)
        return cls.made(pnp.asarray(data), pnp.asarray(indices), shape, False, False)

    @border
    def update_layout(
        self,
        *,
        n_batch: int | None = None,
        n_dense: int | None = None,
        on_inefficient: str | None = "error",
    ) -> Self:
        """Return the same array with other numbers of batch and of dense axes.

        Args:
          n_batch, n_dense: the numbers; by default they stay.
          on_inefficient: "error" refuses layouts that store zeros or padding, which are more batch
            or more dense axes; "warn" and None allow them.
        """
        more = (n_batch or 0) > self.n_batch or (n_dense or 0) > self.n_dense
        if on_inefficient not in ("error", "warn", None):
            raise ArgumentError(
                f"expected on_inefficient to be 'error', 'warn' or None, got {on_inefficient!r}",
                fix="choose one of the three",
            )
        if more and on_inefficient == "error":
            raise ArgumentError(
                f"update_layout to n_batch={n_batch} and n_dense={n_dense} stores zeros or padding",
                fix="pass on_inefficient=None to do it anyway",
            )
        return laid_out(self, n_batch, n_dense)

    # -- order -----------------------------------------------------------------------------

    @border
    def sort_indices(self) -> Self:
        """Return the array with its entries in lexicographic order of their indices."""
        return in_order(self)

    @border
    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> Self:
        """Return the array with one entry for each index, in order.

        Args:
          nse: the number of entries of the result; it is needed where the array is traced, and
            entries beyond it are then left out.
          remove_zeros: whether entries with the value zero are left out.
        """
        return merged(self, nse, remove_zeros)

    # -- the tree --------------------------------------------------------------------------

    def tree_flatten(self) -> tuple[tuple[Any, Any], Any]:
        """Return the leaves and the static part of the tree."""
        static = (self.sparse_shape, self.indices_sorted, self.unique_indices)
        return (self.data, self.indices), static

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Self:
        """Return the array of these leaves, which are not checked."""
        data, indices = children
        return cls.made(data, indices, *aux_data)


def _with_keys(x: BCOO) -> Any:
    (data, indices), static = x.tree_flatten()
    return [(GetAttrKey("data"), data), (GetAttrKey("indices"), indices)], static


register_pytree_with_keys(
    BCOO, _with_keys, lambda static, leaves: BCOO.tree_unflatten(static, leaves), BCOO.tree_flatten
)
