"""Factorisations of matrices and solutions of linear systems.

Names and arguments are those of JAX's `lax.linalg`.  All take stacks of matrices: any leading axes.
Matrices are float32, float64, complex64 or complex128; others are refused.

Invariant: a matrix that cannot be factorised gives nan, never an error, since this depends on
values.
"""

from typing import Any

from plait.errors import ArgumentError, OperandTypeError
from plait.ext import Literal
from plait.ext.control import scan
from plait.ext.ops import elementwise as el
from plait.ext.ops.reduction import sum_
from plait.ext.ops.shape import expand_dims, iota, moveaxis, squeeze
from plait.ext.surface import advise as _advise
from plait.ext.surface import explained_calls as _explained_calls
from plait.ext.surface import fixed_each, fused, value
from plait.ext.trace import Value
from plait.ext.types import INT32
from plait.typing import Array, ArrayLike

from ..primitives.linalg import factorisation, solving
from ..primitives.linalg.batched_matrices import symmetrised, times, transposed, triangle
from .eigen import eig, eigh, hessenberg, schur, svd, tridiagonal
from .polar import qdwh
from .routines import EighImplementation, EigImplementation, SvdAlgorithm, absent, square

# ---- Cholesky, LU, QR ----------------------------------------------------------------------


@fused
def _cholesky(x: Array, *, symmetrize: bool) -> Any:
    return factorisation.cholesky_.bind(symmetrised(x) if symmetrize else x)


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Return the lower triangular L with L @ L^H = x.

    Args:
      x: (..., n, n), Hermitian and positive definite.
      symmetrize_input: whether x is replaced by (x + x^H) / 2 first, so that derivatives are
        Hermitian; if not, the lower triangle is read.

    Returns (..., n, n), nan where x is not positive definite.
    Raises TypeRule for matrices that are not square, and for other dtypes.

    >>> import numpy as np, plait
    >>> plait.lax.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    x = square("cholesky", x)
    return _cholesky(x, symmetrize=bool(symmetrize_input))


