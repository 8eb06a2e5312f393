"""Polynomials as vectors of coefficients, the highest power first; windows of signals.

Invariant: lengths are those of the coefficients given: zeros are not trimmed.
"""

import functools
from collections.abc import Callable
from typing import Any, overload
from typing import Literal as Exactly

import numpy as np

from plait.errors import ArgumentError, ConcretizationError, ShapeError
from plait.ext import Aval, Literal, Tracer
from plait.ext.control import scan
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.reduction import sum_
from plait.ext.sizes import Dim, decide_ge, max_dim
from plait.ext.surface import fused, value
from plait.ext.trace import Value
from plait.ext.types import COMPLEX, FLOATING, broadcast_shapes, default_dtype
from plait.ext.values import from_numpy
from plait.typing import Array, ArrayLike

from ..exact import matmul
from ..primitives.linalg.batched_matrices import complex_dtype, identity, real_dtype
from .contraction import convolve
from .interchange import computed
from .linalg import eigvals, inv, lstsq
from .matrices import vander
from .transcendental import i0

__all__ = [
    "bartlett", "blackman", "hamming", "hanning", "kaiser", "poly", "polyadd", "polyder", "polydiv",
    "polyfit", "polyint", "polymul", "polysub", "polyval", "roots",
]  # fmt: skip


def _coefficients(p: object) -> Any:
    p = value(p)
    if p.aval.ndim > 1:
        raise ShapeError(f"coefficients are a vector, not {p.aval!r}", fix="use .ravel()")
    return sh.reshape(p, (1,)) if not p.aval.ndim else p


@fused
def _polyval(p: Value, x: Value, *, unroll: int) -> Any:
    p, x = sh.convert_together([p, x])
    shape = broadcast_shapes([p.aval.shape[1:], x.aval.shape])
    start = Literal(0, Aval(shape, p.aval.dtype))
    step = lambda y, c: (el.add(el.mul(y, x), c), None)  # noqa: E731
    return scan(step, start, p, unroll=max(unroll, 1))[0]


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """Evaluate a polynomial at `x`, by Horner's rule.

    Args:
      p: coefficients, the highest power first.
      x: points, any shape.
      unroll: number of steps in one iteration of the loop.

    Raises TypeRule for coefficients that are not a vector.  As numpy.polyval.

    >>> import numpy as np, plait
    >>> float(plait.numpy.polyval(np.array([1.0, 0.0, 2.0]), 3.0))
    11.0
    """
    p = value(p)
    if not p.aval.ndim:
        raise ShapeError(f"coefficients are a vector, not {p.aval!r}", fix="use atleast_1d")
    return _polyval(p, value(x), unroll=unroll)


def _aligned(a1: object, a2: object) -> tuple[Any, Any]:
    x, y = sh.convert_together([_coefficients(a1), _coefficients(a2)])
    n = max_dim(x.aval.size, y.aval.size)
    return tuple([sh.pad(v, 0, [(n - v.aval.size, 0, 0)]) for v in (x, y)])  # type: ignore[return-value]


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Add two polynomials.  As numpy.polyadd.

    Raises NotAnArrayError if an operand is not an array, and ShapeError if `a1` has more than one
    axis.

    >>> import numpy as np, plait
    >>> plait.numpy.polyadd(np.array([1, 2]), np.array([5])).tolist()
    [1, 7]
    """
    return el.add(*_aligned(a1, a2))


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Subtract two polynomials.  As numpy.polysub.

    Raises NotAnArrayError if an operand is not an array, and ShapeError if `a1` has more than one
    axis.

    >>> import numpy as np, plait
    >>> plait.numpy.polysub(np.array([1, 2]), np.array([5])).tolist()
    [1, -3]
    """
    return el.sub(*_aligned(a1, a2))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Multiply two polynomials.

    Args:
      a1, a2: coefficients, the highest power first; integers become floats.
      trim_leading_zeros: whether to drop leading zeros of factors and product; their number must
        not be traced.

    Raises TypeRule for coefficients that are not a vector.  As numpy.polymul, leading zeros
    included.

    >>> import numpy as np, plait
    >>> plait.numpy.polymul(np.array([1.0, 2.0]), np.array([1.0, -2.0])).tolist()
    [1.0, 0.0, -4.0]
    """
    x, y = [_or_zero(el.floating((_coefficients(a),))[0]) for a in (a1, a2)]
    if trim_leading_zeros:
        x, y = _trimmed("polymul", x), _trimmed("polymul", y)
    return convolve(x, y, precision="highest")


def _or_zero(p: Value) -> Any:
    """Return the coefficient 0 for a polynomial without coefficients."""
    n = p.aval.size
    if n == 0:
        return sh.fill(0, Aval((1,), p.aval.dtype))
    return p if decide_ge(n, 1) else sh.pad(p, 0, [(max_dim(1 - n, 0), 0, 0)])


def _trimmed(name: str, p: Value) -> Any:
    """Drop leading zeros, keeping at least one coefficient."""
    if isinstance(p, Tracer):
        raise ConcretizationError(
            f"{name} cannot count the leading zeros of {p!r}, which is being traced",
            fix="leave out trim_leading_zeros",
        )
    positions = np.flatnonzero(np.asarray(p))
    return p[int(positions[0]) if positions.size else max(p.aval.size - 1, 0) :]


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Return quotient and remainder of two polynomials.

    Args:
      u, v: coefficients, the highest power first.
      trim_leading_zeros: whether to drop leading zeros of the remainder; their number must not be
        traced.

    Raises TypeRule for coefficients that are not a vector.  As numpy.polydiv.

    >>> import numpy as np, plait
    >>> q, r = plait.numpy.polydiv(np.array([3.0, 5.0, 2.0]), np.array([2.0, 1.0]))
    >>> q.tolist(), r.tolist()
    ([1.5, 1.75], [0.0, 0.0, 0.25])
    """
    both = sh.convert_together([_coefficients(u), _coefficients(v)])
    x, y = [el.floating((c,))[0] for c in both]
    count = x.aval.size - y.aval.size + 1
    if count < 1:
        return sh.fill(0, Aval((1,), x.aval.dtype)), x
    q, r = _divided(x, y, count=count)
    if trim_leading_zeros:
        r = _trimmed("polydiv", r)
    return q, r


