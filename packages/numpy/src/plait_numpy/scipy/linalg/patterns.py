"""Matrices with a pattern: Toeplitz, Hankel, Hilbert, Pascal, block diagonal, ...

Invariant: matrices of given elements are made by slicing and selecting, so they are differentiable;
matrices of a given size alone are made by numpy.
"""

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np

from plait.errors import ArgumentError, OperandTypeError, ShapeError
from plait.ext import Aval, Literal
from plait.ext.ops import elementwise as el
from plait.ext.ops.shape import (
    broadcast_to,
    concatenate,
    convert_together,
    expand_dims,
    iota,
    pad,
    reshape,
    rev,
)
from plait.ext.sizes import is_symbolic, max_dim
from plait.ext.surface import fixed, fused, value
from plait.ext.types import (
    COMPLEX,
    FLOATING,
    asked_dtype,
    broadcast_shapes,
    category,
    default_dtype,
)
from plait.ext.values import from_numpy
from plait.typing import Array, ArrayLike, DTypeLike

from ...primitives.linalg.batched_matrices import identity

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler",
    "fiedler_companion", "hadamard", "hankel", "helmert", "hilbert", "invhilbert", "invpascal",
    "leslie", "pascal", "toeplitz",
]  # fmt: skip


def _vector(name: str, x: object, least: int = 0) -> Array:
    """Return a vector, or a stack of vectors, with at least `least` elements."""
    x = value(x)
    x = reshape(x, (1,)) if not x.aval.ndim else x
    if x.aval.shape[-1] < least:
        raise ArgumentError(f"{name} of {x.aval!r}", fix=f"give {least} elements or more")
    return x


def _stacked(c: Any, r: Any) -> list[Any]:
    """Bring vectors to the same leading axes."""
    lead = broadcast_shapes([v.aval.shape[:-1] for v in (c, r)])
    return [broadcast_to(v, (*lead, v.aval.shape[-1])) for v in (c, r)]


def _size(name: str, n: object) -> int:
    """Return the number of rows and columns."""
    n = fixed(name, "n", n)
    if n < 0:
        raise ShapeError(f"{name}: {n} rows and columns", fix="give a number from 0 on")
    return n


def _spread(x: Array, places: ArrayLike) -> Any:
    """Return elements of vectors at positions, whose axes come last."""
    return x[..., places if not isinstance(places, np.ndarray) else places.astype(np.int32)]


def _places(m: int, n: int, of: Callable[[Any, Any], Any]) -> Any:
    """Return the positions that a function gives for the rows and columns of an m x n matrix."""
    if is_symbolic((m, n)):
        return of(*[iota(np.dtype(np.int32), (m, n), axis) for axis in (0, 1)])
    return of(*np.ogrid[:m, :n])


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Return the matrix with one value on each diagonal.

    Args:
      c: (..., m), the first column.
      r: (..., n), the first row, whose first element is not read; conj(c) if not given.  Leading
        axes of c and r are broadcast.

    Returns (..., m, n).  As scipy.linalg.toeplitz.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.toeplitz(np.array([1, 2, 3]), np.array([0, 4])).tolist()
    [[1, 4], [2, 1], [3, 2]]
    """
    c = _vector("toeplitz", c)
    r = (el.conj(c) if c.aval.dtype.kind == "c" else c) if r is None else _vector("toeplitz", r)
    m, n = c.aval.shape[-1], r.aval.shape[-1]
    columns, rows = _stacked(c, r)
    both = concatenate([rev.bind(columns, axes=(columns.aval.ndim - 1,)), rows[..., 1:]], -1)
    return _spread(both, _places(m, n, lambda i, j: j - i + (m - 1)))


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Return the matrix with one value on each antidiagonal.

    Args:
      c: (..., m), the first column.
      r: (..., n), the last row, whose first element is not read; zeros if not given.  Leading axes
        of c and r are broadcast.

    Returns (..., m, n).  As scipy.linalg.hankel.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.hankel(np.array([1, 2, 3])).tolist()
    [[1, 2, 3], [2, 3, 0], [3, 0, 0]]
    """
    c = _vector("hankel", c)
    r = Literal(0, c.aval) if r is None else _vector("hankel", r)
    m, n = c.aval.shape[-1], r.aval.shape[-1]
    columns, rows = _stacked(c, r)
    both = concatenate([columns, rows[..., 1:]], -1)
    return _spread(both, _places(m, n, lambda i, j: i + j))


