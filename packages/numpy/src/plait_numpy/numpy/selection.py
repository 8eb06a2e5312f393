"""Selection of elements: by conditions, by index, and by being nonzero.

Invariant: shapes never depend on traced values: functions whose result would take `size`, and pad
with a fill value.
"""

import builtins
from collections.abc import Sequence
from typing import Any, SupportsIndex, overload

import numpy as np

from plait.errors import ArgumentError, ConcretizationError, ShapeError, SubscriptError
from plait.ext import Aval, Literal, Tracer, materialise_at_ground, types
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops import taking
from plait.ext.ops.reduction import sum_, truth
from plait.ext.sizes import decide_ge, product
from plait.ext.surface import dispatched, fused, size_given, value
from plait.ext.trace import Value
from plait.ext.values import from_numpy
from plait.typing import Array, ArrayLike, DTypeLike, Shape

from .interchange import known
from .masking import unwritten

__all__ = [
    "argwhere", "choose", "compress", "extract", "flatnonzero", "ix_", "nonzero", "piecewise",
    "place", "put", "put_along_axis", "ravel_multi_index", "select", "take", "take_along_axis",
    "unravel_index", "where",
]  # fmt: skip

# ---- by conditions -------------------------------------------------------------------------


@overload
def where(
    condition: ArrayLike, /, *, size: int | None = ..., fill_value: ArrayLike | None = ...
) -> tuple[Array, ...]: ...
@overload
def where(
    condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, size: int | None = ...,
    fill_value: ArrayLike | None = ...,
) -> Array: ...  # fmt: skip
@dispatched(numbers="operands")
def where(
    condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /, *,
    size: int | None = None, fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, ...]:  # fmt: skip
    """Return `x` where the condition holds, else `y`; without them, the positions where it holds.

    Args:
      condition: booleans, or numbers, which count as true unless zero.
      x, y: arrays to select from; shapes broadcast, dtypes are promoted.
      size, fill_value: see `nonzero`.

    Derivatives flow to the selected operand.  A nan in the derivative of the other one still comes
    through, so make the other branch finite too.  Raises TypeRule if only one of `x` and `y` is
    given.  As numpy.where.

    >>> import numpy as np, plait
    >>> plait.numpy.where(np.array([True, False]), 1, 2).tolist()
    [1, 2]
    """
    if x is None or y is None:
        if x is not y:
            raise ArgumentError("where takes both x and y, or none", fix="give the other one too")
        return nonzero(condition, size=size, fill_value=fill_value)
    return el.select(condition, x, y)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: object = 0) -> Array:
    """Return the choice of the first condition that holds, else `default`.

    Args:
      condlist: booleans.
      choicelist: as many arrays; shapes broadcast, dtypes are promoted.
      default: value where no condition holds.

    Raises TypeRule if there are not as many choices as conditions.  As numpy.select.

    >>> import numpy as np, plait
    >>> plait.numpy.select([np.array([True, False])], [np.array([1, 2])], 9).tolist()
    [1, 9]
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ArgumentError(
            f"select: {len(condlist)} conditions for {len(choicelist)} choices",
            fix="give as many of each, one at least",
        )
    *choices, out = el.promoted((*choicelist, default))
    for c, x in zip(builtins.reversed(list(condlist)), builtins.reversed(choices)):
        out = el.select(c, x, out)
    return out


def piecewise(
    x: ArrayLike,
    condlist: Sequence[ArrayLike],
    funclist: Sequence[Any],
    *args: object,
    **kw: object,
) -> Array:
    """Apply functions to `x`, each where its condition holds; the last such condition wins.

    Args:
      x: an array.
      condlist: booleans of its shape.
      funclist: functions (or numbers), and one more for positions where no condition holds (else
        zero).
      args, kw: further arguments of the functions.

    All functions are evaluated everywhere.  As numpy.piecewise.

    Raises NotAnArrayError if `x` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.piecewise(np.arange(3), [np.arange(3) > 1], [lambda x: -x, 7]).tolist()
    [7, 7, -2]
    """
    x = value(x)
    conditions: list = (
        [truth(c) for c in condlist]
        if isinstance(condlist, tuple | list)
        else (
            [truth(condlist)] if value(condlist).aval.ndim == x.aval.ndim else list(value(condlist))
        )
    )
    functions = list(funclist)
    for c in conditions:
        if c.aval.shape != x.aval.shape:
            raise SubscriptError(f"piecewise: a condition {c.aval!r} for {x.aval!r}",
                                 fix="give conditions of its shape")  # fmt: skip
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise ArgumentError(
            f"piecewise: {len(functions)} functions for {len(conditions)} conditions",
            fix="give one for each, and perhaps one more",
        )
    run = lambda f: f(x, *args, **kw) if callable(f) else f  # noqa: E731
    more = len(functions) > len(conditions)
    out = run(functions.pop()) if more else 0
    out = sh.broadcast_to(sh.convert_into(out, x.aval.dtype), x.aval.shape)
    for c, f in zip(conditions, functions):
        out = el.select(c, sh.convert_into(run(f), x.aval.dtype), out)
    return out


def choose(
    a: ArrayLike, choices: Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array:
    """Return element i of choice number `a[i]`.

    Args:
      a: integers.
      choices: arrays; shapes broadcast, dtypes are promoted.
      out: must be None.
      mode: "clip" or "wrap" for numbers outside; "raise" requires a known `a`.

    Raises TypeRule for known numbers outside with "raise", and without choices; ConcretizationError
    for traced ones.  As numpy.choose.

    >>> import numpy as np, plait
    >>> plait.numpy.choose(np.array([1, 0]), (np.array([1, 2]), np.array([3, 4]))).tolist()
    [3, 2]
    """
    unwritten(out)
    index = sh.integers(value(a), "the numbers of choices")
    given = list(choices)
    if not given:
        raise ArgumentError("choose from nothing", fix="give one array at least")
    xs = list(el.promoted(given))
    n = len(xs)
    if mode == "raise":
        index = known(index)
        if isinstance(index, Tracer):
            raise ConcretizationError(
                f"choose cannot check {index!r}, which is being traced", fix='mode="clip"'
            )
        host = np.asarray(index)
        if host.size and not (host.min() >= 0 and host.max() < n):
            raise ShapeError(f"choose: a number is outside of [0, {n})", fix='mode="clip"')
    elif mode == "wrap":
        index = el.modulo(index, n)
    elif mode == "clip":
        index = el.clamp(0, index, n - 1)
    else:
        raise ArgumentError(f"choose has no mode {mode!r}", fix='use "raise", "wrap" or "clip"')
    picked = xs[0]
    for i, x in enumerate(xs[1:], 1):
        picked = el.select(el.eq(index, i), x, picked)
    target = types.broadcast_shapes([index.aval.shape, picked.aval.shape])
    return materialise_at_ground(sh.broadcast_to(picked, target))


# ---- by index ------------------------------------------------------------------------------


def take(
    a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None,
    mode: str | None = None, unique_indices: bool = False, indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return elements along an axis, by index.

    Args:
      a: an array.
      indices: integers, any shape; negative ones count from the end.
      axis: axis to take from; None takes from the flattened array.
      out: must be None.
      mode: the value of indices outside: "fill" (the default: `fill_value`, or nan, or the least or
        greatest integer), "clip" or "wrap".
      unique_indices, indices_are_sorted: promises, which make it faster.
      fill_value: value for "fill".

    As numpy.take, which raises for indices outside.

    Raises NotAnArrayError if `a` is not an array, OperandTypeError for indices that are not
    integers, and AxisError for an axis that `a` lacks.

    >>> import numpy as np, plait
    >>> plait.numpy.take(np.array([5, 6, 7]), np.array([2, 0])).tolist()
    [7, 5]
    """
    unwritten(out)
    return taking.take(a, indices, axis, mode, unique_indices, indices_are_sorted, fill_value)


