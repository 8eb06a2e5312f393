"""Arrays as sets: distinct elements, membership, unions, differences.

Invariant: the number of distinct elements depends on values, so it is computed from known arrays or
given as `size`.  Then `fill_value` fills up to `size`, by default the least element, or 0 for
`setdiff1d` and where there is none; further elements are left out.
"""

from typing import Any, NamedTuple, overload
from typing import Literal as Exactly

import numpy as np

from plait.errors import ConcretizationError
from plait.ext import Aval, Tracer
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.reduction import any_, dtype_for_indices, sum_
from plait.ext.ops.sorting import argsort, sort, sort_together
from plait.ext.ops.taking import take
from plait.ext.sizes import decide_ge, max_dim, min_dim
from plait.ext.surface import fused, size_given, value
from plait.ext.trace import Value
from plait.ext.types import BOOL
from plait.typing import Array, ArrayLike

from .logic import isnan
from .search import searchsorted
from .selection import extract

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "UniqueAll", "UniqueCounts",
    "UniqueInverse",
]  # fmt: skip


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


# ---- distinct elements ---------------------------------------------------------------------


@fused
def _sorted_rows(x: Array, *, equal_nan: bool) -> tuple:
    """Return (order that sorts rows, whether a sorted row differs from the one before it)."""
    n = x.aval.shape[0]
    columns = [x[:, i] for i in range(x.aval.shape[1])]
    positions = sh.iota(dtype_for_indices(n), (n,))
    *rows, order = sort_together([*columns, positions], 0, num_keys=max(len(columns), 1))
    new: Any = sh.fill(False, Aval((max_dim(n - 1, 0),), BOOL))
    for c in rows:
        differs = el.ne(c[1:], c[:-1])
        if equal_nan and c.aval.inexact:
            differs = el.and_(differs, el.not_(el.and_(isnan(c[1:]), isnan(c[:-1]))))
        new = el.or_(new, differs)
    first = sh.fill(True, Aval((min_dim(n, 1),), BOOL))
    return order, sh.concatenate([first, new], 0)


@fused(numbers=("fill_value",))
def _distinct(x: Array, order: Value, new: Value, fill_value: Any, *, size: int) -> tuple:
    """Return (rows, their first positions, number of each row, how often each occurs)."""
    n, kind = x.aval.shape[0], order.aval.dtype
    number = el.sub(sh.convert(new, kind).cumsum(), 1)
    zero = sh.fill(0, Aval((size,), kind))
    first = zero.at[el.select(new, number, sh.size_value(size, kind))].set(order, mode="drop")
    inverse = sh.fill(0, Aval((n,), kind)).at[order].set(number)
    counts = zero.at[number].add(sh.fill(1, Aval((n,), kind)), mode="drop")
    if n == 0:
        filled = sh.convert_into(fill_value, x.aval.dtype)
        return sh.broadcast_to(filled, (size, *x.aval.shape[1:])), zero, inverse, counts
    if n.__class__ is int:
        there = el.lt(sh.iota(kind, (size,)), number[-1:] + 1)
    else:
        there = el.lt(sh.iota(kind, (size,)), sum_(sh.convert(new, kind)))
    first = el.select(there, first, order[0])
    rows = take(x, first, 0, mode="clip")
    if fill_value is not None:
        rows = el.select(
            sh.reshape(there, (size, 1)), rows, sh.convert_into(fill_value, x.aval.dtype)
        )
    return rows, first, inverse, counts


