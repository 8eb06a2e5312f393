"""Derivatives of determinants, pseudo-inverses and least squares.

Sources: Jacobi's formula for determinants; Golub and Pereyra 1973, "The differentiation of
pseudo-inverses and nonlinear least squares problems whose variables separate".

Invariant: factors are computed from the primals; the linear part is products with them.
"""

from typing import Any

import numpy as np

from plait.ext.ops import shape as sh
from plait.ext.ops.elementwise import add, eq, imag, mul, select, sub
from plait.ext.ops.reduction import reduce_sum
from plait.ext.trace import Value
from plait.ext.types import COMPLEX, Aval
from plait.ext.values import Literal
from plait_numpy.ext import linalg as la

from ...forward import ZERO, jvp_rules

# ---- determinants --------------------------------------------------------------------------


def traced(a: Value, t: Value) -> Any:
    """Return the trace of a @ t."""
    n = t.aval.ndim
    return reduce_sum.bind(mul.bind(la.transposed(a), t), axes=(n - 2, n - 1))


@jvp_rules.rule(la.det_)
def _(xs: list[Value], ts: list[Value]):
    """Return the trace of the adjugate times dx; it exists for singular matrices, too."""
    (x,), (t,) = xs, ts
    out = la.det_.bind(x)
    return out, ZERO if la.nothing(x.aval) else traced(adjugate(x), t)


def adjugate(x: Value) -> Any:
    """Return the transposed matrix of cofactors, which is det(x) x^-1 if x is regular.

    For small matrices it is written out, so that all of its derivatives exist.  For others, let
    x P = Q R, with columns pivoted so that negligible rows of R come last.  It is then
    det(Q P^T) P adj(R) Q^H, whose derivatives need a regular x.
    """
    if x.aval.shape[-1] in (1, 2, 3):
        return la.transposed(_cofactors(x))
    q, r, order = la.qr_.bind(x, full_matrices=False, pivoting=True)
    back = la.order_back(order)
    turn = la.det_.bind(la.columns_in_order(q, back))
    out = la.rows_in_order(la.times(_triangular_adjugate(r), la.adjoint(q)), back)
    dims = tuple(range(turn.aval.ndim))
    return mul.bind(out, sh.broadcast_in_dim.bind(turn, shape=out.aval.shape, dims=dims))


def _cofactors(x: Value) -> Any:
    """Return the cofactors of matrices of one to three rows, from cyclic shifts of the matrix."""
    n = x.aval.shape[-1]
    if n == 1:
        return Literal(1, x.aval)
    if n == 2:
        return mul.bind(_turned(x, 1, 1), _signs(x.aval))
    product = lambda i, j, k, m: mul.bind(_turned(x, i, j), _turned(x, k, m))  # noqa: E731
    return sub.bind(product(1, 1, 2, 2), product(1, 2, 2, 1))


def _turned(x: Value, rows: int, columns: int) -> Any:
    """Return the matrix with element (i + rows, j + columns) at (i, j), cyclically."""
    for axis, k in ((x.aval.ndim - 2, rows), (x.aval.ndim - 1, columns)):
        parts = (
            sh.slice_in_dim(x, k, x.aval.shape[-1], axis=axis),
            sh.slice_in_dim(x, 0, k, axis=axis),
        )
        x = sh.concatenate_.bind(*parts, axis=axis)
    return x


def _signs(aval: Aval) -> Any:
    """Return 1 on the diagonal, -1 beside it."""
    i, j = (sh.iota(np.int32, aval.shape, aval.ndim - k) for k in (2, 1))
    return select.bind(eq.bind(i, j), Literal(1, aval), Literal(-1, aval))