def take_along_axis(
    arr: ArrayLike, indices: ArrayLike, axis: int | None = -1, mode: str | None = None,
    fill_value: ArrayLike | None = None, *, wrap_negative_indices: bool | None = None,
) -> Array:  # fmt: skip
    """Return elements along an axis, by indices that differ from position to position.

    Args:
      arr: an array.
      indices: integers, with as many axes; sizes broadcast, except along the axis.
      axis: axis to take from; None takes from the flattened array.
      mode, fill_value: as in `take`; "one_hot" compares positions instead of reading by them.
      wrap_negative_indices: whether negative indices count from the end (the default); False: they
        are outside.

    As numpy.take_along_axis.

    Raises NotAnArrayError if an operand is not an array, AxisError if `arr` has no such axis, and
    OperandTypeError for booleans, floats and complex numbers.

    >>> import numpy as np, plait
    >>> plait.numpy.take_along_axis(np.array([5, 6, 7]), np.array([2]), 0).tolist()
    [7]
    """
    i = value(indices)
    if wrap_negative_indices is False and i.aval.category == types.INTEGER and mode != "wrap":
        outside = 0 if mode == "clip" else np.int32(np.iinfo(np.int32).max)
        i = el.select(el.lt(i, 0), outside, i)
    return taking.take_along_axis(arr, i, axis, mode, fill_value)


