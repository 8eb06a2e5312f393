"""The functions `bcoo_*` and `bcsr_*`: operations by name, with their arguments by keyword.

Invariant: each function checks its operands' classes and calls one operation.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait import ext
from plait.ext.errors import ArgumentError, ShapeError, border
from plait.typing import Array, ArrayLike, DTypeLike

from . import arithmetic, conversion, ordering, products, structure
from .bcoo import BCOO
from .bcsr import BCSR
from .entries import rebuilt

__all__ = [
    "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_dot_general", "bcoo_dot_general_sampled",
    "bcoo_dynamic_slice", "bcoo_extract", "bcoo_fromdense", "bcoo_multiply_dense",
    "bcoo_multiply_sparse", "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice",
    "bcoo_sort_indices", "bcoo_squeeze", "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose",
    "bcoo_update_layout", "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general",
    "bcsr_extract", "bcsr_fromdense", "bcsr_sum_duplicates", "bcsr_todense",
]  # fmt: skip

DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]


def _a(kind: type, x: Any, name: str) -> Any:
    """Return an operand.

    Raises ArgumentError unless it is of a class.
    """
    if isinstance(x, kind):
        return x
    raise ArgumentError(
        f"expected `{name}` to be a {kind.__name__}, got {type(x).__name__}",
        fix=f"write {kind.__name__}.fromdense({name}), or convert between BCOO and BCSR by "
        "x.to_bcoo() and BCSR.from_bcoo(x)",
    )


# ---- BCOO ------------------------------------------------------------------------------------


@border
def bcoo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCOO:  # fmt: skip
    """Return the nonzero elements of a dense array; see `BCOO.fromdense`."""
    return conversion.sparsified(BCOO, mat, nse, n_batch, n_dense, index_dtype)


@border
def bcoo_todense(mat: BCOO) -> Array:
    """Return the dense array."""
    return conversion.densified(_a(BCOO, mat, "mat"))


@border
def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """Return the elements of a dense array at the entries of a sparse one.

    Args:
      sparr: the array that has the indices.
      arr: a dense array of the same shape.
      assume_unique: whether indices are taken to be unique.  If they are not, the first entry of
        each index has the element, and the others have zeros.

    >>> import plait
    >>> x = plait.sparse.BCOO.fromdense([[0.0, 3.0], [1.0, 0.0]])
    >>> plait.sparse.bcoo_extract(x, [[1.0, 2.0], [3.0, 4.0]]).data.tolist()
    [2.0, 3.0]
    """
    x, dense = _a(BCOO, sparr, "sparr"), pnp.asarray(arr)
    if tuple(dense.shape) != x.shape:
        raise ShapeError(
            f"bcoo_extract expected arr of shape {x.shape}, got {tuple(dense.shape)}",
            fix="broadcast it first",
        )
    found = rebuilt(x, conversion.extracted(x, dense))
    unique = x.unique_indices if assume_unique is None else assume_unique
    if unique or not x.nse:
        return found
    return rebuilt(found, pnp.where(_firsts(x, found), found.data, np.zeros((), dense.dtype)))


def _firsts(x: BCOO, like: BCOO) -> Any:
    """Return, for each entry, whether it is the first one with its index."""
    numbers = pnp.arange(x.nse, dtype=np.int32)
    same = (x.indices[..., :, None, :] == x.indices[..., None, :, :]).all(-1)
    first = ~(same & (numbers[None, :] < numbers[:, None])).any(-1)
    return first.reshape((*first.shape, *(1,) * like.n_dense))


@border
def bcoo_dot_general(
    lhs: BCOO | ArrayLike,
    rhs: BCOO | ArrayLike, *, dimension_numbers: DotDimensionNumbers, precision: Any = None,
    preferred_element_type: DTypeLike | None = None, out_sharding: object = None,
) -> BCOO | Array:  # fmt: skip
    """Return the product of two arrays; one at least is a BCOO.

    Args:
      lhs, rhs: the operands.
      dimension_numbers: ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)).
      precision: the precision of products along dense axes, as in `plait.lax.dot_general`.
      preferred_element_type: the dtype of the result.
      out_sharding: None; other values are refused.

    The result is dense, unless both are sparse: it then has one entry for each pair of entries, or
    for each position if these are fewer.
    """
    _no_sharding(out_sharding, "bcoo_dot_general")
    if not (isinstance(lhs, BCOO) or isinstance(rhs, BCOO)):
        _a(BCOO, lhs, "lhs")
    x, y = (v if isinstance(v, BCOO) else pnp.asarray(v) for v in (lhs, rhs))
    return products.dot_general(x, y, dimension_numbers, precision, preferred_element_type)


def _no_sharding(given: object, name: str) -> None:
    if given is not None:
        raise ArgumentError(
            f"{name} expected out_sharding=None, got {given!r}",
            fix="divide the result by plait.with_sharding_constraint",
        )


@border
def bcoo_dot_general_sampled(
    A: ArrayLike, B: ArrayLike, indices: ArrayLike, *, dimension_numbers: DotDimensionNumbers
) -> Array:
    """Return elements of the product of two dense arrays: those at `indices`."""
    A, B, indices = pnp.asarray(A), pnp.asarray(B), pnp.asarray(indices)
    return products.sampled(A, B, indices, dimension_numbers)


@border
def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Return the array with its axes in another order."""
    return structure.transposed(_a(BCOO, mat, "mat"), permutation)


