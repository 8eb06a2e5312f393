"""`lobpcg_standard` of `jax.experimental.sparse.linalg`: the greatest eigenvalues of an operator.

Each step looks for the eigenvectors in the space of the vectors so far, their residuals, and the
directions of the last step.  An orthonormal basis of that space is made anew in each step, which
keeps the small eigenvalue problem well conditioned (A. Knyazev, Toward the optimal preconditioned
eigensolver, SIAM J. Sci. Comput. 23, 2001).

Invariant: the vectors are orthonormal after each step; the program has one loop.
"""

from collections.abc import Callable
from typing import Any

import plait.numpy as pnp
from plait import lax
from plait.errors import ArgumentError, AxisError, OperandTypeError
from plait.typing import Array, ArrayLike, DTypeLike

__all__ = ["lobpcg_standard"]


def lobpcg_standard(
    A: ArrayLike | Callable[..., Any], X: ArrayLike, m: int = 100, tol: float | None = None
) -> tuple[Array, Array, Array]:
    """Return the `k` greatest eigenvalues of a Hermitian operator, their vectors, and the steps.

    Args:
      A: an (n, n) array, or a function of (n, k) arrays that applies it to each column.
      X: the first directions, (n, k), with 0 < 5 k < n.
      m: the greatest number of steps.
      tol: an eigenvalue has converged if the norm of its residual is less than 10 n tol times the
        sum of its absolute value and the norm of its product; by default the spacing of the dtype
        at 1.

    Returns:
      The eigenvalues, in falling order, the eigenvectors as columns, and the number of steps.

    Raises AxisError, OperandTypeError and ArgumentError for operands that do not fit.
    """
    start = pnp.asarray(X)
    if start.ndim != 2:
        raise AxisError(
            f"lobpcg_standard takes directions of shape (n, k), not {start.shape}",
            fix="give each direction as a column of X",
        )
    n, k = start.shape
    if not 0 < 5 * k < n:
        raise AxisError(
            f"lobpcg_standard finds k eigenvalues with 0 < 5 k < n, and X of shape {(n, k)} asks "
            f"for {k} of {n}",
            fix="use numpy.linalg.eigh for so many",
        )
    if not pnp.issubdtype(start.dtype, pnp.inexact):
        raise OperandTypeError(
            f"lobpcg_standard takes directions of a dtype with a fraction, not {start.dtype}",
            fix="convert X: X.astype(float)",
        )
    apply = _operator(A, n, start.dtype)
    limit = pnp.finfo(start.dtype).eps if tol is None else tol

    def residuals(vectors: Array) -> tuple[Any, Any, Any]:
        product = apply(vectors)
        values = pnp.sum(vectors.conj() * product, axis=0).real
        rest = product - vectors * values.astype(vectors.dtype)
        norm = lambda v: pnp.sqrt(pnp.sum(abs(v) ** 2, axis=0))  # noqa: E731
        done = norm(rest) < 10 * n * limit * (abs(values) + norm(product))
        return values, rest, done.all()

    def going(state: tuple[Any, ...]) -> Any:
        step, _, _, _, _, done = state
        return (step < m) & ~done

    def turn(state: tuple[Any, ...]) -> Any:
        step, vectors, _, rest, last, _ = state
        basis = pnp.linalg.qr(pnp.concatenate([vectors, rest, last], axis=1))[0]
        small = basis.conj().T @ apply(basis)
        found = pnp.linalg.eigh((small + small.conj().T) / 2)[1][:, ::-1][:, :k]
        best = pnp.linalg.qr(basis @ found)[0]
        values, rest, done = residuals(best)
        return step + 1, best, values, rest, basis[:, k:] @ found[k:], done

    first = pnp.linalg.qr(start)[0]
    values, rest, done = residuals(first)
    state = (pnp.int32(0), first, values, rest, pnp.zeros_like(first), done)
    steps, vectors, values, *_ = lax.while_loop(going, turn, state)
    order = pnp.argsort(-values)
    return values[order], vectors[:, order], steps


def _operator(A: ArrayLike | Callable[..., Any], n: int, dtype: DTypeLike) -> Callable[[Any], Any]:
    """Return a matrix as a function of columns, after a check of its type."""
    if callable(A):
        return A
    matrix = pnp.asarray(A)
    if matrix.shape != (n, n):
        raise AxisError(
            f"lobpcg_standard: A has shape {matrix.shape}, and X has {n} rows",
            fix=f"give a matrix of shape {(n, n)}, or a function",
        )
    if matrix.dtype != dtype:
        raise ArgumentError(
            f"lobpcg_standard: A has the dtype {matrix.dtype}, and X {dtype}",
            fix="convert one of them",
        )
    return lambda v: matrix @ v
