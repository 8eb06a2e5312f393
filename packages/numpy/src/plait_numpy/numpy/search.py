"""Positions in sorted arrays, and interpolation between them.

Invariant: nans come after all numbers, as `sort` puts them.
"""

from typing import Any

import numpy as np

from plait.errors import ArgumentError, AxisError, OperandTypeError, ShapeError
from plait.ext import Aval, Literal, Tracer
from plait.ext.control import fori_loop
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.reduction import dtype_for_indices, sum_
from plait.ext.ops.sorting import argsort, sort
from plait.ext.ops.taking import take
from plait.ext.sizes import max_dim
from plait.ext.surface import fused, value
from plait.ext.trace import Value
from plait.ext.types import COMPLEX
from plait.typing import Array, ArrayLike

from .logic import isnan

_FEW = 32
"""Up to this size, counting all lesser elements costs no more than halving."""


def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: object = None,
    *,
    method: str = "default",
) -> Array:
    """Return the positions at which to insert elements into a sorted vector to keep it sorted.

    Args:
      a: a sorted vector.
      v: elements to insert, any shape.
      side: "left", before equal elements, or "right", after them.
      sorter: indices that sort `a`, if it is not sorted.
      method: "compare_all" counts all lesser elements; "scan" halves; by default the cheaper one.

    Returns integers of v's shape.  Raises TypeRule for another `side` or `method`, and if `a` is
    not a vector.  As numpy.searchsorted.

    >>> import numpy as np, plait
    >>> plait.numpy.searchsorted(np.array([1, 2, 2, 3]), 2).item()
    1
    """
    if side not in ("left", "right"):
        raise ArgumentError(f'side must be "left" or "right", not {side!r}', fix='use side="left"')
    if method not in ("default", "scan", "scan_unrolled", "sort", "compare_all"):
        raise ArgumentError(
            f"searchsorted has no method {method!r}", fix='use "scan" or "compare_all"'
        )
    x = value(a)
    if x.aval.ndim != 1:
        raise ShapeError(
            f"searchsorted in {x.aval!r}: a vector is needed", fix="see take_along_axis"
        )
    if sorter is not None:
        x = take(x, sorter)
    return _places(x, v, right=side == "right", method=method)


@fused
def _places(a: Value, v: ArrayLike, *, right: bool, method: str) -> Any:
    shape = value(v).aval.shape
    a, v = sh.convert_together([value(a), value(v)])
    n = a.aval.shape[0]
    index = dtype_for_indices(n)
    if n.__class__ is int and n == 0:
        return sh.fill(0, Aval(shape, index))
    if n.__class__ is not int or (method == "default" and n <= _FEW) or method == "compare_all":
        rows = sh.broadcast_to(a, (*shape, n))
        column = sh.broadcast_to(sh.expand_dims(v, v.aval.ndim), (*shape, n))
        return sum_(sh.convert(_before(rows, column, right), index), -1)
    low, high = (Literal(k, Aval(shape, index)) for k in (0, n))

    def halve(_: Value, ends: tuple[Value, ...]) -> Any:
        low, high = ends
        middle = el.shift_right_logical(el.add(low, high), 1)
        further = _before(take(a, middle, mode="clip"), v, right)
        going = el.lt(low, high)
        up = el.select(el.and_(going, further), el.add(middle, 1), low)
        return up, el.select(el.and_(going, el.not_(further)), middle, high)

    return fori_loop(0, n.bit_length(), halve, (low, high))[0]


def _before(a: Value, v: Value, right: bool) -> Any:
    """Return whether elements of `a` come before the position of `v`.

    Complex numbers are ordered by their real parts, and by their imaginary parts where these agree.
    """
    if a.aval.category == COMPLEX:
        (ar, ai), (vr, vi) = [(el.real(z), el.imag(z)) for z in (a, v)]
        level = el.or_(el.eq(ar, vr), el.and_(isnan(ar), isnan(vr)))
        return el.or_(_before(ar, vr, False), el.and_(level, _before(ai, vi, right)))
    before = (el.le if right else el.lt)(a, v)
    if not a.aval.inexact:
        return before
    number = el.not_(isnan(a))
    other = isnan(v)
    return el.or_(before, other if right else el.and_(number, other))


