"""Sylvester's equation, and square roots of matrices.

Both are solved after a Schur decomposition, by one triangular system for each column of a
triangular matrix (Bartels and Stewart 1972; Bjorck and Hammarling 1983).

Invariant: the decompositions are never differentiated.  The equation is linear in its right-hand
side, and the derivative of a root solves it.
"""

from typing import Any

from plait.errors import OperandTypeError
from plait.ext import Aval, Literal, expand_rules, primitive, staged
from plait.ext.ops.control_flow import scan
from plait.ext.ops.elementwise import add, and_, eq, gt, select, sqrt, sub
from plait.ext.ops.reduction import reduce_sum
from plait.ext.ops.shape import broadcast_in_dim, convert, iota, moveaxis
from plait.ext.trace import Value
from plait.ext.types import INT32

from . import batched_matrices as bm
from .solving import triangular
from .spectral import schur_

# ---- Sylvester's equation ------------------------------------------------------------------


@primitive("linalg.sylvester", formerly=("core.sylvester",))
def sylvester(a: Aval, b: Aval, c: Aval) -> Aval:
    """Return x with a @ x + x @ b = c; it is unique if a and -b share no eigenvalue."""
    lead, n, _ = bm.stack_of("sylvester", a, square=True)
    other, m, _ = bm.stack_of("sylvester", b, square=True)
    if c.shape != (*lead, n, m) or lead != other or {a.dtype, b.dtype} != {c.dtype}:
        raise OperandTypeError(
            f"sylvester: {a!r}, {b!r} and {c!r} do not fit together",
            fix="c has the rows of a and the columns of b, in one dtype, with equal leading axes",
        )
    return c.strong()


@expand_rules.rule(sylvester)
def _(a: Value, b: Value, c: Value):
    aval = c.aval
    if bm.nothing(aval):
        return c
    a, b, c = (convert(v, bm.complex_dtype(aval.dtype)) for v in (a, b, c))
    (ra, za), (rb, zb) = (schur_.bind(v, vectors=True) for v in (a, b))
    y = _triangular(ra, rb, bm.times(bm.adjoint(za), c, zb))
    return convert(bm.times(za, y, bm.adjoint(zb)), aval.dtype)


def _triangular(a: Value, b: Value, c: Value) -> Any:
    """Solve for triangular a and b: (a + b[j, j]) x[:, j] = c[:, j] - x[:, :j] b[:j, j]."""
    aval, cell = c.aval, Aval((), INT32)
    column = aval.with_shape(aval.shape[:-1])
    b_column = b.aval.with_shape(b.aval.shape[:-1])
    body = staged(_next_column, [a.aval, aval, cell, column, b_column], "column")
    count = aval.shape[-1]
    rows = [iota(INT32, (count,)), *(moveaxis(v, -1, 0) for v in (c, b))]
    return scan.bind(
        a, Literal(0, aval), *rows, body=body, consts=1, carry=1, length=count, reverse=False,
        unroll=1,
    )[0]  # fmt: skip


def _next_column(a: Value, x: Value, j: Value, c: Value, b: Value) -> list:
    """Solve for column j of `x`, which has zeros from there on."""
    on = reduce_sum.bind(_only(b, j), axes=(b.aval.ndim - 1,))
    moved = bm.times(x, _as_matrix(b))
    right = sub.bind(_as_matrix(c), moved)
    y = triangular(_shifted(a, on), right, lower=False)
    return [_with_column(x, y, j)]


def _as_matrix(v: Value) -> Any:
    shape = (*v.aval.shape, 1)
    return broadcast_in_dim.bind(v, shape=shape, dims=tuple(range(v.aval.ndim)))


def _is(j: Value, aval: Aval, axis: int) -> Any:
    """Mark the elements whose index along an axis is `j`."""
    positions = iota(INT32, aval.shape, axis)
    return eq.bind(positions, broadcast_in_dim.bind(j, shape=aval.shape, dims=()))


def _only(v: Value, j: Value) -> Any:
    """Keep element j of vectors; zeros elsewhere."""
    return select.bind(_is(j, v.aval, v.aval.ndim - 1), v, Literal(0, v.aval))


def _shifted(a: Value, on: Value) -> Any:
    """Return a + on * I."""
    old = bm.diagonal(a)
    dims = tuple(range(on.aval.ndim))
    wide = broadcast_in_dim.bind(on, shape=old.aval.shape, dims=dims)
    return bm.on_diagonal(a, add.bind(old, wide))


def _with_column(x: Value, y: Value, j: Value) -> Any:
    aval = x.aval
    wide = broadcast_in_dim.bind(y, shape=aval.shape, dims=tuple(range(aval.ndim)))
    return select.bind(_is(j, aval, aval.ndim - 1), wide, x)


# ---- square roots --------------------------------------------------------------------------


@primitive("linalg.sqrtm", formerly=("core.sqrtm",))
def sqrtm_(x: Aval) -> Aval:
    """Return the principal square root of a matrix; complex."""
    bm.stack_of("sqrtm", x, square=True)
    return Aval(x.shape, bm.complex_dtype(x.dtype))


@expand_rules.rule(sqrtm_)
def _(x: Value):
    """Use the Schur decomposition; the root of its triangle is triangular too."""
    x = convert(x, bm.complex_dtype(x.aval.dtype))
    if bm.nothing(x.aval):
        return x
    t, z = schur_.bind(x, vectors=True)
    return bm.times(z, _triangular_root(t), bm.adjoint(z))


def _triangular_root(t: Value) -> Any:
    """Solve column by column: (R + r[j, j]) R[:, j] = T[:, j] above the diagonal."""
    aval, cell = t.aval, Aval((), INT32)
    root = sqrt.bind(bm.diagonal(t))
    column = aval.with_shape(aval.shape[:-1])
    point = aval.with_shape(aval.shape[:-2])
    body = staged(_next_of_root, [aval, cell, column, point], "column")
    count = aval.shape[-1]
    rows = [iota(INT32, (count,)), moveaxis(t, -1, 0), moveaxis(root, -1, 0)]
    start = bm.on_diagonal(Literal(0, aval), root)
    return scan.bind(
        start, *rows, body=body, consts=0, carry=1, length=count, reverse=False, unroll=1
    )[0]


def _next_of_root(r: Value, j: Value, t: Value, on: Value) -> list:
    """Solve for column j of `r`, which has its diagonal and all earlier columns."""
    aval = r.aval
    rows = iota(INT32, t.aval.shape, t.aval.ndim - 1)
    above = gt.bind(broadcast_in_dim.bind(j, shape=t.aval.shape, dims=()), rows)
    right = select.bind(above, t, Literal(0, t.aval))
    square_rows, columns = (iota(INT32, aval.shape, aval.ndim - k) for k in (2, 1))
    last = broadcast_in_dim.bind(j, shape=aval.shape, dims=())
    inside = and_.bind(gt.bind(last, square_rows), gt.bind(last, columns))
    matrix = select.bind(inside, _shifted(r, on), bm.identity(aval))
    y = triangular(matrix, _as_matrix(right), lower=False)
    placed = _with_column(Literal(0, aval), y, j)
    return [add.bind(r, placed)]
