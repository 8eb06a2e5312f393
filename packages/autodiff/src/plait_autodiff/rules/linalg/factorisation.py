"""Derivatives of the Cholesky, LU and QR factorisations.

Each rule differentiates the equation of the factors, and multiplies by inverses of factors until
the tangents separate into triangles.  Sources: Murray 2016, "Differentiation of the Cholesky
decomposition"; Giles 2008, "Collected matrix derivative results"; Walter and Lehmann 2010,
"Algorithmic differentiation of linear algebra functions".

Invariant: only the part of an operand that the factorisation reads has a derivative.  Inverses are
never formed: the rules solve with triangular factors.
"""

from typing import Any

from plait.ext.errors import ArgumentError
from plait.ext.ops.elementwise import add, neg, sub
from plait.ext.ops.shape import concatenate, pad, slice_in_dim
from plait.ext.types import COMPLEX
from plait_numpy.ext.linalg import (
    adjoint,
    cholesky_,
    columns_in_order,
    conjugate,
    geqp3,
    geqrf,
    halved_diagonal,
    hessenberg_,
    householder_product_,
    identity,
    lu_,
    nothing,
    ormqr_,
    pivots_to_permutation,
    qr_,
    rows_in_order,
    schur_,
    times,
    triangle,
    triangular,
    tridiagonal_,
)

from ...forward import ZERO, jvp_rules
from ...transpose import transpose_rules


def hermitian(t: Any, lower: bool) -> Any:
    """Return the Hermitian matrix that is given by one triangle."""
    half = halved_diagonal(t, lower)
    return add.bind(half, adjoint(half))


@jvp_rules.rule(cholesky_)
def _(xs, ts):
    """Return dL = L tril(L^-1 dx L^-H), with the diagonal halved inside the brackets."""
    (x,), (t,) = xs, ts
    out = cholesky_.bind(x)
    if nothing(out.aval):
        return out, ZERO
    inner = triangular(out, hermitian(t, lower=True))
    inner = triangular(out, inner, left_side=False, transpose_a=True, conjugate_a=True)
    return out, times(out, halved_diagonal(inner))


# ---- LU ------------------------------------------------------------------------------------


def _grown(x: Any, size: Any) -> Any:
    """Enlarge a square matrix with ones on the rest of the diagonal."""
    *lead, n, _ = x.aval.shape
    if size == n:
        return x
    extra = size - n
    sides = [(0, 0, 0)] * len(lead)
    corner = identity(x.aval.with_shape((*lead, extra, extra)))
    corner = pad(corner, 0, [*sides, (n, 0, 0), (n, 0, 0)])
    return add.bind(pad(x, 0, [*sides, (0, extra, 0), (0, extra, 0)]), corner)


@jvp_rules.rule(lu_)
def _(xs, ts):
    """Solve L^-1 P dx U^-1 = L^-1 dL + dU U^-1, for P x = L U: strictly lower plus upper."""
    (x,), (t,) = xs, ts
    out, pivots = lu_.bind(x)
    if nothing(out.aval):
        return [out, pivots], [ZERO, ZERO]
    m, n = out.aval.shape[-2:]
    k = pivots.aval.shape[-1]
    left = _grown(slice_in_dim(slice_in_dim(out, 0, k, axis=-1), 0, k, axis=-2), m)
    if m != k:
        below = pad(slice_in_dim(out, k, m, axis=-2), 0, _sides(out, (k, 0, 0), (0, m - k, 0)))
        left = add.bind(left, below)
    right = _grown(slice_in_dim(slice_in_dim(out, 0, k, axis=-1), 0, k, axis=-2), n)
    if n != k:
        beside = pad(slice_in_dim(out, k, n, axis=-1), 0, _sides(out, (0, n - k, 0), (k, 0, 0)))
        right = add.bind(right, beside)
    t = rows_in_order(t, pivots_to_permutation.bind(pivots, size=m))
    inner = triangular(left, t, unit_diagonal=True)
    inner = triangular(right, inner, left_side=False, lower=False)
    lower = triangle(left, offset=-1)
    lower = add.bind(lower, identity(lower.aval))
    below = times(lower, triangle(inner, offset=-1))
    above = times(triangle(inner, lower=False), triangle(right, lower=False))
    return [out, pivots], [add.bind(below, above), ZERO]


