"""Reductions over axes, and running sums and products, that skip nans.

Invariant: the result is that of the function without `nan` in its name on the elements that are
numbers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from plait.ext import Literal, types
from plait.ext.ops import elementwise as el
from plait.ext.ops import reduction
from plait.ext.ops import reduction as argreduction
from plait.ext.ops import shape as sh
from plait.ext.ops.reduction import highest, lowest
from plait.ext.surface import dispatched, value
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike, Axis, DTypeLike

from .logic import isnan
from .masking import unwritten
from .reductions import correction_of, mean, prod, sum, var
from .running_sums import cumprod, cumsum

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar",
]  # fmt: skip


def _instead(a: object, number: Callable[..., Any]) -> Any:
    """Replace nans by `number(dtype)`."""
    x = value(a)
    if not x.aval.inexact:
        return x
    return el.select(isnan(x), sh.convert(number(x.aval.dtype), x.aval.dtype), x)


def _numbers(x: Value) -> Any:
    return el.not_(isnan(x))


@dispatched
def nansum(
    a: ArrayLike, axis: Axis | None = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return `sum`, counting nans as zero.  As numpy.nansum.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> float(plait.numpy.nansum(np.array([np.nan, 9.0, 4.0])))
    13.0
    """
    return sum(_instead(a, lambda d: 0), axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: ArrayLike, axis: Axis | None = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return `prod`, counting nans as one.  As numpy.nanprod.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> float(plait.numpy.nanprod(np.array([np.nan, 9.0, 4.0])))
    36.0
    """
    return prod(_instead(a, lambda d: 1), axis, dtype, out, keepdims, initial, where)


def _nan_extreme(
    a: object, f: Callable[..., Any], neutral: Callable[..., Any], how: dict[str, Any]
) -> Any:
    x = value(a)
    out = f(_instead(x, neutral), **how)
    if not x.aval.inexact or how["initial"] is not None:
        return out
    nothing = reduction.all_(isnan(x), how["axis"], keepdims=how["keepdims"], where=how["where"])
    return el.select(nothing, np.nan, out)


@dispatched
def nanmax(
    a: ArrayLike, axis: Axis | None = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return `max` without nans; nan if all are nan.  As numpy.nanmax.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> float(plait.numpy.nanmax(np.array([np.nan, 9.0, 4.0])))
    9.0
    """
    unwritten(out)
    how = dict(axis=axis, keepdims=keepdims, initial=initial, where=where)
    return _nan_extreme(a, reduction.max_, lowest, how)


@dispatched
def nanmin(
    a: ArrayLike, axis: Axis | None = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return `min` without nans; nan if all are nan.  As numpy.nanmin.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> float(plait.numpy.nanmin(np.array([np.nan, 9.0, 4.0])))
    4.0
    """
    unwritten(out)
    how = dict(axis=axis, keepdims=keepdims, initial=initial, where=where)
    return _nan_extreme(a, reduction.min_, highest, how)


def _nan_place(
    a: object, f: Callable[..., Any], neutral: Callable[..., Any], axis: Any, keepdims: bool
) -> Any:
    x = value(a)
    position = f(_instead(x, neutral), axis, keepdims=bool(keepdims))
    if not x.aval.inexact:
        return position
    # Nans are replaced by infinities, so a real infinity must win over these.
    real = f(el.select(isnan(x), Literal(0, x.aval), Literal(1, x.aval)) if f is argreduction.argmax
             else el.select(isnan(x), Literal(1, x.aval), Literal(0, x.aval)), axis,
             keepdims=bool(keepdims))  # fmt: skip
    extreme = (reduction.max_ if f is argreduction.argmax else reduction.min_)(
        _instead(x, neutral), axis, keepdims=bool(keepdims)
    )
    position = el.select(el.eq(extreme, neutral(x.aval.dtype)), real, position)
    nothing = reduction.all_(isnan(x), axis, keepdims=bool(keepdims))
    return el.select(nothing, Literal(-1, position.aval), position)


def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool = False
) -> Array:
    """Return the position of the greatest element that is not nan; -1 if all are nan.

    As numpy.nanargmax, which raises if all are nan.

    Raises NotAnArrayError if `a` is not an array, AxisError for an axis that `a` lacks, and
    OperandTypeError for complex numbers.

    >>> import numpy as np, plait
    >>> int(plait.numpy.nanargmax(np.array([np.nan, 9.0, 4.0])))
    1
    """
    unwritten(out)
    return _nan_place(a, argreduction.argmax, lowest, axis, keepdims)


def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool = False
) -> Array:
    """Return the position of the least element that is not nan; -1 if all are nan.

    As numpy.nanargmin, which raises if all are nan.

    Raises NotAnArrayError if `a` is not an array, AxisError for an axis that `a` lacks, and
    OperandTypeError for complex numbers.

    >>> import numpy as np, plait
    >>> int(plait.numpy.nanargmin(np.array([np.nan, 9.0, 4.0])))
    2
    """
    unwritten(out)
    return _nan_place(a, argreduction.argmin, highest, axis, keepdims)


def _keeps_nan(name: str, x: Value, dtype: object) -> None:
    """Refuse a dtype without nan, which is the result where no number remains."""
    if dtype is not None and x.aval.inexact:
        types.inexact_dtype(name, dtype)


def _also(where: Any, x: Value) -> Any:
    there = _numbers(x)
    return there if where is None else el.and_(there, where)


@dispatched
def nanmean(
    a: ArrayLike, axis: Axis | None = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return `mean` without nans.  As numpy.nanmean.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> float(plait.numpy.nanmean(np.array([np.nan, 8.0, 4.0])))
    6.0
    """
    x = value(a)
    _keeps_nan("nanmean", x, dtype)
    return mean(x, axis, dtype, out, keepdims, where=_also(where, x))


def nanvar(
    a: ArrayLike,
    axis: Axis | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: ArrayLike = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: object = None,
    *,
    correction: ArrayLike | None = None,
) -> Array:
    """Return `var` without nans; nan if at most `ddof` elements remain.  As numpy.nanvar.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> float(plait.numpy.nanvar(np.array([np.nan, 8.0, 4.0])))
    4.0
    """
    x = value(a)
    if not x.aval.inexact:  # without nan there is nothing to leave out
        return var(x, axis, dtype, out, ddof, keepdims, where=where, mean=mean,
                   correction=correction)  # fmt: skip
    _keeps_nan("nanvar", x, dtype)
    where = _also(where, x)
    correction = correction_of(ddof, correction)
    out_ = var(x, axis, dtype, out, keepdims=keepdims, where=where, mean=mean,
               correction=correction)  # fmt: skip
    each = Literal(1, x.aval.with_dtype(types.default_dtype(types.INTEGER)))
    count = reduction.sum_(each, axis, keepdims=keepdims, where=where)
    return el.select(el.le(count, correction), np.nan, out_)


def nanstd(
    a: ArrayLike,
    axis: Axis | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: ArrayLike = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: object = None,
    *,
    correction: ArrayLike | None = None,
) -> Array:
    """Return the root of `nanvar`.  As numpy.nanstd.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> float(plait.numpy.nanstd(np.array([np.nan, 8.0, 4.0])))
    2.0
    """
    dtype = None if dtype is None else types.inexact_dtype("nanstd", dtype)
    return el.sqrt(
        nanvar(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    )


def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Return `cumsum`, counting nans as zero.  As numpy.nancumsum.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.nancumsum(np.array([2.0, np.nan, 3.0])).tolist()
    [2.0, 2.0, 5.0]
    """
    return cumsum(_instead(a, lambda d: 0), axis, dtype, out)


def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Return `cumprod`, counting nans as one.  As numpy.nancumprod.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.nancumprod(np.array([2.0, np.nan, 3.0])).tolist()
    [2.0, 2.0, 6.0]
    """
    return cumprod(_instead(a, lambda d: 1), axis, dtype, out)
