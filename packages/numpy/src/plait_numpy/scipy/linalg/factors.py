"""Factorisations of matrices, in SciPy's form.

Invariant: every factor comes from `plait.numpy.linalg` or `plait.lax.linalg`, rearranged as in
SciPy.
"""

from typing import Any, overload
from typing import Literal as Exactly

import numpy as np

from plait.errors import ArgumentError, OperandTypeError, Unsupported
from plait.ext import Aval, Literal
from plait.ext.control import fori_loop
from plait.ext.ops import elementwise as el
from plait.ext.ops.indexing import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from plait.ext.ops.shape import convert, expand_dims, iota, pad, slice_in_dim, stack
from plait.ext.surface import fixed_each, fused, value
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike

from ...exact import matmul
from ...lax import linalg as lax_linalg
from ...numpy import linalg as numpy_linalg
from ...numpy.arithmetic import hypot
from ...numpy.linalg.equations import stacked_alike
from ...numpy.linalg.factors import matrices
from ...primitives.linalg import batched_matrices as bm
from ...primitives.linalg.batched_matrices import conjugate as conjugated
from ...primitives.linalg.factorisation import householder_product_
from ...primitives.linalg.solving import order_back, rows_in_order, triangular

__all__ = [
    "cho_factor", "cholesky", "eigh", "eigh_tridiagonal", "hessenberg", "lu", "lu_factor", "qr",
    "qr_multiply", "rsf2csf", "schur", "svd",
]  # fmt: skip

# ---- Cholesky, LU --------------------------------------------------------------------------


def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Return the triangular U with U^H @ U = a, or L with L @ L^H = a.

    Args:
      a: (..., n, n), Hermitian and positive definite.
      lower: whether to return L.

    Returns (..., n, n), nan where a is not positive definite.  As scipy.linalg.cholesky.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 1.0], [0.0, 1.0]]
    """
    return numpy_linalg.cholesky(a, upper=not lower)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Return (the factor of `cholesky`, `lower`), for `cho_solve`.  As scipy.linalg.cho_factor,
    except that the other triangle is zero here and undefined there.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.cho_factor(np.diag([4.0, 9.0]))[0].shape
    (2, 2)
    """
    return cholesky(a, lower), lower


@fused
def _lu(x: Array, *, permute_l: bool, p_indices: bool) -> Any:
    both, _, order = lax_linalg.lu(x)
    m, n = x.aval.shape[-2:]
    k = min(m, n)
    low = bm.triangle(slice_in_dim(both, 0, k, axis=-1), offset=-1)
    low = el.add.bind(low, bm.identity(low.aval))
    up = bm.triangle(slice_in_dim(both, 0, k, axis=-2), lower=False)
    back = order_back(order)
    if permute_l:
        return rows_in_order(low, back), up
    if p_indices:
        return back, low, up
    square = x.aval.with_shape((*x.aval.shape[:-1], m))
    return rows_in_order(bm.identity(square), back), low, up


def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True,
    p_indices: bool = False,
) -> tuple[Array, ...]:  # fmt: skip
    """Factor a = P @ L @ U.

    Args:
      a: (..., m, n).
      permute_l: whether to return (P @ L, U).
      p_indices: whether P is a permutation p, with L[p] @ U = a.

    Returns P (..., m, m), L (..., m, k) with a unit diagonal, U (..., k, n), k = min(m, n).
    As scipy.linalg.lu.

    >>> import numpy as np, plait
    >>> p, l, u = plait.scipy.linalg.lu(np.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> (p @ l @ u).tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """
    x = matrices("lu", a)
    return _lu(x, permute_l=bool(permute_l), p_indices=bool(p_indices))


def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """Return (L and U in one matrix, pivots), for `lu_solve`: rows i and pivots[i] were exchanged.

    As scipy.linalg.lu_factor.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.lu_factor(np.eye(2))[1].tolist()
    [0, 1]
    """
    return lax_linalg.lu(matrices("lu_factor", a))[:2]