def _triangular_adjugate(r: Value) -> Any:
    """Return the adjugate of an upper triangular matrix.

    It does not divide by the last element of the diagonal.  Any other zero on the diagonal makes
    the product of all elements but the last vanish.
    """
    aval = r.aval
    on = la.diagonal(r)
    vector, n = on.aval, on.aval.ndim - 1
    zero, one = Literal(0, vector), Literal(1, vector)
    positions = sh.iota(np.int32, vector.shape, n)
    end = sh.size_value(vector.shape[-1], np.dtype(np.int32))
    end = sh.broadcast_in_dim.bind(end, shape=vector.shape, dims=())
    last = eq.bind(add.bind(positions, Literal(1, positions.aval)), end)
    most = select.bind(last, one, on)
    rest = la.scaled_product(most)
    final = reduce_sum.bind(select.bind(last, on, zero), axes=(n,))
    lead = tuple(range(n))
    safe = select.bind(eq.bind(most, zero), one, most)
    right = select.bind(last, one, sh.broadcast_in_dim.bind(final, shape=vector.shape, dims=lead))
    right = mul.bind(right, sh.broadcast_in_dim.bind(rest, shape=vector.shape, dims=lead))
    matrix = la.on_diagonal(r, safe)
    # The columns are scaled after solving.  With right sides scaled by a determinant, intermediate
    # values of the solve could be infinite where the solution is not.
    columns = la.triangular(matrix, la.on_diagonal(Literal(0, aval), one), lower=False)
    return mul.bind(columns, la.as_rows(right, aval))


@jvp_rules.rule(la.slogdet_)
def _(xs: list[Value], ts: list[Value]):
    """Use d log det = trace(x^-1 dx).

    Its real part is the tangent of log |det|.  Its imaginary part times i and the phase is the
    tangent of the phase.
    """
    (x,), (t,) = xs, ts
    phase, size = la.slogdet_.bind(x)
    if la.nothing(x.aval):
        return [phase, size], [ZERO, ZERO]
    moved = traced(la.inverse(x), t)
    turn = ZERO
    if x.aval.category == COMPLEX:
        i = Literal(1j, phase.aval)
        turn = mul.bind(mul.bind(phase, i), sh.convert(imag.bind(moved), phase.aval.dtype))
    return [phase, size], [turn, la.real_part(moved)]


# ---- pseudo-inverses -----------------------------------------------------------------------


def _outside(x: Value, y: Value, z: Value) -> Any:
    """Return (I - x @ y) @ z."""
    return sub.bind(z, la.times(x, la.times(y, z)))


@jvp_rules.rule(la.pinv_)
def _(xs: list[Value], ts: list[Value]):
    """Return -P dx P + P P^H dx^H (I - x P) + (I - P x) dx^H P^H P; the tolerance is constant."""
    (x, rtol), (t, _) = xs, ts
    p = la.pinv_.bind(x, rtol)
    if la.nothing(x.aval) or t is ZERO:
        return p, ZERO
    back, turned = la.adjoint(t), la.adjoint(p)
    inner = la.times(p, turned, back)
    right = sub.bind(inner, la.times(inner, x, p))
    left = _outside(p, x, la.times(back, turned, p))
    return p, sub.bind(add.bind(right, left), la.times(p, t, p))


@jvp_rules.rule(la.lstsq_)
def _(xs: list[Value], ts: list[Value]):
    """Apply the derivative of the pseudo-inverse P to b.

    The result is P (db - da x) + P P^H da^H (b - a x) + (I - P a) da^H P^H x.
    """
    (a, b, rtol), (da, db, _) = xs, ts
    x, rank, s = la.lstsq_.bind(a, b, rtol)
    if la.nothing(a.aval) or (da is ZERO and db is ZERO):
        return [x, rank, s], [ZERO, ZERO, ZERO]
    p = la.pinv_.bind(a, rtol)
    dx: Any = ZERO if db is ZERO else la.times(p, db)
    ds: Any = ZERO
    if da is not ZERO:
        back, turned = la.adjoint(da), la.adjoint(p)
        rest = sub.bind(b, la.times(a, x))
        by_a = add.bind(
            la.times(p, la.times(turned, la.times(back, rest))),
            _outside(p, a, la.times(back, la.times(turned, x))),
        )
        by_a = sub.bind(by_a, la.times(p, la.times(da, x)))
        dx = by_a if dx is ZERO else add.bind(dx, by_a)
        ds = _singular_moves(a, da)
    return [x, rank, s], [dx, ZERO, ds]


def _singular_moves(a: Value, da: Value) -> Any:
    _, u, vh = la.svd_.bind(a, full_matrices=False, compute_uv=True)
    return la.real_part(la.diagonal(la.times(la.adjoint(u), da, la.adjoint(vh))))
