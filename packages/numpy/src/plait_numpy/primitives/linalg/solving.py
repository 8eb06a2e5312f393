"""Linear systems, with matrices that are triangular, tridiagonal, or factorised already.

Invariant: solutions are linear in the right-hand side.  The other triangle of a triangular matrix
is never read, nor its diagonal if that is declared to be one.  A singular matrix gives infinities
and nan, without an error.
"""

from typing import Any

from plait.errors import ArgumentError, OperandTypeError
from plait.ext import Aval, expand_rules, lower_rules, primitive
from plait.ext.lower import Emitter, IrValue, attr, boolean, i64s
from plait.ext.ops.elementwise import conj, stop
from plait.ext.ops.indexing import taken
from plait.ext.ops.shape import broadcast_in_dim, iota
from plait.ext.ops.sorting import sort_
from plait.ext.trace import Value
from plait.ext.types import COMPLEX
from plait.typing import Array

from .batched_matrices import beside, conjugate, identity, nothing, stack_of, supported
from .factorisation import cholesky_, lu_, pivots_to_permutation
from .kernels import infos, kernel, lapack, lies_in_columns, platform, told

# ---- triangular ----------------------------------------------------------------------------


@primitive("linalg.triangular_solve", formerly=("core.triangular_solve",))
def triangular_solve_(
    a: Aval,
    b: Aval,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Aval:
    """Return x with op(a) @ x = b, or x @ op(a) = b unless `left_side`.

    op transposes and conjugates.
    """
    stack_of("triangular_solve", a, square=True)
    beside("triangular_solve", a, b, left_side)
    return b.strong()


@lower_rules.rule(triangular_solve_)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
):
    (a, b), (matrix, aval) = xs, ins
    if nothing(aval) or nothing(matrix):
        return b
    turned = conjugate_a and matrix.category == COMPLEX
    if turned and not transpose_a:
        a = lower_rules[conj](e, [a], [matrix], [matrix])
    if e.unit.platforms == ("cpu",):
        op = "N" if not transpose_a else "C" if turned else "T"
        side, half, types = "LR"[not left_side], "UL"[lower], ins
        if e.unit.formed:
            # The kernel reads columns, and arrays are in rows: their transposes are read as they
            # lie, and x @ op(a) = b is op(a).T @ x.T = b.T.  Results of kernels lie in columns.
            side, types = "LR"[left_side], [matrix, _flipped(aval)]
            b = _flip(e, b, types[1])
            if op != "C" and lies_in_columns(a):
                op = "NT"[op == "N"]
            else:
                half, types[0] = "LU"[lower], _flipped(matrix)
                a = _flip(e, a, types[0])
        config = dict(side=side, uplo=half, trans_x=op, diag="NU"[unit_diagonal])
        name = lapack("trsm", aval)
        (found,) = kernel(e, name, [a, b], types, types[1:], aval.ndim - 2, {1: 0}, **config)
        return _flip(e, found, outs[0]) if e.unit.formed else found
    op = "NO_TRANSPOSE" if not transpose_a else "ADJOINT" if turned else "TRANSPOSE"
    return e.op(
        "stablehlo.triangular_solve", [a, b], outs[0], left_side=boolean(left_side),
        lower=boolean(lower), unit_diagonal=boolean(unit_diagonal),
        transpose_a=attr(f"#stablehlo<transpose {op}>"),
    )  # fmt: skip


def _flipped(x: Aval) -> Aval:
    """Return the type of the transposed matrices of a stack."""
    return x.with_shape((*x.shape[:-2], x.shape[-1], x.shape[-2]))


def _flip(e: Emitter, x: IrValue, out: Aval) -> IrValue:
    """Return the transposed matrices of a stack, which have this type."""
    n = out.ndim
    return e.op("stablehlo.transpose", [x], out, permutation=i64s(*range(n - 2), n - 1, n - 2))