def put_along_axis(
    arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None, inplace: bool = False,
    *, mode: str | None = None,
) -> Array:  # fmt: skip
    """Return `arr` with elements along an axis replaced: a new array; see `take_along_axis`.

    Args:
      arr, indices, axis: as in `take_along_axis`.
      values: broadcast with the indices.
      inplace: must be False.
      mode: treatment of indices outside: "drop" (the default) or "clip".

    Raises TypeRule unless `inplace` is False, and for indices with other numbers of axes.  As
    numpy.put_along_axis.

    >>> import numpy as np, plait
    >>> plait.numpy.put_along_axis(np.arange(3), np.array([1]), 9, 0).tolist()
    [0, 9, 2]
    """
    _not_in_place(inplace)
    x, i = materialise_at_ground(value(arr)), sh.integers(indices, "indices")
    _kept("put_along_axis", value(values), x)
    if axis is None:
        flat = put_along_axis(sh.reshape(x, (-1,)), i, values, 0, mode=mode)
        return sh.reshape(flat, x.aval.shape)
    if i.aval.ndim != x.aval.ndim:
        raise ShapeError(f"put_along_axis: {i.aval!r} for {x.aval!r}", fix="give as many axes")
    at = sh.normal_axis(axis, x.aval.ndim)
    shape = list(x.aval.shape)
    shape[at] = i.aval.shape[at]
    i = sh.broadcast_to(i, shape)
    along = lambda k: [d if j == k else 1 for j, d in enumerate(shape)]  # noqa: E731
    index = [i if k == at else sh.iota(np.int32, along(k), k) for k in range(len(shape))]
    return x.at[tuple(index)].set(values, mode=mode)


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = False
) -> Array:
    """Return `a` with elements of the flattened array replaced: a new array.

    Args:
      a: an array.
      ind: integers.
      v: values to write; repeated if there are fewer.
      mode: treatment of indices outside: "drop" (the default), "clip" or "wrap".
      inplace: must be False.

    Raises TypeRule unless `inplace` is False, and for other modes.  As numpy.put.

    >>> import numpy as np, plait
    >>> plait.numpy.put(np.arange(3), 1, 9, inplace=False).tolist()
    [0, 9, 2]
    """
    _not_in_place(inplace)
    x, i, values = materialise_at_ground(value(a)), sh.integers(ind, "positions"), value(v)
    _kept("put", values, x)
    if mode not in (None, "drop", "clip", "wrap", "promise_in_bounds"):
        raise ArgumentError(
            f"put has no mode {mode!r}", fix='use "clip" or "wrap"; by default nothing is written'
        )
    i = sh.reshape(i, (i.aval.size,))
    if mode == "wrap":
        i, mode = el.modulo(i, x.aval.size), None
    elif mode == "clip":
        i = el.clamp(0, i, x.aval.size - 1)
    if i.aval.size == 0 or values.aval.size == 0:
        return x
    values = sh.reshape(values, (values.aval.size,))
    if not decide_ge(1, values.aval.size):
        values = taking.take(values, el.modulo(sh.iota(np.int32, i.aval.shape), values.aval.size))
    flat = sh.reshape(x, (x.aval.size,)).at[i].set(sh.broadcast_to(values, i.aval.shape), mode=mode)
    return sh.reshape(flat, x.aval.shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = False) -> Array:
    """Return `arr` with the elements of `vals`, in turn, where the mask holds: a new array.

    Raises TypeRule unless `inplace` is False, and for a mask of another size.  As numpy.place.

    >>> import numpy as np, plait
    >>> plait.numpy.place(np.arange(3), np.arange(3) > 0, 9).tolist()
    [0, 9, 9]
    """
    _not_in_place(inplace)
    x, m, v = value(arr), truth(mask), value(vals)
    if m.aval.size != x.aval.size:
        raise ArgumentError(f"place: mask {m.aval!r} for {x.aval!r}", fix="give one of its size")
    m = sh.reshape(m, (m.aval.size,))
    _kept("place", v, x)
    order = el.sub(sh.convert(m, np.int32).cumsum(), 1)
    v = sh.reshape(v, (v.aval.size,))
    new = taking.take(v, el.modulo(order, v.aval.size), mode="clip")
    flat = el.select(m, sh.convert(new, x.aval.dtype), sh.reshape(x, (x.aval.size,)))
    return sh.reshape(flat, x.aval.shape)


