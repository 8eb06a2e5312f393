"""Linear equations, least squares, inverses, powers and determinants.

Invariant: derivatives exist wherever the function has one, whatever algorithm computes it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.errors import ArgumentError, AxisError, ShapeError
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.reduction import sum_
from plait.ext.sizes import max_dim
from plait.ext.surface import fused, value
from plait.ext.trace import Value
from plait.ext.types import broadcast_shapes
from plait.typing import Array, ArrayLike

from ...exact import matmul
from ...primitives.linalg import matrix_inverses, solving
from ...primitives.linalg.batched_matrices import identity, nothing, real_dtype, stack_of
from .factors import SlogdetResult, matrices, svdvals

__all__ = [
    "det", "inv", "lstsq", "matrix_power", "matrix_rank", "pinv", "slogdet", "solve", "tensorinv",
    "tensorsolve",
]  # fmt: skip


def agreeing(name: str, a: Any, b: Value, square: bool) -> tuple[Any, ...]:
    """Bring both operands to one dtype and stack; `b` holds matrices."""
    dtype = np.result_type(a.aval.dtype, b.aval.dtype)
    a, b = sh.convert(a, dtype), sh.convert(b, dtype)
    stack_of(name, a.aval, square)
    stack_of(name, b.aval)
    return stacked_alike(a, b)


def stacked_alike(*stacks: Value) -> tuple[Any, ...]:
    """Bring stacks of matrices to the leading axes to which theirs broadcast."""
    lead = broadcast_shapes([v.aval.shape[:-2] for v in stacks])
    return tuple(sh.broadcast_to(v, (*lead, *v.aval.shape[-2:])) for v in stacks)


# ---- equations -----------------------------------------------------------------------------


@fused
def _solve(a: Array, b: Value) -> Any:
    vector = b.aval.ndim == 1
    a, b = agreeing("solve", a, sh.expand_dims(b, 1) if vector else b, square=True)
    x = solving.general(a, b)
    return sh.squeeze(x, -1) if vector else x


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve a @ x = b for x.

    Args:
      a: (..., n, n).
      b: (n,) or (..., n, k); leading axes broadcast.

    Returns (..., n) or (..., n, k); infinities and nan where a is singular.
    Raises TypeRule for shapes that do not fit.  As numpy.linalg.solve.

    Raises AxisError for other numbers of axes.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    x = matrices("solve", a, square=True)
    (y,) = el.floating((value(b),))
    if not y.aval.ndim:
        raise AxisError(f"solve: {y.aval!r} is no right-hand side", fix="give it an axis")
    return _solve(x, y)


@fused
def _inv(x: Array) -> Any:
    return solving.inverse(x)


def inv(a: ArrayLike) -> Array:
    """Invert square matrices: (..., n, n); infinities and nan where one is singular.

    As numpy.linalg.inv.

    Raises NotAnArrayError if `a` is not an array, AxisError if it has fewer than two axes, and
    ShapeError if its matrices are not square.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.inv(np.diag([2.0, 4.0])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return _inv(matrices("inv", a, square=True))


def _tolerance(rtol: Any, x: Any) -> Any:
    """Return the relative tolerance for each matrix; by default max(m, n) times the spacing of
    floats at one."""
    dtype, (*lead, m, n) = real_dtype(x.dtype), x.shape
    if rtol is None:
        eps = float(np.finfo(dtype).eps)
        most: Any = max_dim(m, n)
        rtol = eps * most if most.__class__ is int else el.mul(sh.size_value(most, dtype), eps)
    return sh.broadcast_to(sh.convert(value(rtol), dtype), lead)


@fused
def _pinv(x: Array, rtol: Value) -> Any:
    return matrix_inverses.pinv_.bind(x, rtol)


def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *,
    rcond: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the pseudo-inverse.

    Args:
      a: (..., m, n).
      rtol: singular values of at most `rtol` times the greatest count as zero; one for all
        matrices or one for each.  By default max(m, n) times the spacing of floats at one.
      hermitian: a promise about square matrices, which changes nothing.
      rcond: another name of `rtol`.

    Returns (..., n, m).  Raises TypeRule if both `rtol` and `rcond` are given.  As
    numpy.linalg.pinv.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.pinv(np.array([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """
    if rtol is not None and rcond is not None:
        raise ArgumentError("pinv is given rtol and rcond", fix="give one of them: rtol")
    x = matrices("pinv", a, square=bool(hermitian))
    return _pinv(x, _tolerance(rcond if rtol is None else rtol, x.aval))


@fused
def _lstsq(a: Value, b: Value, rtol: Value) -> Any:
    vector = b.aval.ndim == 1
    b = sh.expand_dims(b, 1) if vector else b
    x, rank, s = matrix_inverses.lstsq_.bind(a, b, rtol)
    rest = el.abs_(el.sub(b, matmul(a, x)))
    return (sh.squeeze(x, 1) if vector else x), sum_(el.mul(rest, rest), 0), rank, s


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Return the least x that minimises |a @ x - b|.

    Args:
      a: (m, n).
      b: (m,) or (m, k).
      rcond: singular values of at most `rcond` times the greatest count as zero; by default, or
        if negative, max(m, n) times the spacing of floats at one.
      numpy_resid: whether residuals are omitted where numpy omits them: unless m > n and the rank
        is n.  This reads the rank, so it cannot be traced.

    Returns (x (n,) or (n, k), squared residuals (k,), rank, singular values).
    Raises TypeRule for shapes that do not fit.  As numpy.linalg.lstsq.

    Raises AxisError for other numbers of axes.

    >>> import numpy as np, plait
    >>> a = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> x, residuals, rank, s = plait.numpy.linalg.lstsq(a, np.array([1.0, 3.0, 5.0]))
    >>> bool(abs(x - np.array([1.0, 2.0])).max() < 1e-5), int(rank)
    (True, 2)
    """
    x, y = matrices("lstsq", a), el.floating((value(b),))[0]
    if x.aval.ndim != 2 or y.aval.ndim not in (1, 2):
        raise AxisError(
            f"lstsq of {x.aval!r} and {y.aval!r}", fix="give a matrix, and a vector or a matrix"
        )
    dtype = np.result_type(x.aval.dtype, y.aval.dtype)
    x, y = sh.convert(x, dtype), sh.convert(y, dtype)
    least = None if rcond is None or (isinstance(rcond, int | float) and rcond < 0) else rcond
    solution, rest, rank, s = _lstsq(x, y, _tolerance(least, x.aval))
    if numpy_resid and (x.aval.shape[0] <= x.aval.shape[1] or int(rank) < x.aval.shape[1]):
        rest = rest[:0]
    return solution, rest, rank, s


def _size(shape: tuple[int, ...]) -> int:
    out = 1
    for d in shape:
        out = out * d
    return out


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Return the x with tensordot(a, x, x.ndim) = b.

    Args:
      a: of shape (*b.shape, *x.shape), with as many elements in both.
      b: an array.
      axes: axes of a that are moved to the end first.

    Raises TypeRule if `a` does not have as many unknowns as `b` has elements.  As
    numpy.linalg.tensorsolve.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.tensorsolve(np.eye(4).reshape(2, 2, 4), np.ones((2, 2))).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    x, y = value(a), value(b)
    if axes is not None:
        n = x.aval.ndim
        x = sh.moveaxis(x, tuple(axes), tuple(range(n - len(axes), n)))
    rest = x.aval.shape[y.aval.ndim :]
    if _size(rest) != y.aval.size:
        raise ArgumentError(
            f"tensorsolve of {x.aval!r} and {y.aval!r}: {_size(rest)} unknowns for "
            f"{y.aval.size} equations",
            fix="give as many of both",
        )
    square = sh.reshape(x, (y.aval.size, y.aval.size))
    return sh.reshape(solve(square, sh.reshape(y, (y.aval.size,))), rest)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Return the inverse for tensordot over `ind` axes.

    Args:
      a: as many elements along its first `ind` axes as along the others.
      ind: at least 1.

    As numpy.linalg.tensorinv.

    Raises NotAnArrayError if `a` is not an array, and ShapeError if the axes before and after `ind`
    do not make a square matrix.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.tensorinv(np.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    x = value(a)
    if ind < 1:
        raise ShapeError(f"tensorinv over {ind} axes", fix="give at least 1")
    if x.aval.ndim <= ind:
        raise ShapeError(f"tensorinv over {ind} axes of {x.aval!r}", fix="give more axes")
    first, rest = x.aval.shape[:ind], x.aval.shape[ind:]
    return sh.reshape(inv(sh.reshape(x, (_size(first), _size(rest)))), (*rest, *first))


# ---- powers, determinants, rank ------------------------------------------------------------


@fused
def _matrix_power(x: Array, *, n: int) -> Any:
    out = None
    while n:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    return identity(x.aval) if out is None else out


def matrix_power(a: ArrayLike, n: int) -> Array:
    """Raise square matrices (their inverses if `n` is negative) to the power |n|, by squaring.

    Args:
      a: (..., m, m), of any dtype if n is not negative.
      n: an int.

    Raises TypeRule for matrices that are not square.  As numpy.linalg.matrix_power.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.matrix_power(np.array([[1, 1], [0, 1]]), 3).tolist()
    [[1, 3], [0, 1]]
    """
    n = n.__index__()
    x = inv(a) if n < 0 else value(a)
    if x.aval.ndim < 2 or x.aval.shape[-1] != x.aval.shape[-2]:
        raise ShapeError(
            f"matrix_power takes square matrices, not {x.aval!r}", fix="give (..., n, n)"
        )
    return _matrix_power(x, n=abs(n))


@fused
def _det(x: Array) -> Any:
    return matrix_inverses.det_.bind(x)


def det(a: ArrayLike) -> Array:
    """Return determinants of square matrices: (...).  As numpy.linalg.det.

    The derivative, the transposed matrix of cofactors, exists for singular matrices too.

    Raises NotAnArrayError if `a` is not an array, AxisError if it has fewer than two axes, and
    ShapeError if its matrices are not square.

    >>> import numpy as np, plait
    >>> float(plait.numpy.linalg.det(np.array([[2.0, 1.0], [1.0, 2.0]])))
    3.0
    """
    return _det(matrices("det", a, square=True))


@fused
def _slogdet(x: Array) -> Any:
    return tuple(matrix_inverses.slogdet_.bind(x))


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Return the sign (phase) of determinants and the logarithm of their absolute value.

    Args:
      a: (..., n, n).
      method: "lu", the default; "qr" is accepted, and computes the same.

    Returns SlogdetResult((...), (...) real); (0, -inf) for a singular matrix.  Raises TypeRule for
    other methods.  As numpy.linalg.slogdet.

    >>> import numpy as np, plait
    >>> plait.numpy.linalg.slogdet(-np.eye(3)).sign.item()
    -1.0
    """
    if method not in (None, "lu", "qr"):
        raise ArgumentError(f"slogdet has no method {method!r}", fix='use "lu" or "qr"')
    return SlogdetResult(*_slogdet(matrices("slogdet", a, square=True)))


@fused
def _matrix_rank(s: Array, least: Value, *, relative: bool) -> Any:
    top = el.mul(_greatest(s), least) if relative else least
    above = el.gt(s, sh.expand_dims(top, top.aval.ndim))
    return sum_(sh.convert(above, np.int32), -1)


def _greatest(s: Any) -> Any:
    return s[..., 0]


def matrix_rank(
    M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the number of singular values above a tolerance.

    Args:
      M: (..., m, n); with fewer axes, the rank is 1 if any element is not zero, else 0.
      rtol: singular values of at most `rtol` times the greatest are dropped; by default max(m, n)
        times the spacing of floats at one.
      hermitian: a promise that changes nothing.
      tol: an absolute tolerance, instead of `rtol`.

    Returns int32 (...).  Raises TypeRule if both `rtol` and `tol` are given.  As
    numpy.linalg.matrix_rank.

    >>> import numpy as np, plait
    >>> int(plait.numpy.linalg.matrix_rank(np.ones((3, 3))))
    1
    """
    if rtol is not None and tol is not None:
        raise ShapeError("matrix_rank is given rtol and tol", fix="give one of them")
    x = value(M)
    if x.aval.ndim < 2:
        return sh.convert(sum_(sh.convert(el.ne(x, 0), np.int32)), bool) * np.int32(1)
    x = matrices("matrix_rank", x)
    s = svdvals(x)
    if nothing(s.aval):
        return sum_(sh.convert(s, np.int32), -1)
    least = _tolerance(rtol if tol is None else tol, x.aval)
    return _matrix_rank(s, least, relative=tol is None)
