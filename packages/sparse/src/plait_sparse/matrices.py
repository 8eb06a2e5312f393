"""COO, CSR and CSC: matrices in the formats that scipy names so, without batch and dense axes.

    x = plait.sparse.CSR((data, indices, indptr), shape=(2, 3))
    x @ v, x.T, x.todense(), plait.sparse.BCSR.from_bcoo(x.to_bcoo())

Invariant: a matrix computes as the BCOO of its entries, which keep their order; so an operation
that keeps the entries returns the same class.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

import plait.numpy as pnp
from plait.ext.errors import ArgumentError, OperandTypeError, ShapeError, border
from plait.ext.tree import SavedClass
from plait.tree_util import GetAttrKey, register_pytree_with_keys
from plait.typing import Array, ArrayLike, DTypeLike

from .base import JAXSparse
from .bcoo import BCOO
from .bcsr import BCSR
from .checking import sizes_of
from .entries import Shape
from .saving import read_of_matrix, written

__all__ = [
    "COO", "CSC", "CSR", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense",
    "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense",
]  # fmt: skip


class Matrix(JAXSparse):
    """Base of the three formats: three arrays, and a shape of two axes."""

    shape: Shape
    data: Any
    _marks: tuple[bool, bool]
    _names: ClassVar[tuple[str, str, str]]
    of_entries: ClassVar[Callable[[BCOO], Any]]
    """Returns the matrix with these entries, in the order of the format; each class defines it."""
    __slots__ = ("_marks", "data", "shape")
    n_batch = n_dense = 0
    n_sparse = ndim = 2

    def _fields(self, args: Any, shape: Sequence[int]) -> tuple[Shape, list[Any]]:
        """Return the shape and the arrays that a constructor was given."""
        name, sizes = type(self).__name__, sizes_of(shape)
        if len(sizes) != 2:
            raise ShapeError(
                f"{name} expected a shape of two axes, got {sizes}",
                fix="BCOO and BCSR have arrays of other numbers of axes",
            )
        if not isinstance(args, tuple | list) or len(args) != 3:
            raise ArgumentError(
                f"{name} expected three arrays, got {type(args).__name__}",
                fix=f"write {name}(({', '.join(self._names)}), shape=...)",
            )
        return sizes, [pnp.asarray(x) for x in args]

    @classmethod
    def _made(cls, leaves: Any, shape: Sequence[int], marks: tuple[bool, bool]) -> Self:
        """Return the matrix with these fields, which are not checked."""
        out = object.__new__(cls)
        out.shape, out._marks = tuple(shape), marks
        for name, leaf in zip(cls._names, leaves, strict=True):
            setattr(out, name, leaf)
        return out

    def _like(self, out: Any) -> Any:
        (_, *others), (shape, *marks) = self.tree_flatten()
        return self._made((out.data, *others), shape, tuple(marks))

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.data.dtype

    @property
    def nse(self) -> int:
        """The number of entries."""
        return self.data.shape[-1]

    @property
    def size(self) -> int:
        """The number of elements, zeros among them."""
        return self.shape[0] * self.shape[1]

    @classmethod
    @border
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> Self:
        """Return the nonzero elements of a dense matrix; see `BCOO.fromdense`."""
        found = BCOO.fromdense(mat, nse=nse, index_dtype=index_dtype)
        if found.n_sparse != 2:
            raise ShapeError(
                f"{cls.__name__}.fromdense expected a matrix, got {found.ndim} axes",
                fix="use BCOO.fromdense, which takes any number of axes",
            )
        return cls.of_entries(found)

    @border
    def to_bcoo(self) -> BCOO:
        """Return the same matrix by coordinates."""
        return self._entries()

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Return the leaves and the static part of the tree."""
        return tuple([getattr(self, n) for n in self._names]), (self.shape, *self._marks)

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Self:
        """Return the matrix of these leaves, which are not checked."""
        shape, *marks = aux_data
        return cls._made(children, shape, tuple(marks))


class COO(Matrix):
    """A sparse matrix by coordinates: values, rows and columns.

    It is a tree whose leaves are `data`, `row` and `col`.  Entries of one place are added.

    Args:
      args: (data, row, col), three arrays of one size.
      shape: the numbers of rows and of columns.
      rows_sorted, cols_sorted: whether entries are in the order of their rows, or of their columns.

    Raises:
      ShapeError: shapes that do not fit.
      ArgumentError: rows or columns out of bounds; arrays that are traced are not checked.

    >>> import plait
    >>> plait.sparse.COO(([1.0, 2.0], [0, 1], [1, 0]), shape=(2, 2)).todense().tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """

    row: Any
    col: Any
    _names = ("data", "row", "col")
    __slots__ = ("col", "row")
    __plait_saved__ = SavedClass("plait.sparse.COO", written, read_of_matrix)

    @border
    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ):
        self.shape, (self.data, row, col) = self._fields(args, shape)
        if row.shape != col.shape:
            raise ShapeError(
                f"COO expected row and col of one shape, got {row.shape} and {col.shape}",
                fix="each entry has a row and a column",
            )
        found = BCOO((self.data, pnp.stack([row, col], -1)), shape=self.shape).indices
        self.row, self.col = found[..., 0], found[..., 1]
        self._marks = bool(rows_sorted), bool(cols_sorted)

    def _entries(self) -> Any:
        return BCOO.made(self.data, pnp.stack([self.row, self.col], -1), self.shape, False, False)

    @classmethod
    def of_entries(cls, x: BCOO) -> Self:
        """Return the entries of an array with two sparse axes."""
        rows, cols = x.indices[..., 0], x.indices[..., 1]
        return cls._made((x.data, rows, cols), x.shape, (x.indices_sorted, False))

    @border
    def transpose(self, axes: Any = None) -> Any:
        """Return the matrix with rows and columns exchanged."""
        _only_reversed(axes)
        by_rows, by_cols = self._marks
        return COO._made((self.data, self.col, self.row), self.shape[::-1], (by_cols, by_rows))


