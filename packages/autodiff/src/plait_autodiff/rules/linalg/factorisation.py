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
from plait.ext.ir import Primitive
from plait.ext.ops.elementwise import add, neg, sub
from plait.ext.ops.shape import concatenate, pad, slice_in_dim
from plait.ext.trace import Value
from plait.ext.types import COMPLEX
from plait_numpy.ext import linalg as la

from ...forward import ZERO, jvp_rules
from ...transpose import transpose_rules


def hermitian(t: Value, lower: bool) -> Any:
    """Return the Hermitian matrix that is given by one triangle."""
    half = la.halved_diagonal(t, lower)
    return add.bind(half, la.adjoint(half))


@jvp_rules.rule(la.cholesky_)
def _(xs: list[Value], ts: list[Value]):
    """Return dL = L tril(L^-1 dx L^-H), with the diagonal halved inside the brackets."""
    (x,), (t,) = xs, ts
    out = la.cholesky_.bind(x)
    if la.nothing(out.aval):
        return out, ZERO
    inner = la.triangular(out, hermitian(t, lower=True))
    inner = la.triangular(out, inner, left_side=False, transpose_a=True, conjugate_a=True)
    return out, la.times(out, la.halved_diagonal(inner))


# ---- LU ------------------------------------------------------------------------------------


def _grown(x: Value, size: int) -> Any:
    """Enlarge a square matrix with ones on the rest of the diagonal."""
    *lead, n, _ = x.aval.shape
    if size == n:
        return x
    extra = size - n
    sides = [(0, 0, 0)] * len(lead)
    corner = la.identity(x.aval.with_shape((*lead, extra, extra)))
    corner = pad(corner, 0, [*sides, (n, 0, 0), (n, 0, 0)])
    return add.bind(pad(x, 0, [*sides, (0, extra, 0), (0, extra, 0)]), corner)


@jvp_rules.rule(la.lu_)
def _(xs: list[Value], ts: list[Value]):
    """Solve L^-1 P dx U^-1 = L^-1 dL + dU U^-1, for P x = L U: strictly lower plus upper."""
    (x,), (t,) = xs, ts
    out, pivots = la.lu_.bind(x)
    if la.nothing(out.aval):
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
    t = la.rows_in_order(t, la.pivots_to_permutation.bind(pivots, size=m))
    inner = la.triangular(left, t, unit_diagonal=True)
    inner = la.triangular(right, inner, left_side=False, lower=False)
    lower = la.triangle(left, offset=-1)
    lower = add.bind(lower, la.identity(lower.aval))
    below = la.times(lower, la.triangle(inner, offset=-1))
    above = la.times(la.triangle(inner, lower=False), la.triangle(right, lower=False))
    return [out, pivots], [add.bind(below, above), ZERO]


def _sides(x: Value, rows: tuple, columns: tuple) -> list:
    return [(0, 0, 0)] * (x.aval.ndim - 2) + [rows, columns]


# ---- QR ------------------------------------------------------------------------------------


@jvp_rules.rule(la.qr_)
def _(xs: list[Value], ts: list[Value], *, full_matrices, pivoting):
    """Differentiate the leading square of R, where it is regular; other columns of R follow from
    dQ.  Other columns of Q move as little as possible within the complement of the first ones."""
    (x,), (t,) = xs, ts
    params = dict(full_matrices=full_matrices, pivoting=pivoting)
    q, r, *order = la.qr_.bind(x, **params)
    if la.nothing(x.aval):
        return [q, r, *order], [ZERO] * (2 + pivoting)
    t = la.columns_in_order(t, order[0]) if pivoting else t
    m, n = x.aval.shape[-2:]
    k = m if _less(m, n) else n
    q1, r1 = slice_in_dim(q, 0, k, axis=-1), slice_in_dim(r, 0, k, axis=-2)
    square, t1 = slice_in_dim(r1, 0, k, axis=-1), slice_in_dim(t, 0, k, axis=-1)
    dq, dr = _reduced(q1, square, t1)
    if k != n:
        rest = slice_in_dim(t, k, n, axis=-1)
        turned = la.times(la.adjoint(dq), q1, slice_in_dim(r1, k, n, axis=-1))
        dr = concatenate([dr, add.bind(la.times(la.adjoint(q1), rest), turned)], -1)
    if k != q.aval.shape[-1]:
        q2 = slice_in_dim(q, k, m, axis=-1)
        dq = concatenate([dq, neg.bind(la.times(q1, la.adjoint(dq), q2))], -1)
        dr = pad(dr, 0, _sides(dr, (0, m - k, 0), (0, 0, 0)))
    return [q, r, *order], [dq, dr, *([ZERO] * pivoting)]


def _less(m: int, n: int) -> bool:
    return m.__class__ is int and n.__class__ is int and m < n


def _reduced(q: Value, r: Value, t: Value) -> tuple:
    """Return (dQ, dR) for square R."""
    y = la.triangular(r, t, left_side=False, lower=False)  # dx R^-1
    c = la.times(la.adjoint(q), y)
    below = la.triangle(c, offset=-1)
    turn = sub.bind(below, la.adjoint(below))  # Q^H dQ, up to the imaginary diagonal
    if c.aval.category == COMPLEX:
        turn = add.bind(turn, _imaginary_diagonal(c))
    change = sub.bind(turn, c)
    return add.bind(la.times(q, change), y), neg.bind(la.times(change, r))


def _imaginary_diagonal(c: Value) -> Any:
    """Return half the diagonal of c - c^H, the imaginary part of c's diagonal, as a matrix."""
    half = la.halved_diagonal(c)
    on = sub.bind(half, la.triangle(half, offset=-1))
    return sub.bind(on, la.adjoint(on))


@jvp_rules.rule(la.ormqr_)
def _(xs: list[Value], ts: list[Value], *, left, adjoint):
    x, taus, c = xs
    if ts[0] is not ZERO or ts[1] is not ZERO:
        raise ArgumentError(
            "ormqr has no derivative in the reflectors", fix="differentiate lax.linalg.qr instead"
        )
    how = dict(left=left, adjoint=adjoint)
    return la.ormqr_.bind(x, taus, c, **how), la.ormqr_.bind(x, taus, ts[2], **how)


@transpose_rules.rule(la.ormqr_)
def _(ct: Value, x, taus, c: object, *, left, adjoint):
    """Apply Q^T to ct, the transpose of Q @ c, by Q^T = conj(Q^H conj)."""
    back = la.ormqr_.bind(x, taus, la.conjugate(ct), left=left, adjoint=not adjoint)
    return None, None, la.conjugate(back)


# ---- factorisations without derivatives ----------------------------------------------------


def _refused(prim: Primitive, instead: str) -> None:
    @jvp_rules.rule(prim)
    def _(xs: object, ts: object, /, **params: object) -> Any:
        raise ArgumentError(
            f"{prim} has no derivative: its result is a form that routines work with", fix=instead
        )


for _p in (la.geqrf, la.geqp3, la.householder_product_):
    _refused(_p, "differentiate lax.linalg.qr, which is made of it")
for _p in (la.hessenberg_, la.tridiagonal_):
    _refused(_p, "differentiate eigenvalues instead: numpy.linalg.eig and numpy.linalg.eigh")
_refused(la.schur_, "differentiate numpy.linalg.eig instead, or scipy.linalg.sqrtm as a whole")
