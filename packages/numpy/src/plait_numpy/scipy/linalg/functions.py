"""Functions of matrices: the exponential, the root, the polar factors, and arbitrary ones.

Invariant: derivatives are those of the function, up to rounding, whatever algorithm computes it.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plait.errors import ArgumentError, ShapeError
from plait.ext import Literal
from plait.ext.control import cond, fori_loop, scan
from plait.ext.ops import elementwise as el
from plait.ext.ops.reduction import max_, min_, sum_
from plait.ext.ops.shape import broadcast_in_dim, concatenate, convert, iota, slice_in_dim
from plait.ext.surface import fused, value
from plait.ext.trace import Value
from plait.ext.types import FLOATING
from plait.typing import Array, ArrayLike

from ...lax import linalg as lax_linalg
from ...numpy.linalg.factors import matrices
from ...primitives.linalg import batched_matrices as bm
from ...primitives.linalg import solving
from ...primitives.linalg.matrix_equations import sqrtm_
from .factors import rsf2csf, schur

_PADE = {
    "float32": (7, 3.925724783138660,
                (17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1)),
    "float64": (13, 5.371920351148152,
                (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800,
                 129060195264000, 10559470521600, 670442572800, 33522128640, 1323241920, 40840800,
                 960960, 16380, 182, 1)),
}  # fmt: skip
"""Map dtype to (degree, greatest norm for which it is exact to rounding, coefficients)."""


def _scaled(x: Value, c: float) -> Any:
    return el.mul.bind(Literal(float(c), x.aval), x)


def _sum(*xs: Any) -> Any:
    out, *rest = xs
    for x in rest:
        out = el.add.bind(out, x)
    return out


def _approximant(x: Value, b: tuple) -> tuple:
    """Return (odd, even part) of the numerator of Pade's approximant."""
    one, x2 = bm.identity(x.aval), bm.times(x, x)
    x4 = bm.times(x2, x2)
    x6 = bm.times(x4, x2)
    powers = (one, x2, x4, x6)
    low = lambda start: _sum(*[_scaled(p, b[start + 2 * i]) for i, p in enumerate(powers)])  # noqa: E731
    odd, even = low(1), low(0)
    if len(b) > 8:
        high = (
            lambda start: _sum(  # noqa: E731
                *[_scaled(p, b[start + 2 * i]) for i, p in enumerate(powers[1:])]
            )
        )
        odd, even = (_sum(y, bm.times(x6, high(s))) for y, s in ((odd, 9), (even, 8)))
    return bm.times(x, odd), even


_SPARE = {7: 12, 13: 64}
"""Map degree to the number of squarings that may be left out without overflow of the powers."""


def _squarings(x: Value, most: float, degree: int, limit: int) -> Any:
    """Return how often the approximant of each matrix, scaled to norm `most`, must be squared.

    Where the norm needs more squarings than `limit`, the powers of the matrix decide (A. Al-Mohy,
    N. Higham, "A new scaling and squaring algorithm for the matrix exponential", 2009): those of a
    triangular matrix with zeros on its diagonal vanish, however great its norm.
    """
    norm = max_(sum_(el.abs_(x), -2), -1)
    halvings = lambda n: el.maximum(  # noqa: E731
        el.ceil(el.div(el.log(el.div(n, most)), float(np.log(2)))), 0
    )
    count = halvings(norm)

    def by_powers(count: Value) -> Any:
        # Powers of absolute values: those of a matrix that vanish by cancellation alone leave the
        # exponential without a correct digit.
        lead = tuple(range(x.aval.ndim - 2))
        large = broadcast_in_dim.bind(el.maximum(norm, 1), shape=x.aval.shape, dims=lead)
        unit = el.div(el.abs_(x), large)
        power = sum_(unit, -2, keepdims=True)
        for _ in range(degree - 1):
            power = bm.times(power, unit)
        # Derivatives need the terms A**i E A**j as well.  One of their two powers reaches the
        # degree, and the other may be as great as the norm: hence the exponents 1/3 and 2/3.
        power = el.pow_(max_(power, (-2, -1)), 1 / (3 * degree))
        least = el.maximum(halvings(el.mul(norm, power)), el.sub(count, _SPARE[degree]))
        return el.select(el.gt(count, limit), least, count)

    return cond(el.gt(max_(count), limit), by_powers, lambda count: count, count)


