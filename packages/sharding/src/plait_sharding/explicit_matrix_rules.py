"""Rules of the table `explicit` for operations on stacks of matrices.

The matrices must be whole; the axes that count them are batch axes.

Invariant: only the table `explicit` loads this, when it meets a primitive of `linalg`.
"""

from typing import Any

from plait_numpy.ext.linalg import (
    cholesky_,
    eig_,
    eigh_,
    geqp3,
    geqrf,
    hessenberg_,
    householder_product_,
    lu_,
    ormqr_,
    pivots_to_permutation,
    qr_,
    schur_,
    svd_,
    triangular_solve_,
    tridiagonal_,
    tridiagonal_solve_,
)

from .explicit_rules import of_last
from .explicit_types import explicit_rules


def _matrices(prim: Any, *counts: int) -> None:
    @explicit_rules.rule(prim)
    def _(avals, outs, **params):
        return of_last(prim, avals, outs, counts)


for _prim in (
    cholesky_,
    eig_,
    eigh_,
    geqp3,
    geqrf,
    hessenberg_,
    lu_,
    qr_,
    schur_,
    svd_,
    tridiagonal_,
):
    _matrices(_prim, 2)
_matrices(pivots_to_permutation, 1)
_matrices(householder_product_, 2, 1)
_matrices(ormqr_, 2, 1, 2)
_matrices(tridiagonal_solve_, 1, 1, 1, 2)
_matrices(triangular_solve_, 2, 2)
