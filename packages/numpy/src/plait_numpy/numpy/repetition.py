"""Repetition, insertion and deletion of elements.

Invariant: the number of elements of a result does not depend on traced values.
"""

import builtins
from typing import Any, SupportsIndex

import numpy as np

from plait.errors import AxisError, ConcretizationError, ShapeError
from plait.ext import Aval, Tracer, materialise_at_ground
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.shape import convert, normal_axis, normal_shape, size_value
from plait.ext.ops.taking import take
from plait.ext.sizes import Dim, is_symbolic, max_dim, product
from plait.ext.surface import value
from plait.ext.trace import Value
from plait.ext.types import BOOL, INTEGER
from plait.typing import Array, ArrayLike, Axis, Shape

from .interchange import known
from .manipulation import fixed_size, ravel, reshape

# ---- repeating -----------------------------------------------------------------------------


def tile(A: ArrayLike, reps: Any) -> Array:
    """Repeat the whole array along each axis.

    Args:
      A: an array.
      reps: a number, or one for each of the last axes.

    As numpy.tile.

    Raises NotAnArrayError if `A` is not an array, and ShapeError if a number of repetitions is not
    a non-negative integer.

    >>> import numpy as np, plait
    >>> plait.numpy.tile(np.array([1, 2]), 2).tolist()
    [1, 2, 1, 2]
    """
    x = value(A)
    times = normal_shape(reps)
    n = builtins.max(len(times), x.aval.ndim)
    times = (1,) * (n - len(times)) + times
    sizes = (1,) * (n - x.aval.ndim) + x.aval.shape
    pairs = [d for r, s in zip(times, sizes) for d in (r, s)]
    spread = sh.broadcast_to(sh.reshape(x, [d for s in sizes for d in (1, s)]), tuple(pairs))
    return materialise_at_ground(sh.reshape(spread, [r * s for r, s in zip(times, sizes)]))


def repeat(
    a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *,
    total_repeat_length: int | None = None,
) -> Array:  # fmt: skip
    """Repeat each element.

    Args:
      a: an array.
      repeats: number of repetitions: one for all, or one for each element along the axis.
      axis: axis to repeat along; None repeats the flattened array.
      total_repeat_length: the size of the result; needed if `repeats` is traced.  The result is cut
        off at this size, or filled up with the last element.

    Raises ConcretizationError if `repeats` is traced and `total_repeat_length` is not given.  As
    numpy.repeat.

    >>> import numpy as np, plait
    >>> plait.numpy.repeat(np.array([7, 8]), np.array([1, 3])).tolist()
    [7, 8, 8, 8]
    """
    x = value(a)
    if axis is None:
        x, axis = ravel(x), 0
    elif not x.aval.ndim:  # as in numpy, a number is a vector of one element
        x = sh.reshape(x, (1,))
    at = normal_axis(axis, x.aval.ndim)
    times: Any = known(_counted_out(repeats))
    if times.__class__ is Dim or (hasattr(times, "__index__") and not _has_axes(times)
                                    and not isinstance(times, Tracer)):  # fmt: skip
        out = _repeated(x, times if times.__class__ is Dim else times.__index__(), at)
        if total_repeat_length is None:
            return out
        times = np.full(x.aval.shape[at], times.__index__())
    n = fixed_size(x, at)
    if isinstance(times, Tracer):
        if total_repeat_length is None:
            raise ConcretizationError(
                f"the size of repeat(...) depends on {times!r}, which has no value while it is "
                "traced",
                fix="give total_repeat_length",
            )
        return take(x, _sources(times, n, total_repeat_length), at, mode="clip")
    positions = np.repeat(np.arange(n), np.broadcast_to(np.asarray(times), (n,)))
    if total_repeat_length is not None:
        missing = builtins.max(total_repeat_length - len(positions), 0)
        positions = np.concatenate([positions, np.full(missing, n - 1)])[:total_repeat_length]
    return take(x, positions.astype(np.int32), at, mode="clip")


def _counted_out(repeats: object) -> Any:
    """Return the repetitions as Python integers, if no size among several is symbolic."""
    if not isinstance(repeats, list | tuple) or not is_symbolic(repeats):
        return repeats
    if len(repeats) > 1:
        raise ShapeError(
            f"repeat by {tuple(repeats)}: sizes that are known by name cannot be counted out",
            fix="give one number for all elements, or numbers that are known",
        )
    return next(iter(repeats))


def _has_axes(x: object) -> bool:
    return bool(getattr(x, "ndim", 0))