def circulant(c: ArrayLike) -> Array:
    """Return the matrix with columns `c`, each rotated by one more: (..., n) to (..., n, n).

    As scipy.linalg.circulant.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.circulant(np.array([1, 2, 3])).tolist()
    [[1, 3, 2], [2, 1, 3], [3, 2, 1]]
    """
    c = _vector("circulant", c)
    n = c.aval.shape[-1]
    return _spread(c, _places(n, n, lambda i, j: (i - j) % max_dim(n, 1)))


def companion(a: ArrayLike) -> Array:
    """Return the matrix whose eigenvalues are the zeros of the polynomial `a` (..., n).

    Returns (..., n - 1, n - 1).  As scipy.linalg.companion.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.companion(np.array([1.0, -3.0, 2.0])).tolist()
    [[3.0, -2.0], [1.0, 0.0]]
    """
    (a,) = el.floating((_vector("companion", a, 2),))
    *lead, n = a.aval.shape
    top = expand_dims(el.neg(el.div(a[..., 1:], a[..., :1])), -2)
    square = a.aval.with_shape((*lead, n - 1, n - 1))
    return concatenate([top, identity(square)[..., : n - 2, :]], -2)


@fused
def _blocks(*xs: Any) -> Any:
    xs = tuple(convert_together(xs))
    width = sum(x.aval.shape[1] for x in xs)
    rows, before = [], 0
    for x in xs:
        after = width - before - x.aval.shape[1]
        rows.append(pad(x, 0, [(0, 0, 0), (before, after, 0)]))
        before += x.aval.shape[1]
    return concatenate(rows, 0)


def block_diag(*arrs: ArrayLike) -> Array:
    """Place matrices along a diagonal, zeros elsewhere.

    Args:
      arrs: matrices; a vector is a row, a number a matrix of one element.

    As scipy.linalg.block_diag.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.block_diag(np.ones((1, 2)), np.array([[3.0]])).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 3.0]]
    """
    if not arrs:
        return from_numpy(np.zeros((1, 0), default_dtype(FLOATING)))
    xs = [value(x) for x in arrs]
    for x in xs:
        if x.aval.ndim > 2:
            raise ShapeError(f"block_diag takes matrices, not {x.aval!r}", fix="give two axes")
    return _blocks(*[reshape(x, (1, x.aval.size)) if x.aval.ndim < 2 else x for x in xs])


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Return the matrix that convolves a vector of n elements with `a`.

    Args:
      a: (m,).
      n: at least 1.
      mode: "full", "same" or "valid", see `plait.numpy.convolve`.

    As scipy.linalg.convolution_matrix.

    Raises OperandTypeError if n is not an integer, and ShapeError for sizes that there are not.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.convolution_matrix(np.ones(3), 2).shape
    (4, 2)
    """
    n = _size("convolution_matrix", n)
    a = _vector("convolution_matrix", a, 1)
    if n < 1 or mode not in ("full", "same", "valid"):
        raise ShapeError(
            f"convolution_matrix of {n} elements, {mode!r}",
            fix='give one element or more, and "full", "same" or "valid"',
        )
    m = a.aval.shape[-1]
    first = {"full": 0, "same": (min(m, n) - 1) // 2, "valid": min(m, n) - 1}[mode]
    rows = {"full": m + n - 1, "same": max(m, n), "valid": abs(m - n) + 1}[mode]
    at = first + np.arange(rows)[:, None] - np.arange(n)[None]
    whole = pad(a, 0, [(0, 0, 0)] * (a.aval.ndim - 1) + [(0, 1, 0)])
    return _spread(whole, np.where((at >= 0) & (at < m), at, m))


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Return a growth matrix: fertilities in the first row, survivals below the diagonal.

    Args:
      f: (n,).
      s: (n - 1,).

    As scipy.linalg.leslie.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.leslie(np.ones(3), np.ones(2)).shape
    (3, 3)
    """
    f, s = convert_together([_vector("leslie", f, 1), _vector("leslie", s)])
    n = f.aval.shape[-1]
    if s.aval.shape[-1] != n - 1:
        raise ArgumentError(f"leslie of {f.aval!r} and {s.aval!r}", fix="give one survival fewer")
    below = el.mul(identity(s.aval.with_shape((*s.aval.shape, n - 1))), s[..., None])
    below = pad(below, 0, [(0, 0, 0)] * s.aval.ndim + [(0, 1, 0)])
    return concatenate([expand_dims(f, -2), below], -2)