@fused
def _digitized(x: Value, bins: Value, *, right: bool) -> Any:
    n = bins.aval.shape[0]
    if n == 0:
        return sh.convert(Literal(0, x.aval.strong()), dtype_for_indices(0))
    side = "left" if right else "right"
    up = searchsorted(bins, x, side)
    down = el.sub(n, searchsorted(sh.rev.bind(bins, axes=(0,)), x, side))
    return el.select(el.ge(bins[-1], bins[0]), up, down)


def expect_ordered(name: str, *xs: Value) -> None:
    """Raise OperandTypeError for complex numbers, which the function `name` finds no place for."""
    if any(x.aval.category == COMPLEX for x in xs):
        raise OperandTypeError(
            f"{name} takes real numbers, and complex ones have no order",
            fix="take it of the real part, the imaginary part, or the absolute value",
        )


def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """Return the number of the bin of each element; 0 is before the first edge.

    Args:
      x: real, any shape.
      bins: edges, ascending or descending.
      right: whether a bin holds its right edge instead of its left one.
      method: accepted for compatibility.

    Raises TypeRule unless `bins` is a vector, and for complex numbers; known edges must ascend or
    descend.  As numpy.digitize.

    >>> import numpy as np, plait
    >>> plait.numpy.digitize(np.array([0.5, 2.5]), np.array([0.0, 1.0, 2.0])).tolist()
    [1, 3]
    """
    b = value(bins)
    expect_ordered("digitize", value(x), b)
    if b.aval.ndim != 1:
        raise ShapeError(
            f"digitize: the edges must be a vector, not {b.aval!r}", fix="use .ravel()"
        )
    if not isinstance(b, Tracer):
        steps = np.diff(np.asarray(b).astype(float))
        if not ((steps >= 0).all() or (steps <= 0).all()):
            raise ArgumentError("digitize: the edges go up and down", fix="sort them")
    return _digitized(value(x), b, right=bool(right))


_ONWARD = "extrapolate"


@fused(numbers=("left", "right", "period"))
def _interpolated(
    x: ArrayLike, xp: Value, fp: Value, left: ArrayLike | None, right: Any, period: Any, *,
    onward: tuple[bool, bool],
) -> Any:  # fmt: skip
    x, xp = sh.convert_together([el.floating((v,))[0] for v in (value(x), xp)])
    (fp,) = el.floating((fp,))
    kind = xp.aval.dtype
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, sh.convert(el.abs_(period), kind))
    n = xp.aval.shape[0]
    i = el.clamp(1, searchsorted(xp, x, "right"), max_dim(n - 1, 1))
    x0, x1, f0, f1 = (take(v, k, mode="clip") for v in (xp, fp) for k in (el.sub(i, 1), i))
    width = el.sub(x1, x0)
    # Equal positions would divide by zero, also in derivatives.
    flat = el.eq(width, 0)
    part = el.div(el.sub(x, x0), el.select(flat, 1, width))
    out = el.select(flat, f0, el.add(f0, el.mul(part, el.sub(f1, f0))))
    if period is not None:
        return out
    if not onward[0]:
        out = el.select(el.lt(x, xp[0]), fp[0] if left is None else left, out)
    if not onward[1]:
        out = el.select(el.gt(x, xp[-1]), fp[-1] if right is None else right, out)
    return out