@fused
def _divided(x: Value, y: Value, *, count: int) -> tuple:
    found = []
    for k in range(count):
        factor = el.div(x[k], y[0])
        found.append(sh.reshape(factor, (1,)))
        back = x.aval.size - k - y.aval.size
        x = el.sub(x, sh.pad(el.mul(y, factor), 0, [(k, back, 0)]))
    return sh.concatenate(found, 0), x


def _counted(n: Any, x: Value) -> Any:
    """Return n, n - 1, ... 1 in the precision of `x`."""
    real = (
        np.dtype(f"float{4 * x.aval.dtype.itemsize}") if x.aval.dtype.kind == "c" else x.aval.dtype
    )
    if n.__class__ is Dim:
        return el.sub(sh.size_value(n, real), sh.iota(real, (max_dim(n, 0),)))
    return from_numpy(np.arange(n, 0, -1).astype(real))


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Differentiate a polynomial `m` times.

    Raises TypeRule for a negative `m`, and for coefficients that are not a vector.  As
    numpy.polyder.

    >>> import numpy as np, plait
    >>> plait.numpy.polyder(np.array([1.0, 2.0, 3.0])).tolist()
    [2.0, 2.0]
    """
    (x,) = el.floating((_coefficients(p),))
    if m < 0:
        raise ArgumentError(f"polyder taken {m} times", fix="give a number that is not negative")
    for _ in range(m):
        n = x.aval.size
        x = el.mul(x[: n - 1], _counted(n - 1, x))
    return x


def polyint(p: ArrayLike, m: int = 1, k: object = None) -> Array:
    """Integrate a polynomial `m` times.

    Args:
      p: coefficients.
      m: number of integrations.
      k: constants of integration, the first one first: a number or a vector; zero by default.

    Raises TypeRule for a negative `m`, and for coefficients that are not a vector.  As
    numpy.polyint.

    >>> import numpy as np, plait
    >>> plait.numpy.polyint(np.array([2.0, 2.0])).tolist()
    [1.0, 2.0, 0.0]
    """
    (x,) = el.floating((_coefficients(p),))
    if m < 0:
        raise ArgumentError(f"polyint taken {m} times", fix="give a number that is not negative")
    constants = sh.broadcast_to(_coefficients(0 if k is None else k), (m,))
    for i in range(m):
        n = x.aval.size
        x = el.div(x, _counted(n, x))
        x = sh.concatenate([x, sh.convert_into(constants[i : i + 1], x.aval.dtype)], 0)
    return x


def poly(seq_of_zeros: ArrayLike) -> Array:
    """Return the polynomial with these zeros, or with the eigenvalues of a matrix as zeros.

    Args:
      seq_of_zeros: a vector, or a square matrix.

    Returns coefficients, starting with one.  As numpy.poly.

    Raises NotAnArrayError if `seq_of_zeros` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.poly(np.array([1.0, -1.0])).tolist()
    [1.0, 0.0, -1.0]
    """
    x = value(seq_of_zeros)
    if x.aval.ndim == 2:
        whole = _from_zeros(eigvals(x))
        return whole if x.aval.category == COMPLEX else sh.convert(el.real(whole), _float_of(x))
    (zeros,) = el.floating((_coefficients(x),))
    return _from_zeros(zeros)


def _float_of(x: Value) -> Any:
    """Return the dtype of an array if it is a float dtype, else the default float."""
    return x.aval.dtype if x.aval.inexact else default_dtype(FLOATING)


def _from_zeros(zeros: Array) -> Any:
    one = Literal(1, Aval((1,), zeros.aval.dtype))
    out: Any = one
    for i in range(zeros.aval.size):
        out = convolve(out, sh.concatenate([one, el.neg(zeros[i : i + 1])], 0), precision="highest")
    return sh.convert(out, zeros.aval.dtype)


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Return the zeros of a polynomial: the eigenvalues of its companion matrix.

    Args:
      p: coefficients, the highest power first.
      strip_zeros: whether zero coefficients are dropped at both ends.  Then the number of roots
        depends on values, so `p` cannot be traced.  Otherwise the first coefficient must not be
        zero: if it is, all roots are nan.

    Returns a complex vector.  Raises ConcretizationError if `strip_zeros` and `p` is traced.  As
    numpy.roots.

    >>> import numpy as np, plait
    >>> sorted(plait.numpy.roots(np.array([1.0, -3.0, 2.0])).real.round(3).tolist())
    [1.0, 2.0]
    """
    (x,) = el.floating((_coefficients(p),))
    zeros = 0
    if strip_zeros:
        if isinstance(x, Tracer):
            raise ConcretizationError(
                "roots: how many coefficients at the ends are zero is not known while tracing",
                fix="pass strip_zeros=False",
            )
        full = np.flatnonzero(np.asarray(x))
        first, last = (full[0], full[-1] + 1) if len(full) else (0, 0)
        zeros = (x.aval.size - last) if len(full) else 0
        x = x[int(first) : int(last)]
    found = _roots(x)
    if not zeros:
        return found
    return sh.concatenate([found, Literal(0, Aval((int(zeros),), found.aval.dtype))], 0)