@fused
def _updated(r: Array, w: Any) -> Any:
    n = r.aval.ndim
    rows, index = moveaxis(r, -2, 0), iota(INT32, (r.aval.shape[-1],))

    def step(w: Any, row_and_place: Any) -> tuple:
        row, i = row_and_place
        axis = row.aval.ndim - 1
        at = el.eq(iota(INT32, row.aval.shape, axis), i)
        pick = lambda v: expand_dims(sum_(el.select(at, v, 0), axis), axis)  # noqa: E731
        p, q = pick(row), pick(w)
        size = el.sqrt(el.add(el.mul(p, p), el.mul(q, q)))
        c, s = el.div(p, size), el.div(q, size)
        turned = el.add(el.mul(c, row), el.mul(s, w))
        return el.sub(el.mul(c, w), el.mul(s, row)), turned

    return triangle(moveaxis(scan(step, w, (rows, index))[1], 0, n - 2), lower=False)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Return the upper triangular factor of R^T R + w w^T, given R, by Givens rotations.

    Args:
      r_matrix: (..., n, n), real and upper triangular.
      w_vector: (..., n), in the same dtype.

    Returns (..., n, n).  Raises TypeRule for shapes that do not fit.

    >>> import numpy as np, plait
    >>> r = plait.lax.linalg.cholesky_update(np.eye(2), np.array([0.0, 1.0]))
    >>> bool(abs(r[1, 1] - 2**0.5) < 1e-6)
    True
    """
    r, w = square("cholesky_update", r_matrix), value(w_vector)
    if w.aval.shape != r.aval.shape[:-1] or w.aval.dtype != r.aval.dtype:
        raise ArgumentError(
            f"cholesky_update of {r.aval!r} by {w.aval!r}", fix="give a vector for each matrix"
        )
    return _updated(r, w)


@fused
def _lu(x: Value) -> Any:
    lu, pivots = factorisation.lu_.bind(x)
    size = x.aval.shape[-2]
    return lu, pivots, factorisation.pivots_to_permutation.bind(pivots, size=size)


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """Factor `x` with rows exchanged: x[permutation] = L @ U.

    Args:
      x: (..., m, n).

    Returns:
      lu: (..., m, n), U on and above the diagonal, L below, whose diagonal is one.
      pivots: int32 (..., min(m, n)): row i was exchanged with row pivots[i].
      permutation: int32 (..., m), the same as one permutation.

    >>> import numpy as np, plait
    >>> lu, pivots, permutation = plait.lax.linalg.lu(np.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> lu.tolist(), permutation.tolist()
    ([[4.0, 4.0], [0.25, 1.0]], [1, 0])
    """
    return _lu(value(x))


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Return the permutation made by exchanging row i with row pivots[i], for each i in turn.

    Args:
      pivots: int32 (..., k).
      permutation_size: the number of rows, at least k.

    Returns int32 (..., permutation_size).  Raises TypeRule for other dtypes.

    >>> import numpy as np, plait
    >>> plait.lax.linalg.lu_pivots_to_permutation(np.int32([1, 2]), 3).tolist()
    [1, 2, 0]
    """
    (size,) = fixed_each("lu_pivots_to_permutation", "permutation_size", (permutation_size,))
    return factorisation.pivots_to_permutation.bind(value(pivots), size=size)


@fused
def _qr(x: Value, *, full_matrices: bool, pivoting: bool) -> Any:
    return tuple(factorisation.qr_.bind(x, full_matrices=full_matrices, pivoting=pivoting))


def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Factor x = Q @ R, with Q of orthonormal columns and R upper triangular.

    Args:
      x: (..., m, n).
      pivoting: whether columns are exchanged, such that the diagonal of R does not increase in
        absolute value; then x[:, order] = Q @ R, and `order`, int32 (..., n), is returned too.
      full_matrices: whether Q is (..., m, m) and R (..., m, n); otherwise they have min(m, n)
        columns and rows.
      use_magma: None or False: the library is not used.

    Raises TypeRule for other dtypes.

    >>> import numpy as np, plait
    >>> q, r = plait.lax.linalg.qr(np.array([[3.0, 1.0], [4.0, 2.0]]), full_matrices=False)
    >>> bool(abs(q @ r - np.array([[3.0, 1.0], [4.0, 2.0]])).max() < 1e-5)
    True
    """
    absent("qr", use_magma=use_magma)
    return _qr(value(x), full_matrices=bool(full_matrices), pivoting=bool(pivoting))


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """Return the first columns of the product of the reflectors of `geqrf`.

    Args:
      a: (..., m, n), m >= n: each column has the vector of a reflector below the diagonal.
      taus: (..., k), k <= n, their coefficients.

    Returns (..., m, n) with orthonormal columns.  Has no derivative.
    Raises TypeRule for shapes and dtypes that do not fit.

    >>> import numpy as np, plait
    >>> plait.lax.linalg.householder_product(np.eye(3, 2), np.zeros(2)).shape
    (3, 2)
    """
    return factorisation.householder_product_.bind(value(a), value(taus))


def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Array:
    """Multiply a matrix by the square Q of reflectors, without forming Q.

    Args:
      a, taus: reflectors, see `householder_product`.
      c: (..., m, k), or (..., k, m) unless `left`.
      left: whether Q @ c; else c @ Q.
      transpose: whether to use the conjugate transpose of Q.

    Linear in `c`; only `c` has derivatives.
    Raises TypeRule for shapes and dtypes that do not fit.

    >>> import numpy as np, plait
    >>> plait.lax.linalg.ormqr(np.eye(3, 2), np.zeros(2), np.ones((3, 4))).shape
    (3, 4)
    """
    how = dict(left=bool(left), adjoint=bool(transpose))
    return factorisation.ormqr_.bind(value(a), value(taus), value(c), **how)


# ---- systems -------------------------------------------------------------------------------


def triangular_solve(
    a: ArrayLike, b: ArrayLike, *, left_side: bool = False, lower: bool = False,
    transpose_a: bool = False, conjugate_a: bool = False, unit_diagonal: bool = False,
) -> Array:  # fmt: skip
    """Solve systems with triangular matrices.

    Args:
      a: (..., n, n); the other triangle is not read.
      b: (..., n, k), or (..., k, n) unless `left_side`; or (..., n).
      left_side: whether op(a) @ x = b; else x @ op(a) = b.
      lower: whether `a` is lower triangular; else upper.
      transpose_a, conjugate_a: whether op transposes, conjugates.
      unit_diagonal: whether the diagonal counts as one and is not read.

    Returns x, of the shape of b.  Raises TypeRule if shapes or dtypes do not fit.

    >>> import numpy as np, plait
    >>> a, b = np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0], [3.0]])
    >>> plait.lax.linalg.triangular_solve(a, b, left_side=True, lower=True).tolist()
    [[1.0], [2.0]]
    """
    a, b = value(a), value(b)
    params = dict(
        left_side=bool(left_side), lower=bool(lower), transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a), unit_diagonal=bool(unit_diagonal),
    )  # fmt: skip
    if b.aval.ndim == a.aval.ndim - 1:
        axis = b.aval.ndim if left_side else b.aval.ndim - 1
        return squeeze(solving.triangular_solve_.bind(a, expand_dims(b, axis), **params), axis)
    return solving.triangular_solve_.bind(a, b, **params)


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Solve systems with tridiagonal matrices.

    Args:
      dl: (..., n), below the diagonal: dl[i] multiplies x[i - 1]; dl[0] is not read.
      d: (..., n), the diagonal.
      du: (..., n), above the diagonal: du[i] multiplies x[i + 1]; du[-1] is not read.
      b: (..., n, k).
      perturb_singular: must be False: systems are solved as given.

    Returns x (..., n, k), nan where a matrix is singular.
    Raises TypeRule if shapes or dtypes do not fit.

    >>> import numpy as np, plait
    >>> one = np.ones(3)
    >>> x = plait.lax.linalg.tridiagonal_solve(0 * one, 2 * one, 0 * one, np.ones((3, 1)))
    >>> x.ravel().tolist()
    [0.5, 0.5, 0.5]
    """
    if perturb_singular:
        raise ArgumentError(
            "tridiagonal_solve has nothing for perturb_singular=True: pivots stay as they are",
            fix="leave it out; add a small number to d, if the matrix may be singular",
        )
    return solving.tridiagonal_solve_.bind(value(dl), value(d), value(du), value(b))


