"""Factorisations in finitely many steps: Cholesky, LU and QR, of stacks of matrices.

Invariant: a factor is exactly triangular; the values that a routine leaves on the other side are
cleared.  A matrix that cannot be factorised gives nan, without effect on the others of its stack.
"""

from plait.errors import OperandTypeError, ShapeError
from plait.ext import Aval, Discrete, Literal, expand_rules, lower_rules, primitive, staged
from plait.ext.lower import Emitter, IrValue, boolean
from plait.ext.ops.control_flow import scan
from plait.ext.ops.elementwise import eq, ne, select
from plait.ext.ops.reduction import reduce_or, reduce_sum
from plait.ext.ops.shape import broadcast_in_dim, iota, moveaxis, pad, slice_in_dim
from plait.ext.sizes import Dim, is_symbolic
from plait.ext.trace import Value
from plait.ext.types import COMPLEX, INT32

from .batched_matrices import beside, fewer, identity, nothing, stack_of, triangle
from .kernels import infos, kernel, lapack, platform, solver, told, tpu_kernel

# ---- Cholesky ------------------------------------------------------------------------------


@primitive("linalg.cholesky", formerly=("core.cholesky",))
def cholesky_(x: Aval) -> Aval:
    """Return the lower triangular L with L @ L^H = x.

    Only the lower triangle of x is read.  The result is nan if x is not positive definite.
    """
    stack_of("cholesky", x, square=True)
    return x.strong()


