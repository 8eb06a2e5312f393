"""Batching of factorisations and of solves.

Invariant: their operands are stacks of matrices and vectors already, so a mapped axis is one more
axis in front, of all operands.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.ops.linalg import (
    cholesky_,
    det_,
    eig_,
    eigh_,
    geqp3,
    geqrf,
    hessenberg_,
    householder_product_,
    lstsq_,
    lu_,
    ormqr_,
    pinv_,
    pivots_to_permutation,
    qr_,
    schur_,
    slogdet_,
    solve_,
    sqrtm_,
    svd_,
    sylvester,
    triangular_solve_,
    tridiagonal_,
    tridiagonal_solve_,
)

from ..interpreter import batching_rules

PRIMITIVES = (
    cholesky_,
    det_,
    eig_,
    eigh_,
    geqp3,
    geqrf,
    hessenberg_,
    householder_product_,
    lstsq_,
    lu_,
    ormqr_,
    pinv_,
    pivots_to_permutation,
    qr_,
    schur_,
    slogdet_,
    solve_,
    sqrtm_,
    svd_,
    sylvester,
    triangular_solve_,
    tridiagonal_,
    tridiagonal_solve_,
)


def _stacked(prim: Any) -> None:
    @batching_rules.rule(prim)
    def _(batch: Any, xs: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple:
        out = prim.bind(*[batch.front(x, d) for x, d in zip(xs, dims)], **params)
        return (out, [0] * len(out)) if prim.many else (out, 0)


for _p in PRIMITIVES:
    _stacked(_p)
