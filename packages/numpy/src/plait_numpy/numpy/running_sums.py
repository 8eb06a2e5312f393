"""Running sums and products along an axis.

Invariant: None as the axis flattens the array, or is refused if the array has several axes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from plait.errors import ShapeError
from plait.ext import Literal, types
from plait.ext.ops import cumulative
from plait.ext.ops import shape as sh
from plait.ext.ops.reduction import truth
from plait.ext.surface import dispatched, value
from plait.typing import Array, ArrayLike, DTypeLike

from .masking import unwritten

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum"]


@dispatched
def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Return running sums along an axis; None flattens the array first.

    Args:
      a: any shape and dtype.
      axis: an int, or None.
      dtype: dtype of the result; by default booleans and narrow integers become the default
        integer.
      out: must be None.

    As numpy.cumsum.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.cumsum(np.array([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    unwritten(out)
    return _running(cumulative.cumsum, a, axis, dtype)


@dispatched
def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Return running products; arguments are those of `cumsum`.  As numpy.cumprod.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.cumprod(np.array([1, 2, 3])).tolist()
    [1, 2, 6]
    """
    unwritten(out)
    return _running(cumulative.cumprod, a, axis, dtype)


def _running(cumulate: Callable[..., Any], a: object, axis: object, dtype: object) -> Any:
    dtype = None if dtype is None else types.asked_dtype(dtype)
    if dtype == types.BOOL:  # running `any` for sums, `all` for products
        return truth(cumulate(truth(a), axis, np.int32))
    return cumulate(a, axis, dtype)


def _with_initial(
    f: Callable[..., Any], x: object, axis: int | None, dtype: Any, first: int, include: bool
) -> Any:
    x = value(x)
    if axis is None and x.aval.ndim != 1:
        raise ShapeError(f"an axis is needed for {x.aval!r}", fix="give axis=")
    at = sh.normal_axis(0 if axis is None else axis, x.aval.ndim)
    out = f(x, at, dtype)
    if not include:
        return out
    one = [1 if i == at else d for i, d in enumerate(out.aval.shape)]
    return sh.concatenate([Literal(first, out.aval.with_shape(one)), out], at)


def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:  # fmt: skip
    """Return running sums along an axis, from 0 if `include_initial`.

    Raises TypeRule if `axis` is None for arrays with several axes.  As numpy.cumulative_sum.

    >>> import numpy as np, plait
    >>> plait.numpy.cumulative_sum(np.array([2, 3]), include_initial=True).tolist()
    [0, 2, 5]
    """
    return _with_initial(cumsum, x, axis, dtype, 0, include_initial)


def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:  # fmt: skip
    """Return running products along an axis, from 1 if `include_initial`.

    Raises TypeRule if `axis` is None for arrays with several axes.  As numpy.cumulative_prod.

    >>> import numpy as np, plait
    >>> plait.numpy.cumulative_prod(np.array([2, 3]), include_initial=True).tolist()
    [1, 2, 6]
    """
    return _with_initial(cumprod, x, axis, dtype, 1, include_initial)
