"""Matrices by their pattern: identity, triangles, diagonals.

Invariant: nothing is gathered or scattered: triangles are selections, and diagonals are strided
slices of the flattened matrix, so that derivatives are as cheap.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from plait.errors import ArgumentError, AxisError, ShapeError, UndecidedDim
from plait.ext import Tracer, materialise_at_ground
from plait.ext.ir import Primitive
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.reduction import any_, sum_
from plait.ext.ops.taking import take
from plait.ext.sizes import Dim, is_symbolic, max_dim, min_dim
from plait.ext.surface import fused, size_given, value
from plait.ext.trace import Value
from plait.ext.types import BOOL, BOOLEAN, INTEGER, asked_dtype
from plait.ext.values import from_numpy
from plait.typing import Array, ArrayLike, DTypeLike

from .interchange import computed, placeable
from .masking import unwritten
from .selection import nonzero

__all__ = [
    "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "eye", "fill_diagonal",
    "identity", "mask_indices", "trace", "tri", "tril", "tril_indices", "tril_indices_from", "triu",
    "triu_indices", "triu_indices_from", "vander",
]  # fmt: skip

_SMALL = 2**16
"""Largest pattern, in elements, that numpy makes on the host: copying costs less than compiling."""


def _pattern(n: Dim | int, m: Dim | int, k: Any, compare: Primitive) -> Any:
    """Return booleans: the comparison of column - k with row."""
    shape = (n, m)
    rows, columns = sh.iota(np.int32, shape, 0), sh.iota(np.int32, shape, 1)
    if k.__class__ is int and k == 0:
        return compare(columns, rows)
    return compare(columns, el.add(rows, k))


def _diagonal_number(k: Any) -> Any:
    """Return a diagonal as an int, or as a traced integer without axes."""
    if isinstance(k, Tracer) and k.aval.category == INTEGER and not k.aval.ndim:
        return k
    return k.__index__()


@placeable
def eye(N: Any, M: ArrayLike | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return ones on a diagonal, zeros elsewhere.

    Args:
      N, M: rows and columns; M = N if not given.
      k: the diagonal; positive ones are above the main one.  It may be traced.
      dtype: the default float if not given.

    As numpy.eye.

    Raises ShapeError if a size is not an integer, TypeRule if one is negative, and OperandTypeError
    if `dtype` is not a dtype.

    >>> import plait
    >>> plait.numpy.eye(2, 3, k=1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    n, m = sh.normal_shape((N, N if M is None else M))
    k = _diagonal_number(k)
    kind = asked_dtype(dtype)
    if k.__class__ is int and not is_symbolic((n, m)) and n * m <= _SMALL:
        return computed(np.eye(n, m, k).astype(kind))
    return sh.convert(_pattern(n, m, k, el.eq), kind)


def identity(n: object, dtype: DTypeLike | None = None) -> Array:
    """Return the identity matrix with n rows.  As numpy.identity.

    Raises ShapeError if `n` is not an integer, TypeRule if it is negative, and OperandTypeError if
    `dtype` is not a dtype.

    >>> import plait
    >>> plait.numpy.identity(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return eye(n, dtype=dtype)


def _below(n: int, m: int, k: Any) -> Any:
    """Return where a matrix is at or below diagonal `k`."""
    if k.__class__ is int and not is_symbolic((n, m)) and n * m <= _SMALL:
        return computed(np.tri(n, m, k, dtype=bool))
    return _pattern(n, m, k, el.le)


def tri(N: Any, M: ArrayLike | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return ones at and below a diagonal, zeros above it.

    Args:
      N, M: rows and columns; M = N if not given.
      k: the diagonal; positive ones are above the main one.  It may be traced.
      dtype: the default float if not given.

    As numpy.tri.

    Raises ShapeError if a size is not an integer, and OperandTypeError if `dtype` is not a dtype.

    >>> import plait
    >>> plait.numpy.tri(2).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    n, m = sh.normal_shape((N, N if M is None else M))
    return sh.convert(_below(n, m, _diagonal_number(k)), asked_dtype(dtype))


def _triangle(name: str, m: object, k: int, lower: bool) -> Any:
    x = value(m)
    if x.aval.ndim < 2:
        raise ShapeError(f"{name} takes matrices, not {x.aval!r}", fix="give two axes or more")
    k = _diagonal_number(k)
    below = _below(x.aval.shape[-2], x.aval.shape[-1], k if lower else k - 1)
    zero = sh.convert(0, x.aval.dtype)
    return el.select(below, x, zero) if lower else el.select(below, zero, x)


def tril(m: ArrayLike, k: int = 0) -> Array:
    """Return the lower triangle: zeros above diagonal `k`.

    Args:
      m: of shape (..., rows, columns).
      k: the last diagonal that is kept.

    Raises TypeRule for arrays with fewer than two axes.  As numpy.tril.

    >>> import numpy as np, plait
    >>> plait.numpy.tril(np.ones((2, 2))).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return _triangle("tril", m, k, lower=True)


def triu(m: ArrayLike, k: int = 0) -> Array:
    """Return the upper triangle: zeros below diagonal `k`.

    Args:
      m: of shape (..., rows, columns).
      k: the first diagonal that is kept.

    Raises TypeRule for arrays with fewer than two axes.  As numpy.triu.

    >>> import numpy as np, plait
    >>> plait.numpy.triu(np.ones((2, 2)), 1).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    return _triangle("triu", m, k, lower=False)


# ---- diagonals -----------------------------------------------------------------------------


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return the diagonals of matrices.

    Args:
      a: an array with two axes or more.
      offset: the diagonal; positive ones are above the main one.
      axis1, axis2: rows and columns; both are removed, and the diagonal comes last.

    Raises AxisError for arrays with fewer than two axes, and if both axes are the same.  As
    numpy.diagonal.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.diagonal(np.arange(6).reshape(2, 3), 1).tolist()
    [1, 5]
    """
    x = value(a)
    n = x.aval.ndim
    if n < 2:
        raise AxisError(f"diagonal takes matrices, not {x.aval!r}", fix="give two axes or more")
    i, j = sh.normal_axis(axis1, n, "axis1"), sh.normal_axis(axis2, n, "axis2")
    if i == j:
        raise AxisError(f"diagonal: axis1 and axis2 are both {i}", fix="name two axes")
    return _diagonal(x, offset=offset.__index__(), i=i, j=j)


@fused
def _diagonal(x: Array, *, offset: int, i: int, j: int) -> Any:
    x = sh.moveaxis(x, (i, j), (-2, -1))
    *front, n, m = x.aval.shape
    row, column = max(-offset, 0), max(offset, 0)
    count = max_dim(min_dim(n - row, m - column), 0)
    if is_symbolic((n, m)):
        return sh.slice_in_dim(_masked_diagonal(x, offset, n, m), row, row + count, axis=-1)
    flat = sh.reshape(x, (*front, n * m))
    start = row * m + column if count else 0
    limit = start + (count - 1) * (m + 1) + 1 if count else 0
    return sh.slice_in_dim(flat, start, limit, m + 1, -1)


def _masked_diagonal(x: Any, offset: int, n: Dim, m: Dim | int) -> Any:
    """Return each row's element on the diagonal, or zero, by masking all others and summing
    rows."""
    on = _pattern(n, m, offset, el.eq)
    if x.aval.category == BOOLEAN:
        return any_(el.and_(on, x), -1)
    return sum_(el.select(on, x, sh.convert(0, x.aval.dtype)), -1, x.aval.dtype)


def diag(v: ArrayLike, k: int = 0) -> Array:
    """Return a matrix with the vector `v` on diagonal `k`, or diagonal `k` of the matrix `v`.

    Raises TypeRule for arrays with other numbers of axes.  As numpy.diag.

    >>> import plait
    >>> plait.numpy.diag(plait.numpy.array([1, 2]), 1).tolist()
    [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    """
    x = value(v)
    if x.aval.ndim == 2:
        return diagonal(x, k)
    if x.aval.ndim != 1:
        raise ShapeError(f"diag takes a vector or a matrix, not {x.aval!r}", fix="use diagonal")
    return _diag(x, k=k.__index__())


@fused
def _diag(x: Value, *, k: int) -> Any:
    n = x.aval.shape[0]
    if is_symbolic((n,)):
        x = sh.pad(x, 0, [(max(k, 0), max(-k, 0), 0)]) if k else x
        n = n + abs(k)
        row, column = sh.iota(np.int32, (n, n), 0), sh.iota(np.int32, (n, n), 1)
        on = el.eq(el.add(row, k) if k else row, column)
        return el.select(on, x, sh.convert(0, x.aval.dtype))
    size = n + abs(k)
    if not n:
        return sh.reshape(sh.pad(x, 0, [(size * size, 0, 0)]), (size, size))
    start = max(-k, 0) * size + max(k, 0)
    rest = size * size - start - (n - 1) * (size + 1) - 1
    return sh.reshape(sh.pad(x, 0, [(start, rest, size)]), (size, size))


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Return a matrix with the elements of `v` on diagonal `k`.  As numpy.diagflat.

    Raises NotAnArrayError if `v` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.diagflat(np.array([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    x = value(v)
    return diag(sh.reshape(x, (x.aval.size,)), k)


def trace(
    a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:  # fmt: skip
    """Return the sum of a diagonal; see `diagonal`; out: must be None.  As numpy.trace.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has fewer than two axes.

    >>> import numpy as np, plait
    >>> float(plait.numpy.trace(np.eye(3)))
    3.0
    """
    unwritten(out)
    x = diagonal(a, offset, axis1, axis2)
    if dtype is not None and asked_dtype(dtype) == BOOL:
        return any_(x, -1)  # the sum of booleans is `or`
    return sum_(x, -1, dtype)


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = False
) -> Array:
    """Return a copy of `a` with other elements on the diagonal: arrays are immutable.

    Args:
      a: two axes or more; if more, all of one size.
      val: a number, or an array that is repeated along the diagonal.
      wrap: whether the diagonal of a tall matrix starts again at the top.
      inplace: must be False.

    Raises TypeRule for other shapes, and unless `inplace` is False.  As numpy.fill_diagonal.

    >>> import numpy as np, plait
    >>> plait.numpy.fill_diagonal(np.zeros((2, 2)), 1, inplace=False).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = value(a)
    if inplace:
        raise ArgumentError("arrays are never written to", fix="pass inplace=False, use the result")
    shape = x.aval.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise ArgumentError(
            f"fill_diagonal of {x.aval!r}", fix="give a matrix, or axes of one size"
        )
    if is_symbolic(shape):
        return _filled(x, value(val), wrap)
    host = np.zeros(shape, np.int32)
    mask = np.zeros(shape, bool)
    np.fill_diagonal(mask, True, wrap)
    values = value(val)
    count = int(mask.sum())
    host[mask] = np.arange(count) % max(values.aval.size, 1)
    spread = sh.reshape(values, (values.aval.size,))
    new = spread if values.aval.size == 1 else spread.at[from_numpy(host)].get()
    new = sh.convert_into(new, x.aval.dtype)
    return el.select(from_numpy(mask), sh.reshape(new, ()) if values.aval.size == 1 else new, x)


def _filled(x: Any, values: Any, wrap: bool) -> Any:
    """Return `x` with `values` on the diagonal, for symbolic sizes."""
    shape = x.aval.shape
    if wrap and shape[0] != shape[1]:
        raise ShapeError(
            f"fill_diagonal of {x.aval!r} with wrap: whether it is tall is not known",
            fix="leave wrap out, or say where the sizes are named that they are equal",
        )
    row, *others = (sh.iota(np.int32, shape, a) for a in range(len(shape)))
    on = el.eq(row, others[0])
    for other in others[1:]:
        on = el.and_(on, el.eq(row, other))
    new = sh.convert_into(sh.reshape(values, (values.aval.size,)), x.aval.dtype)
    if values.aval.size == 1:
        return el.select(on, sh.reshape(new, ()), x)
    count = sh.size_value(values.aval.size, np.dtype(np.int32))
    return el.select(on, take(new, el.modulo(row, count), mode="clip"), x)


# ---- positions of patterns -----------------------------------------------------------------


def _places(host: tuple) -> tuple:
    kind = asked_dtype(None, 1)
    return tuple([computed(i.astype(kind)) for i in host])


def _known_sizes(name: str, n: object, k: object, m: object) -> tuple:
    """Return the arguments; refuse symbolic sizes."""
    for v in (n, k, m):
        if v.__class__ is Dim:
            raise UndecidedDim(
                f"{name}({n}, {k}, {m}): how many places there are is not known, for the size {v} "
                "is known by name only",
                fix="use a mask of the matrix: plait.numpy.tri(n, m, k), tril or triu",
            )
    return n, k, m


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return (rows, columns) of the lower triangle of an n by m matrix.  As numpy.tril_indices.

    Raises TypeRule if `n` is not an integer.

    >>> import plait
    >>> [i.tolist() for i in plait.numpy.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    return _places(np.tril_indices(*_known_sizes("tril_indices", n, k, m)))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return (rows, columns) of the upper triangle of an n by m matrix.  As numpy.triu_indices.

    Raises TypeRule if `n` is not an integer.

    >>> import plait
    >>> [i.tolist() for i in plait.numpy.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return _places(np.triu_indices(*_known_sizes("triu_indices", n, k, m)))


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Return `tril_indices` for the shape of a matrix.  As numpy.tril_indices_from.

    Raises NotAnArrayError if `arr` is not an array, and ShapeError if it has fewer than two axes.

    >>> import numpy as np, plait
    >>> [i.tolist() for i in plait.numpy.tril_indices_from(np.eye(2))]
    [[0, 1, 1], [0, 0, 1]]
    """
    n, m = _matrix_shape(arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Return `triu_indices` for the shape of a matrix.  As numpy.triu_indices_from.

    Raises NotAnArrayError if `arr` is not an array, and ShapeError if it has fewer than two axes.

    >>> import numpy as np, plait
    >>> [i.tolist() for i in plait.numpy.triu_indices_from(np.eye(2))]
    [[0, 0, 1], [0, 1, 1]]
    """
    n, m = _matrix_shape(arr)
    return triu_indices(n, k, m)


def _matrix_shape(arr: object) -> tuple:
    shape = value(arr).aval.shape
    if len(shape) != 2:
        raise ShapeError(f"a matrix is needed, not shape {shape}", fix="give two axes")
    return shape


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: object = 0, *, size: int | None = None
) -> tuple[Array, ...]:
    """Return the positions of a matrix that a function such as `triu` keeps.

    Args:
      n: rows and columns.
      mask_func: takes a matrix of ones and `k`, and returns zeros at positions that it drops.
      k: second argument of `mask_func`.
      size: the number of positions, which tracing needs, since it cannot count them.

    As numpy.mask_indices.

    Raises TypeRule if `n` is not a non-negative integer.

    >>> import plait
    >>> [i.tolist() for i in plait.numpy.mask_indices(2, plait.numpy.triu)]
    [[0, 0, 1], [0, 1, 1]]
    """
    ones = from_numpy(np.ones((n, n), np.int32))
    return nonzero(mask_func(ones, k), size=size)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Return the positions of the main diagonal of an array with `ndim` axes.  As
    numpy.diag_indices.

    Raises TypeRule if `n` is not an integer.

    >>> import plait
    >>> [i.tolist() for i in plait.numpy.diag_indices(2)]
    [[0, 1], [0, 1]]
    """
    if n.__class__ is Dim:
        return (sh.iota(asked_dtype(None, 1), (n,)),) * ndim
    return _places(np.diag_indices(n, ndim))


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Return `diag_indices` for the shape of an array.  As numpy.diag_indices_from.

    Raises NotAnArrayError if `arr` is not an array, and ShapeError if it has fewer than two axes.

    >>> import numpy as np, plait
    >>> [i.tolist() for i in plait.numpy.diag_indices_from(np.eye(2))]
    [[0, 1], [0, 1]]
    """
    shape = value(arr).aval.shape
    if len(shape) < 2 or len(set(shape)) > 1:
        raise ShapeError(f"axes of one size are needed, not shape {shape}", fix="see diag_indices")
    return diag_indices(shape[0], len(shape))


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Return powers of the elements of a vector, by column: the highest first, unless `increasing`.

    Args:
      x: a vector.
      N: the number of columns; by default the number of elements.

    Raises TypeRule for arrays that are not vectors.  As numpy.vander.

    >>> import numpy as np, plait
    >>> plait.numpy.vander(np.array([2.0, 3.0]), 3).tolist()
    [[4.0, 2.0, 1.0], [9.0, 3.0, 1.0]]
    """
    x = value(x)
    if x.aval.ndim != 1:
        raise ShapeError(f"vander takes a vector, not {x.aval!r}", fix="use .ravel()")
    n = size_given(x.aval.shape[0] if N is None else N)
    if n.__class__ is Dim:
        count = sh.iota(np.int32, (n,))
        powers = count if increasing else sh.rev.bind(count, axes=(0,))
        return el.power(sh.reshape(x, (*x.aval.shape, 1)), powers)
    powers = np.arange(n) if increasing else np.arange(n)[::-1]
    columns = [sh.reshape(el.integer_pow(x, exponent=int(p)), (-1, 1)) for p in powers]
    return materialise_at_ground(_side_by_side(columns, x))


def _side_by_side(columns: list, like: Value) -> Any:
    """Place columns side by side; without any, return a matrix without columns."""
    if not columns:
        return sh.slice_in_dim(sh.reshape(like, (-1, 1)), 0, 0, axis=1)
    return sh.concatenate(columns, 1)