def triangular(
    a: Array,
    b: Array,
    *,
    left_side: bool = True,
    lower: bool = True,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """Apply the primitive to values that agree already."""
    return triangular_solve_.bind(
        a, b, left_side=left_side, lower=lower, transpose_a=transpose_a,
        conjugate_a=conjugate_a, unit_diagonal=unit_diagonal,
    )  # fmt: skip


# ---- tridiagonal ---------------------------------------------------------------------------


@primitive("linalg.tridiagonal_solve", formerly=("core.tridiagonal_solve",))
def tridiagonal_solve_(dl: Aval, d: Aval, du: Aval, b: Aval) -> Aval:
    """Return x with a @ x = b; nan if a is singular.

    a has `dl` below the diagonal (dl[0] is not read), `d` on it, and `du` above it (du[-1] is not
    read).
    """
    lead, n, _ = stack_of("tridiagonal_solve", b)
    for v in (dl, d, du):
        supported("tridiagonal_solve", v)
        if v.shape != (*lead, n) or v.dtype != b.dtype:
            raise OperandTypeError(
                f"tridiagonal_solve: {v!r} is no diagonal for the right-hand side {b!r}",
                fix="give all three diagonals as many elements as there are rows, in one dtype",
            )
    return b.strong()


@lower_rules.rule(tridiagonal_solve_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    aval = ins[3]
    if nothing(aval):
        return xs[3]
    stacked = aval.ndim - 2
    if platform(e, "tridiagonal_solve") == "cuda":
        return kernel(e, "cusparse_gtsv2_ffi", xs, ins, outs, stacked, {3: 0})[0]
    info = infos(aval)
    over = {i: i for i in range(4)}
    found = kernel(e, lapack("gtsv", aval), xs, ins, [*ins, info], stacked, over)
    return told(e, found[4], info, "EQ", [found[3]], outs)[0]


# ---- solutions from known factors ----------------------------------------------------------


@primitive("linalg.solve", formerly=("core.solve",))
def solve_(a: Aval, b: Aval, *factors: Aval, kind: str, transposed: bool) -> Aval:
    """Return x with a @ x = b, or a^T @ x = b if `transposed`, from factors of `a`.

    "lu" takes those of `lu_` and the permutation; "cholesky" takes the lower one.  The factors are
    a means to compute x: derivatives regard `a` and `b` alone as variables.
    """
    stack_of("solve", a, square=True)
    beside("solve", a, b)
    if len(factors) != _FACTORS.get(kind):
        raise ArgumentError(
            f"solve: {len(factors)} factors of kind {kind!r}", fix='give 2 of "lu", 1 of "cholesky"'
        )
    return b.strong()


_FACTORS = {"lu": 2, "cholesky": 1}


@expand_rules.rule(solve_)
def _(a: Value, b: Value, *factors: Value, kind: str, transposed: bool):
    if nothing(b.aval):
        return b
    if kind == "cholesky":
        (low,) = factors
        low = conjugate(low) if transposed else low
        return triangular(low, triangular(low, b), transpose_a=True, conjugate_a=True)
    lu, order = factors
    if not transposed:
        y = triangular(lu, rows_in_order(b, order), unit_diagonal=True)
        return triangular(lu, y, lower=False)
    y = triangular(lu, b, lower=False, transpose_a=True)
    y = triangular(lu, y, transpose_a=True, unit_diagonal=True)
    return rows_in_order(y, order_back(order))


def order_back(order: Array) -> Any:
    """Return the inverse of permutations."""
    axis = order.aval.ndim - 1
    positions = iota(order.aval.dtype, order.aval.shape, axis)
    return sort_.bind(order, positions, axis=axis, num_keys=1, stable=False)[1]


def rows_in_order(x: Value, order: Value) -> Any:
    """Return rows of matrices, each matrix in an order of its own."""
    aval = x.aval
    positions = broadcast_in_dim.bind(order, shape=aval.shape, dims=tuple(range(aval.ndim - 1)))
    return taken(x, positions, aval.ndim - 2)


def columns_in_order(x: Value, order: Value) -> Any:
    """Return columns of matrices, each matrix in an order of its own."""
    aval = x.aval
    dims = (*range(aval.ndim - 2), aval.ndim - 1)
    return taken(x, broadcast_in_dim.bind(order, shape=aval.shape, dims=dims), aval.ndim - 1)


def general(a: Any, b: Value) -> Any:
    """Solve with any square matrix, on values that agree already."""
    fixed = stop.bind(a)  # The derivative uses the equation, not the factorisation.
    lu, pivots = lu_.bind(fixed)
    order = pivots_to_permutation.bind(pivots, size=a.aval.shape[-1])
    return solve_.bind(a, b, lu, order, kind="lu", transposed=False)


def positive(a: Value, b: Value) -> Any:
    """Solve with a positive definite matrix; only its lower triangle is read."""
    return solve_.bind(a, b, cholesky_.bind(stop.bind(a)), kind="cholesky", transposed=False)


def inverse(a: Any) -> Any:
    """Return the inverse of a square matrix."""
    return general(a, identity(a.aval))