@overload
def unique(
    ar: ArrayLike, return_index: Exactly[False] = ..., return_inverse: Exactly[False] = ...,
    return_counts: Exactly[False] = ..., axis: int | None = ..., *, equal_nan: bool = ...,
    size: int | None = ..., fill_value: ArrayLike | None = ..., sorted: bool = ...,
) -> Array: ...  # fmt: skip
@overload
def unique(
    ar: ArrayLike, return_index: bool = ..., return_inverse: bool = ..., return_counts: bool = ...,
    axis: int | None = ..., *, equal_nan: bool = ..., size: int | None = ...,
    fill_value: ArrayLike | None = ..., sorted: bool = ...,
) -> Array | tuple[Array, ...]: ...  # fmt: skip
def unique(
    ar: ArrayLike, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
    size: int | None = None, fill_value: ArrayLike | None = None, sorted: bool = True,
) -> Array | tuple[Array, ...]:  # fmt: skip
    """Return the distinct elements, in order.

    Args:
      ar: an array; complex numbers are ordered by real part first.
      return_index: whether to return the first position of each, too.
      return_inverse: whether to return the number of each element among the distinct ones, too.
      return_counts: whether to return how often each occurs, too.
      axis: axis whose parts are compared; None compares elements of the flattened array.
      equal_nan: whether all nans are one element.
      size: number of distinct elements; needed if `ar` is traced.
      fill_value: fills up to `size`; the least element by default.
      sorted: accepted for compatibility; the result is always sorted.

    Returns an array, or a tuple beginning with it.  Raises ConcretizationError if `ar` is traced
    and `size` is not given.  As numpy.unique.

    >>> import numpy as np, plait
    >>> plait.numpy.unique(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    x = value(ar)
    shape = x.aval.shape
    at = None if axis is None else sh.normal_axis(axis, x.aval.ndim)
    flat = sh.reshape(x, (x.aval.size, 1)) if at is None else sh.moveaxis(x, at, 0)
    rest = flat.aval.shape[1:]
    if at is not None:
        width = int(np.prod(rest))
        flat = sh.reshape(flat, (shape[at], width))
    order, new = _sorted_rows(flat, equal_nan=bool(equal_nan))
    if size is None:
        if isinstance(new, Tracer):
            raise ConcretizationError(
                f"the size of unique({x!r}) depends on values that are not known while it is "
                "traced",
                fix="give size, and perhaps fill_value",
            )
        size = int(np.count_nonzero(np.asarray(new)))
    fill_value = 0 if fill_value is None and x.aval.size == 0 else fill_value
    rows, first, inverse, counts = _distinct(flat, order, new, fill_value, size=size_given(size))
    out = (
        sh.reshape(rows, (size,))
        if at is None
        else sh.moveaxis(sh.reshape(rows, (size, *rest)), 0, at)
    )
    inverse = sh.reshape(inverse, shape) if at is None else inverse
    extra = [v for v, asked in ((first, return_index), (inverse, return_inverse),
                                (counts, return_counts)) if asked]  # fmt: skip
    return (out, *extra) if extra else out


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the distinct elements, nans being distinct; see `unique`.  As numpy.unique_values.

    Raises NotAnArrayError if `x` is not an array, and ConcretizationError in a traced function
    without `size`.

    >>> import numpy as np, plait
    >>> plait.numpy.unique_values(np.array([2, 1, 2])).tolist()
    [1, 2]
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCounts:
    """Return (values, counts); see `unique`.  As numpy.unique_counts.

    Raises NotAnArrayError if `x` is not an array, and ConcretizationError in a traced function
    without `size`.

    >>> import numpy as np, plait
    >>> plait.numpy.unique_counts(np.array([2, 1, 2])).counts.tolist()
    [1, 2]
    """
    found = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCounts(*found)


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverse:
    """Return (values, inverse_indices); see `unique`.  As numpy.unique_inverse.

    Raises NotAnArrayError if `x` is not an array, and ConcretizationError in a traced function
    without `size`.

    >>> import numpy as np, plait
    >>> plait.numpy.unique_inverse(np.array([2, 1, 2])).inverse_indices.tolist()
    [1, 0, 1]
    """
    found = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverse(*found)


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueAll:
    """Return (values, indices, inverse_indices, counts); see `unique`.  As numpy.unique_all.

    Raises NotAnArrayError if `x` is not an array, and ConcretizationError in a traced function
    without `size`.

    >>> import numpy as np, plait
    >>> plait.numpy.unique_all(np.array([2, 1, 2])).counts.tolist()
    [1, 2]
    """
    found = unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueAll(*found)


# ---- membership ----------------------------------------------------------------------------


@fused
def _is_in(x: Any, among: Any, *, invert: bool) -> Any:
    x, among = sh.convert_together([value(x), value(among)])
    n = among.aval.size
    among = sh.reshape(among, (n,))
    if n == 0:
        found = sh.fill(False, Aval(x.aval.shape, BOOL))
    elif decide_ge(32, n) or x.aval.dtype.kind == "c":
        column = sh.broadcast_to(sh.reshape(x, (*x.aval.shape, 1)), (*x.aval.shape, n))
        found = any_(el.eq(column, sh.broadcast_to(among, column.aval.shape)), -1)
    else:
        among = sort(among)
        found = el.eq(take(among, searchsorted(among, x), mode="clip"), x)
        if not decide_ge(n, 1):
            found = el.and_(found, el.gt(n, 0))
    return el.not_(found) if invert else found


def isin(
    element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False, invert: bool = False,
    *, method: str = "auto",
) -> Array:  # fmt: skip
    """Return whether elements occur in another array (or, if `invert`, do not).

    Args:
      element: any shape and dtype.
      test_elements: elements to compare with.
      assume_unique, method: accepted for compatibility.

    Returns booleans of the shape of `element`.  As numpy.isin.

    Raises NotAnArrayError if an operand is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.isin(np.array([1, 2, 3]), np.array([3, 2, 7])).tolist()
    [False, True, True]
    """
    return _is_in(element, test_elements, invert=bool(invert))


def _flat(x: object) -> Any:
    x = value(x)
    return sh.reshape(x, (x.aval.size,))


def _chosen(x: Value, keep: Array, size: int | None, fill_value: Any, what: str) -> Any:
    """Return the distinct elements for which `keep` holds."""
    if size is None:
        if isinstance(x, Tracer) or isinstance(keep, Tracer):
            raise ConcretizationError(
                f"the size of {what}(...) depends on values that are not known while it is traced",
                fix="give size, and perhaps fill_value",
            )
        return unique(np.asarray(x)[np.asarray(keep)])
    return _packed(x, keep, fill_value, size=size.__index__())


@fused(numbers=("fill_value",))
def _packed(x: Value, keep: Any, fill_value: Any, *, size: int) -> Any:
    """Sort elements, with those kept first and once each; fill with the least one by default."""
    dropped, rows = sort_together([el.not_(keep), x], 0, num_keys=2)
    n = rows.aval.shape[0]
    same = el.eq(rows[1:], rows[:-1])
    again = sh.concatenate([sh.fill(False, Aval((min_dim(n, 1),), BOOL)), same], 0)
    here = el.not_(el.or_(dropped, again))
    target = el.select(here, el.sub(sh.convert(here, np.int32).cumsum(), 1), size)
    if fill_value is None:
        fill_value = el.select(any_(keep), rows[0], 0) if n.__class__ is not int or n else 0
    start = sh.broadcast_to(sh.convert_into(fill_value, x.aval.dtype), (size,))
    return (el.add(start, 0) if x.aval.dtype != BOOL else start).at[target].set(rows, mode="drop")


def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the distinct elements of both, in order; see `unique`.  As numpy.union1d.

    Raises NotAnArrayError if an operand is not an array, and ConcretizationError in a traced
    function without `size`.

    >>> import numpy as np, plait
    >>> plait.numpy.union1d(np.array([1, 2, 3]), np.array([3, 2, 7])).tolist()
    [1, 2, 3, 7]
    """
    return unique(sh.concatenate([_flat(ar1), _flat(ar2)], 0), size=size, fill_value=fill_value)


