"""Batching of factorisations and solves.

Their operands are stacks of matrices and vectors already, so the mapped axis becomes an additional
leading axis of all operands.  If only right-hand sides vary, they become columns of one system.

`sylvester` has no rule: it is mapped through its expansion, which factorises each matrix alone.

Invariant: if only right-hand sides vary, the matrix is neither copied nor factorised for each
element.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.ir import Primitive
from plait.ext.ops.shape import reshape
from plait_numpy.ext import linalg as la

from ..interpreter import Batch, batching_rules

PRIMITIVES = (
    la.cholesky_,
    la.det_,
    la.eig_,
    la.eigh_,
    la.geqp3,
    la.geqrf,
    la.hessenberg_,
    la.householder_product_,
    la.lu_,
    la.pinv_,
    la.pivots_to_permutation,
    la.qr_,
    la.schur_,
    la.slogdet_,
    la.sqrtm_,
    la.svd_,
    la.tridiagonal_,
)


def _stacked(
    batch: Batch, prim: Primitive, xs: Sequence[Any], dims: Sequence[Any], params: Any
) -> tuple:
    out = prim.bind(*[batch.front(x, d) for x, d in zip(xs, dims)], **params)
    return (out, [0] * len(out)) if prim.many else (out, 0)


def _one_by_one(prim: Primitive) -> None:
    @batching_rules.rule(prim)
    def _(batch: Batch, xs: Sequence[Any], dims: Sequence[Any], /, **params: object) -> tuple:
        return _stacked(batch, prim, xs, dims, params)


for _p in PRIMITIVES:
    _one_by_one(_p)


# ---- systems -------------------------------------------------------------------------------


def _system(prim: Primitive, right: int, side: str | None = None) -> None:
    """Register the rule of an operation that solves for several right-hand sides.

    Operand number `right` may have any number of columns (of rows, if parameter `side` is
    False)."""

    @batching_rules.rule(prim)
    def _(batch: Batch, xs: Sequence[Any], dims: Sequence[Any], /, **params: object) -> tuple:
        if any(d is not None for i, d in enumerate(dims) if i != right):
            return _stacked(batch, prim, xs, dims, params)
        axis = xs[right].aval.ndim - (2 if side is None or params[side] else 3)
        wide = batch.move(xs[right], dims[right], axis)
        *front, size, n = wide.aval.shape[: axis + 2]
        rest = wide.aval.shape[axis + 2 :]
        operands = list(xs)
        operands[right] = reshape(wide, (*front, size * n, *rest))
        out = prim.bind(*operands, **params)
        # With several results, the first is the solution; the others depend on the matrix alone.
        x, *others = out if prim.many else [out]
        s = x.aval.shape
        x = reshape(x, (*s[:axis], size, n, *s[axis + 1 :]))
        return ([x, *others], [axis, *[None] * len(others)]) if prim.many else (x, axis)


_system(la.lstsq_, 1)
_system(la.ormqr_, 2, "left")
_system(la.solve_, 1)
_system(la.triangular_solve_, 1, "left_side")
_system(la.tridiagonal_solve_, 3)
