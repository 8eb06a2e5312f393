"""Norms of vectors and matrices, and condition numbers.

Invariant: norms are real.  Along empty axes they are zero, except for orders that take an extreme.
At zero, where the Euclidean norm has no derivative, its derivative is nan.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

from plait.errors import ArgumentError, AxisError, ShapeError
from plait.ext.ops import elementwise as el
from plait.ext.ops.elementwise import rounded, single
from plait.ext.ops.reduction import any_, max_, min_, sum_
from plait.ext.ops.shape import convert, expand_dims, moveaxis, normal_axes
from plait.ext.surface import fused, value
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike, Axis

from .equations import inv
from .factors import matrices, svdvals

INF = math.inf


def _squares(x: Value) -> Any:
    """Return |x|^2, smooth also at zero."""
    if x.aval.dtype.kind != "c":
        return el.mul(x, x)
    re, im = el.real(x), el.imag(x)
    return el.add(el.mul(re, re), el.mul(im, im))


def _in_single(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return `f` computed in float32 for narrower floats: their powers overflow, and their roots
    would be those of rounded sums."""

    @functools.wraps(f)
    def computed(x: Array, **how: object) -> Any:
        return rounded(f(single(x), **how), x)

    return computed


@fused
@_in_single
def _vector(x: Value, *, ord: float, axes: tuple, keepdims: bool) -> Array:
    how = dict(keepdims=keepdims)
    if ord == 2:
        return el.sqrt(sum_(_squares(x), axes, **how))
    sizes = el.abs_(x)
    if ord == INF:
        return max_(sizes, axes, **how)
    if ord == -INF:
        return min_(sizes, axes, **how)
    if ord == 0:
        return sum_(convert(el.ne(sizes, 0), sizes.aval.dtype), axes, **how)
    if ord == 1:
        return sum_(sizes, axes, **how)
    return el.pow_(sum_(el.pow_(sizes, float(ord)), axes, **how), 1.0 / ord)


@fused
@_in_single
def _matrix(x: Value, *, ord: float | str | None, axes: tuple, keepdims: bool) -> Any:
    row, column = axes
    if ord in ("fro", None):
        return _vector(x, ord=2, axes=axes, keepdims=keepdims)
    if ord in (1, -1, INF, -INF):
        summed, kept = (row, column) if abs(ord) == 1 else (column, row)
        sums = sum_(el.abs_(x), summed, keepdims=True)
        extreme = max_ if ord > 0 else min_
        out = extreme(sums, kept, keepdims=True)
        return out if keepdims else out.squeeze(axes)
    s = svdvals(moveaxis(x, (row, column), (-2, -1)))
    whole = {2: max_, -2: min_, "nuc": sum_}[ord]
    out = whole(s, -1)
    return expand_dims(out, tuple(sorted(axes))) if keepdims else out


def norm(
    x: ArrayLike, ord: object = None, axis: Axis | None = None, keepdims: bool = False
) -> Array:
    """Return the norm of vectors, of matrices, or of all elements.

    Args:
      x: an array.
      ord: for vectors a number, inf, -inf, or 0, the count of nonzero elements; 2 by default.  For
        matrices: "fro" (by default), "nuc", inf, -inf, 1, -1, 2, -2.
      axis: one axis, of vectors; two, of matrices; None: x is a vector or a matrix, or anything
        if `ord` is None, which is then flattened.
      keepdims: whether axes stay, with size 1.

    Raises TypeRule for an unknown `ord`, AxisError for axes that x lacks.
    As numpy.linalg.norm.

    >>> import numpy as np, plait
    >>> float(plait.numpy.linalg.norm(np.array([3.0, 4.0])))
    5.0
    """
    (x,) = el.floating((value(x),))
    n, order = x.aval.ndim, _order(ord)
    if axis is None and ord is None:
        return _vector(x, ord=2, axes=tuple(range(n)), keepdims=bool(keepdims))
    axes = normal_axes(axis, n)
    if len(axes) == 1:
        if isinstance(order, str):
            raise ShapeError(f"vectors have no norm {ord!r}", fix="give a number").given(ord)
        return _vector(x, ord=2 if order is None else order, axes=axes, keepdims=bool(keepdims))
    if len(axes) == 2:
        return _of_matrices(x, order, axes, keepdims)
    raise AxisError(
        f"norm over {len(axes)} axes", fix="name one axis, of vectors, or two, of matrices"
    )


