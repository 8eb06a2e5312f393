"""Differences of neighbours, and functions built on them: integrals, gradients, phases.

Invariant: only slices along the axis are combined; nothing is gathered.
"""

from typing import Any

import numpy as np

from plait.errors import ArgumentError, ShapeError
from plait.ext import materialise_at_ground
from plait.ext.ops import elementwise as el
from plait.ext.ops import reduction
from plait.ext.ops import shape as sh
from plait.ext.ops.cumulative import cumsum
from plait.ext.ops.indexing import dynamic_slice_in_dim
from plait.ext.sizes import decide_ge, max_dim, min_dim
from plait.ext.surface import fused, value
from plait.ext.trace import Value
from plait.ext.types import BOOL, FLOATING, default_dtype
from plait.typing import Array, ArrayLike, Axis


def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Take differences of neighbours along an axis, `n` times.

    Args:
      a: one axis at least; booleans are compared, giving True where neighbours differ.
      n: number of repetitions.
      axis: axis of the differences.
      prepend, append: elements added at the ends: a number, or an array that fits.

    Raises TypeRule for a negative `n`.  As numpy.diff.

    Raises AxisError for an axis that `a` lacks.

    >>> import numpy as np, plait
    >>> plait.numpy.diff(np.array([1, 4, 9])).tolist()
    [3, 5]
    """
    x = value(a)
    if n < 0:
        raise ArgumentError(f"diff taken {n} times", fix="give a number that is not negative")
    at = sh.normal_axis(axis, x.aval.ndim)
    if n == 0:  # without a difference, the ends are not used
        return materialise_at_ground(x)
    parts = [_end(prepend, x, at), x, _end(append, x, at)]
    parts = [p for p in parts if p is not None]
    x = sh.concatenate(parts, at) if len(parts) > 1 else x
    for _ in range(n.__index__()):
        size = x.aval.shape[at]
        if size.__class__ is int and not size:
            break
        later = sh.slice_in_dim(x, 1, size, axis=at)
        sooner = sh.slice_in_dim(x, 0, size - 1, axis=at)
        x = (el.ne if x.aval.dtype == BOOL else el.sub)(later, sooner)
    return materialise_at_ground(x)


def _end(v: ArrayLike | None, x: Value, axis: int) -> Any:
    if v is None:
        return None
    v = value(v)
    if v.aval.ndim:
        return v
    return sh.broadcast_to(v, [1 if i == axis else d for i, d in enumerate(x.aval.shape)])


def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Take differences of neighbours in the flattened array, between given ends.

    As numpy.ediff1d.

    Raises NotAnArrayError if `ary` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.ediff1d(np.array([1, 4, 9]), to_begin=0).tolist()
    [0, 3, 5]
    """
    x = value(ary)
    out = diff(sh.reshape(x, (x.aval.size,)))
    ends = [None if v is None else sh.convert_into(v, x.aval.dtype) for v in (to_begin, to_end)]
    first, last = [None if v is None else sh.reshape(v, (v.aval.size,)) for v in ends]
    parts = [p for p in (first, out, last) if p is not None]
    return sh.concatenate(parts, 0) if len(parts) > 1 else out


