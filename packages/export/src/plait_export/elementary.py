"""Linear algebra in elementary operations, for readers of StableHLO without numerical libraries.

The functions loop over columns.  Each step works on whole matrices through masks, and on all
matrices of a stack at once.  They return the results of core's primitives, in LAPACK's conventions.

    Cholesky, LU with partial pivoting, Householder reflectors: Golub and Van Loan, Matrix
        Computations, 4th ed., sections 4.2, 3.4 and 5.1; reflectors follow LAPACK's larfg.
    Eigenvalues: Jacobi rotations of disjoint pairs of rows at a time, in the order of a
        tournament (Brent and Luk 1985).
    Singular values: a QR decomposition, then the same rotations of columns, on one side (Hestenes
        1958).  A second QR decomposition of the rotated columns gives a factor that is orthogonal
        even if singular values are 0.

Invariant: the programs consist of elementwise operations, reductions, products, gathers, sorts and
loops; the sizes of stack axes may be symbolic.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import plait
from plait.ext import ops
from plait.ext.ir import Eqn, Primitive
from plait.ext.sizes import Dim, is_symbolic
from plait.ext.trace import Value

from .errors import NotExportable


class _Numpy:
    """plait.numpy, imported at its first use, since reading artifacts does not need it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(plait.numpy, name)


pnp = _Numpy()

_SWEEPS = 40
"""The limit of sweeps of rotations; matrices that then have not converged become nan.  Ten sweeps
suffice for most matrices."""


# ---- parts of matrices ---------------------------------------------------------------------


def _rows(x: Value) -> Any:
    """Return the row index of every element of a column."""
    return plait.lax.iota(np.int32, x.shape[-2])


def _columns(x: Value) -> Any:
    return plait.lax.iota(np.int32, x.shape[-1])


def _column(x: Value, k: Value) -> Any:
    """Return column k, selected by a mask, so that nan or inf in other columns cannot spread."""
    return pnp.where(_columns(x) == k, x, 0).sum(-1)


def _row(x: Value, k: Value) -> Any:
    return pnp.where((_rows(x) == k)[:, None], x, 0).sum(-2)


def _element(v: Value, k: Value) -> Any:
    """Return element k of vectors; the axis stays, with size 1."""
    at = plait.lax.iota(np.int32, v.shape[-1]) == k
    return pnp.where(at, v, 0).sum(-1, keepdims=True)


def _outer(u: Value, v: Value) -> Any:
    return u[..., :, None] * v[..., None, :]


def _adjoint(x: Value) -> Any:
    return pnp.conj(pnp.swapaxes(x, -1, -2))


def _product(x: Value, y: Value) -> Any:
    return pnp.matmul(x, y, precision="highest")


def _identity(x: Any, rows: int, columns: int) -> Any:
    """Return an identity matrix for every matrix in the stack x."""
    eye = pnp.eye(rows, columns, dtype=x.dtype)
    return pnp.broadcast_to(eye, (*x.shape[:-2], rows, columns))


def _largest(x: Value) -> Any:
    """Return the largest magnitude of a real or imaginary part in each matrix, with axes of size 1.

    Returns 1 for matrices of zeros, since the callers divide by the result.
    """
    sizes = pnp.maximum(pnp.abs(pnp.real(x)), pnp.abs(pnp.imag(x)))
    top = sizes.max((-2, -1), keepdims=True)
    return pnp.where(top == 0, 1, top)


def _lesser(m: Dim | int, n: Dim | int) -> Any:
    return m if m == n else min(m, n)


def _turns(count: int, step: Callable, *carry: Value, reverse: bool = False) -> tuple:
    """Apply `step(k, *carry) -> carry` for k from 0 to `count - 1`, or in reverse."""
    body = lambda i, c: step(count - 1 - i if reverse else i, *c)  # noqa: E731
    return plait.lax.fori_loop(0, count, body, carry)


# ---- factorisations in finitely many steps -------------------------------------------------


def cholesky(x: Value) -> Any:
    """Return the lower factor; nan for matrices that are not positive definite."""

    def step(k: Value, rest: Value, low: Value, good: Value):
        column = pnp.where(_rows(x) >= k, _column(rest, k), 0)
        pivot = pnp.real(_element(column, k))
        column = pnp.where(_rows(x) == k, pivot, column) / pnp.sqrt(pivot).astype(x.dtype)
        low = pnp.where(_columns(x) == k, column[..., None], low)
        return rest - _outer(column, pnp.conj(column)), low, good & (pivot[..., None] > 0)

    good = pnp.ones((*x.shape[:-2], 1, 1), bool)
    _, low, good = _turns(x.shape[-1], step, x, pnp.zeros_like(x), good)
    return pnp.where(good, low, pnp.nan)


