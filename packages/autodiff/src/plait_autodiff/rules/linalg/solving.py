"""Derivatives of triangular and tridiagonal solves.

Invariant: a @ x = b implies a @ dx = db - da @ x, so the tangent is a solution with the same
matrix.  The transpose of a solve is a solve with the transposed matrix.
"""

from typing import Any

from plait.ext.ops.elementwise import mul, sub
from plait.ext.ops.shape import pad_
from plait.ext.trace import Value
from plait.ext.values import Literal
from plait_numpy.ext import linalg as la
from plait_numpy.ext.linalg import transposed as transposed_matrix

from ...forward import ZERO, Zero, jvp_rules
from ...transpose import Linear, is_linear, not_linear, transpose_rules
from .factorisation import hermitian


@jvp_rules.rule(la.triangular_solve_)
def _(xs: list[Value], ts: list[Value], /, **params):
    (a, b), (da, db) = xs, ts
    x = la.triangular_solve_.bind(a, b, **params)
    if da is not ZERO:
        moved = _moved(da, x, **params)
        db = _less(db, moved)
    return x, la.triangular_solve_.bind(a, db, **params)


def _less(db: Value | Zero, moved: Value) -> Any:
    return mul.bind(Literal(-1, moved.aval), moved) if db is ZERO else sub.bind(db, moved)


def _moved(
    da: Value,
    x: Value,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Any:
    """Return op(da) @ x, or x @ op(da), for the part of `da` that the solve reads."""
    inside = (-1 if lower else 1) if unit_diagonal else 0
    da = la.triangle(da, lower, inside)
    da = transposed_if(da, transpose_a)
    da = la.conjugate(da) if conjugate_a else da
    return la.times(da, x) if left_side else la.times(x, da)


@transpose_rules.rule(la.triangular_solve_)
def _(ct: Value, a: Value, b: Linear, /, *, transpose_a: bool, **params: object):
    if is_linear(a):
        raise not_linear(la.triangular_solve_, a, b)
    return None, la.triangular_solve_.bind(a, ct, transpose_a=not transpose_a, **params)


# ---- tridiagonal ---------------------------------------------------------------------------


def _shifted(x: Value, axis: int, by: int) -> Any:
    """Shift elements along an axis: element i - by moves to i, zeros fill in."""
    n = x.aval.ndim
    at = lambda k: tuple([k if i == axis else 0 for i in range(n)])  # noqa: E731
    zero = Literal(0, x.aval.with_shape(()))
    return pad_.bind(x, zero, low=at(by), high=at(-by), interior=(0,) * n)


@jvp_rules.rule(la.tridiagonal_solve_)
def _(xs: list[Value], ts: list[Value]):
    *diagonals, b = xs
    *moves, db = ts
    x = la.tridiagonal_solve_.bind(*xs)
    for dv, by in zip(moves, (1, 0, -1)):
        if dv is not ZERO:
            near = _shifted(x, x.aval.ndim - 2, by) if by else x
            db = _less(db, mul.bind(la.as_columns(dv, x.aval), near))
    return x, la.tridiagonal_solve_.bind(*diagonals, db)


@transpose_rules.rule(la.tridiagonal_solve_)
def _(ct: Value, dl: Value, d: Value, du: Value, b: Linear):
    if any(is_linear(v) for v in (dl, d, du)):
        raise not_linear(la.tridiagonal_solve_, dl, d, du, b)
    axis = d.aval.ndim - 1
    turned = _shifted(du, axis, 1), d, _shifted(dl, axis, -1)
    return None, None, None, la.tridiagonal_solve_.bind(*turned, ct)


# ---- solves with given factors -------------------------------------------------------------


@jvp_rules.rule(la.solve_)
def _(xs: list[Value], ts: list[Any], *, kind: str, transposed: bool):
    """Ignore tangents of the factors: these are the factors of `a`, which has its own tangent."""
    a, b, *factors = xs
    da, db, *_ = ts
    how = dict(kind=kind, transposed=transposed)
    x = la.solve_.bind(a, b, *factors, **how)
    if da is not ZERO:
        da = hermitian(da, lower=True) if kind == "cholesky" else da
        db = _less(db, la.times(transposed_if(da, transposed), x))
    if db is ZERO or la.nothing(x.aval):
        return x, ZERO
    return x, la.solve_.bind(a, db, *factors, **how)


def transposed_if(a: Value, flag: bool) -> Any:
    """Return the transpose if `flag`, else the matrix itself."""
    return transposed_matrix(a) if flag else a


@transpose_rules.rule(la.solve_)
def _(ct: Value, a, b, *factors, kind, transposed):
    rest = [None] * len(factors)
    if is_linear(a) or any(map(is_linear, factors)):
        raise not_linear(la.solve_, a, b)
    return None, la.solve_.bind(a, ct, *factors, kind=kind, transposed=not transposed), *rest
