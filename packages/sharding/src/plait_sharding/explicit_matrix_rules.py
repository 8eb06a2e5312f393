"""Rules of the table `explicit` for operations on stacks of matrices.

The matrices must be whole; the axes that count them are batch axes.

Invariant: only the table `explicit` loads this, when it meets a primitive of `linalg`.
"""

from plait.ext.ir import Primitive
from plait.ext.types import Aval
from plait_numpy.ext import linalg as la

from .explicit_rules import of_last
from .explicit_types import explicit_rules


def _matrices(prim: Primitive, *counts: int) -> None:
    @explicit_rules.rule(prim)
    def _(avals: tuple[Aval, ...], outs: Aval | list[Aval], /, **params: object):
        return of_last(prim, avals, outs, counts)


for _prim in (
    la.cholesky_,
    la.eig_,
    la.eigh_,
    la.geqp3,
    la.geqrf,
    la.hessenberg_,
    la.lu_,
    la.qr_,
    la.schur_,
    la.svd_,
    la.tridiagonal_,
):
    _matrices(_prim, 2)
_matrices(la.pivots_to_permutation, 1)
_matrices(la.householder_product_, 2, 1)
_matrices(la.ormqr_, 2, 1, 2)
_matrices(la.tridiagonal_solve_, 1, 1, 1, 2)
_matrices(la.triangular_solve_, 2, 2)
