"""Sparse arrays as coordinates and values, and the views of them that all operations use.

The axes of an array are first its batch axes, then its sparse axes, then its dense axes.  `data`
has shape (*batch, nse, *dense), `indices` has (*batch, nse, n_sparse).  An entry with an index
outside of the shape is padding.

Invariant: padding changes no result, whatever its data; a shape follows from the leaves of the tree
and the sizes of the sparse axes, so mapping over a batch axis removes that axis from the shape.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

import plait.numpy as pnp
from plait import jit, lax
from plait.ext.errors import ShapeError
from plait.typing import Array

__all__ = [
    "Entries", "Shape", "accumulator", "clean", "columns", "compiled", "computed", "flat", "inside",
    "linear", "padded", "rebuilt", "unravelled", "zeroed",
]  # fmt: skip

Shape = tuple[int, ...]


class Entries:
    """Values and their coordinates: the fields that every class of coordinates has.

    Attributes:
      data: the values.
      indices: the coordinates along the sparse axes.
      sparse_shape: the sizes of the sparse axes.
      indices_sorted: a promise that the coordinates of each batch are in lexicographic order.
      unique_indices: a promise that no position has two entries.
    """

    data: Any
    indices: Any
    sparse_shape: Shape
    indices_sorted: bool
    unique_indices: bool
    __slots__ = ("data", "indices", "indices_sorted", "sparse_shape", "unique_indices")
    format: ClassVar[str] = "coordinates"

    @classmethod
    def made(
        cls, data: Any, indices: Array, sparse_shape: Sequence[int], is_sorted: bool, unique: bool
    ) -> Self:
        """Return the array with these fields, which are not checked."""
        out = object.__new__(cls)
        out.data, out.indices, out.sparse_shape = data, indices, tuple(sparse_shape)
        out.indices_sorted, out.unique_indices = is_sorted, unique
        return out

    @property
    def n_batch(self) -> int:
        """The number of batch axes."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes."""
        return len(self.sparse_shape)

    @property
    def n_dense(self) -> int:
        """The number of dense axes."""
        return self.data.ndim - self.n_batch - 1

    @property
    def batch_shape(self) -> Shape:
        """The sizes of the batch axes."""
        return tuple(self.indices.shape[:-2])

    @property
    def dense_shape(self) -> Shape:
        """The sizes of the dense axes."""
        return tuple(self.data.shape[self.n_batch + 1 :])

    @property
    def shape(self) -> Shape:
        """The sizes of all axes."""
        return (*self.batch_shape, *self.sparse_shape, *self.dense_shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, zeros among them."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.data.dtype

    @property
    def nse(self) -> int:
        """The number of entries of each batch, padding among them."""
        return self.indices.shape[-2]


def compiled(*static: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate an operation so that a call at once is one program; `static` names its settings.

    Composed of operations on arrays, it would be as many programs.
    """
    return functools.partial(jit, static_argnames=static)


def rebuilt(
    x: Entries, data: Array | None = None, indices: Array | None = None, **fields: object
) -> Any:
    """Return an array of the class of `x`, with some of its fields replaced."""
    given = {"sparse_shape": x.sparse_shape, "is_sorted": x.indices_sorted,
             "unique": x.unique_indices, **fields}  # fmt: skip
    data = x.data if data is None else data
    return type(x).made(data, x.indices if indices is None else indices, **given)


def accumulator(dtype: np.dtype) -> np.dtype:
    """Return the dtype that sums of values of a dtype are accumulated in."""
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return np.dtype(np.int32)
    return (
        np.dtype(np.float32) if kind.itemsize <= 2 and pnp.issubdtype(kind, pnp.floating) else kind
    )


def computed(x: Array, dtype: np.dtype) -> Any:
    """Return accumulated values in the dtype of the result."""
    return x != 0 if np.dtype(dtype) == np.bool_ else x.astype(dtype)


def inside(x: Entries) -> Any:
    """Return, for each entry, whether all its indices are within the shape."""
    sizes = np.array(x.sparse_shape, x.indices.dtype)
    return ((x.indices >= 0) & (x.indices < sizes)).all(-1)


def padded(x: Entries, indices: Array, kept: Any, sizes: Sequence[int]) -> Any:
    """Return indices of an array of other sizes, where entries that are not `kept` are padding."""
    return pnp.where(kept[..., None], indices, np.array(sizes, indices.dtype))


def clean(x: Entries, kept: Any = None) -> Any:
    """Return the array with zeros and indices beyond the shape in all padding.

    `kept`: the entries that are not padding; by default those that are inside of the shape.
    """
    kept = inside(x) if kept is None else kept
    shown = kept.reshape((*kept.shape, *(1,) * x.n_dense))
    data = pnp.where(shown, x.data, np.zeros((), x.data.dtype))
    return rebuilt(x, data, padded(x, x.indices, kept, x.sparse_shape))


def zeroed(x: Entries) -> Any:
    """Return the array with zeros in all padding, and the indices that it has.

    A derivative multiplies values by zero there, which does not make nan zero.
    """
    return rebuilt(x, clean(x).data)


def columns(x: Entries) -> list[Any]:
    """Return the indices along each batch and each sparse axis, of shape (*batch, nse)."""
    shape = x.indices.shape[:-1]
    batch = [lax.broadcasted_iota(x.indices.dtype, shape, k) for k in range(x.n_batch)]
    return [*batch, *(x.indices[..., k] for k in range(x.n_sparse))]


def flat(x: Entries) -> Any:
    """Return the array with its batch axes as sparse axes."""
    if not x.n_batch:
        return x
    count = math.prod(x.batch_shape) * x.nse
    sizes = (*x.batch_shape, *x.sparse_shape)
    rows = [c.reshape(count) for c in columns(x)]
    indices = pnp.stack(rows, -1)
    data = x.data.reshape((count, *x.dense_shape))
    return rebuilt(x, data, indices, sparse_shape=sizes)


def linear(cols: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Return positions in an array of these sizes, given indices along each axis.

    Raises ShapeError if the dtype of the indices cannot count the positions.
    """
    dtype = cols[0].dtype
    if math.prod(sizes) > np.iinfo(dtype).max:
        raise ShapeError(
            f"expected sparse axes with at most {np.iinfo(dtype).max} positions in all, because "
            f"the indices are {dtype}, got sizes {tuple(sizes)}",
            fix="make the array with index_dtype='int64'",
        )
    out = cols[0]
    for c, n in zip(cols[1:], sizes[1:], strict=True):
        out = out * np.array(n, dtype) + c
    return out


def unravelled(at: Array, sizes: Sequence[int]) -> Any:
    """Return the indices along each axis, on a new last axis, of positions."""
    cols = []
    for n in reversed(sizes):
        step = np.array(max(n, 1), at.dtype)
        cols.append(at % step)
        at = at // step
    if not cols:
        return pnp.zeros((*at.shape, 0), at.dtype)
    return pnp.stack(cols[::-1], -1)