def _repeated(x: Array, times: int, axis: int) -> Any:
    front, n, back = x.aval.shape[:axis], x.aval.shape[axis], x.aval.shape[axis + 1 :]
    spread = sh.broadcast_to(sh.expand_dims(x, axis + 1), (*front, n, times, *back))
    return materialise_at_ground(sh.reshape(spread, (*front, n * times, *back)))


def _sources(repeats: Value, n: int, total: int) -> Any:
    """Return the source of each position of the result: the number of ends at or before it."""
    ends = sh.broadcast_to(repeats, (n,)).cumsum()
    positions = sh.iota(ends.aval.dtype, (total, n), 0)
    return sh.convert(el.le(sh.reshape(ends, (1, n)), positions), np.int32).sum(1)


def resize(a: ArrayLike, new_shape: SupportsIndex | Shape) -> Array:
    """Reshape an array, repeating its elements until the new shape is full.

    a: any shape and dtype; new_shape: ints.  Raises TypeRule for negative ones.  As numpy.resize.

    >>> import numpy as np, plait
    >>> plait.numpy.resize(np.array([1, 2, 3]), (2, 2)).tolist()
    [[1, 2], [3, 1]]
    """
    x, shape = ravel(a), normal_shape(new_shape)
    if any(d.__class__ is int and d < 0 for d in shape):
        raise ShapeError(f"resize to {shape}", fix="give sizes that are not negative")
    n, want = x.aval.size, product(shape)
    if n == 0 or want == 0:
        return sh.fill(0, Aval(shape, x.aval.dtype))
    times = -(-want // (n if n.__class__ is int else max_dim(n, 1)))
    return reshape(sh.slice_in_dim(tile(x, times), 0, want), shape)


# ---- inserting and deleting ----------------------------------------------------------------


def _fixed_positions(what: str, obj: object, n: int) -> np.ndarray:
    if isinstance(obj, Tracer):
        raise ConcretizationError(
            f"the shape of {what}(...) depends on {obj!r}, which has no value while it is traced",
            fix="give fixed positions",
        )
    if isinstance(obj, slice):
        return np.arange(n)[obj]
    positions = np.asarray(obj)
    if not positions.size and not hasattr(obj, "dtype"):
        positions = positions.astype(np.int32)
    if positions.dtype == BOOL:
        if positions.ndim and positions.shape != (n,):
            raise ShapeError(f"{what}: a mask of shape {positions.shape} for an axis of size {n}",
                           fix="give one of its size")  # fmt: skip
        return np.flatnonzero(positions)
    if positions.size and (positions.min() < -n or positions.max() > n):
        raise AxisError(
            f"{what}: a position is out of range for an axis of size {n}",
            fix="give positions inside",
        )
    return positions


def delete(
    arr: ArrayLike, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """Remove the elements at given positions.

    Args:
      arr: any shape and dtype.
      obj: an int, several, a slice or a mask.
      axis: axis to delete along; None deletes from the flattened array.
      assume_unique_indices: a promise that no position occurs twice, which permits traced
        positions.

    Raises ConcretizationError for several traced positions without `assume_unique_indices`.  As
    numpy.delete.

    >>> import plait
    >>> plait.numpy.delete(plait.numpy.arange(4), 1).tolist()
    [0, 2, 3]
    """
    x = value(arr)
    if axis is None:
        x, axis = ravel(x), 0
    at = normal_axis(axis, x.aval.ndim)
    if is_symbolic(x.aval.shape[at : at + 1]) and _is_place(obj):
        return take(x, _without(obj, x.aval.shape[at]), at, mode="clip")
    n = fixed_size(x, at)
    traced = isinstance(obj, Tracer) and obj.aval.category == INTEGER
    if traced and (assume_unique_indices or not obj.aval.ndim):
        return take(x, _others(obj, n), at, mode="clip")
    keep = np.delete(np.arange(n), _fixed_positions("delete", obj, n))
    return take(x, keep.astype(np.int32), at, mode="clip")


def _others(positions: Any, n: int) -> Any:
    """Return the numbers below `n` outside of `positions`, which are traced and distinct."""
    flat = sh.reshape(positions, (positions.aval.size,))
    gone = sh.fill(False, Aval((n,), BOOL)).at[flat].set(True)
    order = el.select(gone, n, el.sub(el.not_(gone).astype(np.int32).cumsum(), 1))
    rest = sh.fill(0, Aval((n - positions.aval.size,), np.int32))
    return rest.at[order].set(sh.iota(np.dtype(np.int32), (n,)), mode="drop")


def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """Insert `values` before given positions: an int, several, or a slice.

    One position may be traced; it counts from the end if it is negative, and is clamped to the
    axis.  Raises AxisError for known positions out of range, ConcretizationError for several traced
    ones.  As numpy.insert.

    >>> import numpy as np, plait
    >>> plait.numpy.insert(np.array([1, 2, 3]), 1, 9).tolist()
    [1, 9, 2, 3]
    """
    x, v = value(arr), value(values)
    if axis is None:
        x, axis = ravel(x), 0
    at = normal_axis(axis, x.aval.ndim)
    if _is_place(obj) and (isinstance(obj, Tracer) or is_symbolic(x.aval.shape[at : at + 1])):
        return _inserted(x, obj, v, at)
    n = fixed_size(x, at)
    positions = _fixed_positions("insert", obj, n)
    if not positions.ndim:
        v = _values_at_one(v, x.aval.ndim, at)
    count = positions.size
    if positions.size == 1 and v.aval.ndim == x.aval.ndim:
        count = v.aval.shape[at] if v.aval.shape[at] != 1 else 1
        positions = np.full(count, positions.reshape(-1)[0])
    want = (*x.aval.shape[:at], count, *x.aval.shape[at + 1 :])
    v = sh.broadcast_to(sh.convert_into(v, x.aval.dtype), want)
    marks = np.insert(np.zeros(n, np.int64), positions.reshape(-1), np.arange(1, count + 1))
    source = np.where(marks > 0, n + marks - 1, np.cumsum(marks == 0) - 1)
    both = sh.concatenate([x, v], at)
    return take(both, source.astype(np.int32), at, mode="clip")


def _values_at_one(v: Any, ndim: int, at: int) -> Any:
    """Return values for one position: as in numpy, the first of `ndim` axes goes to the axis."""
    if v.aval.ndim and v.aval.ndim <= ndim:
        whole = sh.reshape(v, (*[1] * (ndim - v.aval.ndim), *v.aval.shape))
        return sh.moveaxis(whole, 0, at)
    return v


def _is_place(obj: object) -> bool:
    """Return whether this is one position: an integer, known or traced."""
    if isinstance(obj, Tracer):
        return obj.aval.category == INTEGER and not obj.aval.ndim
    return isinstance(obj, int | np.integer) and not isinstance(obj, bool)


def _place(obj: ArrayLike, n: Dim | int) -> Any:
    """Return a position as i32, counted from the front of an axis of size `n`."""
    p = convert(value(obj), np.int32)
    return el.select(el.lt(p, 0), el.add(p, size_value(n, np.dtype(np.int32))), p)


def _without(obj: Any, n: Any) -> Any:
    i = sh.iota(np.dtype(np.int32), (max_dim(n - 1, 0),))
    return el.add(i, convert(el.ge(i, _place(obj, n)), np.int32))


def _inserted(x: Array, obj: Value | int, v: Array, at: int) -> Any:
    """Insert before one position of an axis of any size."""
    n = x.aval.shape[at]
    v = _values_at_one(v, x.aval.ndim, at)
    count = v.aval.shape[at] if v.aval.ndim == x.aval.ndim else 1
    v = sh.broadcast_to(
        convert(v, x.aval.dtype), (*x.aval.shape[:at], count, *x.aval.shape[at + 1 :])
    )
    size, wide = (size_value(d, np.dtype(np.int32)) for d in (n, count))
    p = el.minimum(el.maximum(_place(obj, n), 0), size)
    i = sh.iota(np.dtype(np.int32), (n + count,))
    later = el.select(el.lt(i, el.add(p, wide)), el.add(el.sub(i, p), size), el.sub(i, wide))
    source = el.select(el.lt(i, p), i, later)
    return take(sh.concatenate([x, v], at), source, at, mode="clip")


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axis | None = None) -> Array:
    """Remove leading ("f") and trailing ("b") zeros along axes (None: all), of known values.

    Raises ConcretizationError for traced values.  As numpy.trim_zeros.

    >>> import numpy as np, plait
    >>> plait.numpy.trim_zeros(np.array([0, 1, 2, 0])).tolist()
    [1, 2]
    """
    x = value(filt)
    if not x.aval.ndim:
        return sh.materialise_at_ground(x)
    elements = known(x)
    if isinstance(elements, Tracer):
        raise ConcretizationError(
            f"the shape of trim_zeros({x!r}) depends on values that are not known while it is "
            "traced",
            fix="trim before, or mask instead",
        )
    positions = np.nonzero(np.asarray(elements))
    for i in sh.normal_axes(axis, x.aval.ndim):
        n = x.aval.shape[i]
        at = positions[i]
        first, last = (at.min(), at.max() + 1) if at.size else (n, n)
        start = first if "f" in trim.lower() else 0
        stop = last if "b" in trim.lower() and at.size else (n if at.size else start)
        x = sh.slice_in_dim(x, int(start), int(stop), axis=i)
    return x
