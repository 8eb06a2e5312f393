"""Eigenvalues, singular values and Schur decompositions of matrices.

Invariant: a result that does not converge is nan, without an error, and so is a result computed
from nan.  Eigenvalues of symmetric matrices ascend, singular values descend.
"""

from typing import Any

from plait.errors import ShapeError
from plait.ext import Aval, Literal, lower_rules, primitive, staged
from plait.ext.lower import Emitter, IrValue
from plait.ext.ops.elementwise import complex_
from plait.ext.ops.shape import slice_in_dim
from plait.ext.types import COMPLEX

from .batched_matrices import adjoint, complex_dtype, fewer, identity, nothing, real_dtype, stack_of
from .kernels import infos, kernel, lapack, on_cpu, platform, solver, told, tpu_kernel

# ---- symmetric -----------------------------------------------------------------------------


@primitive("linalg.eigh", formerly=("core.eigh",), many=True)
def eigh_(x: Aval, *, lower: bool, vectors: bool) -> list:
    """Return (eigenvalues, eigenvectors in columns) of a symmetric or Hermitian matrix.

    Only one triangle is read.  Unless `vectors`, the eigenvalues are returned alone.
    """
    lead, n, _ = stack_of("eigh", x, square=True)
    values = Aval((*lead, n), real_dtype(x.dtype))
    return [values, x.strong()] if vectors else [values]


@lower_rules.rule(eigh_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], lower: bool, vectors: bool):
    (aval,) = ins
    if nothing(aval):
        return [e.constant(0, o) for o in outs]
    here = platform(e, "eigh", "rocm", "tpu")
    if here == "tpu":  # The numbers: sort the values, at most 100 sweeps, a tolerance of 1e-6.
        config = f"{int(lower)},1,100,1e-6"
        v, w = tpu_kernel(e, "Eigh", xs, [aval, outs[0]], 1, config)
        return [w, v][: len(outs)]
    if here == "cpu":
        name = lapack("heevd" if aval.category == COMPLEX else "syevd", aval)
        config = {"mode": "V" if vectors else "N", "uplo": "L" if lower else "U"}
    else:
        name, config = solver(here, "syevd"), {"algorithm": "\0", "lower": lower}
    info = infos(aval)
    found = kernel(e, name, xs, ins, [aval, outs[0], info], aval.ndim - 2, {0: 0}, **config)
    v, w, code = found
    return told(e, code, info, "EQ", [w, v][: len(outs)], outs)


# ---- singular values -----------------------------------------------------------------------


@primitive("linalg.svd", formerly=("core.svd",), many=True)
def svd_(x: Aval, *, full_matrices: bool, compute_uv: bool) -> list:
    """Return (singular values, U, V^H), with x = U @ diag(singular values) @ V^H.

    U and V are square if `full_matrices`.  Unless `compute_uv`, the singular values are returned
    alone.
    """
    lead, m, n = stack_of("svd", x)
    k = fewer(m, n)
    s = Aval((*lead, k), real_dtype(x.dtype))
    if not compute_uv:
        return [s]
    left, right = (m, n) if full_matrices else (k, k)
    return [s, Aval((*lead, m, left), x.dtype), Aval((*lead, right, n), x.dtype)]


@lower_rules.rule(svd_)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    full_matrices: bool,
    compute_uv: bool,
):
    (aval,) = ins
    if nothing(aval):
        make = lambda: [Literal(0, outs[0]), *map(identity, outs[1:])]  # noqa: E731
        return e.program(staged(make, []), [])
    here = platform(e, "svd", "rocm")
    if here == "cpu":
        return _gesdd(e, xs, aval, outs, full_matrices, compute_uv)
    return _gesvdj(e, solver(here, "gesvdj"), xs, aval, outs, compute_uv)


def _square(aval: Aval) -> list[Aval]:
    """Return the types of U and V, both square."""
    *lead, m, n = aval.shape
    return [Aval((*lead, m, m), aval.dtype), Aval((*lead, n, n), aval.dtype)]


def _gesdd(
    e: Emitter, xs: list[IrValue], aval: Aval, outs: list[Aval], full: bool, both: bool
) -> list:
    """Compute singular values by LAPACK's gesdd (divide and conquer)."""
    mode = ("A" if full else "S") if both else "N"
    info = infos(aval)
    types = [aval, outs[0], *(outs[1:] if both else _square(aval)), info]
    found = kernel(e, lapack("gesdd", aval), xs, [aval], types, aval.ndim - 2, {0: 0}, mode=mode)
    return told(e, found[4], info, "EQ", found[1 : 1 + len(outs)], outs)


def _gesvdj(
    e: Emitter, name: str, xs: list[IrValue], aval: Aval, outs: list[Aval], both: bool
) -> list:
    """Compute singular values by Jacobi's rotations, which give all of U and V."""
    info, square = infos(aval), _square(aval)
    types = [aval, outs[0], *square, info]
    _, s, u, v, code = kernel(
        e, name, xs, [aval], types, aval.ndim - 2, {0: 0},
        full_matrices=True, compute_uv=both,
    )  # fmt: skip
    if not both:
        return told(e, code, info, "EQ", [s], outs)
    left, right = outs[1].shape[-1], outs[2].shape[-2]
    cut = lambda u, v: [  # noqa: E731
        slice_in_dim(u, 0, left, axis=-1), slice_in_dim(adjoint(v), 0, right, axis=-2)
    ]  # fmt: skip
    return told(e, code, info, "EQ", [s, *e.program(staged(cut, square), [u, v])], outs)