# ---- QR ------------------------------------------------------------------------------------


def qr(
    a: ArrayLike, overwrite_a: bool = False, lwork: object = None, mode: str = "full",
    pivoting: bool = False, check_finite: bool = True,
) -> tuple[Array, ...]:  # fmt: skip
    """Factor a = Q @ R, with Q of orthonormal columns and R upper triangular.

    Args:
      a: (..., m, n).
      mode: "full", Q is (..., m, m); "economic", it has min(m, n) columns; "r", no Q is returned.
      pivoting: whether columns are exchanged, such that the diagonal of R does not increase in
        absolute value; then a[:, p] = Q @ R, and p is returned too.

    Returns (Q, R), (R,), (Q, R, p) or (R, p).  As scipy.linalg.qr.

    >>> import numpy as np, plait
    >>> q, r = plait.scipy.linalg.qr(np.ones((3, 2)), mode="economic")
    >>> q.shape, r.shape
    ((3, 2), (2, 2))
    """
    if mode not in ("full", "economic", "r"):
        raise ArgumentError(f"qr has no mode {mode!r}", fix='use "full", "economic" or "r"')
    x = matrices("qr", a)
    out = lax_linalg.qr(x, pivoting=pivoting, full_matrices=mode != "economic")
    return out[1:] if mode == "r" else out


def qr_multiply(
    a: ArrayLike, c: ArrayLike, mode: str = "right", pivoting: bool = False,
    conjugate: bool = False, overwrite_a: bool = False, overwrite_c: bool = False,
) -> tuple[Array, ...]:  # fmt: skip
    """Return (the product of Q and c, R), for a = Q @ R.

    Args:
      a: (m, n); Q has min(m, n) columns.
      c: if mode is "left", as many rows as Q has columns; if "right", as many columns as Q has
        rows; vectors count as one row or column.
      mode: "left", Q @ c; "right", c @ Q.
      pivoting: see `qr`; the permutation is returned too.
      conjugate: whether Q is conjugated first.

    As scipy.linalg.qr_multiply.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.qr_multiply(np.eye(2), np.ones((3, 2)))[0].shape
    (3, 2)
    """
    if mode not in ("left", "right"):
        raise ArgumentError(f"qr_multiply has no mode {mode!r}", fix='use "left" or "right"')
    q, *rest = qr(a, mode="economic", pivoting=pivoting)
    c = value(c)
    vector = c.aval.ndim == 1
    c = expand_dims(c, int(mode == "left")) if vector else c
    if mode == "left" and c.aval.shape[-2] == q.aval.shape[-2] != q.aval.shape[-1]:
        q, *rest = qr(a, mode="full", pivoting=pivoting)
    q = conjugated(q) if conjugate else q
    out = matmul(q, c) if mode == "left" else matmul(c, q)
    return (out.squeeze(int(mode == "left")) if vector else out, *rest)


# ---- eigenvalues ---------------------------------------------------------------------------


@fused
def _generalised(a: Value, b: Value) -> Any:
    a, b = stacked_alike(a, b)
    factor = lax_linalg.cholesky(b)
    x = triangular(factor, a)
    x = triangular(factor, x, left_side=False, transpose_a=True, conjugate_a=True)
    v, w = lax_linalg.eigh(x)
    return w, triangular(factor, v, transpose_a=True, conjugate_a=True)


@fused
def mirrored(x: Array, *, lower: bool, conjugated: bool = True) -> Any:
    """Return the Hermitian (or symmetric) matrix given by one triangle."""
    half = bm.triangle(x, lower, -1 if lower else 1)
    other = bm.adjoint(half) if conjugated else bm.transposed(half)
    return el.add.bind(bm.triangle(x, lower), other)