def _order(ord: Any) -> Any:
    """Return the order as a Python number, a word, or None."""
    if ord is None or isinstance(ord, str):
        return ord
    number = float(ord)
    return int(number) if number.is_integer() else number


def _of_matrices(x: Value, order: float | str | None, axes: tuple, keepdims: bool) -> Any:
    if order not in (None, "fro", "nuc", INF, -INF, 1, -1, 2, -2):
        raise ShapeError(
            f"matrices have no norm {order!r}",
            fix='use "fro", "nuc", inf, -inf, 1, -1, 2 or -2',
        ).given(order)
    return _matrix(x, ord=order, axes=axes, keepdims=bool(keepdims))


def vector_norm(
    x: ArrayLike, /, *, axis: Axis | None = None, keepdims: bool = False, ord: object = 2
) -> Array:
    """Return the norm of vectors along any axes, taken as one axis.

    Args:
      x: an array.
      axis: an int, several, or None: all.
      keepdims: whether axes stay, with size 1.
      ord: a number, inf, -inf, or 0, the count of nonzero elements.

    Raises TypeRule for an unknown `ord`.  As numpy.linalg.vector_norm.

    Raises AxisError for an axis that `x` lacks.

    >>> import numpy as np, plait
    >>> float(plait.numpy.linalg.vector_norm(np.ones((2, 2))))
    2.0
    """
    (x,) = el.floating((value(x),))
    if isinstance(ord, str):
        raise ShapeError(f"vectors have no norm {ord!r}", fix="give a number").given(ord)
    axes = normal_axes(axis, x.aval.ndim)
    return _vector(x, ord=_order(ord), axes=axes, keepdims=bool(keepdims))


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: object = "fro") -> Array:
    """Return the norm of matrices, the last two axes; `ord` as in `norm`.

    Raises TypeRule for an unknown `ord`, AxisError for arrays with fewer than two axes.  As
    numpy.linalg.matrix_norm.

    >>> import numpy as np, plait
    >>> float(plait.numpy.linalg.matrix_norm(np.array([[3.0, 4.0]])))
    5.0
    """
    (x,) = el.floating((value(x),))
    n = x.aval.ndim
    if n < 2:
        raise AxisError(f"matrix_norm of {x.aval!r}", fix="give an array of two axes at least")
    return _of_matrices(x, _order(ord), (n - 2, n - 1), keepdims)


@fused
def _cond(x: Array, *, p: int | str | None) -> Any:
    if p in (None, 2, -2):
        s = svdvals(x)
        first, last = s[..., 0], s[..., -1]
        out = el.div(last, first) if p == -2 else el.div(first, last)
    else:
        n = x.aval.ndim
        how = dict(ord=p, axes=(n - 2, n - 1), keepdims=False)
        out = el.mul(_matrix(x, **how), _matrix(inv(x), **how))
    bad = el.ne(out, out)
    given = any_(el.ne(x, x), (-2, -1))
    return el.select(el.and_(bad, el.not_(given)), convert(INF, out.aval.dtype), out)


def cond(x: ArrayLike, p: ArrayLike | None = None) -> Array:
    """Return the condition number: the norm times that of the inverse; inf for a singular matrix.

    Args:
      x: (..., n, n); (..., m, n) for p None, 2 and -2.
      p: a norm of matrices, see `norm`; None is 2, the quotient of extreme singular values.

    Raises TypeRule for an unknown `p`, and for matrices without elements.  As numpy.linalg.cond.

    >>> import numpy as np, plait
    >>> float(plait.numpy.linalg.cond(np.diag([4.0, 2.0])))
    2.0
    """
    order = _order(p)
    x = matrices("cond", x, square=order not in (None, 2, -2))
    if 0 in x.aval.shape[-2:]:
        raise ArgumentError(f"cond of {x.aval!r}", fix="give matrices with elements")
    if order not in (None, "fro", "nuc", INF, -INF, 1, -1, 2, -2):
        raise ShapeError(f"matrices have no norm {p!r}", fix="see norm")
    return _cond(x, p=order)
