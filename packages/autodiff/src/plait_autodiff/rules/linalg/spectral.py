"""Derivatives of eigenvalues, eigenvectors and singular values.

Sources: Giles 2008, "Collected matrix derivative results"; Townsend 2016, "Differentiating the
singular value decomposition"; Boeddeker et al. 2017, "On the computation of complex-valued
gradients", for eigenvectors of general matrices.

Invariant: vectors are determined up to a phase (and, for equal values, up to a rotation).  The
tangent is the one that rotates them least.  `eig` is different: its normalisation (length one,
largest component real) fixes the phase.  For equal values, tangents of vectors are infinite or nan,
but those of values are correct.
"""

from typing import Any

from plait.ext.ops import elementwise as el
from plait.ext.ops.reduction import reduce_max, reduce_sum
from plait.ext.ops.shape import concatenate, convert, slice_in_dim
from plait.ext.trace import Value
from plait.ext.types import COMPLEX
from plait.ext.values import Literal
from plait_numpy.ext import linalg as la

from ...forward import ZERO, jvp_rules
from .factorisation import hermitian


def _apart(w: Value, like: Value) -> Any:
    """Return 1 / (w[j] - w[i]) off the diagonal, 0 on it."""
    square = w.aval.with_shape((*w.aval.shape, w.aval.shape[-1]))
    gaps = la.off_diagonal(el.sub.bind(la.as_rows(w, square), la.as_columns(w, square)), 1)
    inverse = la.off_diagonal(el.div.bind(Literal(1, gaps.aval), gaps))
    return convert(inverse, like.aval.dtype)


@jvp_rules.rule(la.eigh_)
def _(xs: list[Value], ts: list[Value], *, lower: bool, vectors: bool):
    """Return dw = diag(V^H dx V), dV = V (F * V^H dx V) with F[i, j] = 1 / (w[j] - w[i])."""
    (x,), (t,) = xs, ts
    w, v = la.eigh_.bind(x, lower=lower, vectors=True)
    if la.nothing(x.aval):
        return ([w, v], [ZERO, ZERO]) if vectors else ([w], [ZERO])
    inner = la.times(la.adjoint(v), hermitian(t, lower), v)
    dw = la.real_part(la.diagonal(inner))
    if not vectors:
        return [w], [dw]
    return [w, v], [dw, la.times(v, el.mul.bind(_apart(w, v), inner))]


# ---- singular values -----------------------------------------------------------------------


@jvp_rules.rule(la.svd_)
def _(xs: list[Value], ts: list[Value], *, full_matrices: bool, compute_uv: bool):
    """Let P = U^H dx V.  Then ds = Re diag(P), and U^H dU and V^H dV solve two equations off the
    diagonal.  The parts outside of U and V are (I - U U^H) dx V / s, and the same for V."""
    (x,), (t,) = xs, ts
    params = dict(full_matrices=full_matrices, compute_uv=True)
    s, u, vh = la.svd_.bind(x, **params)
    if la.nothing(x.aval):
        return ([s, u, vh], [ZERO] * 3) if compute_uv else ([s], [ZERO])
    k = s.aval.shape[-1]
    u1, v1 = slice_in_dim(u, 0, k, axis=-1), la.adjoint(slice_in_dim(vh, 0, k, axis=-2))
    tv = la.times(t, v1)
    p = la.times(la.adjoint(u1), tv)
    ds = la.real_part(la.diagonal(p))
    if not compute_uv:
        return [s], [ds]
    turn_u, turn_v = _turns(s, p)
    du = _moved(u, u1, turn_u, tv, s)
    dv = _moved(la.adjoint(vh), v1, turn_v, la.times(la.adjoint(t), u1), s)
    return [s, u, vh], [ds, du, la.adjoint(dv)]