def eigh(
    a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False,
    overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True,
    eigvals: tuple[int, int] | None = None, type: int = 1, check_finite: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | tuple[Array, Array]:  # fmt: skip
    """Return eigenvalues and eigenvectors of Hermitian matrices: a @ v = w * b @ v.

    Args:
      a: (..., n, n).
      b: Hermitian and positive definite; the identity if not given.
      lower: whether the lower triangles of a and b are read; else the upper.
      eigvals_only: whether to return w alone.
      turbo: accepted for compatibility; each problem has one routine.
      type: must be 1, the problem above.
      subset_by_index, eigvals: (first, last) of the eigenvalues to return, the last one included.

    Raises TypeRule for matrices that are not square, other types, and both of the last two.
    Returns (w (..., k) ascending, v (..., n, k)), or w.  As scipy.linalg.eigh.

    >>> import numpy as np, plait
    >>> w = plait.scipy.linalg.eigh(np.diag([2.0, 6.0]), np.diag([1.0, 2.0]), eigvals_only=True)
    >>> [round(v, 5) for v in w.tolist()]
    [2.0, 3.0]
    """
    if eigvals is not None and subset_by_index is not None:
        raise ArgumentError("eigh: eigvals and subset_by_index say the same thing", fix="give one")
    subset_by_index = eigvals if subset_by_index is None else subset_by_index
    if type != 1:
        raise OperandTypeError(f"eigh has no problem of type {type}", fix="pass type=1")
    x = mirrored(matrices("eigh", a, square=True), lower=bool(lower))
    if b is None and eigvals_only:
        w, v = numpy_linalg.eigvalsh(x), None
    elif b is None:
        w, v = numpy_linalg.eigh(x)
    else:
        y = mirrored(matrices("eigh", b, square=True), lower=bool(lower))
        w, v = _generalised(x, y)
    if subset_by_index is not None:
        first, last = _pair(subset_by_index)
        w = w[..., first : last + 1]
        v = None if v is None else v[..., first : last + 1]
    return w if v is None or eigvals_only else (w, v)


def _pair(subset: tuple[int, ...]) -> tuple[int, int]:
    pair = fixed_each("eigh", "subset_by_index", subset)
    if len(pair) != 2 or not 0 <= pair[0] <= pair[1]:
        raise ArgumentError(
            f"eigh: subset_by_index={subset!r}", fix="give (first, last), from 0 on"
        )
    return pair[0], pair[1]


def eigh_tridiagonal(
    d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False, select: str = "a",
    select_range: tuple[int, int] | None = None, tol: float | None = None,
    key: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:  # fmt: skip
    """Return eigenvalues and eigenvectors of real symmetric tridiagonal matrices.

    Args:
      d: (..., n), the diagonal.
      e: (..., n - 1), the diagonal next to it.
      eigvals_only: whether to return eigenvalues alone.
      select: "a", all; "i", those from select_range[0] to select_range[1], counted from the
        least.
      tol, key: accepted for compatibility; eigenvalues have full precision, and nothing is random.

    Returns (w (..., k) ascending, v (..., n, k)), or w; by the routine for full matrices.
    Raises Unsupported for "v", and TypeRule for other selections.  As
    scipy.linalg.eigh_tridiagonal.

    >>> import numpy as np, plait
    >>> d, e = np.array([1.0, 3.0]), np.zeros(1)
    >>> plait.scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True).tolist()
    [1.0, 3.0]
    """
    if select == "v":
        raise Unsupported(
            f"eigh_tridiagonal cannot select the values in {select_range}: their number, and so "
            "the shape of the result, would depend on them",
            fix='use "a" and choose among the results; or "i" and select_range, two numbers of '
            "eigenvalues",
        )
    if select not in ("a", "i") or (select == "i") != (select_range is not None):
        raise ArgumentError(
            f"eigh_tridiagonal cannot select {select!r} in {select_range}",
            fix='use "a"; or "i" and select_range, two numbers of eigenvalues',
        )
    d, e = (el.floating((value(v),))[0] for v in (d, e))
    if d.aval.ndim < 1 or e.aval.shape != (*d.aval.shape[:-1], d.aval.shape[-1] - 1):
        raise ArgumentError(
            f"eigh_tridiagonal of {d.aval!r} and {e.aval!r}",
            fix="give one less beside the diagonal",
        )
    x = _tridiagonal(d, e)
    return eigh(x, eigvals_only=eigvals_only, subset_by_index=select_range)


@fused
def _tridiagonal(d: Value, e: Value) -> Any:
    *lead, n = d.aval.shape
    like = Aval((*lead, n, n), d.aval.dtype)
    one = bm.identity(like)
    sides = [(0, 0, 0)] * len(lead)
    below = el.mul.bind(bm.as_rows(pad(e, 0, [*sides, (0, 1, 0)]), like), _under(like))
    return el.add.bind(el.add.bind(el.mul.bind(bm.as_rows(d, like), one), below), bm.adjoint(below))


def _under(like: Aval) -> Any:
    """Return ones below the diagonal."""
    band = bm.triangle(Literal(1, like), offset=-1)
    return el.sub.bind(band, bm.triangle(band, offset=-2)) if not bm.nothing(like) else band


# ---- forms ---------------------------------------------------------------------------------


@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., compute_uv: Exactly[True] = ...,
    overwrite_a: bool = ..., check_finite: bool = ..., lapack_driver: str = ...,
) -> tuple[Array, Array, Array]: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., *, compute_uv: Exactly[False],
    overwrite_a: bool = ..., check_finite: bool = ..., lapack_driver: str = ...,
) -> Array: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., compute_uv: bool = ..., overwrite_a: bool = ...,
    check_finite: bool = ..., lapack_driver: str = ...,
) -> Array | tuple[Array, ...]: ...  # fmt: skip
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
    check_finite: bool = True, lapack_driver: str = "gesdd",
) -> Array | tuple[Array, ...]:  # fmt: skip
    """Return singular values and vectors, U @ diag(s) @ Vh = a; see `plait.numpy.linalg.svd`.

    Returns (U, s, Vh), or s.  `lapack_driver` must be "gesdd".  As scipy.linalg.svd.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.svd(np.diag([1.0, 3.0]), compute_uv=False).tolist()
    [3.0, 1.0]
    """
    if lapack_driver != "gesdd":
        raise ArgumentError(f"svd is not computed by {lapack_driver!r}", fix='use "gesdd"')
    out = numpy_linalg.svd(a, full_matrices, compute_uv)
    return tuple(out) if compute_uv else out


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Return Schur's form: a = Z @ T @ Z^H.

    Args:
      a: (..., n, n).
      output: "real", T of a real matrix is real, with blocks of two rows for pairs of complex
        eigenvalues; "complex", T is complex and triangular.

    Returns (T, Z).  On the CPU only; has no derivative.  As scipy.linalg.schur.

    >>> import numpy as np, plait
    >>> t, z = plait.scipy.linalg.schur(np.array([[0.0, 1.0], [0.0, 2.0]]))
    >>> t.shape
    (2, 2)
    """
    if output not in ("real", "complex"):
        raise ArgumentError(f"schur has no output {output!r}", fix='use "real" or "complex"')
    x = matrices("schur", a, square=True)
    if output == "complex":
        x = convert(x, bm.complex_dtype(x.aval.dtype))
    return lax_linalg.schur(x)


@fused
def _complex_form(t: Array, z: Array) -> tuple:
    dtype = bm.complex_dtype(t.aval.dtype)
    t, z = convert(t, dtype), convert(z, dtype)
    n = t.aval.shape[-1]
    if n < 2:
        return t, z
    small = float(np.finfo(dtype).eps)
    places = iota(np.int32, (n,))

    def turn(k: Value, both: tuple) -> tuple:
        """Rotate rows and columns m - 1 and m to make the element next to the diagonal 0."""
        t, z = both
        m = el.sub(n - 1, k)
        block = dynamic_slice_in_dim(
            dynamic_slice_in_dim(t, el.sub(m, 1), 2, axis=-2), el.sub(m, 1), 2, axis=-1
        )
        a, c, d = (block[..., i, j] for i, j in ((0, 0), (1, 0), (1, 1)))
        shift = el.sub(numpy_linalg.eigvals(block)[..., 0], d)
        needed = el.gt(el.abs_(c), el.mul(el.add(el.abs_(a), el.abs_(d)), small))
        size = hypot(el.abs_(shift), el.abs_(c))
        size = el.select(needed, size, 1)
        cos, sin = el.select(needed, el.div(shift, size), 1), el.select(needed, el.div(c, size), 0)
        g = stack([stack([el.conj(cos), sin], -1), stack([el.neg(sin), cos], -1)], -2)
        rows = dynamic_slice_in_dim(t, el.sub(m, 1), 2, axis=-2)
        right = el.ge(places, el.sub(m, 1))
        rows = el.select(right, bm.times(g, rows), rows)
        t = dynamic_update_slice_in_dim(t, rows, el.sub(m, 1), axis=-2)
        columns = dynamic_slice_in_dim(t, el.sub(m, 1), 2, axis=-1)
        above = expand_dims(el.le(places, m), 1)
        columns = el.select(above, bm.times(columns, bm.adjoint(g)), columns)
        corner = el.and_(expand_dims(el.eq(places, m), 1), el.eq(iota(np.int32, (2,)), 0))
        t = dynamic_update_slice_in_dim(t, el.select(corner, 0, columns), el.sub(m, 1), axis=-1)
        turned = bm.times(dynamic_slice_in_dim(z, el.sub(m, 1), 2, axis=-1), bm.adjoint(g))
        return t, dynamic_update_slice_in_dim(z, turned, el.sub(m, 1), axis=-1)

    return fori_loop(0, n - 1, turn, (t, z))


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Convert a real Schur form to the complex one (T, Z): the same Z @ T @ Z^H, T triangular.

    T: (..., n, n), zero below its first subdiagonal; Z: of that shape.  On the CPU only.  Rotations
    make blocks of two triangular from the last to the first, as in SciPy, so that the factors are
    equal too, not only their product.  As scipy.linalg.rsf2csf.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.rsf2csf(np.eye(2), np.eye(2))[0].shape
    (2, 2)
    """
    return _complex_form(matrices("rsf2csf", T, square=True), matrices("rsf2csf", Z, square=True))