@fused
def _expm(x: Array, *, upper_triangular: bool, max_squarings: int) -> Any:
    aval = x.aval
    if bm.nothing(aval):
        return x
    part = bm.real_dtype(aval.dtype)
    _, most, coefficients = _PADE[part.name]
    # The number of squarings is piecewise constant, so it has no derivative.
    count = _squarings(el.stop.bind(x), most, len(coefficients) - 1, max_squarings)
    lead = tuple(range(aval.ndim - 2))
    spread = lambda v: broadcast_in_dim.bind(v, shape=aval.shape, dims=lead)  # noqa: E731
    factor = convert(el.pow_(convert(Literal(0.5, count.aval), part), count), aval.dtype)
    odd, even = _approximant(el.mul.bind(x, spread(factor)), coefficients)
    top, bottom = el.add.bind(even, odd), el.sub.bind(even, odd)
    if upper_triangular:
        start = solving.triangular(bottom, top, lower=False)
    else:
        start = solving.general(bottom, top)

    # The number of steps is fixed, unlike that of a while loop, so that reverse mode works; `cond`
    # skips the steps that no matrix of the stack needs.
    def step(y: Value, i: Value) -> tuple:
        square = lambda y: el.select.bind(  # noqa: E731
            spread(el.gt(count, convert(i, part))), bm.times(y, y), y
        )
        again = el.gt(max_(count), convert(i, part))
        return cond(again, square, lambda y: y, y), None

    out, _ = scan(step, start, iota(np.int32, (max_squarings,)))
    nan = Literal(float("nan"), aval)
    return el.select.bind(spread(el.gt(count, float(max_squarings))), nan, out)


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Return the exponential of square matrices.

    Args:
      A: (..., n, n).
      upper_triangular: a promise that saves work.
      max_squarings: the maximal number of squarings of the scaled matrix; norms above about 2 **
        (max_squarings + 2) give nan, unless the matrix is nilpotent by its zeros.

    Uses scaling, Pade's approximant of degree 13 (7 for float32), and squaring (Higham 2005, "The
    scaling and squaring method for the matrix exponential revisited").  As scipy.linalg.expm.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.expm(np.array([[0.0, 1.0], [0.0, 0.0]])).round(5).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    x = matrices("expm", A, square=True)
    return _expm(x, upper_triangular=bool(upper_triangular), max_squarings=int(max_squarings))


@fused
def _block(a: Value, e: Value) -> Any:
    zero = Literal(0, a.aval)
    rows = concatenate([a, e], -1), concatenate([zero, a], -1)
    return concatenate(rows, -2)


