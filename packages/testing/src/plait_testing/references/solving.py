"""Linear systems by numpy.

Invariant: the matrix is written out in full and solved in double precision; the unread triangle of
a triangular matrix does not enter it.
"""

from collections.abc import Iterator

import numpy as np

from plait.ext.ir import Primitive

from ..samples import Reference, Sample
from .factorisation import FLOATS, each, matrices, positive

__all__ = ["REFERENCES"]


def _triangular(
    a: np.ndarray, b: np.ndarray, left_side: bool, lower: bool, transpose_a: bool,
    conjugate_a: bool, unit_diagonal: bool,
) -> np.ndarray:  # fmt: skip
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        np.fill_diagonal(a, 1)
    a = np.conj(a) if conjugate_a else a
    a = a.T if transpose_a else a
    return _solved(a, b) if left_side else _solved(a.T, b.T).T


def _solved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.solve(a, b)


def _tridiagonal(dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _solved(np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1), b)


def _solve(
    a: np.ndarray, b: np.ndarray, *factors: np.ndarray, kind: str, transposed: bool
) -> np.ndarray:
    return _solved(a.T if transposed else a, b)


def _by_factors(*xs: np.ndarray, kind: str, transposed: bool) -> np.ndarray:
    ndims = (2, 2, 2, 1) if kind == "lu" else (2, 2, 2)
    return each(_solve, ndims)(*xs, kind=kind, transposed=transposed)


# ---- samples -------------------------------------------------------------------------------


def _triangles(prim: Primitive) -> Iterator[Sample]:
    flags = [(True, True, False, False, False), (False, False, True, True, False),
             (True, False, True, False, True), (False, True, False, True, False)]  # fmt: skip
    names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
    for dtype in FLOATS:
        a = matrices(dtype, (2, 3, 3)) + 2 * np.eye(3, dtype=dtype)
        for row in flags:
            b = matrices(dtype, (2, 3, 2) if row[0] else (2, 2, 3), 1)
            yield Sample((a, b), dict(zip(names, row)))


def _bands(prim: Primitive) -> Iterator[Sample]:
    for dtype in FLOATS:
        dl, du, b = (matrices(dtype, (2, 4, 3), k) for k in range(3))
        d = 6 + matrices(dtype, (2, 4, 1), 3)[..., 0]
        yield Sample((dl[..., 0].copy(), d.astype(dtype), du[..., 0].copy(), b))


def _factored(prim: Primitive) -> Iterator[Sample]:
    import scipy.linalg

    for k, dtype in enumerate(FLOATS):
        a, b = matrices(dtype, (3, 3), k), matrices(dtype, (3, 2), 9)
        lu, pivots = scipy.linalg.lu_factor(a)
        order = list(range(3))
        for i, j in enumerate(pivots):
            order[i], order[j] = order[j], order[i]
        how = {"kind": "lu", "transposed": k % 2 == 1}
        yield Sample((a, b, lu.astype(dtype), np.array(order, np.int32)), how)
        a = positive(dtype, (3, 3), k)
        low = np.linalg.cholesky(a)
        yield Sample((a, b, low), {"kind": "cholesky", "transposed": k > 1})


REFERENCES = {
    "linalg.triangular_solve": Reference(each(_triangular, (2, 2)), _triangles, 64, whole=True),
    "linalg.tridiagonal_solve": Reference(each(_tridiagonal, (1, 1, 1, 2)), _bands, 32, whole=True),
    "linalg.solve": Reference(_by_factors, _factored, 128, whole=True),
}
"""The Reference of each primitive of the family."""