def _kept(name: str, new: Value, x: Value) -> None:
    """Refuse values whose imaginary parts would be dropped."""
    if new.aval.category == types.COMPLEX != x.aval.category:
        raise ArgumentError(f"{name} of {new.aval!r} in {x.aval!r}", fix="take .real first")


def _not_in_place(inplace: bool) -> None:
    if inplace:
        raise ArgumentError("arrays are never written to", fix="pass inplace=False, use the result")


# ---- nonzero elements ----------------------------------------------------------------------


def _count(name: str, mask: Value, size: int | None) -> int:
    if size is not None:
        return size_given(size)
    if isinstance(mask, Tracer):
        raise ConcretizationError(
            f"the shape of {name}({mask!r}) depends on values that are not known while it is "
            "traced",
            fix="give size: positions beyond it are left out, and missing ones are `fill_value`",
        )
    return int(np.count_nonzero(np.asarray(mask)))


def _mask(a: object) -> Any:
    """Return whether elements are not zero, as a numpy array if known, even while tracing."""
    x = known(value(a))
    if isinstance(x, Tracer) or x.aval.dtype == types.float0:
        return truth(x)
    return np.asarray(x).astype(bool)


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> tuple[Array, ...]:
    """Return the positions of nonzero elements: an array of indices for each axis.

    Args:
      a: an array with one axis at least.
      size: number of positions; needed if `a` is traced.  Further ones are left out.
      fill_value: the index (or a tuple of one for each axis) that fills up to `size`; 0 by default.

    Raises ConcretizationError if `a` is traced and `size` is not given, TypeRule for an array
    without axes.  As numpy.nonzero.

    >>> import numpy as np, plait
    >>> [i.tolist() for i in plait.numpy.nonzero(np.array([0, 5, 7]))]
    [[1, 2]]
    """
    mask = _mask(a)
    if not mask.ndim:
        raise ShapeError("nonzero of an array without axes", fix="use atleast_1d first")
    kind = types.default_dtype(types.INTEGER)
    if size is None and isinstance(mask, np.ndarray):
        return tuple([from_numpy(i.astype(kind)) for i in np.nonzero(mask)])
    count = _count("nonzero", mask, size)
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * mask.ndim
    if len(fills) != mask.ndim:
        raise ShapeError(
            f"nonzero: {len(fills)} fill values for {mask.ndim} axes", fix="give one for each"
        )
    fills = tuple([0 if f is None else f for f in fills])
    return _nonzero(value(mask), fills, size=count)