def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]:
    """Return (the exponential of A, its derivative in the direction E).

    Args:
      A, E: (..., n, n).
      method: None or "blockEnlarge": the exponential of [[A, E], [0, A]].
      compute_expm: whether to return the exponential too.

    As scipy.linalg.expm_frechet.

    >>> import numpy as np, plait
    >>> value, slope = plait.scipy.linalg.expm_frechet(np.zeros((2, 2)), np.eye(2))
    >>> slope.round(5).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if method not in (None, "blockEnlarge"):
        raise ArgumentError(f"expm_frechet has no method {method!r}", fix="pass method=None")
    a, e = (matrices("expm_frechet", v, square=True) for v in (A, E))
    if a.aval.shape != e.aval.shape:
        raise ShapeError(f"expm_frechet of {a.aval!r} along {e.aval!r}", fix="give one shape")
    dtype = np.result_type(a.aval.dtype, e.aval.dtype)
    n = a.aval.shape[-1]
    out = slice_in_dim(expm(_block(convert(a, dtype), convert(e, dtype))), 0, n, axis=-2)
    slope = slice_in_dim(out, n, 2 * n, axis=-1)
    return (slice_in_dim(out, 0, n, axis=-1), slope) if compute_expm else slope


@fused
def _sqrtm(x: Array) -> Any:
    return sqrtm_.bind(x)


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Return the principal square root of square matrices, complex: root @ root = A.

    Args:
      A: (..., n, n); nan or not finite where no such root exists.
      blocksize: accepted for compatibility.

    Uses Schur's form, hence on the CPU only.  Its derivative solves Sylvester's equation.
    As scipy.linalg.sqrtm.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.sqrtm(np.diag([4.0, 9.0])).real.round(4).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    return _sqrtm(matrices("sqrtm", A, square=True))


@fused
def _polar(x: Array, *, right: bool) -> Any:
    u, s, vh = lax_linalg.svd(x, full_matrices=False)
    wide = convert(s, x.aval.dtype)
    v = bm.adjoint(vh)
    turned = v if right else u
    size = bm.times(el.mul.bind(turned, bm.as_rows(wide, turned.aval)), bm.adjoint(turned))
    return bm.times(u, vh), size


def polar(
    a: ArrayLike, side: str = "right", *, method: str = "qdwh", eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the polar decomposition: a = U @ P, or P @ U.

    Args:
      a: (..., m, n).
      side: "right", P is (..., n, n); "left", P is (..., m, m) and comes first.
      method: "qdwh" or "svd"; both use singular values.  `plait.lax.linalg.qdwh` is the iteration.
      eps, max_iterations: accepted for compatibility; singular values need no iteration.

    Raises TypeRule for other sides and methods.
    Returns (U, with orthonormal columns or rows; P, Hermitian and positive semidefinite).  As
    scipy.linalg.polar.

    >>> import numpy as np, plait
    >>> u, p = plait.scipy.linalg.polar(np.diag([2.0, -3.0]))
    >>> p.round(3).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    if side not in ("right", "left"):
        raise ArgumentError(f"polar has no side {side!r}", fix='use "right" or "left"')
    if method not in ("qdwh", "svd"):
        raise ArgumentError(f"polar has no method {method!r}", fix='use "qdwh" or "svd"')
    return _polar(matrices("polar", a), right=side == "right")


@fused
def _parlett(t: Array, f: Value) -> Any:
    """Return a function of upper triangular matrices from its values on their diagonals, one
    diagonal after the other: B. N. Parlett, Linear Algebra Appl. 14 (1976)."""
    n = t.aval.shape[-1]
    on = bm.diagonal(t)
    columns = iota(np.int32, (n, n), 1)
    place = el.sub.bind(columns, iota(np.int32, (n, n), 0))
    gap = el.sub.bind(bm.as_rows(on, t.aval), bm.as_columns(on, t.aval))
    same = el.eq(gap, 0.0)
    # Between equal eigenvalues the recurrence is 0 / 0, and the element depends on derivatives of
    # the function, unless nothing but rounding errors connects the two.
    size = el.abs_(t)
    strict = el.select(el.gt(place, 0), size, 0.0)
    joined = el.maximum(strict, el.sqrt(bm.times(strict, strict)))
    least = 4.0 * n * float(np.finfo(size.aval.dtype).eps)
    unknown = el.and_(same, el.gt(joined, el.mul(least, max_(max_(size, -1), -1))))
    gap = el.select(unknown, math.nan, el.select(same, 1.0, gap))
    start = el.mul.bind(bm.as_rows(f, t.aval), bm.identity(t.aval))

    def step(p: Value, known: Value) -> Any:
        new = el.div(el.sub(bm.times(t, known), bm.times(known, t)), gap)
        return el.select(el.eq(place, convert(p, np.int32)), new, known)

    return fori_loop(1, n, step, start)


@fused
def _doubt(t: Array) -> Any:
    """Estimate the error of `_parlett`: rounding, magnified by the closest eigenvalues."""
    n = t.aval.shape[-1]
    part = bm.real_dtype(t.aval.dtype)
    eps = float(np.finfo(part).eps)
    on = bm.diagonal(t)
    gap = el.abs_(el.sub(bm.as_rows(on, t.aval), bm.as_columns(on, t.aval)))
    above = el.gt(iota(np.int32, (n, n), 1), iota(np.int32, (n, n), 0))
    least = min_(el.select(above, gap, math.inf))
    size = max_(sum_(el.select(above, el.abs_(t), 0.0), -2))
    err = el.select(el.gt(least, 0.0), el.maximum(eps, eps * size / least), 1.0)
    return el.minimum(err, 1.0)


def funm(A: ArrayLike, func: Callable[..., Any], disp: bool = True) -> Array | tuple[Array, Array]:
    """Apply a function to a square matrix, by Schur's form and Parlett's recurrence; complex.

    Args:
      A: (n, n).
      func: elementwise function of an array of eigenvalues (complex).
      disp: whether to return the result alone; if not, (result, an estimate of its error).

    The recurrence divides by differences of eigenvalues.  The result is nan where it depends on
    derivatives of the function: if the matrix has equal eigenvalues and cannot be diagonalised.
    The estimate is 1 for any equal eigenvalues.  On the CPU only; has no derivative.  As
    scipy.linalg.funm.
    Raises TypeRule for matrices that are not square, and for stacks of them.

    >>> import numpy as np, plait
    >>> plait.scipy.linalg.funm(np.diag([1.0, 2.0]), lambda w: w * w).real.round(4).tolist()
    [[1.0, 0.0], [0.0, 4.0]]
    """
    x = matrices("funm", A, square=True)
    if x.aval.ndim != 2 or not callable(func):
        raise ArgumentError(f"funm of {x.aval!r} by {func!r}", fix="give one matrix and a function")
    t, z = rsf2csf(*schur(x)) if x.aval.category == FLOATING else schur(x)
    f = value(func(bm.diagonal(t)))
    if f.aval.shape != t.aval.shape[:1]:
        raise ArgumentError(f"funm: {f.aval!r} of {t.aval.shape[0]} eigenvalues", fix="act on each")
    out = bm.times(bm.times(z, _parlett(t, convert(f, t.aval.dtype))), bm.adjoint(z))
    return out if disp else (out, _doubt(t))
