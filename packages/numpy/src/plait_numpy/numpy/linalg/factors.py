"""Factorisations of matrices, with numpy's names for results.

Invariant: each function applies one primitive, to an operand that may be symmetrised first.
"""

from typing import Any, NamedTuple, overload
from typing import Literal as Exactly

from plait.errors import ArgumentError, ShapeError
from plait.ext.ops import elementwise as el
from plait.ext.ops.shape import slice_in_dim
from plait.ext.surface import fused, value
from plait.typing import Array, ArrayLike

from ...primitives.linalg.batched_matrices import adjoint, stack_of, symmetrised, transposed
from ...primitives.linalg.factorisation import cholesky_, geqrf, qr_
from ...primitives.linalg.spectral import eig_, eigh_, svd_

__all__ = [
    "cholesky", "eig", "eigh", "EighResult", "EigResult", "eigvals", "eigvalsh", "qr", "QRResult",
    "SlogdetResult", "svd", "SVDResult", "svdvals",
]  # fmt: skip


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors in columns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Real eigenvalues, ascending, and eigenvectors in columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """A matrix with orthonormal columns, and an upper triangular one."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """x = U @ diag(S) @ Vh."""

    U: Array
    S: Array
    Vh: Array


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its size."""

    sign: Array
    logabsdet: Array


def matrices(name: str, x: object, square: bool = False) -> Array:
    """Return an array of matrices in floats; refuse operands that `name` does not take."""
    (x,) = el.floating((value(x),))
    stack_of(name, x.aval, square)
    return x


def _side(UPLO: str | None) -> bool:
    """Return whether the lower triangle is meant."""
    side = "L" if UPLO is None else str(UPLO).upper()
    if side not in ("L", "U"):
        raise ArgumentError(f"there is no triangle {UPLO!r}", fix='UPLO is "L" or "U"')
    return side == "L"