@fused
def _nonzero(mask: Value, fills: tuple, *, size: int) -> tuple:
    shape, total = mask.aval.shape, product(mask.aval.shape)
    kind = types.default_dtype(types.INTEGER)
    if total == 0 or size == 0:
        return tuple([sh.broadcast_to(sh.convert_into(f, kind), (size,)) for f in fills])
    flat = sh.reshape(mask, (total,))
    order = el.sub(sh.convert(flat, np.int32).cumsum(), 1)
    # The positions beyond `size`, and those of zeros, are dropped.
    target = el.select(flat, order, size)
    start = sh.broadcast_to(Literal(0, Aval((), kind)), (size,))
    positions = start.at[target].set(sh.iota(kind, (total,)), mode="drop")
    if total.__class__ is int:
        found = el.lt(sh.iota(np.int32, (size,)), order[-1:] + 1)
    else:
        found = el.lt(sh.iota(np.int32, (size,)), sum_(sh.convert(flat, np.int32)))
    out = []
    for i, (n, f) in enumerate(zip(shape, fills)):
        index = el.modulo(el.floor_divide(positions, product(shape[i + 1 :])), n)
        out.append(el.select(found, index, sh.convert_into(f, kind)))
    return tuple(out)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the positions of nonzero elements of the flattened array; see `nonzero`.

    As numpy.flatnonzero.

    Raises NotAnArrayError if `a` is not an array, and ConcretizationError in a traced function
    without `size`.

    >>> import numpy as np, plait
    >>> plait.numpy.flatnonzero(np.array([0, 5, 7])).tolist()
    [1, 2]
    """
    return nonzero(_mask(a).reshape(-1), size=size, fill_value=fill_value)[0]


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the positions of nonzero elements, as rows; see `nonzero`.  As numpy.argwhere.

    Raises NotAnArrayError if `a` is not an array, and ConcretizationError in a traced function
    without `size`.

    >>> import numpy as np, plait
    >>> plait.numpy.argwhere(np.array([0, 5, 7])).tolist()
    [[1], [2]]
    """
    x = value(a)
    if not x.aval.ndim:
        count = _count("argwhere", x, size)
        return from_numpy(np.zeros((count, 0), types.default_dtype(types.INTEGER)))
    found = nonzero(x, size=size, fill_value=fill_value)
    return sh.stack(found, 1)


def compress(
    condition: ArrayLike, a: ArrayLike, axis: int | None = None, *, size: int | None = None,
    fill_value: ArrayLike = 0, out: None = None,
) -> Array:  # fmt: skip
    """Return the parts along an axis for which a vector of conditions holds.

    Args:
      condition: a vector of booleans.
      a: an array; flattened if `axis` is None.
      axis: axis of the parts.
      size: number of parts; needed if the condition is traced.
      fill_value: fills up to `size`.
      out: must be None.

    Raises TypeRule for a condition that is not a vector, ConcretizationError if it is traced and
    `size` is not given.  As numpy.compress.

    >>> import numpy as np, plait
    >>> plait.numpy.compress(np.array([True, False, True]), np.array([1, 2, 3])).tolist()
    [1, 3]
    """
    unwritten(out)
    x, c = value(a), _mask(condition)
    if c.ndim != 1:
        raise ShapeError(f"compress by a condition with {c.ndim} axes", fix="give a vector")
    if axis is None:
        x, axis = sh.reshape(x, (x.aval.size,)), 0
    at = sh.normal_axis(axis, x.aval.ndim)
    n = x.aval.shape[at]
    if isinstance(c, np.ndarray) and n.__class__ is int and c[n:].any():
        raise SubscriptError(
            f"position {np.flatnonzero(c)[-1]} is out of range for axis {at} of size {n}",
            fix="give a condition that is no longer than the axis",
        )
    positions = nonzero(c, size=size, fill_value=n)[0]
    if n.__class__ is int and not n:  # Nothing can be taken: every part is filled.
        shape = (*x.aval.shape[:at], positions.aval.shape[0], *x.aval.shape[at + 1 :])
        return sh.broadcast_to(sh.convert_into(fill_value, x.aval.dtype), shape)
    return taking.take(x, positions, at, mode="fill", fill_value=fill_value)


def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """Return the elements for which a condition holds, as a vector; see `compress`.

    As numpy.extract.

    Raises NotAnArrayError if an operand is not an array, and ConcretizationError in a traced
    function without `size`.

    >>> import numpy as np, plait
    >>> plait.numpy.extract(np.array([True, False, True]), np.array([1, 2, 3])).tolist()
    [1, 3]
    """
    return compress(_mask(condition).reshape(-1), arr, size=size, fill_value=fill_value)