@fused
def _symmetric_product(a: Value, c: Array, *, alpha: float, beta: float, both: bool) -> Any:
    out = el.mul.bind(Literal(alpha, c.aval), times(a, transposed(a)))
    out = el.add.bind(out, el.mul.bind(Literal(beta, c.aval), c))
    if not both:
        return out
    low = triangle(out)
    return el.add.bind(low, transposed(triangle(out, offset=-1)))


def symmetric_product(
    a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:  # fmt: skip
    """Return alpha * A @ A^T + beta * C.

    Args:
      a_matrix: (..., n, k).
      c_matrix: (..., n, n), symmetric.
      alpha, beta: numbers.
      symmetrize_output: whether the lower triangle of the result is copied to the upper one.

    Returns (..., n, n).  Raises TypeRule for shapes and dtypes that do not fit.

    >>> import numpy as np, plait
    >>> plait.lax.linalg.symmetric_product(np.ones((2, 3)), np.zeros((2, 2))).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    a, c = value(a_matrix), square("symmetric_product", c_matrix)
    if a.aval.shape[:-1] != c.aval.shape[:-1] or a.aval.dtype != c.aval.dtype:
        raise OperandTypeError(
            f"symmetric_product of {a.aval!r} and {c.aval!r}",
            fix="give as many rows to both, and one dtype",
        )
    return _symmetric_product(a, c, alpha=alpha, beta=beta, both=bool(symmetrize_output))


__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_update",
    "eig", "eigh", "hessenberg", "householder_product", "lu", "lu_pivots_to_permutation", "ormqr",
    "qdwh", "qr", "schur", "svd", "symmetric_product", "triangular_solve", "tridiagonal",
    "tridiagonal_solve",
]  # fmt: skip

_explained_calls(globals())

_advise("plait.lax.linalg", globals())