@border
def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Return the array with its entries in order."""
    return ordering.in_order(_a(BCOO, mat, "mat"))


@border
def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """Return the array with one entry for each index; see `BCOO.sum_duplicates`."""
    return ordering.merged(_a(BCOO, mat, "mat"), nse)


@border
def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:  # fmt: skip
    """Return the array with other numbers of batch and dense axes; see `BCOO.update_layout`."""
    given = _a(BCOO, mat, "mat")
    return given.update_layout(n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)


@border
def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: object = None
) -> BCOO:
    """Return the array in a larger shape, its axis k as axis `broadcast_dimensions[k]`."""
    _no_sharding(sharding, "bcoo_broadcast_in_dim")
    return structure.broadcast(_a(BCOO, mat, "mat"), shape, broadcast_dimensions)


@border
def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Return arrays one after the other along an axis."""
    given = [_a(BCOO, x, f"operands[{k}]") for k, x in enumerate(operands)]
    if not given:
        raise ArgumentError("bcoo_concatenate expected arrays, got none", fix="pass at least one")
    axis = ext.ops.shape.normal_axis(dimension, given[0].ndim)
    return structure.concatenated(given, axis)


@border
def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None,
    sharding: object = None,
) -> BCOO:  # fmt: skip
    """Return the array in another shape, after a transpose by `dimensions` if these are given."""
    _no_sharding(sharding, "bcoo_reshape")
    x = _a(BCOO, mat, "mat")
    x = x if dimensions is None else structure.transposed(x, dimensions)
    return structure.reshaped(x, new_sizes)


@border
def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """Return the array with its elements along some axes in reverse order."""
    x = _a(BCOO, operand, "operand")
    return structure.reversed_along(x, ext.ops.shape.normal_axes(tuple(dimensions), x.ndim))


@border
def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:  # fmt: skip
    """Return a piece of the array: a range of each axis."""
    return structure.piece(_a(BCOO, mat, "mat"), start_indices, limit_indices, strides)


@border
def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """Return a box of the array, whose start may be traced; it is moved to lie inside."""
    return structure.dynamic_piece(_a(BCOO, mat, "mat"), start_indices, slice_sizes)


@border
def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Return the array without some axes of size 1."""
    x = _a(BCOO, arr, "arr")
    return structure.squeezed(x, ext.ops.shape.normal_axes(tuple(dimensions), x.ndim))


@border
def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """Return the sums over some axes, as a sparse array."""
    x = _a(BCOO, mat, "mat")
    return structure.summed(x, ext.ops.shape.normal_axes(tuple(axes), x.ndim))


@border
def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
    """Return the values of the product with a dense array, which has the entries of `sp_mat`."""
    x, v = _a(BCOO, sp_mat, "sp_mat"), pnp.asarray(v)
    if np.broadcast_shapes(x.shape, tuple(v.shape)) != x.shape:
        raise ShapeError(
            f"bcoo_multiply_dense expected v to broadcast to {x.shape}, got shape {tuple(v.shape)}",
            fix="write sp_mat * v, which broadcasts the sparse array too",
        )
    return arithmetic.multiplied(x, v).data


@border
def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """Return the product of the elements of two sparse arrays."""
    return arithmetic.multiplied(_a(BCOO, lhs, "lhs"), _a(BCOO, rhs, "rhs"))


# ---- BCSR ------------------------------------------------------------------------------------


@border
def bcsr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCSR:  # fmt: skip
    """Return the nonzero elements of a dense array by rows; see `BCSR.fromdense`."""
    return BCSR.fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)


@border
def bcsr_todense(mat: BCSR) -> Array:
    """Return the dense array."""
    return conversion.densified(_a(BCSR, mat, "mat").to_bcoo())


@border
def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """Return the elements of a dense array at the entries that rows and columns give."""
    indices, dense = pnp.asarray(indices), pnp.asarray(mat)
    n = indices.ndim - 1
    data = pnp.zeros((*indices.shape, *dense.shape[n + 2 :]), dense.dtype)
    x = BCSR((data, indices, indptr), shape=dense.shape)
    return conversion.extracted(x.to_bcoo(), dense)


@border
def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Return the array with one entry for each index."""
    return _a(BCSR, mat, "mat").sum_duplicates(nse, remove_zeros=False)


@border
def bcsr_dot_general(
    lhs: BCSR | ArrayLike,
    rhs: BCSR | ArrayLike, *, dimension_numbers: DotDimensionNumbers, precision: object = None,
    preferred_element_type: DTypeLike | None = None, out_sharding: object = None,
) -> BCOO | Array:  # fmt: skip
    """Return the product of two arrays; one at least is a BCSR.  See `bcoo_dot_general`."""
    if not (isinstance(lhs, BCSR) or isinstance(rhs, BCSR)):
        _a(BCSR, lhs, "lhs")
    x, y = (v.to_bcoo() if isinstance(v, BCSR) else v for v in (lhs, rhs))
    return bcoo_dot_general(
        x, y, dimension_numbers=dimension_numbers, precision=precision,
        preferred_element_type=preferred_element_type, out_sharding=out_sharding,
    )  # fmt: skip


@border
def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: object = None
) -> BCSR:
    """Return the array in a larger shape, its axis k as axis `broadcast_dimensions[k]`."""
    _no_sharding(sharding, "bcsr_broadcast_in_dim")
    x = _a(BCSR, mat, "mat").to_bcoo()
    return BCSR.from_bcoo(structure.broadcast(x, shape, broadcast_dimensions))


@border
def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Return arrays one after the other along an axis."""
    given = [_a(BCSR, x, f"operands[{k}]").to_bcoo() for k, x in enumerate(operands)]
    return BCSR.from_bcoo(bcoo_concatenate(given, dimension=dimension))
