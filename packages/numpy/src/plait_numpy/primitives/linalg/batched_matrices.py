"""Batched matrices: products, transposes and triangles of stacks of matrices.

Invariant: the last two axes are rows and columns, all others count the matrices of a stack.
"""

from typing import Any

import numpy as np

from plait.errors import AxisError, OperandTypeError, ShapeError
from plait.ext import Aval, Literal
from plait.ext.ir import Primitive
from plait.ext.lower import LETTERS
from plait.ext.ops import shape as sh
from plait.ext.ops.elementwise import add, conj, eq, ge, le, mul, real, select
from plait.ext.ops.reduction import reduce_sum
from plait.ext.ops.shape import transpose_ as transposition
from plait.ext.sizes import Dim, is_symbolic, min_dim
from plait.ext.trace import Value
from plait.ext.types import COMPLEX, INT32
from plait.typing import Array

from ...exact import matmul

# ---- types ---------------------------------------------------------------------------------


def stack_of(name: str, x: Aval, square: bool = False) -> tuple[tuple, Any, Any]:
    """Return (sizes of the stack, rows, columns) of an operand.

    Raises AxisError for fewer than two axes, TypeRule for dtypes without routines and for
    matrices that are not square although `square` is set.
    """
    supported(name, x)
    if x.ndim < 2:
        raise AxisError(f"{name} takes matrices, not {x!r}", fix="give it two axes or more")
    *lead, m, n = x.shape
    if square and m != n:
        raise ShapeError(
            f"{name} takes square matrices, not {x!r}",
            fix="give as many rows as columns; lstsq, pinv, qr and svd take others too",
        )
    return tuple(lead), m, n


def beside(name: str, a: Aval, b: Aval, left: bool = True) -> None:
    """Require square matrices `a` that can multiply those of `b` from the left, or else the right.

    Raises TypeRule if dtypes, leading axes or sizes differ.
    """
    lead, n, _ = stack_of(name, a)
    other, rows, columns = stack_of(name, b)
    if a.dtype != b.dtype or lead != other or n != (rows if left else columns):
        raise OperandTypeError(
            f"{name}: {a!r} and {b!r} do not fit together",
            fix="give one dtype, the same leading axes, and to the second as many "
            + ("rows" if left else "columns")
            + " as the first has rows",
        )


def supported(name: str, x: Aval) -> None:
    """Require a dtype that the libraries have routines for; raises TypeRule."""
    if x.dtype.name not in LETTERS:
        raise OperandTypeError(
            f"{name} is for {', '.join(LETTERS)} arrays, not {x!r}",
            fix='convert with .astype("float32") first',
        )


def real_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the real and imaginary parts of a number."""
    return np.dtype({"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype))


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """Return the complex dtype whose parts have this precision."""
    return np.dtype({"float32": "complex64", "float64": "complex128"}.get(dtype.name, dtype))


def fewer(m: Dim | int, n: Dim | int) -> Any:
    """Return the lesser of two sizes."""
    return min_dim(m, n) if is_symbolic((m, n)) else min(m, n)


def nothing(aval: Aval) -> bool:
    """Return True if a type is known to have no elements."""
    return any(d.__class__ is int and d == 0 for d in aval.shape)


# ---- values --------------------------------------------------------------------------------


def transposed(x: Any) -> Any:
    """Swap rows and columns."""
    n = x.aval.ndim
    if x.__class__ is Literal:
        return Literal(x.value, x.aval.with_shape((*x.aval.shape[:-2], *x.aval.shape[:-3:-1])))
    return transposition.bind(x, perm=(*range(n - 2), n - 1, n - 2))


def conjugate(x: Array) -> Any:
    """Return the conjugate; `x` itself if it is real."""
    return conj.bind(x) if x.aval.category == COMPLEX else x


def adjoint(x: Array) -> Any:
    """Return the conjugate transpose."""
    return conjugate(transposed(x))


def symmetrised(x: Any) -> Any:
    """Return (x + x^H) / 2."""
    return mul.bind(add.bind(x, adjoint(x)), Literal(0.5, x.aval))


def real_part(x: Value) -> Any:
    """Return the real part; `x` itself if it is real."""
    return real.bind(x) if x.aval.category == COMPLEX else x


def times(x: Array, *ys: Array) -> Any:
    """Multiply matrices from the left, as exactly as the platform can."""
    for y in ys:
        x = matmul(x, y)
    return x


def _where(aval: Aval, compare: Primitive, offset: int = 0) -> Any:
    """Compare column - offset with row, for every element of a type."""
    shape = aval.shape[-2:]
    rows, columns = sh.iota(INT32, shape, 0), sh.iota(INT32, shape, 1)
    if offset:
        columns = add.bind(columns, Literal(-offset, columns.aval))
    return sh.broadcast_to(compare.bind(columns, rows), aval.shape)


def triangle(x: Array, lower: bool = True, offset: int = 0) -> Any:
    """Return the lower triangle up to diagonal `offset`, or the upper one from it; zeros
    elsewhere."""
    if nothing(x.aval):
        return x
    kept = _where(x.aval, le if lower else ge, offset)
    return select.bind(kept, x, Literal(0, x.aval))


def identity(aval: Aval) -> Any:
    """Return ones on the diagonal, zeros elsewhere."""
    if nothing(aval):
        return Literal(0, aval)
    return select.bind(_where(aval, eq), Literal(1, aval), Literal(0, aval))


def on_diagonal(x: Value, v: Value) -> Any:
    """Replace the diagonals of `x` by vectors."""
    return select.bind(_where(x.aval, eq), as_columns(v, x.aval), x)


def off_diagonal(x: Value, on: float = 0) -> Any:
    """Replace the diagonal of `x` by a number."""
    if nothing(x.aval):
        return x
    return select.bind(_where(x.aval, eq), Literal(on, x.aval), x)


def diagonal(x: Array) -> Any:
    """Return the main diagonals, as vectors."""
    *lead, m, n = x.aval.shape
    if is_symbolic((m, n)):
        return reduce_sum.bind(
            select.bind(_where(x.aval, eq), x, Literal(0, x.aval)), axes=(x.aval.ndim - 1,)
        )
    k = min(m, n)
    flat = sh.reshape(x, (*lead, m * n))
    return sh.slice_in_dim(flat, 0, (k - 1) * (n + 1) + 1 if k else 0, n + 1, -1)


def as_rows(v: Value, like: Aval) -> Any:
    """Repeat a vector as every row of matrices of a type: element j in column j."""
    return sh.broadcast_to(sh.expand_dims(v, v.aval.ndim - 1), like.shape)


def as_columns(v: Value, like: Aval) -> Any:
    """Repeat a vector as every column of matrices of a type: element i in row i."""
    n = v.aval.ndim
    return sh.broadcast_in_dim.bind(v, shape=like.shape, dims=tuple(range(n)))


def halved_diagonal(x: Value, lower: bool = True) -> Any:
    """Halve the diagonal of a triangle."""
    if nothing(x.aval):
        return x
    return mul.bind(x, off_diagonal(triangle(Literal(1, x.aval), lower), 0.5))
