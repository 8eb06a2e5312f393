"""Determinants, pseudo-inverses and least squares: functions of matrices whose derivatives are
better behaved than those of the factors that compute them.

Invariant: derivatives exist wherever the function has one: for determinants also at singular
matrices, for pseudo-inverses also where singular values coincide.
"""

from typing import Any

from plait.errors import OperandTypeError
from plait.ext import Aval, Literal, expand_rules, primitive
from plait.ext.ops.elementwise import abs_, div, eq, gt, log, mul, ne, rem, select, sign, sub
from plait.ext.ops.reduction import reduce_max, reduce_prod, reduce_sum
from plait.ext.ops.shape import broadcast_in_dim, convert, iota
from plait.ext.trace import Value
from plait.ext.types import INT32

from . import batched_matrices as bm
from .factorisation import lu_
from .scaled_products import scaled_product
from .spectral import svd_

# ---- determinants --------------------------------------------------------------------------


@primitive("linalg.det", formerly=("core.det",))
def det_(x: Aval) -> Aval:
    """Return the determinant; 1 for a matrix without elements."""
    lead, _, _ = bm.stack_of("det", x, square=True)
    return Aval(lead, x.dtype)


def parity(pivots: Value, dtype: object) -> Any:
    """Return (-1) ** number of exchanges."""
    at = iota(INT32, pivots.aval.shape, pivots.aval.ndim - 1)
    moved = convert(ne.bind(pivots, at), INT32)
    count = reduce_sum.bind(moved, axes=(moved.aval.ndim - 1,))
    odd = convert(rem.bind(count, Literal(2, count.aval)), dtype)
    return sub.bind(Literal(1, odd.aval), mul.bind(Literal(2, odd.aval), odd))


@expand_rules.rule(det_)
def _(x: Value):
    out = det_.infer((x.aval,), {})
    if bm.nothing(x.aval):
        return Literal(1, out)
    lu, pivots = lu_.bind(x)
    return mul.bind(scaled_product(bm.diagonal(lu)), parity(pivots, out.dtype))


@primitive("linalg.slogdet", formerly=("core.slogdet",), many=True)
def slogdet_(x: Aval) -> list:
    """Return (sign or phase of the determinant, log of its size); (0, -inf) if it is zero."""
    lead, _, _ = bm.stack_of("slogdet", x, square=True)
    return [Aval(lead, x.dtype), Aval(lead, bm.real_dtype(x.dtype))]


@expand_rules.rule(slogdet_)
def _(x: Value):
    phase, size = slogdet_.infer((x.aval,), {})
    if bm.nothing(x.aval):
        return [Literal(1, phase), Literal(0, size)]
    lu, pivots = lu_.bind(x)
    on, axes = bm.diagonal(lu), (phase.ndim,)
    phase = mul.bind(reduce_prod.bind(sign.bind(on), axes=axes), parity(pivots, phase.dtype))
    return [phase, reduce_sum.bind(log.bind(abs_.bind(on)), axes=axes)]


# ---- pseudo-inverses -----------------------------------------------------------------------


def _cut_off(name: str, x: Aval, rtol: Aval) -> None:
    lead, dtype = x.shape[:-2], bm.real_dtype(x.dtype)
    if rtol.shape != lead or rtol.dtype != dtype:
        raise OperandTypeError(
            f"{name}: {rtol!r} is no tolerance for {x!r}",
            fix=f"give one number of dtype {dtype} for each matrix",
        )


def inverse_values(s: Value, rtol: Value) -> tuple:
    """Return (1 / s, or 0 where s is negligible; a mask of the others) for singular values.

    Values of at most `rtol` times the greatest are negligible.
    """
    n = s.aval.ndim - 1
    top = mul.bind(reduce_max.bind(s, axes=(n,)), rtol)
    kept = gt.bind(s, broadcast_in_dim.bind(top, shape=s.aval.shape, dims=tuple(range(n))))
    kept = kept if bm.nothing(s.aval) else _or_nan(kept, s)
    one, zero = Literal(1, s.aval), Literal(0, s.aval)
    return select.bind(kept, div.bind(one, select.bind(kept, s, one)), zero), kept


def _or_nan(kept: Value, s: Value) -> Any:
    """Keep nan, which is never negligible."""
    return select.bind(eq.bind(s, s), kept, Literal(True, kept.aval))


def from_parts(u: Value, inverse: Value, vh: Value) -> Any:
    """Return V @ diag(inverse) @ U^H."""
    v = bm.adjoint(vh)
    return bm.times(mul.bind(v, bm.as_rows(convert(inverse, v.aval.dtype), v.aval)), bm.adjoint(u))


@primitive("linalg.pinv", formerly=("core.pinv",))
def pinv_(x: Aval, rtol: Aval) -> Aval:
    """Return the pseudo-inverse; singular values up to `rtol` times the greatest count as zero."""
    lead, m, n = bm.stack_of("pinv", x)
    _cut_off("pinv", x, rtol)
    return Aval((*lead, n, m), x.dtype)


@expand_rules.rule(pinv_)
def _(x: Value, rtol: Value):
    if bm.nothing(x.aval):
        return Literal(0, pinv_.infer((x.aval, rtol.aval), {}))
    s, u, vh = svd_.bind(x, full_matrices=False, compute_uv=True)
    return from_parts(u, inverse_values(s, rtol)[0], vh)


@primitive("linalg.lstsq", formerly=("core.lstsq",), many=True)
def lstsq_(a: Aval, b: Aval, rtol: Aval) -> list:
    """Return (the least x that minimises |a @ x - b|, rank of a, its singular values).

    Singular values of at most `rtol` times the greatest count as zero.
    """
    lead, m, n = bm.stack_of("lstsq", a)
    bm.beside("lstsq", a, b)
    _cut_off("lstsq", a, rtol)
    values = Aval((*lead, bm.fewer(m, n)), bm.real_dtype(a.dtype))
    return [Aval((*lead, n, b.shape[-1]), a.dtype), Aval(lead, INT32), values]


@expand_rules.rule(lstsq_)
def _(a: Value, b: Value, rtol: Value):
    if bm.nothing(a.aval):
        outs = lstsq_.infer((a.aval, b.aval, rtol.aval), {})
        return [Literal(0, o) for o in outs]
    s, u, vh = svd_.bind(a, full_matrices=False, compute_uv=True)
    inverse, kept = inverse_values(s, rtol)
    y = bm.times(bm.adjoint(u), b)
    x = bm.times(bm.adjoint(vh), mul.bind(bm.as_columns(convert(inverse, y.aval.dtype), y.aval), y))
    return [x, reduce_sum.bind(convert(kept, INT32), axes=(s.aval.ndim - 1,)), s]