def _periodic(x: Value, xp: Value, fp: Value, period: Value) -> tuple:
    """Return the points of one period, in order, with a neighbour at each end."""
    x, xp = el.modulo(x, period), el.modulo(xp, period)
    order = argsort(xp)
    xp, fp = take(xp, order), take(fp, order)
    xp = sh.concatenate([el.sub(xp[-1:], period), xp, el.add(xp[:1], period)])
    return x, xp, sh.concatenate([fp[-1:], fp, fp[:1]])


def interp(
    x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None, period: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Interpolate linearly between points.

    Args:
      x: positions to evaluate at, any shape.
      xp: positions of the data, ascending.
      fp: values at `xp`, real or complex.
      left, right: results before and after all positions; by default the data at the ends.
        "extrapolate" goes on along the first and the last line.
      period: period of the positions; they need not ascend then, and `left` and `right` are
        ignored.

    Raises TypeRule unless `xp` and `fp` are vectors of one size, at least 1, and for complex
    positions.  As numpy.interp.

    >>> import numpy as np, plait
    >>> float(plait.numpy.interp(1.5, np.array([1.0, 2.0]), np.array([10.0, 20.0])))
    15.0
    """
    a, b = value(xp), value(fp)
    expect_ordered("interp", value(x), a)
    if a.aval.ndim != 1 or a.aval.shape != b.aval.shape:
        raise ArgumentError(
            f"interp: positions {a.aval!r} and data {b.aval!r}", fix="give equal vectors"
        )
    if a.aval.shape[0] == 0:
        raise ArgumentError("interp between no points", fix="give one at least")
    if period is not None and value(period).aval.ndim:
        raise ArgumentError(
            f"interp: period must be a number, got {value(period).aval!r}",
            fix="index it, or map over periods with vmap",
        )
    onward = []
    for name, end in (("left", left), ("right", right)):
        if isinstance(end, str) and end != _ONWARD:
            raise ArgumentError(
                f"interp: {name} must be a number or {_ONWARD!r}, got {end!r}",
                fix=f'write {name}="{_ONWARD}", or the value there',
            )
        onward.append(isinstance(end, str))
    ends: list[Any] = [None if goes else end for goes, end in zip(onward, (left, right))]
    return _interpolated(x, a, b, ends[0], ends[1], period, onward=(onward[0], onward[1]))


# ---- partial order -------------------------------------------------------------------------


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Put the element at `kth` at its sorted position, lesser ones before, greater ones after.

    Args:
      a: one axis at least.
      kth: a position, or several; all elements are sorted, which is right for every position.
      axis: axis to partition along; None partitions the flattened array.

    Raises AxisError for a position out of range.  As numpy.partition.

    >>> import numpy as np, plait
    >>> plait.numpy.partition(np.array([3, 1, 2]), 1).tolist()
    [1, 2, 3]
    """
    x = value(a)
    _check_kth(kth, x, axis)
    return sort(x, axis)


def _check_kth(kth: Any, x: Any, axis: Any) -> None:
    n = x.aval.size if axis is None else x.aval.shape[sh.normal_axis(axis, x.aval.ndim)]
    if getattr(kth, "ndim", 0) > 1:
        raise ShapeError(f"kth has {kth.ndim} axes", fix="give a position, or a vector of them")
    for k in kth if isinstance(kth, tuple | list) else np.ravel(np.asarray(kth)).tolist():
        if not hasattr(k, "__index__") or isinstance(k, bool):
            raise OperandTypeError(f"kth must be an integer, not {k!r}", fix="write kth=0")
        if n.__class__ is int and not -n <= k.__index__() < max(n, 1):
            raise AxisError(f"kth={k} is out of range for {n} elements", fix="give a position")


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return the indices that make a `partition`, whose arguments it takes.  As numpy.argpartition.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis or no
    element `kth`.

    >>> import numpy as np, plait
    >>> plait.numpy.argpartition(np.array([3, 1, 2]), 1).tolist()
    [1, 2, 0]
    """
    x = value(a)
    _check_kth(kth, x, axis)
    return argsort(x, axis)