def lu(x: Value) -> list[Any]:
    """Return (L and U in one matrix, the row that each row was exchanged with)."""
    m, n = x.shape[-2:]
    rows, columns = _rows(x), _columns(x)

    def step(k: Value, x: Value, pivots: Value):
        column = _column(x, k)
        size = pnp.abs(pnp.real(column)) + pnp.abs(pnp.imag(column))
        size = pnp.where(rows >= k, size, -1)
        best = pnp.where(size == size.max(-1, keepdims=True), rows, m).min(-1, keepdims=True)
        best = pnp.where(best == m, k, best).astype(np.int32)  # no row equals a nan
        upper, lower = _row(x, k), pnp.where((rows == best)[..., None], x, 0).sum(-2)
        x = pnp.where((rows == best)[..., None], upper[..., None, :], x)
        x = pnp.where((rows == k)[:, None], lower[..., None, :], x)
        column, pivot = _column(x, k), _element(lower, k)
        factors = pnp.where(rows > k, column / pnp.where(pivot == 0, 1, pivot), 0)
        x = x - _outer(factors, pnp.where(columns > k, lower, 0))
        below = (rows > k)[:, None] & (columns == k)
        x = pnp.where(below, factors[..., None], x)
        return x, pnp.where(plait.lax.iota(np.int32, pivots.shape[-1]) == k, best, pivots)

    pivots = pnp.zeros((*x.shape[:-2], _lesser(m, n)), np.int32)
    return list(_turns(_lesser(m, n), step, x, pivots))


def _reflector(x: Value, k: Value, rows: Value) -> tuple[Any, Any, Any]:
    """Return (v with 1 in row k and 0 above, tau, beta).

    From row k on, (I - tau v v^H)^H x equals beta e_k.
    """
    low = pnp.where(rows > k, x, 0)
    parts = pnp.maximum(pnp.abs(pnp.real(low)), pnp.abs(pnp.imag(low)))
    alpha = _element(x, k)
    a, b = pnp.real(alpha), pnp.imag(alpha)
    top = pnp.maximum(parts.max(-1, keepdims=True), pnp.maximum(pnp.abs(a), pnp.abs(b)))
    top = pnp.where(top == 0, 1, top)
    inside = (pnp.real(low) / top) ** 2 + (pnp.imag(low) / top) ** 2
    norm = pnp.sqrt(inside.sum(-1, keepdims=True) + (a / top) ** 2 + (b / top) ** 2) * top
    nothing = ((parts == 0).all(-1, keepdims=True)) & (b == 0)
    beta = pnp.where(nothing, a, pnp.where(a < 0, norm, -norm))
    safe = pnp.where(nothing, 1, beta)
    tau = pnp.where(nothing, 0, (beta - alpha) / safe.astype(x.dtype))
    scale = pnp.where(nothing, 1, alpha - beta)
    v = pnp.where(rows == k, 1, pnp.where(nothing, 0, low / scale))
    return v, tau, beta


def reflectors(x: Value) -> list[Any]:
    """Return (R, with the reflectors below its diagonal, and their coefficients)."""
    m, n = x.shape[-2:]
    rows, columns = _rows(x), _columns(x)

    def step(k: Value, x: Value, taus: Value):
        v, tau, beta = _reflector(_column(x, k), k, rows)
        along = (pnp.conj(v)[..., None] * x).sum(-2)
        moved = x - _outer(pnp.conj(tau) * v, along)
        x = pnp.where(columns > k, moved, x)
        column = pnp.where(rows < k, _column(x, k), pnp.where(rows == k, beta.astype(x.dtype), v))
        x = pnp.where(columns == k, column[..., None], x)
        return x, pnp.where(plait.lax.iota(np.int32, taus.shape[-1]) == k, tau, taus)

    taus = pnp.zeros((*x.shape[:-2], _lesser(m, n)), x.dtype)
    return list(_turns(_lesser(m, n), step, x, taus))


def _reflected(x: Value, taus: Value, c: Value, adjoint: bool) -> Any:
    """Return Q @ c, or Q^H @ c, for the product Q of the reflectors in the columns of x."""
    rows = _rows(x)

    def step(k: Value, c: Value):
        column = _column(x, k)
        v = pnp.where(rows == k, 1, pnp.where(rows > k, column, 0))
        tau = _element(taus, k)
        tau = pnp.conj(tau) if adjoint else tau
        return (c - _outer(tau * v, (pnp.conj(v)[..., None] * c).sum(-2)),)

    return _turns(taus.shape[-1], step, c, reverse=not adjoint)[0]