class CSR(Matrix):
    """A sparse matrix by rows: values, their columns, and where each row begins.

    It is a tree whose leaves are `data`, `indices` and `indptr`; see `BCSR`.

    >>> import plait
    >>> plait.sparse.CSR(([1.0, 2.0], [1, 0], [0, 1, 2]), shape=(2, 2)).todense().tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """

    indices: Any
    indptr: Any
    _names = ("data", "indices", "indptr")
    __slots__ = ("indices", "indptr")
    __plait_saved__ = SavedClass("plait.sparse.CSR", written, read_of_matrix)

    @border
    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        self.shape, fields = self._fields(args, shape)
        found = BCSR(tuple(fields), shape=self.shape)
        self.data, self.indices, self.indptr = found.data, found.indices, found.indptr
        self._marks = False, False

    def _entries(self) -> Any:
        return BCSR.made(
            self.data, self.indices, self.indptr, self.shape, False, False
        ).to_bcoo()  # fmt: skip

    @classmethod
    def of_entries(cls, x: BCOO) -> Self:
        """Return the entries of an array with two sparse axes, by rows."""
        found = BCSR.from_bcoo(x)
        leaves = found.data, found.indices, found.indptr
        return cls._made(leaves, found.shape, (False, False))

    @border
    def transpose(self, axes: Any = None) -> Any:
        """Return the matrix with rows and columns exchanged, by columns and without a copy."""
        _only_reversed(axes)
        leaves = self.data, self.indices, self.indptr
        return CSC._made(leaves, self.shape[::-1], self._marks)


class CSC(Matrix):
    """A sparse matrix by columns: values, their rows, and where each column begins.

    It is a tree whose leaves are `data`, `indices` and `indptr`.

    >>> import plait
    >>> plait.sparse.CSC(([1.0, 2.0], [1, 0], [0, 1, 2]), shape=(2, 2)).todense().tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """

    indices: Any
    indptr: Any
    _names = ("data", "indices", "indptr")
    __slots__ = ("indices", "indptr")
    __plait_saved__ = SavedClass("plait.sparse.CSC", written, read_of_matrix)

    @border
    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        self.shape, fields = self._fields(args, shape)
        found = BCSR(tuple(fields), shape=self.shape[::-1])
        self.data, self.indices, self.indptr = found.data, found.indices, found.indptr
        self._marks = False, False

    def _entries(self) -> Any:
        found = self.transpose()._entries()
        return BCOO.made(self.data, found.indices[..., ::-1], self.shape, False, False)

    @classmethod
    def of_entries(cls, x: BCOO) -> Self:
        """Return the entries of an array with two sparse axes, by columns."""
        indices, sizes = x.indices[..., ::-1], x.sparse_shape[::-1]
        return CSR.of_entries(BCOO.made(x.data, indices, sizes, False, x.unique_indices)).T

    @border
    def transpose(self, axes: Any = None) -> Any:
        """Return the matrix with rows and columns exchanged, by rows and without a copy."""
        _only_reversed(axes)
        leaves = self.data, self.indices, self.indptr
        return CSR._made(leaves, self.shape[::-1], self._marks)


def _only_reversed(axes: Any) -> None:
    """Raise ArgumentError unless `axes` exchanges the two axes."""
    if axes is not None and tuple(axes) not in ((1, 0), (-1, -2), (1, -2), (-1, 0)):
        raise ArgumentError(
            f"transpose of a matrix expected axes=None or (1, 0), got {axes!r}",
            fix="leave axes out",
        )


def _register(kind: type[Matrix]) -> None:
    """Register a format as a tree."""

    def with_keys(x: Matrix) -> Any:
        leaves, static = x.tree_flatten()
        return [(GetAttrKey(n), leaf) for n, leaf in zip(kind._names, leaves)], static

    register_pytree_with_keys(kind, with_keys, kind.tree_unflatten, kind.tree_flatten)


for _kind in (COO, CSR, CSC):
    _register(_kind)


# ---- functions -----------------------------------------------------------------------------


def _product(kind: type[Matrix], mat: Any, v: Any, ndim: int, transpose: bool) -> Any:
    """Return the product of a matrix with an array of `ndim` axes."""
    if not isinstance(mat, kind):
        raise OperandTypeError(
            f"expected a {kind.__name__}, got {type(mat).__name__}",
            fix=f"make one with {kind.__name__}.fromdense",
        )
    v = pnp.asarray(v)
    if v.ndim != ndim:
        raise ShapeError(f"expected an array of {ndim} axes, got {v.ndim}", fix="write mat @ v")
    return (mat.T if transpose else mat) @ v


@border
def coo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> COO:
    """Return the nonzero elements of a dense matrix by coordinates."""
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


@border
def coo_todense(mat: COO) -> Array:
    """Return the dense matrix."""
    return mat.todense()


@border
def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """Return the product of a matrix, or of its transpose, with a vector."""
    return _product(COO, mat, v, 1, transpose)


@border
def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Return the product of a matrix, or of its transpose, with a dense matrix."""
    return _product(COO, mat, B, 2, transpose)


@border
def csr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> CSR:
    """Return the nonzero elements of a dense matrix by rows."""
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


@border
def csr_todense(mat: CSR) -> Array:
    """Return the dense matrix."""
    return mat.todense()


@border
def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """Return the product of a matrix, or of its transpose, with a vector."""
    return _product(CSR, mat, v, 1, transpose)


@border
def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Return the product of a matrix, or of its transpose, with a dense matrix."""
    return _product(CSR, mat, B, 2, transpose)