def fiedler(a: ArrayLike) -> Array:
    """Return the distances of all elements of `a` (..., n) from each other: (..., n, n).

    As scipy.linalg.fiedler.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.fiedler(np.array([1.0, 4.0])).tolist()
    [[0.0, 3.0], [3.0, 0.0]]
    """
    a = _vector("fiedler", a)
    return el.abs_(el.sub(a[..., :, None], a[..., None, :]))


def fiedler_companion(a: ArrayLike) -> Array:
    """Return another matrix with the zeros of a polynomial as eigenvalues, with five diagonals.

    Args:
      a: (n,), coefficients, the highest power first.

    Returns (n - 1, n - 1).  As scipy.linalg.fiedler_companion.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.fiedler_companion(np.array([1.0, 2.0, 3.0])).shape
    (2, 2)
    """
    (a,) = el.floating((_vector("fiedler_companion", a, 2),))
    a = el.div(a, a[0])
    n = a.aval.shape[-1] - 1
    elements, one = {(0, 0): 1}, np.zeros((n, n), bool)
    for i in range(0, n - 1, 2):
        elements[i, i + 1] = i + 2
    for i in range(0, n - 2, 2):
        elements[i + 2, i + 1] = i + 3
        one[i, i + 2] = True
    for i in range(0, n - 3, 2):
        one[i + 3, i + 1] = True
    if n > 1:
        one[1, 0] = True
    places = np.full((n, n), n + 1)
    for (i, j), k in elements.items():
        places[i, j] = k
    zero = Literal(0, a.aval.with_shape((1,)))
    out = _spread(concatenate([el.neg(a), zero], 0), places)
    return el.select(from_numpy(one), 1.0, out)


# ---- of given size -------------------------------------------------------------------------


def _made(x: ArrayLike, dtype: np.dtype | type | None = None) -> Any:
    return from_numpy(np.asarray(x).astype(dtype or default_dtype(FLOATING)))


def hilbert(n: int) -> Array:
    """Return the matrix 1 / (i + j + 1).  As scipy.linalg.hilbert.

    Raises OperandTypeError if n is not an integer, and ShapeError for sizes that there are not.

    >>> import plait
    >>> plait.scipy.linalg.hilbert(2).tolist()[0]
    [1.0, 0.5]
    """
    n = _size("hilbert", n)
    i = np.arange(n)
    return _made(1.0 / (i[:, None] + i + 1))


def invhilbert(n: int) -> Array:
    """Return the inverse of Hilbert's matrix, of integers.  As scipy.linalg.invhilbert.

    Raises OperandTypeError if n is not an integer, and ShapeError for sizes that there are not.

    >>> import plait
    >>> plait.scipy.linalg.invhilbert(2).tolist()
    [[4.0, -6.0], [-6.0, 12.0]]
    """
    n = _size("invhilbert", n)
    out = [
        [(-1) ** (i + j) * (i + j + 1) * comb(n + i, n - j - 1) * comb(n + j, n - i - 1)
         * comb(i + j, i) ** 2 for j in range(n)]
        for i in range(n)
    ]  # fmt: skip
    return _made(np.array(out, dtype=object).reshape(n, n))


_KINDS = ("symmetric", "lower", "upper")


def _triangle_of_pascal(n: int, sign: int = 1) -> np.ndarray:
    rows = [[sign ** (i - j) * comb(i, j) if j <= i else 0 for j in range(n)] for i in range(n)]
    return np.array(rows, dtype=object).reshape(n, n)


