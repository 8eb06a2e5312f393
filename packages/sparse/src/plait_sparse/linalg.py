"""Direct solution of equations with a sparse matrix, by scipy on the host.

Invariant: derivatives follow from the equation, and not from the steps of the solver.
"""

from typing import Any

import numpy as np

import plait
import plait.numpy as pnp
from plait import ext, lax
from plait.ext.errors import OperandTypeError, ShapeError, border
from plait.ext.plugins import library
from plait.typing import Array, ArrayLike

from .bcsr import BCSR
from .checking import whole_numbers

__all__ = ["spsolve"]


@border
def spsolve(
    data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, b: ArrayLike, tol: float = 1e-6,
    reorder: int = 1,
) -> Array:  # fmt: skip
    """Return the solution `x` of `A @ x == b` for a sparse matrix by rows.

    scipy solves on the host by a sparse LU factorisation, at each call.  It is differentiated with
    respect to `data` and `b`.

    Args:
      data, indices, indptr: the values of `A`, their columns, and where each row begins; as of CSR.
      b: a vector, or a matrix of several in its columns.
      tol, reorder: accepted for compatibility; scipy chooses the order of the columns.

    Returns:
      An array of the shape of `b`; nan if `A` is singular.

    >>> import plait
    >>> A = plait.sparse.CSR.fromdense([[2.0, 0.0], [1.0, 4.0]])
    >>> plait.sparse.linalg.spsolve(A.data, A.indices, A.indptr, [2.0, 5.0]).tolist()
    [1.0, 1.0]
    """
    values, right = pnp.asarray(data), pnp.asarray(b)
    cols, starts = whole_numbers(indices, "indices"), whole_numbers(indptr, "indptr")
    n = starts.shape[-1] - 1
    if right.ndim not in (1, 2) or right.shape[0] != n:
        raise ShapeError(
            f"spsolve expected b of shape ({n},) or ({n}, k), got {tuple(right.shape)}",
            fix="b has a row for each row of the matrix, which indptr counts",
        )
    dtype = np.result_type(values.dtype, right.dtype)
    if dtype not in map(np.dtype, ("float32", "float64", "complex64", "complex128")):
        raise OperandTypeError(
            f"spsolve expected values of 32 or 64 bits with a fraction, got {dtype}",
            fix="convert them first, for instance by .astype('float32')",
        )
    a = BCSR((values.astype(dtype), cols, starts), shape=(n, n))
    right = right.astype(dtype)
    if "custom_linear_solve" not in ext.plugins.names("plait.lax"):
        return _solved(a, right)
    return lax.custom_linear_solve(
        lambda x: a @ x,
        right,
        lambda _, y: _solved(a, y),
        lambda _, y: _solved(a, y, transpose=True),
    )


def _solved(a: BCSR, b: Array, transpose: bool = False) -> Any:
    """Return the solution by scipy, which is called from the program."""
    library("scipy.sparse.linalg", "spsolve solves by scipy", "plait-sparse", "solver")
    sp = library("scipy.sparse", "spsolve solves by scipy", "plait-sparse", "solver")

    def solve(
        data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, b: np.ndarray
    ) -> np.ndarray:
        n, count = len(indptr) - 1, indptr[-1]
        kind = sp.csc_array if transpose else sp.csr_array
        matrix = kind((data[:count], indices[:count], indptr), shape=(n, n))
        try:
            return sp.linalg.splu(matrix.tocsc()).solve(np.asarray(b)).astype(b.dtype)
        except RuntimeError:  # the matrix is singular
            return np.full(b.shape, np.nan, b.dtype)

    like = plait.ShapeDtypeStruct(b.shape, b.dtype)
    # The derivative by `data` is that of `lambda x: a @ x`, the equation's left side.
    operands = lax.stop_gradient(a.data), a.indices, a.indptr, b
    return plait.pure_callback(solve, like, *operands, vmap_method="sequential")