@fused(numbers=("dx",))
def _trapezoid(y: Any, x: Any, dx: ArrayLike, *, axis: int) -> Any:
    (y,) = el.floating((y,))  # sums of narrow integers would wrap around
    at = sh.normal_axis(axis, y.aval.ndim)
    n = y.aval.shape[at]
    if x is not None:
        x = value(x)
        dx = diff(x, axis=-1 if x.aval.ndim == 1 else axis)
        if dx.aval.ndim == 1 and y.aval.ndim > 1:
            size = n - 1 if n.__class__ is int else max_dim(n - 1, 0)
            dx = sh.reshape(dx, [size if i == at else 1 for i in range(y.aval.ndim)])
    dx = value(dx)
    if 0 < dx.aval.ndim < y.aval.ndim:
        dx = sh.reshape(dx, (*[1] * (y.aval.ndim - dx.aval.ndim), *dx.aval.shape))
    if dx.aval.ndim == 0 and n.__class__ is int and 2 <= n < 1 << 31:  # slices would be copied
        place = sh.iota(np.int32, (n,), 0)
        is_end = el.or_(el.eq(place, 0), el.eq(place, n - 1))
        widths = el.mul(el.select(is_end, 0.5, sh.convert(1, y.aval.dtype)), dx)
        widths = sh.reshape(widths, [n if i == at else 1 for i in range(y.aval.ndim)])
        return reduction.sum_(el.mul(y, widths), at)
    later = sh.slice_in_dim(y, min_dim(n, 1), n, axis=at)  # an empty axis has no second element
    both = el.add(later, sh.slice_in_dim(y, 0, max_dim(n - 1, 0), axis=at))
    return reduction.sum_(el.mul(el.true_divide(both, 2), dx), at)


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Integrate along an axis by the trapezoidal rule.

    Args:
      y: values.
      x: positions of the values: a vector, or of y's shape.
      dx: distance of the positions, if `x` is not given.
      axis: axis of integration.

    As numpy.trapezoid.

    Raises NotAnArrayError if `y` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> float(plait.numpy.trapezoid(np.array([1.0, 4.0, 9.0])))
    9.0
    """
    return _trapezoid(y, x, dx, axis=axis.__index__())


@fused(numbers=("discont", "period"))
def _unwrap(p: Value, discont: Any, period: Any, *, axis: int) -> Any:
    x = value(p)
    steps = diff(x, axis=axis)
    discont = el.true_divide(period, 2) if discont is None else discont
    half = el.true_divide(period, 2) if x.aval.inexact else el.floor_divide(period, 2)
    wrapped = el.sub(el.modulo(el.add(steps, half), period), half)
    edge = el.and_(el.eq(wrapped, el.neg(half)), el.gt(steps, 0))
    wrapped = el.select(edge, half, wrapped)
    correction = el.select(el.lt(el.abs_(steps), discont), 0, el.sub(wrapped, steps))
    at = sh.normal_axis(axis, x.aval.ndim)
    first = sh.slice_in_dim(x, 0, min_dim(x.aval.shape[at], 1), axis=at)
    # Sums of narrow integers keep their dtype: what is added up is a part of `p`.
    total = cumsum(correction, at, correction.aval.dtype)
    later = el.add(sh.slice_in_dim(x, 1, x.aval.shape[at], axis=at), total)
    return sh.concatenate([first, later], at)


def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * np.pi
) -> Array:
    """Remove jumps of a period along an axis.

    Args:
      p: real, any shape.
      discont: the least step that counts as a jump; half a period by default.
      axis: axis to unwrap.
      period: period of the values.

    As numpy.unwrap.

    Raises NotAnArrayError if `p` is not an array, AxisError if it has no such axis, and
    OperandTypeError for complex numbers.

    >>> import numpy as np, plait
    >>> plait.numpy.unwrap(np.array([0.0, 6.0]), period=5.0).tolist()
    [0.0, 1.0]
    """
    x = value(p)
    if not x.aval.inexact and isinstance(period, float):
        x = sh.convert(x, default_dtype(FLOATING))
    size = x.aval.shape[sh.normal_axis(axis, x.aval.ndim)]
    if size.__class__ is int and not size:
        return materialise_at_ground(x)
    return _unwrap(x, discont, period, axis=axis.__index__())


# ---- gradients -----------------------------------------------------------------------------


def gradient(
    f: ArrayLike, *varargs: object, axis: Axis | None = None, edge_order: int | None = None
) -> Array | list[Array]:
    """Return derivatives of sampled values: central differences, one-sided at the ends.

    Args:
      f: real or complex values on a grid, at least two along each axis.
      varargs: the spacing of the grid: one number for all axes, or for each axis a number or a
        vector of points.
      axis: axes of the derivatives; all by default.
      edge_order: 1 or None: the order of the differences at the ends.

    Returns an array for one axis, a list for several.  Raises TypeRule for another `edge_order`,
    numbers of distances and axes that differ, and axes with fewer than two values.  As
    numpy.gradient.

    Raises AxisError for an axis that `f` lacks.

    >>> import numpy as np, plait
    >>> plait.numpy.gradient(np.array([1.0, 4.0, 9.0])).tolist()
    [3.0, 4.0, 5.0]
    """
    x = value(f)
    if edge_order not in (None, 1):
        raise ArgumentError(f"gradient with edge_order {edge_order}", fix="edge_order=1")
    axes = sh.normal_axes(axis, x.aval.ndim)
    given = list(varargs) or [1.0]
    steps = given * len(axes) if len(given) == 1 else given
    if len(steps) != len(axes):
        raise ShapeError(
            f"gradient: {len(steps)} distances for {len(axes)} axes", fix="give as many"
        )
    out = [_gradient(x, h, axis=a) for a, h in zip(axes, steps)]
    return out[0] if len(out) == 1 else out


@fused(numbers=("h",))
def _gradient(x: Value, h: object, *, axis: int) -> Any:
    (x,), h = el.floating((x,)), value(h)
    n = x.aval.shape[axis]
    if decide_ge(n, 2) is False:
        raise ShapeError(
            f"gradient along axis {axis} of {x.aval!r}", fix="give two values at least"
        )
    cut = lambda a, b: sh.slice_in_dim(x, a, b, axis=axis)  # noqa: E731
    one = lambda i: _one(x, i, axis)  # noqa: E731
    if h.aval.ndim == 0:
        inner = el.div(el.sub(cut(2, n), cut(0, n - 2)), el.mul(h, 2))
        first, last = h, h
    else:
        gaps = diff(h)
        shape = [1] * axis + [max_dim(n - 2, 0)] + [1] * (x.aval.ndim - axis - 1)
        left, right = (sh.reshape(sh.slice_in_dim(gaps, a, a + n - 2), shape) for a in (0, 1))
        a = el.neg(el.true_divide(right, el.mul(left, el.add(left, right))))
        b = el.true_divide(el.sub(right, left), el.mul(left, right))
        c = el.true_divide(left, el.mul(right, el.add(left, right)))
        inner = el.add(el.add(el.mul(a, cut(0, n - 2)), el.mul(b, cut(1, n - 1))),
                       el.mul(c, cut(2, n)))  # fmt: skip
        first, last = (sh.reshape(_one(gaps, i, 0), ()) for i in (0, n - 2))
    ends = [el.div(el.sub(one(1), one(0)), first),
            el.div(el.sub(one(n - 1), one(n - 2)), last)]  # fmt: skip
    out = sh.concatenate([ends[0], inner, ends[1]], axis)
    return out if n.__class__ is int else sh.slice_in_dim(out, 0, n, axis=axis)


def _one(x: Array, i: int, axis: int) -> Any:
    """Return element `i` along an axis, keeping the axis; any element if the axis is too short."""
    n = x.aval.shape[axis]
    if n.__class__ is int or (decide_ge(n - 1, i) and decide_ge(i, 0)):
        return sh.slice_in_dim(x, i, i + 1, axis=axis)
    return dynamic_slice_in_dim(x, sh.size_value(max_dim(i, 0), np.dtype(np.int32)), 1, axis)