@fused
def _roots(x: Array) -> Any:
    n = max(x.aval.size - 1, 0)
    if not n:
        return sh.convert(x[:0], complex_dtype(x.aval.dtype))
    top = el.neg(el.div(x[1:], x[:1]))
    below = identity(x.aval.with_shape((n, n)))[: n - 1]
    return eigvals(sh.concatenate([sh.reshape(top, (1, n)), below], 0))


@overload
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = ..., full: Exactly[False] = ...,
    w: ArrayLike | None = ..., cov: Exactly[False] = ...,
) -> Array: ...  # fmt: skip
@overload
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = ..., full: bool = ...,
    w: ArrayLike | None = ..., cov: bool | str = ...,
) -> Array | tuple[Any, ...]: ...  # fmt: skip
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False,
    w: ArrayLike | None = None, cov: bool | str = False,
) -> Array | tuple[Any, ...]:  # fmt: skip
    """Fit a polynomial of degree `deg` to points by least squares.

    Args:
      x: (m,), positions of the points.
      y: (m,) or (m, k), values of the points.
      deg: the degree.
      rcond: singular values of at most `rcond` times the greatest count as zero; by default m
        times the spacing of floats at one.
      full: whether to return (coefficients, squared residuals, rank, singular values, rcond).
      w: (m,), weights of the values (not of their squares).
      cov: whether to return (coefficients, their covariance); "unscaled": not scaled by the
        residuals.

    Returns coefficients (deg + 1,) or (deg + 1, k), the highest power first.
    Raises TypeRule for shapes that do not fit.  As numpy.polyfit.

    >>> import numpy as np, plait
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> plait.numpy.polyfit(x, 2 * x + 1, 1).round(3).tolist()
    [2.0, 1.0]
    """
    at, to = (el.floating((value(v),))[0] for v in (x, y))
    if deg < 0 or at.aval.ndim != 1 or to.aval.ndim not in (1, 2):
        raise ArgumentError(
            f"polyfit of degree {deg} to {at.aval!r} and {to.aval!r}",
            fix="give a degree that is not negative, a vector x, and values for each element",
        )
    if at.aval.shape[0] != to.aval.shape[0] or not at.aval.size:
        raise ArgumentError(
            f"polyfit: {at.aval!r} and {to.aval!r} do not fit together",
            fix="give as many values as points, and at least one",
        )
    at, to = sh.convert_together([at, to])
    if rcond is None:
        rcond = float(np.finfo(real_dtype(at.aval.dtype)).eps) * at.size
    powers, scale, right = _prepared(at, to, None if w is None else value(w), deg=int(deg))
    c, rest, rank, s = lstsq(powers, right, rcond)
    c = c / sh.reshape(scale, (-1,) + (1,) * (c.aval.ndim - 1))
    if full:
        return c, rest, rank, s, rcond
    return (c, _covariance(powers, scale, rest, to, cov)) if cov else c