def _turns(s: Value, p: Value) -> tuple:
    """Return (U^H dU, V^H dV), both skew."""
    like = p.aval
    square = el.mul.bind(s, s)
    gaps = _apart(square, p)
    wide = convert(s, like.dtype)
    rows, columns = la.as_rows(wide, like), la.as_columns(wide, like)
    back = la.adjoint(p)
    turn_u = el.mul.bind(gaps, el.add.bind(el.mul.bind(p, rows), el.mul.bind(columns, back)))
    turn_v = el.mul.bind(gaps, el.add.bind(el.mul.bind(columns, p), el.mul.bind(back, rows)))
    if like.category == COMPLEX:  # the imaginary diagonal of P rotates the phases of U's columns
        skew = el.mul.bind(Literal(0.5, like), el.sub.bind(p, back))
        on = el.sub.bind(skew, la.off_diagonal(skew))
        turn_u = el.add.bind(turn_u, el.mul.bind(on, la.as_rows(_inverse(wide), like)))
    return turn_u, turn_v


def _inverse(s: Value) -> Any:
    """Return 1 / s, and 0 where s is 0."""
    zero, one = Literal(0, s.aval), Literal(1, s.aval)
    none = el.eq.bind(s, zero)
    return el.select.bind(none, zero, el.div.bind(one, el.select.bind(none, one, s)))


def _moved(u: Value, u1: Value, turn: Value, tv: Value, s: Value) -> Any:
    """Return the tangent of all of U: of its first columns, and of the others, which stay
    orthogonal to them."""
    rows, k = u1.aval.shape[-2:]
    du = la.times(u1, turn)
    if rows == k:
        return du
    outside = el.sub.bind(tv, la.times(u1, la.adjoint(u1), tv))
    by = la.as_rows(_inverse(convert(s, u.aval.dtype)), outside.aval)
    du = el.add.bind(du, el.mul.bind(outside, by))
    if u.aval.shape[-1] == k:
        return du
    rest = slice_in_dim(u, k, rows, axis=-1)
    return concatenate([du, el.neg.bind(la.times(u1, la.adjoint(du), rest))], -1)


# ---- general -------------------------------------------------------------------------------


@jvp_rules.rule(la.eig_)
def _(xs: list[Value], ts: list[Value], *, left, right):
    """Return dw = U^H dx V / U^H V, column by column, for left vectors U."""
    (x,), (t,) = xs, ts
    w, u, v = la.eig_.bind(x, left=True, right=True)
    outs = [w, *([u] * left), *([v] * right)]
    if la.nothing(x.aval):
        return outs, [ZERO] * len(outs)
    t = convert(t, w.aval.dtype)
    inner = la.times(la.adjoint(u), t, v)
    sizes = la.diagonal(la.times(la.adjoint(u), v))
    dw = el.div.bind(la.diagonal(inner), sizes)
    dots = [dw]
    if left:
        turn = el.mul.bind(la.adjoint(inner), la.as_columns(_over(la.conjugate(sizes)), inner.aval))
        dots.append(_normal(u, la.times(u, el.mul.bind(_apart(la.conjugate(w), u), turn))))
    if right:
        turn = el.mul.bind(inner, la.as_columns(_over(sizes), inner.aval))
        dots.append(_normal(v, la.times(v, el.mul.bind(_apart(w, v), turn))))
    return outs, dots


def _over(x: Value) -> Any:
    return el.div.bind(Literal(1, x.aval), x)


def _normal(v: Value, dv: Value) -> Any:
    """Return `dv` plus multiples of the columns of `v`, such that columns keep their length and
    their largest component stays real."""
    axis = v.aval.ndim - 2
    largest, moved = _at_largest(v, v, axis), _at_largest(v, dv, axis)
    turn = el.imag.bind(el.div.bind(moved, largest))
    overlap = el.real.bind(reduce_sum.bind(el.mul.bind(la.conjugate(v), dv), axes=(axis,)))
    by = el.complex_.bind(overlap, turn)
    return el.sub.bind(dv, el.mul.bind(v, la.as_rows(by, v.aval)))


def _at_largest(v: Value, x: Value, axis: int) -> Any:
    """Return the sum of the elements of `x` where a column of `v` is largest (one, up to ties)."""
    part = lambda f: el.mul.bind(f.bind(v), f.bind(v))  # noqa: E731
    size = el.once.bind(el.add.bind(part(el.real), part(el.imag)))
    top = la.as_rows(reduce_max.bind(size, axes=(axis,)), size.aval)
    return reduce_sum.bind(
        el.select.bind(el.eq.bind(size, top), x, Literal(0, x.aval)), axes=(axis,)
    )