# ---- general -------------------------------------------------------------------------------


@primitive("linalg.eig", formerly=("core.eig",), many=True)
def eig_(x: Aval, *, left: bool, right: bool) -> list:
    """Return eigenvalues, and left or right eigenvectors in columns, of any square matrix.

    The results are complex.
    """
    lead, n, _ = stack_of("eig", x, square=True)
    dtype = complex_dtype(x.dtype)
    values, vectors = Aval((*lead, n), dtype), Aval((*lead, n, n), dtype)
    return [values, *([vectors] * (left + right))]


@lower_rules.rule(eig_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], left: bool, right: bool):
    (aval,) = ins
    if nothing(aval):
        return [e.constant(0, o) for o in outs]
    whole = aval.category == COMPLEX
    if platform(e, "eig") == "cpu":
        name = lapack("geev", aval)
        letter = lambda wanted: "V" if wanted else "N"  # noqa: E731
        config: dict = {"compute_left": letter(left), "compute_right": letter(right)}
    else:
        name = "cuhybrid_eig_comp" if whole else "cuhybrid_eig_real"
        config = {"left": left, "magma": "auto", "right": right}
    info, values = infos(aval), outs[0]
    vectors = Aval(aval.shape, values.dtype)
    part = values.with_dtype(real_dtype(values.dtype))
    types = [*([values] if whole else [part, part]), vectors, vectors, info]
    *w, vl, vr, code = kernel(e, name, xs, ins, types, aval.ndim - 2, **config)
    if not whole:
        w = [lower_rules[complex_](e, w, [part, part], [values])]
    return told(e, code, info, "EQ", [*w, *([vl] * left), *([vr] * right)], outs)


@primitive("linalg.schur", formerly=("core.schur",), many=True)
def schur_(x: Aval, *, vectors: bool) -> list:
    """Return (T, Z) with x = Z @ T @ Z^H, or T alone unless `vectors`.

    Z is unitary, and T is triangular, except for blocks of two rows if x is real.
    """
    stack_of("schur", x, square=True)
    return [x.strong()] * (1 + vectors)


@lower_rules.rule(schur_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], vectors: bool):
    (aval,) = ins
    if nothing(aval):
        return [e.constant(0, o) for o in outs]
    on_cpu(e, "schur")
    whole = aval.category == COMPLEX
    info, values = infos(aval), Aval(aval.shape[:-1], aval.dtype)
    types = [aval, aval, *([values] * (1 if whole else 2)), info, info]
    config = {"mode": "V" if vectors else "N", "sort": "N"}
    found = kernel(e, lapack("gees", aval), xs, ins, types, aval.ndim - 2, {0: 0}, **config)
    return told(e, found[-1], info, "EQ", found[: len(outs)], outs)


# ---- reduced forms for eigenvalues ---------------------------------------------------------


@primitive("linalg.hessenberg", formerly=("core.hessenberg",), many=True)
def hessenberg_(x: Aval) -> list:
    """Return (H with reflectors below its first subdiagonal, their coefficients)."""
    lead, n, _ = stack_of("hessenberg", x, square=True)
    return [x.strong(), Aval((*lead, _one_less(n)), x.dtype)]


def _one_less(n: int) -> Any:
    return max(n - 1, 0) if n.__class__ is int else n - 1


@lower_rules.rule(hessenberg_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    (aval,) = ins
    n = aval.shape[-1]
    if nothing(outs[1]):
        return [xs[0], e.constant(0, outs[1])]
    on_cpu(e, "hessenberg")
    if n.__class__ is not int:
        raise ShapeError(
            f"hessenberg of {aval!r}, whose size is not known", fix="give matrices of known size"
        )
    info = infos(aval)
    types = [*outs, info]
    config = {"low": 1, "high": n}
    *found, code = kernel(e, lapack("gehrd", aval), xs, ins, types, aval.ndim - 2, {0: 0}, **config)
    return told(e, code, info, "EQ", found, outs)


@primitive("linalg.tridiagonal", formerly=("core.tridiagonal",), many=True)
def tridiagonal_(x: Aval, *, lower: bool) -> list:
    """Return a tridiagonal form of a symmetric or Hermitian matrix, reading one triangle.

    The results are T with reflectors beside its diagonals, its diagonal, the diagonal beside it,
    and the coefficients of the reflectors.
    """
    lead, n, _ = stack_of("tridiagonal", x, square=True)
    beside, part = (*lead, _one_less(n)), real_dtype(x.dtype)
    return [x.strong(), Aval((*lead, n), part), Aval(beside, part), Aval(beside, x.dtype)]


@lower_rules.rule(tridiagonal_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], lower: bool):
    (aval,) = ins
    if nothing(aval):
        return [xs[0], *(e.constant(0, o) for o in outs[1:])]
    here = platform(e, "tridiagonal", "rocm")
    if here == "cpu":
        name = lapack("hetrd" if aval.category == COMPLEX else "sytrd", aval)
        config: dict = {"uplo": "L" if lower else "U"}
    else:
        name, config = solver(here, "sytrd"), {"lower": lower}
    info = infos(aval)
    *found, code = kernel(e, name, xs, ins, [*outs, info], aval.ndim - 2, {0: 0}, **config)
    return told(e, code, info, "EQ", found, outs)