@fused
def _prepared(x: Value, y: Value, w: Value | None, *, deg: int) -> Any:
    powers = vander(x, deg + 1)
    if w is not None:
        if w.aval.shape != x.aval.shape:
            raise ArgumentError(
                f"weights {w.aval!r} for points {x.aval!r}", fix="give one for each"
            )
        column = sh.reshape(w, (-1, 1))
        powers = el.mul(powers, column)
        y = el.mul(y, column if y.aval.ndim == 2 else w)
    scale = el.sqrt(sum_(el.mul(powers, powers), 0))
    return el.div(powers, sh.reshape(scale, (1, -1))), scale, y


def _covariance(powers: Value, scale: Value, rest: Array, y: Value, cov: bool | str) -> Any:
    m, order = powers.aval.shape
    base = inv(matmul(powers.T, powers)) / (scale[:, None] * scale[None])
    if cov == "unscaled":
        return base if y.aval.ndim == 1 else base[:, :, None]
    if m <= order:
        raise ArgumentError(
            f"{m} points do not determine the covariance of {order} coefficients",
            fix='give more points, or cov="unscaled"',
        )
    factor = rest / (m - order)
    return base * factor if y.aval.ndim == 1 else base[:, :, None] * factor[None, None]


# ---- windows -------------------------------------------------------------------------------


def _window(size: Any, host: Callable[[int], np.ndarray], of_places: Callable[[Any], Any]) -> Any:
    """Return a window of a number of points, or of a symbolic size.

    Args:
      size: the number of points.
      host: the function of numpy.
      of_places: the window as a function of places from 0 to 1, for symbolic sizes.
    """
    kind = default_dtype(FLOATING)
    if size.__class__ is not Dim:
        return computed(host(size).astype(kind))
    last = el.maximum(sh.size_value(size - 1, kind), 1)
    found = of_places(el.div(sh.iota(kind, (size,)), last))
    one = el.le(sh.size_value(size, kind), 1)
    return el.select(sh.broadcast_to(one, (size,)), sh.fill(1, Aval((size,), kind)), found)


def _centred(t: Any) -> Any:
    """Map places from 0 to 1 to those from -1 to 1."""
    return el.sub(el.mul(t, 2), 1)


def _cosines(*weights: float) -> Callable[[Any], Any]:
    """Return the window that is a sum of cosines of 0, 1, ... periods."""

    def of_places(t: Any) -> Any:
        waves = [el.mul(w, el.cos(el.mul(2 * np.pi * k, t))) for k, w in enumerate(weights)]
        return functools.reduce(el.add, waves)

    return of_places


_BLACKMAN, _HAMMING = _cosines(0.42, -0.5, 0.08), _cosines(0.54, -0.46)
_HANNING = _cosines(0.5, -0.5)
_BARTLETT = lambda t: el.sub(1, el.abs_(_centred(t)))  # noqa: E731


def bartlett(M: int) -> Array:
    """Return the triangular window with M points.  As numpy.bartlett.

    Raises TypeRule if `M` is not a number.

    >>> import plait
    >>> plait.numpy.bartlett(3).tolist()
    [0.0, 1.0, 0.0]
    """
    return _window(M, np.bartlett, _BARTLETT)


def blackman(M: int) -> Array:
    """Return the Blackman window with M points.  As numpy.blackman.

    Raises TypeRule if `M` is not a number.

    >>> import plait
    >>> plait.numpy.blackman(4).shape
    (4,)
    """
    return _window(M, np.blackman, _BLACKMAN)


def hamming(M: int) -> Array:
    """Return the Hamming window with M points.  As numpy.hamming.

    Raises TypeRule if `M` is not a number.

    >>> import plait
    >>> plait.numpy.hamming(4).shape
    (4,)
    """
    return _window(M, np.hamming, _HAMMING)


def kaiser(M: int, beta: float) -> Array:
    """Return the Kaiser window with M points and shape `beta`.  As numpy.kaiser.

    Raises TypeRule if `M` or `beta` is not a number.

    >>> import plait
    >>> plait.numpy.kaiser(4, 1.5).shape
    (4,)
    """
    root = lambda t: el.sqrt(el.maximum(el.sub(1, el.square(_centred(t))), 0))  # noqa: E731
    of_places = lambda t: el.div(i0(el.mul(beta, root(t))), i0(beta))  # noqa: E731
    return _window(M, lambda n: np.kaiser(n, beta), of_places)


def hanning(M: int) -> Array:
    """Return the Hann window with M points.  As numpy.hanning.

    Raises TypeRule if `M` is not a number.

    >>> import plait
    >>> plait.numpy.hanning(3).tolist()
    [0.0, 1.0, 0.0]
    """
    return _window(M, np.hanning, _HANNING)
