"""Eigenvalues, singular values, and the reduced forms that compute them.

Invariant: values come in the documented order, and parts of them are selected by index.
"""

from typing import Any, overload
from typing import Literal as Exactly

from plait.errors import ArgumentError, ShapeError
from plait.ext.ops.shape import slice_in_dim
from plait.ext.sizes import Dim
from plait.ext.surface import fixed_each, fused, value
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike

from ..primitives.linalg import spectral
from ..primitives.linalg.batched_matrices import fewer, stack_of, symmetrised
from .routines import EighImplementation, EigImplementation, SvdAlgorithm, absent, routine, square


@fused
def _eigh(x: Array, *, lower: bool, symmetrize: bool, subset: tuple[int, ...] | None) -> Any:
    x = symmetrised(x) if symmetrize else x
    w, v = spectral.eigh_.bind(x, lower=lower, vectors=True)
    if subset is not None:
        w, v = (slice_in_dim(y, *subset, axis=-1) for y in (w, v))
    return v, w


def eigh(
    x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True,
    sort_eigenvalues: bool = True, subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return eigenvectors and eigenvalues of symmetric or Hermitian matrices.

    Args:
      x: (..., n, n).
      lower: whether the lower triangle is read if the input is not symmetrised; else the upper.
      symmetrize_input: whether x is replaced by (x + x^H) / 2 first.
      sort_eigenvalues: False permits any order; they always ascend.
      subset_by_index: (first, last + 1) of the eigenvalues to return, counted from the least.
      implementation: None or EighImplementation.QR: each platform has one routine.

    Returns (eigenvectors in columns (..., n, k), real eigenvalues (..., k), ascending).
    Derivatives of eigenvectors do not exist where eigenvalues coincide.
    Raises TypeRule for matrices that are not square, other dtypes and other implementations.

    >>> import numpy as np, plait
    >>> v, w = plait.lax.linalg.eigh(np.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> w.tolist()
    [1.0, 2.0]
    """
    routine("eigh", "implementation", implementation)
    x = square("eigh", x)
    subset = _subset("eigh", subset_by_index, x.aval.shape[-1])
    return _eigh(x, lower=bool(lower), symmetrize=bool(symmetrize_input), subset=subset)


def _subset(name: str, subset: tuple[int, ...] | None, size: Dim | int) -> tuple[int, int] | None:
    """Return a pair (first, last + 1) of indices of values."""
    if subset is None:
        return None
    pair = fixed_each(name, "subset_by_index", subset)
    if len(pair) != 2 or not 0 <= pair[0] < pair[1] or size.__class__ is int and pair[1] > size:
        raise ArgumentError(
            f"{name}: subset_by_index={subset!r} of {size} values",
            fix="give (first, last + 1), counted from 0",
        )
    return pair[0], pair[1]


def eig(
    x: ArrayLike, *, compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True, enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None, use_magma: bool | None = None,
) -> list[Array]:  # fmt: skip
    """Return eigenvalues and eigenvectors of any square matrices, complex.

    Args:
      x: (..., n, n).
      compute_left_eigenvectors: whether to return U with U^H @ x = diag(w) @ U^H.
      compute_right_eigenvectors: whether to return V with x @ V = V @ diag(w).
      enable_eigvec_derivs: has no effect: eigenvectors always have derivatives.
      implementation: None or EigImplementation.LAPACK.
      use_magma: None or False: the library is not used.

    Raises TypeRule for matrices that are not square, other dtypes and other implementations.
    Returns [w (..., n), U, V], the latter as requested, (..., n, n); columns have length one and a
    real largest component.  All have derivatives, unless eigenvalues coincide.

    >>> import numpy as np, plait
    >>> w, u, v = plait.lax.linalg.eig(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> sorted(w.imag.tolist())
    [-1.0, 1.0]
    """
    routine("eig", "implementation", implementation)
    absent("eig", use_magma=use_magma)
    left, right = bool(compute_left_eigenvectors), bool(compute_right_eigenvectors)
    return spectral.eig_.bind(value(x), left=left, right=right)


@overload
def svd(
    x: ArrayLike, *, full_matrices: bool = ..., compute_uv: Exactly[True] = ...,
    subset_by_index: tuple[int, int] | None = ..., algorithm: SvdAlgorithm | None = ...,
) -> tuple[Array, Array, Array]: ...  # fmt: skip
@overload
def svd(
    x: ArrayLike, *, full_matrices: bool = ..., compute_uv: Exactly[False],
    subset_by_index: tuple[int, int] | None = ..., algorithm: SvdAlgorithm | None = ...,
) -> Array: ...  # fmt: skip
@overload
def svd(
    x: ArrayLike, *, full_matrices: bool = ..., compute_uv: bool = ...,
    subset_by_index: tuple[int, int] | None = ..., algorithm: SvdAlgorithm | None = ...,
) -> Array | tuple[Array, Array, Array]: ...  # fmt: skip
def svd(
    x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, Array, Array]:  # fmt: skip
    """Return singular values and vectors: x = U @ diag(s) @ V^H.

    Args:
      x: (..., m, n).
      full_matrices: whether U is (..., m, m) and V^H (..., n, n); otherwise they have min(m, n)
        columns and rows.
      compute_uv: whether to return (U, s, V^H); otherwise s alone.
      subset_by_index: (first, last + 1) of the singular values to return, counted from the
        greatest.
      algorithm: None, SvdAlgorithm.DEFAULT or SvdAlgorithm.DIVIDE_AND_CONQUER.

    Raises TypeRule for other dtypes and algorithms, and for a subset with full matrices.

    >>> import numpy as np, plait
    >>> plait.lax.linalg.svd(np.diag([1.0, 3.0]), compute_uv=False).tolist()
    [3.0, 1.0]
    """
    routine("svd", "algorithm", algorithm)
    x = value(x)
    _, m, n = stack_of("svd", x.aval)
    subset = _subset("svd", subset_by_index, fewer(m, n))
    if subset is not None and full_matrices and compute_uv:
        raise ShapeError(
            "a part of the singular values has no full matrices", fix="pass full_matrices=False"
        )
    if not compute_uv:
        return _singular_values(x, subset=subset)
    return _svd(x, full=bool(full_matrices), subset=subset)


@fused
def _singular_values(x: Value, *, subset: Any) -> Any:
    (s,) = spectral.svd_.bind(x, full_matrices=False, compute_uv=False)
    return s if subset is None else slice_in_dim(s, *subset, axis=-1)


@fused
def _svd(x: Value, *, full: bool, subset: Any) -> Any:
    s, u, vh = spectral.svd_.bind(x, full_matrices=full, compute_uv=True)
    if subset is None:
        return u, s, vh
    cut = lambda v, axis: slice_in_dim(v, *subset, axis=axis)  # noqa: E731
    return cut(u, -1), cut(s, -1), cut(vh, -2)


def schur(
    x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False,
    select_callable: object = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return Schur's form: x = Z @ T @ Z^H.

    Args:
      x: (..., n, n).
      compute_schur_vectors: whether to return Z.
      sort_eig_vals, select_callable: False and None: eigenvalues are not sorted.

    Returns (T, Z) or (T,).  T is upper triangular, except for blocks of two rows if x is real; Z is
    unitary.  On the CPU only; has no derivative.
    Raises TypeRule for matrices that are not square, other dtypes, and requests to sort.

    >>> import numpy as np, plait
    >>> t, z = plait.lax.linalg.schur(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t.tolist()
    [[1.0, 2.0], [0.0, 3.0]]
    """
    absent("schur", sort_eig_vals=sort_eig_vals, select_callable=select_callable)
    return tuple(spectral.schur_.bind(value(x), vectors=bool(compute_schur_vectors)))


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """Return Hessenberg's form, with reflectors: a = Q @ H @ Q^H.

    Args:
      a: (..., n, n).

    Returns (H (..., n, n), with the reflectors stored below the first subdiagonal, which is zero in
    H; their coefficients (..., n - 1)).  On the CPU only; has no derivative.
    Raises TypeRule for matrices that are not square, and for other dtypes.

    >>> import numpy as np, plait
    >>> h, taus = plait.lax.linalg.hessenberg(np.eye(3))
    >>> h.shape, taus.shape
    ((3, 3), (2,))
    """
    return tuple(spectral.hessenberg_.bind(value(a)))


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Return the tridiagonal form of symmetric or Hermitian matrices, with reflectors.

    Args:
      a: (..., n, n).
      lower: whether the lower triangle is read; else the upper.

    Returns (the form with reflectors (..., n, n), its diagonal (..., n), the one beside it
    (..., n - 1), coefficients of the reflectors (..., n - 1)).  Has no derivative.
    Raises TypeRule for matrices that are not square, and for other dtypes.

    >>> import numpy as np, plait
    >>> form, d, e, taus = plait.lax.linalg.tridiagonal(np.diag([3.0, 2.0]))
    >>> d.tolist()
    [3.0, 2.0]
    """
    return tuple(spectral.tridiagonal_.bind(value(a), lower=bool(lower)))


__all__ = ["eig", "eigh", "hessenberg", "schur", "svd", "tridiagonal"]
