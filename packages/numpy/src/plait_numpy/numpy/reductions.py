"""Sums, products, extremes, logic and means over axes.

Invariant: `axis` is None (all axes), an int or a tuple of ints; an axis that the array lacks
raises.  So does an extreme of no elements without `initial`.
"""

from typing import Any, overload
from typing import Literal as Exactly

import numpy as np

from plait.errors import ArgumentError, ShapeError
from plait.ext import Literal, types
from plait.ext.ops import elementwise as el
from plait.ext.ops import reduction
from plait.ext.ops import reduction as argreduction
from plait.ext.ops import shape as sh
from plait.ext.ops.elementwise import rounded, single
from plait.ext.ops.reduction import truth
from plait.ext.surface import dispatched, fused, value
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike, Axis, DTypeLike

from .masking import unwritten

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "max", "mean",
    "min", "prod", "ptp", "std", "sum", "var",
]  # fmt: skip


@dispatched
def sum(
    a: ArrayLike, axis: Axis | None = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:  # fmt: skip
    """Sum the elements over axes.

    Args:
      a: any shape and dtype.
      axis: None (all), an int, or a tuple of ints.
      dtype: dtype of the sum; by default booleans and narrow integers become the default integer.
      out: must be None.
      keepdims: whether to keep the axes, with size 1.
      initial: first summand.
      where: mask of the elements that count; broadcasts with `a`.
      promote_integers: False: narrow integers stay narrow.

    Raises AxisError for an axis that `a` lacks.  As numpy.sum.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.sum(np.array([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    """
    unwritten(out)
    dtype = _sum_dtype(a, dtype, promote_integers)
    if dtype == types.BOOL:
        # A sum of booleans as a boolean is whether any is True.
        return reduction.any_(a, axis, keepdims=keepdims, initial=initial, where=where)
    return reduction.sum_(a, axis, dtype, keepdims=keepdims, initial=initial, where=where)


def _sum_dtype(a: object, dtype: Any, promote: bool) -> Any:
    if dtype is not None:
        return types.asked_dtype(dtype)
    if promote:
        return None
    have = value(a).aval.dtype
    return None if have == types.BOOL else have


@dispatched
def prod(
    a: ArrayLike, axis: Axis | None = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:  # fmt: skip
    """Multiply the elements over axes; arguments are those of `sum`.  As numpy.prod.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> int(plait.numpy.prod(np.array([2, 3, 4])))
    24
    """
    unwritten(out)
    dtype = _sum_dtype(a, dtype, promote_integers)
    if dtype == types.BOOL:
        # A product of booleans as a boolean is whether all are True.
        return reduction.all_(a, axis, keepdims=keepdims, initial=initial, where=where)
    return reduction.prod(a, axis, dtype, keepdims=keepdims, initial=initial, where=where)


@dispatched
def max(
    a: ArrayLike, axis: Axis | None = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the greatest of the elements over axes; nan if there is one.

    Args:
      a: any shape and dtype.
      axis: None (all), an int, or a tuple of ints.
      out: must be None.
      keepdims: whether to keep the axes, with size 1.
      initial: a further element.
      where: mask of the elements that count; needs `initial`.

    Raises AxisError for an axis that `a` lacks, or that is empty.  As numpy.max.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> int(plait.numpy.max(np.array([3, 9, 4])))
    9
    """
    unwritten(out)
    return reduction.max_(a, axis, keepdims=keepdims, initial=initial, where=where)


@dispatched
def min(
    a: ArrayLike, axis: Axis | None = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the least of the elements over axes; arguments are those of `max`.  As numpy.min.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> int(plait.numpy.min(np.array([3, 9, 4])))
    3
    """
    unwritten(out)
    return reduction.min_(a, axis, keepdims=keepdims, initial=initial, where=where)


amax, amin = max, min


@dispatched
def any(
    a: ArrayLike, axis: Axis | None = None, out: None = None, keepdims: bool = False, *,
    where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return whether any element over axes is not zero; arguments are those of `sum`.  As
    numpy.any.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.any(np.array([[True, False], [False, False]]), axis=1).tolist()
    [True, False]
    """
    unwritten(out)
    return reduction.any_(a, axis, keepdims=keepdims, where=where)


@dispatched
def all(
    a: ArrayLike, axis: Axis | None = None, out: None = None, keepdims: bool = False, *,
    where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return whether no element over axes is zero; arguments are those of `sum`.  As numpy.all.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> bool(plait.numpy.all(np.array([True, False])))
    False
    """
    unwritten(out)
    return reduction.all_(a, axis, keepdims=keepdims, where=where)


@dispatched
def count_nonzero(a: ArrayLike, axis: Axis | None = None, keepdims: bool = False) -> Array:
    """Count the elements over axes that are not zero, as the default integer.

    As numpy.count_nonzero.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> int(plait.numpy.count_nonzero(np.array([0, 7, 8])))
    2
    """
    x = value(a)
    return reduction.sum_(truth(x), axis, keepdims=keepdims)


@dispatched
def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool = False
) -> Array:
    """Return the position of the greatest element: the first if there are several; nan is greatest.

    Args:
      a: real, any shape.
      axis: axis to search; None searches the flattened array.
      out: must be None.
      keepdims: whether to keep the axis, with size 1.

    Raises AxisError for an axis that `a` lacks, or that is empty.  As numpy.argmax.

    Raises NotAnArrayError if `a` is not an array, and OperandTypeError for complex numbers.

    >>> import numpy as np, plait
    >>> int(plait.numpy.argmax(np.array([3, 9, 4])))
    1
    """
    unwritten(out)
    return argreduction.argmax(a, axis, keepdims=bool(keepdims))


@dispatched
def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool = False
) -> Array:
    """Return the position of the least element; arguments are those of `argmax`.  As numpy.argmin.

    Raises NotAnArrayError if `a` is not an array, AxisError if it has no such axis, and
    OperandTypeError for complex numbers.

    >>> import numpy as np, plait
    >>> int(plait.numpy.argmin(np.array([3, 9, 4])))
    0
    """
    unwritten(out)
    return argreduction.argmin(a, axis, keepdims=bool(keepdims))


@dispatched
def ptp(a: ArrayLike, axis: Axis | None = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the greatest less the least element over axes.  As numpy.ptp.

    Raises NotAnArrayError if `a` is not an array, AxisError if it has no such axis, and
    OperandTypeError for booleans.

    >>> import numpy as np, plait
    >>> int(plait.numpy.ptp(np.array([3, 9, 4])))
    6
    """
    return el.sub(max(a, axis, out, keepdims), min(a, axis, out, keepdims))


# ---- means ---------------------------------------------------------------------------------


@fused
def _mean(a: object, where: ArrayLike | None, /, **how: Any) -> Any:
    return reduction.mean(a, where=where, **how)


@dispatched
def mean(
    a: ArrayLike, axis: Axis | None = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, *, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the arithmetic mean over axes; nan of no elements.

    Args:
      a: any shape; integers and booleans become the default float.
      axis: None (all), an int, or a tuple of ints.
      dtype: dtype of the result.
      out: must be None.
      keepdims: whether to keep the axes, with size 1.
      where: mask of the elements that count; broadcasts with `a`.

    Raises AxisError for an axis that `a` lacks.  As numpy.mean.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.mean(np.array([[1.0, 3.0], [2.0, 6.0]]), axis=1).tolist()
    [2.0, 4.0]
    """
    unwritten(out)
    dtype = None if dtype is None else types.asked_dtype(dtype)
    return _mean(a, where, axis=sh.given_axes(axis), dtype=dtype, keepdims=bool(keepdims))


def correction_of(ddof: Any, correction: Any) -> Any:
    """Return the number to subtract from the number of elements, given by either of its names."""
    if correction is None:
        return ddof
    if ddof.__class__ is not int or ddof != 0:
        raise ArgumentError(
            f"ddof={ddof!r} and correction={correction!r} are two names of one thing",
            fix="give one of them",
        )
    return correction


def _float_dtype(x: Value, dtype: np.dtype | None) -> np.dtype:
    """Return the dtype to compute a mean in: single precision at least, complex if `x` is."""
    have = types.dtype_of(dtype) if dtype is not None else x.aval.dtype
    if x.aval.category == types.COMPLEX:
        have = np.promote_types(have, np.complex64)
    if types.category(have) not in (types.FLOATING, types.COMPLEX):
        return types.default_dtype(types.FLOATING)
    return np.dtype(np.float32) if have.itemsize < 4 else have


@fused(numbers=("correction",))
def _var(
    a: Any,
    where: Any,
    mean: Any,
    correction: Any,
    *,
    axis: Any,
    dtype: np.dtype | None,
    keepdims: bool,
) -> Any:
    x = value(a)
    wide = _float_dtype(x, dtype)
    result = dtype or (x.aval.dtype if x.aval.category == types.FLOATING else None)
    x = sh.convert(x, wide)
    if mean is None:
        mean = reduction.mean(x, axis, keepdims=True, where=where)
    rest = el.sub(x, mean)
    # Elements outside of the mask must have no derivative, even if it were nan.
    if where is not None:
        rest = el.select(where, rest, 0)
    squares = el.square(el.abs_(rest) if rest.aval.category == types.COMPLEX else rest)
    total = reduction.sum_(squares, axis, keepdims=keepdims, where=where)
    ones = Literal(1, squares.aval)
    count = reduction.sum_(ones, axis, keepdims=keepdims, where=where)
    free = el.sub(count, correction)
    out = el.div(total, el.select(el.gt(free, 0), free, np.nan))
    return out if result is None else sh.convert(out, result)


@dispatched
def var(
    a: ArrayLike, axis: Axis | None = None, dtype: DTypeLike | None = None, out: None = None,
    ddof: ArrayLike = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
    mean: object = None, correction: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the variance over axes: the mean of |a - mean| ** 2.

    Args:
      a: any shape; integers and booleans become the default float.
      axis: None (all), an int, or a tuple of ints.
      dtype: dtype of the result; floats narrower than float32 are still computed in float32, and
        integers in the default float.
      out: must be None.
      ddof: subtracted from the number of elements; `correction` is another name for it.
      keepdims: whether to keep the axes, with size 1.
      where: mask of the elements that count; broadcasts with `a`.
      mean: the mean with the axes kept, if already computed.

    Raises AxisError for an axis that `a` lacks, TypeRule if both `ddof` and `correction` are given.
    As numpy.var.

    >>> import numpy as np, plait
    >>> float(plait.numpy.var(np.array([8.0, 4.0])))
    4.0
    """
    unwritten(out)
    correction = correction_of(ddof, correction)
    dtype = None if dtype is None else types.asked_dtype(dtype)
    axis = sh.given_axes(axis)
    return _var(a, where, mean, correction, axis=axis, dtype=dtype, keepdims=bool(keepdims))


@dispatched
def std(
    a: ArrayLike, axis: Axis | None = None, dtype: DTypeLike | None = None, out: None = None,
    ddof: ArrayLike = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
    mean: object = None, correction: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the standard deviation over axes: the root of `var`, whose arguments it takes.

    As numpy.std.

    Raises NotAnArrayError if `a` is not an array, AxisError if it has no such axis, and
    OperandTypeError for an integer dtype.

    >>> import numpy as np, plait
    >>> float(plait.numpy.std(np.array([8.0, 4.0])))
    2.0
    """
    how: Any = dict(where=where, mean=mean, correction=correction)
    result = types.inexact_dtype("std", dtype) if dtype is not None else value(a).aval.dtype
    if types.category(result) != types.FLOATING or result.itemsize >= 4:
        return el.sqrt(var(a, axis, dtype, out, ddof, keepdims, **how))
    # The deviation may fit in a float16 where its square does not.
    return sh.convert(el.sqrt(var(a, axis, np.float32, out, ddof, keepdims, **how)), result)


@overload
def average(
    a: ArrayLike, axis: Axis | None = ..., weights: ArrayLike | None = ...,
    returned: Exactly[False] = ..., keepdims: bool = ...,
) -> Array: ...  # fmt: skip
@overload
def average(
    a: ArrayLike, axis: Axis | None = ..., weights: ArrayLike | None = ..., returned: bool = ...,
    keepdims: bool = ...,
) -> Array | tuple[Array, Array]: ...  # fmt: skip
def average(
    a: ArrayLike, axis: Axis | None = None, weights: ArrayLike | None = None,
    returned: bool = False, keepdims: bool = False,
) -> Array | tuple[Array, Array]:  # fmt: skip
    """Return the weighted mean over axes.

    Args:
      a: any shape.
      axis: None (all), an int, or a tuple of ints.
      weights: of `a`'s shape, or of the sizes of the axes, in their order; None gives the plain
        mean.
      returned: whether to return (mean, sum of weights).
      keepdims: whether to keep the axes, with size 1.

    Raises TypeRule for weights of another shape.  As numpy.average.

    Raises AxisError for an axis that `a` lacks.

    >>> import numpy as np, plait
    >>> float(plait.numpy.average(np.array([1.0, 4.0]), weights=np.array([2.0, 1.0])))
    2.0
    """
    return _average(
        a, weights, axis=sh.given_axes(axis), returned=bool(returned), keepdims=bool(keepdims)
    )


@fused
def _average(a: object, weights: Any, *, axis: Any, returned: bool, keepdims: bool) -> Any:
    x = value(a)
    if weights is None:
        out = reduction.mean(x, axis, keepdims=keepdims)
        count = reduction.sum_(Literal(1, x.aval.strong()), axis, keepdims=keepdims)
        return (out, sh.convert(count, out.aval.dtype)) if returned else out
    w = value(weights)
    if w.aval.shape != x.aval.shape and w.aval.ndim:
        if axis is None:
            raise ShapeError(
                f"average of {x.aval!r} with weights {w.aval!r}",
                fix="give weights of the same shape, or the axes that they are for",
            )
        at = sh.normal_axes(axis, x.aval.ndim)
        if w.aval.shape != tuple([x.aval.shape[i] for i in at]):
            raise ShapeError(
                f"{w.aval!r} are not weights for the axes {at} of {x.aval!r}",
                fix="give one for each position along these axes, in their order",
            )
        w = sh.transpose(w, sorted(range(len(at)), key=lambda i: at[i]))
        w = sh.reshape(w, [n if i in at else 1 for i, n in enumerate(x.aval.shape)])
    given, w = el.floating((x, w))
    x, w = single(given), single(w)
    total = reduction.sum_(w, axis, keepdims=keepdims)
    out = el.div(reduction.sum_(el.mul(x, w), axis, keepdims=keepdims), total)
    out, total = rounded(out, given), rounded(total, given)
    return (out, total) if returned else out