@lower_rules.rule(cholesky_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    (aval,) = ins
    if nothing(aval):
        return xs[0]
    clear = staged(lambda x: [triangle(x)], [aval])
    if e.unit.platforms == ("tpu",) or len(e.unit.platforms) > 1:
        return e.program(clear, [e.op("stablehlo.cholesky", xs, aval, lower=boolean(True))])[0]
    info = infos(aval)
    here = platform(e, "cholesky", "rocm")
    if here == "cpu":
        name, config = lapack("potrf", aval), {"uplo": "L"}
    else:
        name, config = solver(here, "potrf"), {"lower": True}
    stacked = aval.ndim - 2
    x, code = kernel(e, name, xs, ins, [aval, info], stacked, {0: 0}, **config)
    return told(e, code, info, "EQ", e.program(clear, [x]), outs)[0]


# ---- LU ------------------------------------------------------------------------------------


@primitive("linalg.lu", formerly=("core.lu",), many=True)
def lu_(x: Aval) -> list:
    """Return (L and U in one matrix, pivots).

    Row i was exchanged with row pivots[i], one after the other.  The unit diagonal of L is left
    out.
    """
    lead, m, n = stack_of("lu", x)
    return [x.strong(), Aval((*lead, fewer(m, n)), INT32)]


@lower_rules.rule(lu_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    (aval,), pivots = ins, outs[1]
    if nothing(aval):
        return [xs[0], e.constant(0, pivots)]
    here = platform(e, "lu", "rocm", "tpu")
    if here == "tpu":  # The third result is the permutation that the pivots make.
        order = pivots.with_shape((*aval.shape[:-1],))
        return tpu_kernel(e, "LuDecomposition", xs, [aval, pivots, order], 2)[:2]
    name = lapack("getrf", aval) if here == "cpu" else solver(here, "getrf")
    types = [aval, pivots, infos(aval)]
    x, at, code = kernel(e, name, xs, ins, types, aval.ndim - 2, {0: 0})
    at = e.op("stablehlo.subtract", [at, e.constant(1, pivots)], pivots)
    out = told(e, code, types[2], "GE", [x], [aval])
    if here != "cpu":  # cuSOLVER passes over nan when it looks for a pivot
        out = e.program(staged(_spoilt, [aval, aval]), [xs[0], *out])
    return [*out, at]


def _spoilt(given: Value, made: Value) -> list:
    """Return the matrices `made`, those that were made of nan as nan."""
    ranks = given.aval.ndim - 2, given.aval.ndim - 1
    bad = reduce_or.bind(ne.bind(given, given), axes=ranks)
    bad = broadcast_in_dim.bind(bad, shape=made.aval.shape, dims=tuple(range(ranks[0])))
    return [select.bind(bad, Literal(float("nan"), made.aval), made)]


@primitive(
    "linalg.pivots_to_permutation", formerly=("core.pivots_to_permutation",), traits=(Discrete,)
)
def pivots_to_permutation(pivots: Aval, *, size: int) -> Aval:
    """Return the order of `size` rows after exchanging row i with row pivots[i], one by one."""
    if pivots.dtype != INT32 or not pivots.ndim:
        raise ShapeError(
            f"pivots are int32 vectors, not {pivots!r}", fix='convert with .astype("int32")'
        )
    last = pivots.shape[-1]
    if not is_symbolic((last, size)) and last > size:
        raise ShapeError(
            f"{pivots!r} exchanges more than {size} rows", fix="give the number of rows"
        )
    return Aval((*pivots.shape[:-1], size), INT32)


@expand_rules.rule(pivots_to_permutation)
def _(pivots: Value, *, size: Dim | int):
    """Exchange rows one after the other.

    Masks select the rows, for all matrices of a stack at once.
    """
    aval = pivots.aval
    order = Aval((*aval.shape[:-1], size), INT32)
    start = iota(INT32, order.shape, order.ndim - 1)
    if nothing(aval) or nothing(order):
        return start
    count, cell = aval.shape[-1], Aval((), INT32)
    rows = moveaxis(pivots, -1, 0)
    body = staged(_exchanged, [order, cell, aval.with_shape(aval.shape[:-1])], "exchange")
    return scan.bind(
        start, iota(INT32, (count,)), rows, body=body, consts=0, carry=1, length=count,
        reverse=False, unroll=1,
    )[0]  # fmt: skip


def _exchanged(order: Value, i: Value, j: Value) -> list:
    aval = order.aval
    positions = iota(INT32, aval.shape, aval.ndim - 1)
    first = eq.bind(positions, broadcast_in_dim.bind(i, shape=aval.shape, dims=()))
    dims = tuple(range(aval.ndim - 1))
    second = eq.bind(positions, broadcast_in_dim.bind(j, shape=aval.shape, dims=dims))
    at = lambda mask: broadcast_in_dim.bind(  # noqa: E731
        reduce_sum.bind(select.bind(mask, order, Literal(0, aval)), axes=(aval.ndim - 1,)),
        shape=aval.shape, dims=dims,
    )  # fmt: skip
    return [select.bind(first, at(second), select.bind(second, at(first), order))]


# ---- QR ------------------------------------------------------------------------------------


@primitive("linalg.geqrf", formerly=("core.geqrf",), many=True)
def geqrf(x: Aval) -> list:
    """Return (R above reflectors, their coefficients); the product of the reflectors is Q."""
    lead, m, n = stack_of("geqrf", x)
    return [x.strong(), Aval((*lead, fewer(m, n)), x.dtype)]


@lower_rules.rule(geqrf)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    (aval,) = ins
    if nothing(aval):
        return [xs[0], e.constant(0, outs[1])]
    here = platform(e, "qr", "rocm", "tpu")
    if here == "tpu":
        return tpu_kernel(e, "Qr", xs, outs, 1)
    name = lapack("geqrf", aval) if here == "cpu" else solver(here, "geqrf")
    return kernel(e, name, xs, ins, outs, aval.ndim - 2, {0: 0})


@primitive("linalg.geqp3", formerly=("core.geqp3",), many=True)
def geqp3(x: Aval) -> list:
    """Return (R above reflectors, order of the columns, coefficients of the reflectors).

    The columns of x, in that order, are Q @ R.  The diagonal of R does not increase in size.
    """
    lead, m, n = stack_of("geqp3", x)
    return [x.strong(), Aval((*lead, n), INT32), Aval((*lead, fewer(m, n)), x.dtype)]


@lower_rules.rule(geqp3)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    (aval,), (_, order, taus) = ins, outs
    if nothing(aval):
        start = staged(lambda: [iota(INT32, order.shape, order.ndim - 1)], [])
        return [xs[0], e.program(start, [])[0], e.constant(0, taus)]
    if platform(e, "qr with pivoting") == "cpu":
        name, config = lapack("geqp3", aval), {}
    else:
        name, config = "cuhybrid_geqp3", {"magma": "auto"}
    free = e.constant(0, order)
    over = {0: 0, 1: 1}
    x, at, coefficients = kernel(
        e, name, [xs[0], free], [aval, order], outs, aval.ndim - 2, over, **config
    )
    at = e.op("stablehlo.subtract", [at, e.constant(1, order)], order)
    return [x, at, coefficients]


@primitive("linalg.householder_product", formerly=("core.householder_product",))
def householder_product_(x: Aval, taus: Aval) -> Aval:
    """Return the first columns of the product of reflectors I - tau v v^H.

    Each v is a column of x below the diagonal.
    """
    lead, m, n = stack_of("householder_product", x)
    reflectors(x, taus, "householder_product")
    if not is_symbolic((m, n)) and m < n:
        raise ShapeError(
            f"householder_product has at most as many columns as rows, not {x!r}",
            fix="give the columns of the reflectors only",
        )
    return x.strong()


def reflectors(x: Aval, taus: Aval, name: str) -> None:
    """Require coefficients for at most all columns of `x`; raises TypeRule."""
    many = taus.shape[-1] if taus.ndim else 0
    wrong = not taus.ndim or taus.shape[:-1] != x.shape[:-2] or taus.dtype != x.dtype
    if wrong or (not is_symbolic((many, x.shape[-1])) and many > x.shape[-1]):
        raise OperandTypeError(
            f"{name}: {taus!r} are not coefficients for the reflectors of {x!r}",
            fix="give one coefficient for each column, in the same dtype",
        )


@lower_rules.rule(householder_product_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    (aval, taus) = ins
    if nothing(aval):
        return xs[0]
    if nothing(taus):
        return e.program(staged(lambda: [identity(aval)], []), [])[0]
    routine = "ungqr" if aval.category == COMPLEX else "orgqr"
    here = platform(e, "householder_product", "rocm", "tpu")
    if here == "tpu":
        return tpu_kernel(e, "ProductOfElementaryHouseholderReflectors", xs, outs, 1)[0]
    name = lapack(routine, aval) if here == "cpu" else solver(here, "orgqr")
    return kernel(e, name, xs, ins, outs, aval.ndim - 2, {0: 0})[0]


@primitive("linalg.ormqr", formerly=("core.ormqr",))
def ormqr_(x: Aval, taus: Aval, c: Aval, *, left: bool, adjoint: bool) -> Aval:
    """Return Q @ c, or c @ Q unless `left`.

    Q is the square product of all reflectors of x, or its conjugate transpose if `adjoint`.
    """
    reflectors(x, taus, "ormqr")
    beside("ormqr", x, c, left)
    return c.strong()


@lower_rules.rule(ormqr_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], left, adjoint):
    aval, taus, c = ins
    if nothing(c) or nothing(taus):
        return xs[2]
    routine = "unmqr" if aval.category == COMPLEX else "ormqr"
    here = platform(e, "ormqr", "rocm")
    name = lapack(routine, aval) if here == "cpu" else solver(here, "ormqr")
    config = {"left": left, "transpose": adjoint}
    return kernel(e, name, xs, ins, outs, c.ndim - 2, {2: 0}, **config)[0]


@primitive("linalg.qr", formerly=("core.qr",), many=True)
def qr_(x: Aval, *, full_matrices: bool, pivoting: bool) -> list:
    """Return (Q, R) with Q @ R = x, Q^H @ Q = I and R upper triangular.

    If `pivoting`, the columns of x are reordered, and a third result is their order.  Q has as
    many columns as the lesser side of x, or as x has rows if `full_matrices`.
    """
    lead, m, n = stack_of("qr", x)
    k = m if full_matrices else fewer(m, n)
    out = [Aval((*lead, m, k), x.dtype), Aval((*lead, k, n), x.dtype)]
    return [*out, Aval((*lead, n), INT32)] if pivoting else out


@expand_rules.rule(qr_)
def _(x: Value, *, full_matrices: bool, pivoting: bool):
    aval = x.aval
    m, n = aval.shape[-2:]
    q, r = qr_.infer((aval,), dict(full_matrices=full_matrices, pivoting=False))
    if nothing(aval):
        order = [iota(INT32, (*aval.shape[:-2], n), aval.ndim - 2)] if pivoting else []
        return [identity(q), Literal(0, r), *order]
    order = []
    if pivoting:
        x, at, taus = geqp3.bind(x)
        order = [at]
    else:
        x, taus = geqrf.bind(x)
    k = q.shape[-1]
    lead = ((0, 0, 0),) * (aval.ndim - 2)
    q = pad(x, 0, [*lead, (0, 0, 0), (0, k - n, 0)])
    r = triangle(slice_in_dim(x, 0, k, axis=-2), lower=False)
    return [householder_product_.bind(q, taus), r, *order]