# ---- positions -----------------------------------------------------------------------------


def _no_negative(sizes: tuple) -> tuple:
    if any(n.__class__ is int and n < 0 for n in sizes):
        raise ShapeError(f"{sizes} is not a shape", fix="give sizes that are not negative")
    return sizes


def unravel_index(indices: ArrayLike, shape: SupportsIndex | Shape) -> tuple[Array, ...]:
    """Convert row-major positions of a shape to indices: one array for each axis.

    Negative positions count from the end; those outside are clamped.  As numpy.unravel_index.

    Raises NotAnArrayError if `indices` is not an array, OperandTypeError if it does not hold
    integers, and ShapeError if `shape` is not a shape.

    >>> import plait
    >>> [int(i) for i in plait.numpy.unravel_index(6, (3, 4))]
    [1, 2]
    """
    i, sizes = sh.integers(indices, "indices"), _no_negative(sh.normal_shape(shape))
    total = product(sizes)
    i = el.clamp(0, el.select(el.lt(i, 0), el.add(i, total), i), builtins.max(total - 1, 0))
    out = []
    for k, n in enumerate(sizes):
        step = product(sizes[k + 1 :])
        out.append(el.modulo(el.floor_divide(i, step), builtins.max(n, 1)))
    return tuple(out)


def ravel_multi_index(
    multi_index: Sequence[Any], dims: Sequence[int], mode: str = "raise", order: str = "C", *,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Convert indices, one array for each axis, to positions in the flattened array.

    Args:
      multi_index: an array of integers for each axis.
      dims: the shape.
      mode: "clip" or "wrap" for indices outside; "raise" requires known indices.
      order: "C", row-major, or "F".
      dtype: dtype of the result; by default the promoted dtype of the indices.

    Raises TypeRule for known indices outside with "raise", ConcretizationError for traced ones.  As
    numpy.ravel_multi_index.

    >>> import plait
    >>> int(plait.numpy.ravel_multi_index((1, 2), (3, 4)))
    6
    """
    sizes = _no_negative(sh.normal_shape(tuple(dims)))
    xs = [sh.integers(i, "indices") for i in multi_index]
    if len(xs) != len(sizes):
        raise ShapeError(f"{len(xs)} indices for shape {sizes}", fix="give one for each axis")
    if mode == "raise":
        for x, n in zip(xs, sizes):
            if isinstance(x, Tracer):
                raise ConcretizationError(
                    f"ravel_multi_index cannot check {x!r}, which is being traced",
                    fix='mode="clip"',
                )
            host = np.asarray(x)
            if host.size and not (host.min() >= 0 and host.max() < n):
                raise ShapeError(f"an index is outside of [0, {n})", fix='mode="clip"')
    elif mode in ("clip", "wrap"):
        f = (lambda x, n: el.clamp(0, x, n - 1)) if mode == "clip" else el.modulo
        xs = [f(x, n) for x, n in zip(xs, sizes)]
    else:
        raise ArgumentError(f"there is no mode {mode!r}", fix='use "raise", "clip" or "wrap"')
    pairs = list(zip(xs, sizes)) if order == "C" else list(zip(xs, sizes))[::-1]
    out: Any = 0
    for x, n in pairs:
        x = x if dtype is None else sh.convert(x, types.asked_dtype(dtype))
        out = el.add(el.mul(out, n), x)
    return materialise_at_ground(value(out))


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Turn vectors into indices of a grid: each along an axis of its own.

    Raises TypeRule for arrays that are not vectors.  As numpy.ix_.

    >>> import numpy as np, plait
    >>> [i.shape for i in plait.numpy.ix_(np.arange(2), np.arange(3))]
    [(2, 1), (1, 3)]
    """
    xs = [value(a) for a in args]
    out = []
    for i, x in enumerate(xs):
        if x.aval.ndim != 1:
            raise ShapeError(f"ix_ takes vectors, not {x.aval!r}", fix="use .ravel()")
        if x.aval.dtype == types.BOOL:
            (x,) = nonzero(x)
        out.append(sh.reshape(x, [x.aval.size if k == i else 1 for k in range(len(xs))]))
    return tuple(out)