def _kind(name: str, kind: str | None) -> str:
    kind = "symmetric" if kind is None else kind
    if kind not in _KINDS:
        raise ArgumentError(f"{name} has no kind {kind!r}", fix=f"use one of {', '.join(_KINDS)}")
    return kind


def pascal(n: int, kind: str | None = None) -> Array:
    """Return a matrix of binomial coefficients.

    Args:
      n: rows and columns.
      kind: "lower", those of i over j; "upper", its transpose; "symmetric" (the default), the
        product of both.

    As scipy.linalg.pascal.

    Raises OperandTypeError if n is not an integer, and ShapeError for sizes that there are not.

    >>> import plait
    >>> plait.scipy.linalg.pascal(2).tolist()
    [[1.0, 1.0], [1.0, 2.0]]
    """
    n = _size("pascal", n)
    low = _triangle_of_pascal(n)
    return _made({"lower": low, "upper": low.T, "symmetric": low @ low.T}[_kind("pascal", kind)])


def invpascal(n: int, kind: str | None = None) -> Array:
    """Return the inverse of `pascal`.  As scipy.linalg.invpascal.

    Raises OperandTypeError if n is not an integer, and ShapeError for sizes that there are not.

    >>> import plait
    >>> plait.scipy.linalg.invpascal(2).tolist()
    [[2.0, -1.0], [-1.0, 1.0]]
    """
    n = _size("invpascal", n)
    low = _triangle_of_pascal(n, -1)
    both = {"lower": low, "upper": low.T, "symmetric": low.T @ low}
    return _made(both[_kind("invpascal", kind)])


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Return a matrix of ones and minus ones with orthogonal rows; n is a power of two.

    As scipy.linalg.hadamard.

    Raises OperandTypeError if n is not an integer, and ShapeError for sizes that there are not.

    >>> import plait
    >>> plait.scipy.linalg.hadamard(2).tolist()
    [[1, 1], [1, -1]]
    """
    n = _size("hadamard", n)
    if n < 1 or n & (n - 1):
        raise ShapeError(f"hadamard of {n} rows", fix="give a power of two")
    out = np.ones((1, 1), np.int32)
    while len(out) < n:
        out = np.block([[out, out], [out, -out]])
    return _made(out, np.int32 if dtype is int else asked_dtype(dtype))


def helmert(n: int, full: bool = False) -> Array:
    """Return Helmert's matrix, with orthonormal rows; without its first row unless `full`.

    As scipy.linalg.helmert.

    Raises OperandTypeError if n is not an integer, and ShapeError for sizes that there are not.

    >>> import plait
    >>> plait.scipy.linalg.helmert(3).shape
    (2, 3)
    """
    n = _size("helmert", n)
    if not n:
        raise ShapeError("helmert: no rows and columns", fix="give a positive number")
    out = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(n))
    out[0] = 1
    scale = np.arange(n) * np.arange(1, n + 1)
    scale[:1] = n
    out = out / np.sqrt(scale)[:, None]
    return _made(out if full else out[1:])


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Return the matrix of the discrete Fourier transform, complex.

    Args:
      n: rows and columns.
      scale: None; "sqrtn", divided by the root of n, unitary; "n", divided by n.
      dtype: a complex dtype; complex64 by default, or as wide as the default float.

    Returns (n, n).  Raises TypeRule for other scales and dtypes.  As scipy.linalg.dft.

    >>> import plait
    >>> plait.scipy.linalg.dft(2).real.tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    if scale not in (None, "sqrtn", "n"):
        raise ArgumentError(f"dft has no scale {scale!r}", fix='use None, "sqrtn" or "n"')
    n = _size("dft", n)
    wanted = None if dtype is None else asked_dtype(dtype)
    if wanted is not None and category(wanted) != COMPLEX:
        raise OperandTypeError(f"dft: {wanted} is not complex", fix='use dtype="complex64"')
    i = np.arange(n)
    out = np.exp(-2j * np.pi * (i[:, None] * i % max(n, 1)) / max(n, 1))
    by = {None: 1, "sqrtn": np.sqrt(n), "n": n}[scale]
    part = Aval((), default_dtype(FLOATING)).dtype
    usual = np.complex64 if part.itemsize == 4 else np.complex128
    return _made(out / by, usual if wanted is None else wanted)