@overload
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = ..., return_indices: Exactly[False] = ...,
    *, size: int | None = ..., fill_value: ArrayLike | None = ...,
) -> Array: ...  # fmt: skip
@overload
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = ..., return_indices: bool = ..., *,
    size: int | None = ..., fill_value: ArrayLike | None = ...,
) -> Array | tuple[Array, Array, Array]: ...  # fmt: skip
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False, *,
    size: int | None = None, fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]:  # fmt: skip
    """Return the distinct elements of the intersection, in order.

    Args:
      ar1, ar2: arrays, which are flattened.
      assume_unique: accepted for compatibility.
      return_indices: whether to return their first positions in each, too; those of missing
        elements are the sizes of the arrays.
      size, fill_value: see `unique`.

    Raises ConcretizationError if operands are traced and `size` is not given.  As
    numpy.intersect1d.

    >>> import numpy as np, plait
    >>> plait.numpy.intersect1d(np.array([1, 2, 3]), np.array([3, 2, 7])).tolist()
    [2, 3]
    """
    x, y = sh.convert_together([_flat(ar1), _flat(ar2)])
    out = _chosen(x, isin(x, y), size, fill_value, "intersect1d")
    if not return_indices:
        return out
    positions = []
    for v in (x, y):
        if v.aval.shape == (0,):  # from which nothing can be taken
            positions.append(sh.fill(0, Aval(out.aval.shape, np.int32)))
            continue
        order = argsort(v)
        place = take(order, searchsorted(take(v, order), out), mode="clip")
        if size is not None:  # elements beyond those that were found are nowhere
            found = _count_common(x, y)
            there = el.lt(sh.iota(place.aval.dtype, place.aval.shape, 0), found)
            place = el.select(there, place, v.aval.size)
        positions.append(place)
    return out, *positions


def _count_common(x: Value, y: Value) -> Any:
    """Return how many distinct elements of `x` are in `y`."""
    common = isin(x, y)
    order = argsort(x)
    s, c = take(x, order), take(common, order)
    first = sh.concatenate(
        [sh.fill(1, Aval((min_dim(s.aval.size, 1),), BOOL)), el.ne(s[1:], s[:-1])], 0
    )
    return sum_(sh.convert(el.and_(first, c), np.int32))


def setdiff1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the distinct elements of the first that the second lacks, in order; see `intersect1d`.

    The result has the dtype of the first; missing elements are 0 by default.  With
    `assume_unique`, elements keep the order that they have in the first.  As numpy.setdiff1d.

    Raises NotAnArrayError if an operand is not an array, and ConcretizationError in a traced
    function without `size`.

    >>> import numpy as np, plait
    >>> plait.numpy.setdiff1d(np.array([1, 2, 3]), np.array([3, 2, 7])).tolist()
    [1]
    """
    x, fill = _flat(ar1), 0 if fill_value is None else fill_value
    kept = isin(x, _flat(ar2), invert=True)
    if assume_unique:
        return extract(kept, x, size=size, fill_value=fill)
    return _chosen(x, kept, size, fill, "setdiff1d")


def setxor1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the distinct elements that occur in only one of both, in order; see `intersect1d`.

    As numpy.setxor1d.

    Raises NotAnArrayError if an operand is not an array, and ConcretizationError in a traced
    function without `size`.

    >>> import numpy as np, plait
    >>> plait.numpy.setxor1d(np.array([1, 2, 3]), np.array([3, 2, 7])).tolist()
    [1, 7]
    """
    x, y = sh.convert_together([_flat(ar1), _flat(ar2)])
    alone = sh.concatenate([isin(x, y, invert=True), isin(y, x, invert=True)], 0)
    return _chosen(sh.concatenate([x, y], 0), alone, size, fill_value, "setxor1d")