def _sides(x: Any, rows: tuple, columns: tuple) -> list:
    return [(0, 0, 0)] * (x.aval.ndim - 2) + [rows, columns]


# ---- QR ------------------------------------------------------------------------------------


@jvp_rules.rule(qr_)
def _(xs, ts, *, full_matrices, pivoting):
    """Differentiate the leading square of R, where it is regular; other columns of R follow from
    dQ.  Other columns of Q move as little as possible within the complement of the first ones."""
    (x,), (t,) = xs, ts
    params = dict(full_matrices=full_matrices, pivoting=pivoting)
    q, r, *order = qr_.bind(x, **params)
    if nothing(x.aval):
        return [q, r, *order], [ZERO] * (2 + pivoting)
    t = columns_in_order(t, order[0]) if pivoting else t
    m, n = x.aval.shape[-2:]
    k = m if _less(m, n) else n
    q1, r1 = slice_in_dim(q, 0, k, axis=-1), slice_in_dim(r, 0, k, axis=-2)
    square, t1 = slice_in_dim(r1, 0, k, axis=-1), slice_in_dim(t, 0, k, axis=-1)
    dq, dr = _reduced(q1, square, t1)
    if k != n:
        rest = slice_in_dim(t, k, n, axis=-1)
        turned = times(adjoint(dq), q1, slice_in_dim(r1, k, n, axis=-1))
        dr = concatenate([dr, add.bind(times(adjoint(q1), rest), turned)], -1)
    if k != q.aval.shape[-1]:
        q2 = slice_in_dim(q, k, m, axis=-1)
        dq = concatenate([dq, neg.bind(times(q1, adjoint(dq), q2))], -1)
        dr = pad(dr, 0, _sides(dr, (0, m - k, 0), (0, 0, 0)))
    return [q, r, *order], [dq, dr, *([ZERO] * pivoting)]


def _less(m: Any, n: Any) -> bool:
    return m.__class__ is int and n.__class__ is int and m < n


def _reduced(q: Any, r: Any, t: Any) -> tuple:
    """Return (dQ, dR) for square R."""
    y = triangular(r, t, left_side=False, lower=False)  # dx R^-1
    c = times(adjoint(q), y)
    below = triangle(c, offset=-1)
    turn = sub.bind(below, adjoint(below))  # Q^H dQ, up to the imaginary diagonal
    if c.aval.category == COMPLEX:
        turn = add.bind(turn, _imaginary_diagonal(c))
    change = sub.bind(turn, c)
    return add.bind(times(q, change), y), neg.bind(times(change, r))


def _imaginary_diagonal(c: Any) -> Any:
    """Return half the diagonal of c - c^H, the imaginary part of c's diagonal, as a matrix."""
    half = halved_diagonal(c)
    on = sub.bind(half, triangle(half, offset=-1))
    return sub.bind(on, adjoint(on))


@jvp_rules.rule(ormqr_)
def _(xs, ts, *, left, adjoint):
    x, taus, c = xs
    if ts[0] is not ZERO or ts[1] is not ZERO:
        raise ArgumentError(
            "ormqr has no derivative in the reflectors", fix="differentiate lax.linalg.qr instead"
        )
    how = dict(left=left, adjoint=adjoint)
    return ormqr_.bind(x, taus, c, **how), ormqr_.bind(x, taus, ts[2], **how)


@transpose_rules.rule(ormqr_)
def _(ct, x, taus, c, *, left, adjoint):
    """Apply Q^T to ct, the transpose of Q @ c, by Q^T = conj(Q^H conj)."""
    back = ormqr_.bind(x, taus, conjugate(ct), left=left, adjoint=not adjoint)
    return None, None, conjugate(back)


# ---- factorisations without derivatives ----------------------------------------------------


def _refused(prim: Any, instead: str) -> None:
    @jvp_rules.rule(prim)
    def _(xs: Any, ts: Any, **params: Any) -> Any:
        raise ArgumentError(
            f"{prim} has no derivative: its result is a form that routines work with", fix=instead
        )


for _p in (geqrf, geqp3, householder_product_):
    _refused(_p, "differentiate lax.linalg.qr, which is made of it")
for _p in (hessenberg_, tridiagonal_):
    _refused(_p, "differentiate eigenvalues instead: numpy.linalg.eig and numpy.linalg.eigh")
_refused(schur_, "differentiate numpy.linalg.eig instead, or scipy.linalg.sqrtm as a whole")