@fused
def _hessenberg(x: Array, *, calc_q: bool) -> Any:
    h, taus = lax_linalg.hessenberg(x)
    form = bm.triangle(h, lower=False, offset=-1)
    if not calc_q:
        return form
    n = x.aval.ndim
    corner = bm.identity(x.aval)
    if x.aval.shape[-1] < 2:
        return form, corner
    size = x.aval.shape[-1]
    inner = slice_in_dim(slice_in_dim(h, 1, size, axis=-2), 0, size - 1, axis=-1)
    q = householder_product_.bind(inner, taus)
    sides = [(0, 0, 0)] * (n - 2)
    q = pad(q, 0, [*sides, (1, 0, 0), (1, 0, 0)])
    first = el.sub.bind(corner, pad(bm.identity(inner.aval), 0, [*sides, (1, 0, 0), (1, 0, 0)]))
    return form, el.add.bind(q, first)


def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Return Hessenberg's form: a = Q @ H @ Q^H, H zero below its first subdiagonal.

    Args:
      a: (..., n, n).
      calc_q: whether to return (H, Q).

    On the CPU only; has no derivative.  As scipy.linalg.hessenberg.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.hessenberg(np.eye(3)).shape
    (3, 3)
    """
    return _hessenberg(matrices("hessenberg", a, square=True), calc_q=bool(calc_q))
