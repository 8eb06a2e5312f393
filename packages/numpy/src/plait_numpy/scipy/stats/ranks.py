"""Ranks, modes and standard errors of samples.

Invariant: nan anywhere along an axis makes the result there nan, unless nans are omitted on
request; ties are runs of equal elements in sorted order.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from plait.errors import ArgumentError, ShapeError
from plait.ext import Aval, Literal
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.cumulative import cummax_, cummin_, cumsum_
from plait.ext.ops.elementwise import rounded, single
from plait.ext.ops.reduction import argmax, sum_
from plait.ext.ops.sorting import argsort, sort
from plait.ext.ops.taking import take_along_axis
from plait.ext.surface import fused, value
from plait.ext.trace import Value
from plait.ext.types import FLOATING, INTEGER, default_dtype
from plait.typing import Array, ArrayLike

_METHODS = ("average", "min", "max", "dense", "ordinal")


class ModeResult(NamedTuple):
    """The most frequent values and their counts."""

    mode: Array
    count: Array  # type: ignore[assignment]  # scipy names it so


def _policy(name: str, nan_policy: str, *known: str) -> None:
    if nan_policy not in known:
        raise ArgumentError(
            f"{name} has no nan_policy {nan_policy!r}", fix=f"use one of {', '.join(known)}"
        )


def _lined(x: Value, axis: int | None) -> tuple[Any, int]:
    """Return (the array, flat if the axis is None, with the axis last; the axis's original
    position)."""
    if axis is None:
        return sh.reshape(x, (x.aval.size,)), 0
    at = sh.normal_axis(axis, x.aval.ndim)
    return sh.moveaxis(x, at, x.aval.ndim - 1), at


def _runs(s: Value) -> tuple[Any, Any, Any]:
    """Return (numbers of elements, starts and ends of runs of equal ones) of sorted rows."""
    last, n = s.aval.ndim - 1, s.aval.shape[-1]
    edge = Literal(True, Aval((*s.aval.shape[:-1], 1), bool))
    here, before = sh.slice_in_dim(s, 1, n, axis=last), sh.slice_in_dim(s, 0, n - 1, axis=last)
    change = el.ne(here, before)
    i = sh.iota_.bind(shape=s.aval.shape, axis=last, dtype=np.dtype(np.int32))
    return i, sh.concatenate([edge, change], last), sh.concatenate([change, edge], last)


def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """Return ranks of elements, from 1 on.

    Args:
      a: real numbers.
      method: the rank of equal elements: "average", "min" or "max" of their ranks, "dense" (as min,
        without gaps), "ordinal" (in their order in the array).
      axis: axis to rank along; None ranks the flattened array.
      nan_policy: must be "propagate".

    Returns floats, nan for all elements along an axis that has a nan.  Raises TypeRule for other
    methods.

    >>> import numpy as np, plait
    >>> plait.scipy.stats.rankdata(np.array([3, 1, 1])).tolist()
    [3.0, 1.5, 1.5]
    """
    if method not in _METHODS:
        raise ShapeError(
            f"rankdata has no method {method!r}", fix=f"use one of {', '.join(_METHODS)}"
        )
    _policy("rankdata", nan_policy, "propagate")
    return _rankdata(value(a), method=method, axis=axis)


@fused
def _rankdata(a: Value, *, method: str, axis: int | None) -> Any:
    x, at = _lined(a, axis)
    last, n = x.aval.ndim - 1, x.aval.shape[-1]
    dtype = default_dtype(FLOATING)
    if x.aval.size == 0:
        return Literal(0, Aval(x.aval.shape, dtype))
    order = argsort(x, last)
    i, start, end = _runs(take_along_axis(x, order, last))
    least = cummax_.bind(el.select(start, i, 0), axis=last, reverse=False)
    most = cummin_.bind(el.select(end, i, n - 1), axis=last, reverse=True)
    if method == "average":
        ranks = 0.5 * sh.convert(least + most, dtype)
    elif method == "dense":
        ranks = cumsum_.bind(sh.convert(start, np.int32), axis=last, reverse=False) - 1
    else:
        ranks = {"min": least, "max": most, "ordinal": i}[method]
    ranks = sh.convert(take_along_axis(ranks, argsort(order, last), last), dtype) + 1.0
    if x.aval.category == FLOATING:
        ranks = el.select(el.ne(x, x).any(-1, keepdims=True), math.nan, ranks)
    return ranks if axis is None else sh.moveaxis(ranks, last, at)


def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """Return the most frequent elements along an axis, the least of them if there are several.

    Args:
      a: real numbers; the axis is not empty.
      axis: an int; None uses the flattened array.
      nan_policy: must be "propagate": a nan makes the mode nan.
      keepdims: whether to keep the axis, with size 1.

    Returns (mode, count).

    >>> import numpy as np, plait
    >>> plait.scipy.stats.mode(np.array([3, 1, 1]))[0].item()
    1
    """
    _policy("mode", nan_policy, "propagate")
    x = value(a)
    at = None if axis is None else sh.normal_axis(axis, x.aval.ndim)
    if (x.aval.size if at is None else x.aval.shape[at]) == 0:
        raise ArgumentError(f"mode of nothing: {x.aval!r}", fix="give at least one element")
    return ModeResult(*_mode(x, axis=at, keepdims=bool(keepdims)))


@fused
def _mode(a: Value, *, axis: int | None, keepdims: bool) -> tuple:
    x, at = _lined(a, axis)
    last, n = x.aval.ndim - 1, x.aval.shape[-1]
    s = sort(x, last)
    i, start, end = _runs(s)
    least = cummax_.bind(el.select(start, i, 0), axis=last, reverse=False)
    most = cummin_.bind(el.select(end, i, n - 1), axis=last, reverse=True)
    many = most - least + 1
    best = argmax(many, axis=last, keepdims=True)
    found = take_along_axis(s, best, last)
    count = sh.convert(take_along_axis(many, best, last), default_dtype(INTEGER))
    if x.aval.category == FLOATING:
        lost = el.ne(x, x)
        none = lost.any(-1, keepdims=True)
        found = el.select(none, math.nan, found)
        nans = sum_(lost, -1, keepdims=True)
        count = el.select(none, sh.convert(nans, count.aval.dtype), count)
    if not keepdims:
        shape = x.aval.shape[:-1]
        return tuple([sh.reshape(v, shape) for v in (found, count)])
    if axis is None:
        return tuple([sh.reshape(v, (1,) * a.aval.ndim) for v in (found, count)])
    return tuple([sh.moveaxis(v, last, at) for v in (found, count)])


def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """Return the standard error of the mean: the standard deviation by the root of the number.

    Args:
      a: real numbers.
      axis: an int; None uses the flattened array.
      ddof: subtracted from the number of elements in the deviation.
      nan_policy: "propagate", or "omit" to leave nans out.
      keepdims: whether to keep the axis, with size 1.
    """
    _policy("sem", nan_policy, "propagate", "omit")
    return _sem(value(a), axis=axis, ddof=ddof, omit=nan_policy == "omit", keepdims=bool(keepdims))


@fused
def _sem(a: Value, *, axis: int | None, ddof: float, omit: bool, keepdims: bool) -> Any:
    (given,) = el.floating((a,))
    x = single(given)
    axes = tuple(range(x.aval.ndim)) if axis is None else sh.normal_axis(axis, x.aval.ndim)
    keep = el.eq(x, x) if omit else sh.broadcast_to(Literal(True, Aval((), bool)), x.aval.shape)
    x = el.select(keep, x, 0.0)
    n = sh.convert(sum_(keep, axes, keepdims=True), x.aval.dtype)
    gap = el.select(keep, x - sum_(x, axes, keepdims=True) / n, 0.0)
    n = n if keepdims else sum_(sh.convert(keep, x.aval.dtype), axes)
    total = sum_(gap * gap, axes, keepdims=keepdims)
    return rounded(el.sqrt(total / (n - float(ddof)) / n), given)