def householder_product(x: Value, taus: Value) -> Any:
    """Return the first columns of the product of the reflectors."""
    return _reflected(x, taus, _identity(x, *x.shape[-2:]), False)


def ormqr(x: Value, taus: Value, c: Value, *, left: bool, adjoint: bool) -> Any:
    """Return Q @ c, or c @ Q unless `left`; with Q^H instead of Q if `adjoint`."""
    if left:
        return _reflected(x, taus, c, adjoint)
    return _adjoint(_reflected(x, taus, _adjoint(c), not adjoint))


def triangular_solve(
    a: Value,
    b: Value,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Any:
    """Solve op(a) @ x = b for x, or x @ op(a) = b unless `left_side`, row by row."""
    a = pnp.conj(a) if conjugate_a else a
    a = pnp.swapaxes(a, -1, -2) if transpose_a else a
    lower ^= transpose_a
    if not left_side:  # a^T @ x^T = b^T
        a, b, lower = pnp.swapaxes(a, -1, -2), pnp.swapaxes(b, -1, -2), not lower
    rows = _rows(a)

    def step(k: Value, x: Value):
        row, column = _row(x, k), _column(a, k)
        row = row if unit_diagonal else row / _element(column, k)
        column = pnp.where(rows > k if lower else rows < k, column, 0)
        return (pnp.where((rows == k)[:, None], row[..., None, :], x - _outer(column, row)),)

    x = _turns(a.shape[-1], step, b, reverse=not lower)[0]
    return x if left_side else pnp.swapaxes(x, -1, -2)


# ---- rotations -----------------------------------------------------------------------------


def _rounds(n: int) -> int:
    """Return the number of rounds of a tournament in which all pairs of n players meet."""
    return n - 1 + n % 2


def _partners(n: int, round: Value) -> Any:
    """Return the partner of each of n players in a round; a player without one gets itself."""
    m = _rounds(n)
    each = plait.lax.iota(np.int32, n)
    met = (round - each) % m
    if n % 2:
        return met
    alone = plait.lax.iota(np.int32, m)
    left_over = pnp.where((2 * alone - round) % m == 0, alone, 0).sum()
    return pnp.where(each == n - 1, left_over, pnp.where(met == each, n - 1, met))


def _rotation(on: Value, beside: Value, partners: Value) -> tuple[Any, Any]:
    """Return (c, g), the rotations that make x[i, j] zero for each pair i, j of partners.

    Column i of the rotated matrix is c[i] x[:, i] + g[i] x[:, j].

    Args:
      on: x[i, i], real.
      beside: x[i, j].  The values of two partners must be conjugates, bit for bit: then c is the
        same for both, and the rotation is unitary.
    """
    each = plait.lax.iota(np.int32, on.shape[-1])
    size = pnp.abs(beside)
    turned = (size > 0) & (partners != each)
    safe = pnp.where(turned, size, 1)
    tau = (pnp.take(on, partners, -1) - on) / (2 * safe)
    sign = pnp.where(tau == 0, pnp.where(each < partners, 1, -1), pnp.sign(tau)).astype(on.dtype)
    t = pnp.where(turned, sign / (pnp.abs(tau) + pnp.sqrt(1 + tau * tau)), 0)
    c = 1 / pnp.sqrt(1 + t * t)
    return c.astype(beside.dtype), -(t * c).astype(beside.dtype) * pnp.conj(beside) / safe


def _turned(x: Value, c: Value, g: Value, partners: Value) -> Any:
    """Return x with its columns rotated."""
    return c[..., None, :] * x + g[..., None, :] * pnp.take(x, partners, -1)


def _at_partners(x: Value, partners: Value) -> Any:
    """Return x[i, partners[i]]."""
    return pnp.where(_columns(x) == partners[:, None], x, 0).sum(-1)


def eigh(x: Any, *, lower: bool, vectors: bool) -> list[Any]:
    """Return (eigenvalues, eigenvectors); eigenvalues alone unless `vectors`."""
    n = x.shape[-1]
    half = pnp.tril(x, -1) if lower else pnp.triu(x, 1)
    on = pnp.real(pnp.diagonal(x, axis1=-2, axis2=-1))
    x = half + _adjoint(half) + on[..., None].astype(x.dtype) * _identity(x, n, n)
    scale = _largest(x)
    x = x / scale.astype(x.dtype)
    eps = np.finfo(x.dtype).eps
    off = lambda x: pnp.abs(x - x * _identity(x, n, n)).max((-2, -1))  # noqa: E731

    def round(r: Value, x: Value, v: Value):
        partners = _partners(n, r)
        # Averaging makes the two values of a pair conjugates, bit for bit, as `_rotation` needs.
        beside = _at_partners(x, partners)
        beside = (beside + pnp.conj(pnp.take(beside, partners, -1))) / 2
        on = pnp.real(pnp.diagonal(x, axis1=-2, axis2=-1))
        c, g = _rotation(on, beside, partners)
        x = _turned(x, c, g, partners)
        x = _adjoint(_turned(_adjoint(x), c, g, partners))
        met = (_columns(x) == partners[:, None]) & (partners != _columns(x))[:, None]
        return pnp.where(met, 0, x), _turned(v, c, g, partners)

    def sweep(state):
        i, x, v = state
        return (i + 1, *_turns(_rounds(n), round, x, v))

    going = lambda s: (s[0] < _SWEEPS) & (off(s[1]) > eps / 8).any()  # noqa: E731
    _, x, v = plait.lax.while_loop(going, sweep, (np.int32(0), x, _identity(x, n, n)))
    good = off(x) <= eps
    values = pnp.real(pnp.diagonal(x, axis1=-2, axis2=-1)) * scale[..., 0]
    values = pnp.where(good[..., None], values, pnp.nan)
    if not vectors:
        return [pnp.sort(values, -1)]
    order = pnp.argsort(values, axis=-1)
    v = pnp.take_along_axis(v, order[..., None, :], -1)
    return [
        pnp.take_along_axis(values, order, -1),
        pnp.where(good[..., None, None], v, pnp.nan),
    ]


def svd(x: Value, *, full_matrices: bool, compute_uv: bool) -> list[Any]:
    """Return (singular values, U, V^H); singular values alone unless `compute_uv`."""
    m, n = x.shape[-2:]
    if m < n:
        s, *both = svd(_adjoint(x), full_matrices=full_matrices, compute_uv=compute_uv)
        return [s, *map(_adjoint, reversed(both))]
    scale = _largest(x)
    packed, taus = reflectors(x / scale.astype(x.dtype))
    r = pnp.triu(packed[..., :n, :])
    w, v, good = _orthogonal_columns(r)
    norms = pnp.sqrt((pnp.real(w) ** 2 + pnp.imag(w) ** 2).sum(-2))
    order = pnp.argsort(-norms, axis=-1)
    w = pnp.take_along_axis(w, order[..., None, :], -1)
    inner, inner_taus = reflectors(w)
    on = pnp.diagonal(inner, axis1=-2, axis2=-1)
    s = pnp.where(good[..., None], pnp.abs(on) * scale[..., 0], pnp.nan)
    sorted_again = pnp.argsort(-s, axis=-1)  # rounding may reorder nearly equal values
    s = pnp.take_along_axis(s, sorted_again, -1)
    if not compute_uv:
        return [s]
    phase = pnp.where(on == 0, 1, on / pnp.where(on == 0, 1, pnp.abs(on)).astype(x.dtype))
    u = householder_product(inner, inner_taus) * phase[..., None, :]
    u = pnp.take_along_axis(u, sorted_again[..., None, :], -1)
    v = pnp.take_along_axis(v, order[..., None, :], -1)
    v = pnp.take_along_axis(v, sorted_again[..., None, :], -1)
    columns = m if full_matrices else n
    q = _reflected(packed, taus, _identity(x, m, columns), False)
    u = pnp.concatenate([_product(q[..., :n], u), q[..., n:]], -1)
    bad = ~good[..., None, None]
    return [
        s,
        pnp.where(bad, pnp.nan, u),
        pnp.where(bad, pnp.nan, _adjoint(v)),
    ]


def _orthogonal_columns(x: Any) -> tuple[Any, Any, Any]:
    """Return (w, v, whether it converged): x @ v = w, v unitary, and columns of w orthogonal."""
    n = x.shape[-1]
    tolerance = np.finfo(x.dtype).eps * n

    def round(r: Value, w: Value, v: Value, worst: Value):
        partners = _partners(n, r)
        on = (pnp.real(w) ** 2 + pnp.imag(w) ** 2).sum(-2)
        beside = (pnp.conj(w) * pnp.take(w, partners, -1)).sum(-2)
        beside = (beside + pnp.conj(pnp.take(beside, partners, -1))) / 2
        beside = pnp.where(partners == _columns(w), 0, beside)
        # The root of the product would underflow to 0 for small columns.
        both = pnp.sqrt(on) * pnp.sqrt(pnp.take(on, partners, -1))
        least = pnp.finfo(on.dtype).tiny
        angle = pnp.where(both <= least, 0, pnp.abs(beside) / pnp.where(both <= least, 1, both))
        c, g = _rotation(on, pnp.where(angle > tolerance / 8, beside, 0), partners)
        worst = pnp.maximum(worst, angle.max(-1))
        return _turned(w, c, g, partners), _turned(v, c, g, partners), worst

    def sweep(state):
        i, w, v, _ = state
        none = pnp.zeros(x.shape[:-2], pnp.real(x).dtype)
        return (i + 1, *_turns(_rounds(n), round, w, v, none))

    going = lambda s: (s[0] < _SWEEPS) & (s[3] > tolerance).any()  # noqa: E731
    start = pnp.full(x.shape[:-2], 1, pnp.real(x).dtype)
    _, w, v, worst = plait.lax.while_loop(going, sweep, (np.int32(0), x, _identity(x, n, n), start))
    return w, v, (worst <= tolerance) & pnp.isfinite(x).all((-2, -1))


# ---- instead of libraries ------------------------------------------------------------------

_FORMS: dict[str, Callable] = {
    "linalg.cholesky": cholesky,
    "linalg.eigh": eigh,
    "linalg.geqrf": reflectors,
    "linalg.householder_product": householder_product,
    "linalg.lu": lu,
    "linalg.ormqr": ormqr,
    "linalg.svd": svd,
    "linalg.triangular_solve": triangular_solve,
}
"""A library-free form of each primitive that calls libraries, by its name, since programs
without linear algebra do not load these."""

_NOT_PROMISED = ("linalg.ormqr",)
"""Primitives that libraries implement by functions without a promise of stability."""

_LACKING = {"tpu": ("linalg.svd",)}
"""Primitives that a platform's library lacks."""

_EVERYWHERE = ("linalg.cholesky", "linalg.triangular_solve")
"""Primitives with a StableHLO operation, which serves several platforms at once."""


def without_libraries(e: Eqn, platforms: tuple[str, ...]) -> Callable | None:
    """Return the library-free function to lower in place of an equation; None to lower that.

    Raises NotExportable for eigenvalues or singular values of matrices of symbolic sizes.
    """
    if e.prim.name not in _FORMS or any(map(ops.linalg.nothing, [a.aval for a in e.inputs])):
        return None  # the lowering of matrices without elements calls no library
    if e.prim.name in ("linalg.eigh", "linalg.svd") and is_symbolic(e.inputs[0].aval.shape[-2:]):
        raise NotExportable(
            f"{e.prim.name.rpartition('.')[2]} of {e.inputs[0].aval!r} without libraries is for "
            "matrices of known sizes; only how many they are may be symbolic",
            fix="export it for each size of the matrices, or with libraries=True",
        )
    return _FORMS[e.prim.name]


def where_libraries_lack(e: Eqn, platforms: tuple[str, ...]) -> Callable | None:
    """Return the function to lower in place of an equation; None to lower the equation itself.

    Primitives that a library lacks, or has without a promise of stability, take their library-free
    form.  For several platforms, the function chooses between their libraries.
    """
    name = e.prim.name
    if name not in _FORMS and name not in _OTHERS:
        return None
    if name in _NOT_PROMISED or platforms in [(p,) for p, v in _LACKING.items() if name in v]:
        return without_libraries(e, platforms)
    if len(platforms) > 1 and name not in _EVERYWHERE:
        return _chosen_by_platform(e.prim, platforms)
    return None


_OTHERS = (
    "linalg.eig",
    "linalg.geqp3",
    "linalg.hessenberg",
    "linalg.schur",
    "linalg.tridiagonal",
    "linalg.tridiagonal_solve",
)
"""Primitives that call libraries and have no library-free form."""


@cache
def _chosen_by_platform(prim: Primitive, platforms: tuple[str, ...]) -> Callable:
    """Return a function with one branch per platform, so that each lowers the primitive itself."""

    def chosen(*xs: Value, **params: bool) -> Any:
        do = lambda *vs: prim.bind(*vs, **params)  # noqa: E731
        return plait.lax.platform_dependent(*xs, **dict.fromkeys(platforms, do))

    return chosen