@fused
def _cholesky(x: Array, *, upper: bool, symmetrize: bool) -> Any:
    out = cholesky_.bind(symmetrised(x) if symmetrize else x)
    return adjoint(out) if upper else out


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Return the triangular L with L @ L^H = a, or its conjugate transpose.

    Args:
      a: (..., n, n), Hermitian and positive definite.
      upper: whether U = L^H is returned.
      symmetrize_input: whether a is replaced by (a + a^H) / 2 first; else its lower triangle is
        read.

    Returns (..., n, n), nan where a is not positive definite.  Raises TypeRule for matrices that
    are not square.  As numpy.linalg.cholesky.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]), upper=True).tolist()
    [[2.0, 1.0], [0.0, 1.0]]
    """
    x = matrices("cholesky", a, square=True)
    return _cholesky(x, upper=bool(upper), symmetrize=bool(symmetrize_input))


@fused
def _qr(x: Array, *, full: bool) -> Any:
    return tuple(qr_.bind(x, full_matrices=full, pivoting=False))


@overload
def qr(a: ArrayLike, mode: Exactly["reduced", "complete"] = ...) -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: Exactly["r"]) -> Array: ...
@overload
def qr(a: ArrayLike, mode: str) -> Array | QRResult | tuple[Array, Array]: ...
def qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult | tuple[Array, Array]:
    """Factor a = Q @ R, with Q of orthonormal columns and R upper triangular.

    Args:
      a: (..., m, n).
      mode: "reduced", Q has min(m, n) columns; "complete", it has m; "r", R alone; "raw", the
        transposed reflectors and their coefficients, as in LAPACK.

    Returns QRResult(Q, R), or R.  Raises TypeRule for other modes.  As numpy.linalg.qr.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.qr(np.ones((3, 2))).R.shape
    (2, 2)
    """
    x = matrices("qr", a)
    if mode == "raw":
        h, taus = geqrf.bind(x)
        return transposed(h), taus
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(
            f"qr has no mode {mode!r}", fix='use "reduced", "complete", "r" or "raw"'
        )
    q, r = _qr(x, full=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@fused
def _svd(x: Array, *, full: bool, subset: tuple[int, ...] | None) -> Any:
    s, u, vh = svd_.bind(x, full_matrices=full, compute_uv=True)
    if subset is None:
        return u, s, vh
    return tuple(slice_in_dim(v, *subset, axis=i) for v, i in ((u, -1), (s, -1), (vh, -2)))


@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., compute_uv: Exactly[True] = ..., hermitian: bool = ...,
    subset_by_index: tuple[int, int] | None = ...,
) -> SVDResult: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., *, compute_uv: Exactly[False],
    hermitian: bool = ..., subset_by_index: tuple[int, int] | None = ...,
) -> Array: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., compute_uv: bool = ..., hermitian: bool = ...,
    subset_by_index: tuple[int, int] | None = ...,
) -> Array | SVDResult: ...  # fmt: skip
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult:  # fmt: skip
    """Return singular values and vectors: a = U @ diag(S) @ Vh.

    Args:
      a: (..., m, n).
      full_matrices: whether U is (..., m, m) and Vh (..., n, n); otherwise they have min(m, n)
        columns and rows.
      compute_uv: False returns the singular values alone.
      hermitian: a promise that changes nothing.
      subset_by_index: (first, last + 1) of the singular values to return.

    Returns SVDResult(U, S, Vh), S real and descending.  Raises TypeRule for a subset with full
    matrices.  As numpy.linalg.svd.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.svd(np.diag([1.0, 2.0])).S.tolist()
    [2.0, 1.0]
    """
    x = matrices("svd", a)
    subset = None if subset_by_index is None else tuple(subset_by_index)
    if not compute_uv:
        s = svdvals(x)
        return s if subset is None else slice_in_dim(s, *subset, axis=-1)
    if subset is not None and full_matrices:
        raise ShapeError(
            "a part of the singular values has no full matrices", fix="pass full_matrices=False"
        )
    return SVDResult(*_svd(x, full=bool(full_matrices), subset=subset))


def svdvals(x: ArrayLike, /) -> Array:
    """Return singular values, descending: (..., min(m, n)) of (..., m, n).  As
    numpy.linalg.svdvals.

    Raises NotAnArrayError if `x` is not an array, and AxisError if it has fewer than two axes.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.svdvals(np.eye(2)).tolist()
    [1.0, 1.0]
    """
    x = matrices("svdvals", x)
    return svd_.bind(x, full_matrices=False, compute_uv=False)[0]


def eig(a: ArrayLike) -> EigResult:
    """Return eigenvalues and right eigenvectors of square matrices, always complex.

    Args:
      a: (..., n, n).

    Returns EigResult((..., n), (..., n, n)): a @ V = V * eigenvalues, columns of length one.
    As numpy.linalg.eig, which gives real arrays if it can.

    Raises NotAnArrayError if `a` is not an array, AxisError if it has fewer than two axes, and
    ShapeError if its matrices are not square.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.eig(np.diag([1.0, 2.0])).eigenvalues.tolist()
    [(1+0j), (2+0j)]
    """
    x = matrices("eig", a, square=True)
    return EigResult(*eig_.bind(x, left=False, right=True))


def eigvals(a: ArrayLike) -> Array:
    """Return eigenvalues of square matrices, always complex: (..., n).  As numpy.linalg.eigvals.

    Raises NotAnArrayError if `a` is not an array, AxisError if it has fewer than two axes, and
    ShapeError if its matrices are not square.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.eigvals(np.eye(2)).tolist()
    [(1+0j), (1+0j)]
    """
    x = matrices("eigvals", a, square=True)
    return eig_.bind(x, left=False, right=False)[0]


@fused
def _eigh(x: Array, *, lower: bool, symmetrize: bool) -> Any:
    return tuple(eigh_.bind(symmetrised(x) if symmetrize else x, lower=lower, vectors=True))


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool | None = None) -> EighResult:
    """Return eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Args:
      a: (..., n, n).
      UPLO: "L" or "U", the triangle that is read if the input is not symmetrised.
      symmetrize_input: whether a is replaced by (a + a^H) / 2 first; None means unless UPLO is
        given.

    Returns EighResult((..., n) real and ascending, (..., n, n)).  Raises TypeRule for another
    `UPLO`.  As numpy.linalg.eigh.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.eigh(np.array([[0.0, 2.0], [2.0, 0.0]])).eigenvalues.tolist()
    [-2.0, 2.0]
    """
    x, lower = matrices("eigh", a, square=True), _side(UPLO)
    both = UPLO is None if symmetrize_input is None else bool(symmetrize_input)
    return EighResult(*_eigh(x, lower=lower, symmetrize=both))


@fused
def _eigvalsh(x: Array, *, lower: bool, symmetrize: bool) -> Any:
    return eigh_.bind(symmetrised(x) if symmetrize else x, lower=lower, vectors=False)[0]


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Return eigenvalues of symmetric or Hermitian matrices, ascending: (..., n).

    Args:
      a: (..., n, n).
      UPLO: "L" or "U", the triangle that is read if the input is not symmetrised.
      symmetrize_input: whether a is replaced by (a + a^H) / 2 first.

    Raises TypeRule for another `UPLO`.  As numpy.linalg.eigvalsh.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.eigvalsh(np.eye(2)).tolist()
    [1.0, 1.0]
    """
    x, lower = matrices("eigvalsh", a, square=True), _side(UPLO)
    return _eigvalsh(x, lower=lower, symmetrize=bool(symmetrize_input))
