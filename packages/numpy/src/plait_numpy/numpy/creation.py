"""Creation of arrays: from lists, one value, ranges and grids.

Invariant: without a dtype, numbers get the default dtypes; a Python scalar alone stays weak, as in
arithmetic.  Arrays of Python numbers alone are made on the host, with numpy's rounding.
"""

from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex, cast, overload
from typing import Literal as Exactly

import numpy as np

from plait.errors import (
    ArgumentError,
    ConcretizationError,
    CopyError,
    NotAnArrayError,
    OperandTypeError,
    OutOfBounds,
    ShapeError,
)
from plait.ext import Aval, Literal, Tracer, Value, materialise_at_ground, types
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.shape import stack as stacked
from plait.ext.sizes import Dim, decide_ge, is_symbolic, max_dim
from plait.ext.surface import beside, size_given, value
from plait.ext.trace import Handle
from plait.ext.values import canonical, from_numpy, integer_bounds, unmasked
from plait.typing import Array as AnyArray
from plait.typing import ArrayLike, DTypeLike, Shape

from .interchange import computed, from_dlpack, known, placeable

__all__ = [
    "arange", "array", "asarray", "astype", "copy", "empty", "empty_like", "fromfunction", "full",
    "full_like", "geomspace", "indices", "linspace", "logspace", "meshgrid", "mgrid", "ogrid",
    "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip

# ---- from data -------------------------------------------------------------------------------


@placeable
def array(
    object: object, dtype: DTypeLike | None = None, copy: bool = True, order: str | None = "K",
    ndmin: int = 0,
) -> AnyArray:  # fmt: skip
    """Make an array from a number, nested lists of numbers and arrays, memory (a bytearray, a
    memoryview), or an object that converts to an array.

    Args:
      object: numbers, arrays, or lists of them.  Python numbers take the default dtypes; a number
        alone is weak: the other operand's dtype wins in arithmetic.
      dtype: dtype of the result.
      copy: whether the result owns its memory even if `object` is already such an array.
      order: accepted for compatibility; arrays have one order.
      ndmin: the least number of axes; new ones come first.

    Raises TypeRule for objects that are not arrays and for rows of different lengths; OutOfBounds
    (an OverflowError) for Python numbers that do not fit in the dtype.  As numpy.array.

    >>> import plait
    >>> plait.numpy.array([[1, 2], [3, 4]], dtype="float32").shape
    (2, 2)
    """
    listed = isinstance(object, list | tuple | range)
    out = _of_list(object, dtype) if listed else _of_one(object, dtype)
    if copy:
        out = el.owned(out, object)
    if out.aval.ndim < ndmin:
        out = sh.reshape(out, (1,) * (ndmin - out.aval.ndim) + out.aval.shape)
    return out


def _of_one(x: Any, dtype: object) -> Any:
    if dtype is not None and x.__class__ in (float, complex):
        x = _fitting(x, types.asked_dtype(dtype))
    if isinstance(x, Handle):
        raise x.refused("what an array is made of")
    v = _typed(x, dtype)
    if dtype is None and isinstance(x, np.generic):
        v = _strong(v)
    return materialise_at_ground(v)


def _strong(x: Any) -> Any:
    """Return a value that keeps its dtype beside others, as an array does and a number does not."""
    return sh.convert(x, x.aval.dtype) if x.aval.weak_type else x


def _typed(x: object, dtype: object) -> Any:
    """Convert a value to a dtype; keep its own if `dtype` is None."""
    if dtype is not None and x.__class__ is int:
        return sh.convert(x, types.asked_dtype(dtype))
    if dtype is not None and isinstance(x, np.ndarray) and _is_cut(x.dtype):
        kind = types.asked_dtype(dtype)
        if kind.kind not in "iu":  # what is narrowed first has lost its high bits, or its digits
            with np.errstate(all="ignore"):
                return value(unmasked(x).astype(kind))
    try:
        v = value(x)
    except NotAnArrayError:
        if dtype is not None and isinstance(x, bytes) and types.asked_dtype(dtype) == types.float0:
            return value(np.asarray(x, types.float0))  # bytes are how numpy writes such an element
        v = _of_memory(x)
        if v is None:
            raise
    return v if dtype is None else sh.convert(v, types.asked_dtype(dtype))


def _is_cut(dtype: np.dtype) -> bool:
    """Return whether the setting `x64` narrows arrays of a dtype."""
    return dtype.kind in "iufc" and canonical(dtype) != dtype


def _of_memory(x: Any) -> Any:
    """Copy memory that another object exposes as numbers; None if it exposes none."""
    if isinstance(x, bytes | str):
        return None
    try:
        host = np.asarray(memoryview(x))
    except (TypeError, ValueError, NotImplementedError):
        return None
    return from_numpy(host) if host.dtype.kind in "biufc" else None


def _of_list(xs: Sequence[Any], dtype: Any) -> Any:
    leaves: list[Any] = []
    _collect(xs, leaves)
    kind = None if dtype is None else types.asked_dtype(dtype)
    if any(_converts(v) for v in leaves):
        if kind is None:
            return _strong(_stacked(xs))
        return sh.convert(_stacked(_fitting(xs, kind)), kind)
    for v in leaves:
        unmasked(v)
        if v is None:
            raise NotAnArrayError(
                "a list of numbers holds None", fix="write float('nan') for a number that is absent"
            )
    if kind is None:
        host = _on_host(xs, None)
        kind = _dtype_of_numbers({v.__class__ for v in leaves}, leaves, host)
        if host.dtype.kind in "iuO" and kind.kind in "iu":
            return from_numpy(_narrowed(host, kind))
        return from_numpy(host.astype(canonical(kind)))
    # narrow integer dtypes of our own, not numpy's
    if kind.kind == "V" and types.category(kind) == types.INTEGER:
        return from_numpy(_narrowed(_on_host(xs, np.dtype(np.int64)), kind))
    return from_numpy(_on_host(xs, kind))


def _narrowed(host: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Narrow integers to a dtype, if they fit."""
    low, high = integer_bounds(dtype)
    if host.size and not (low <= host.min() and host.max() <= high):
        raise OutOfBounds(
            f"the integers do not fit in {dtype.name}",
            fix='give a wider dtype, for instance dtype="int64", or set default_int',
        )
    return host.astype(dtype)


def _on_host(xs: Any, dtype: np.dtype | None) -> np.ndarray:
    """Convert Python numbers by numpy, which refuses those that do not fit in the dtype."""
    try:
        return np.array(xs, dtype)
    except OverflowError as error:
        raise _unheld(str(error), dtype) from None
    except ValueError as error:
        if "inhomogeneous" in str(error) or "sequence" in str(error):
            raise _no_array(xs) from None
        if "NaN" in str(error):
            raise _unheld(str(error), dtype) from None
        raise
    except TypeError as error:
        if dtype is None or dtype.kind == "c":
            raise
        raise OperandTypeError(
            f"{dtype.name} does not hold all of the numbers: {error}",
            fix="take the real part of complex numbers, or give another dtype",
        ) from None


def _unheld(why: str, dtype: Any) -> OutOfBounds:
    return OutOfBounds(
        f"a number does not fit in {'any dtype' if dtype is None else dtype.name}: {why}",
        fix="give a wider dtype, or set default_int; plait.numpy.asarray(x).astype(dtype) of an "
        "array cuts off what does not fit",
    )


def _fitting(xs: Any, dtype: np.dtype) -> Any:
    """Return nested lists with their Python numbers in a dtype that holds them."""
    if isinstance(xs, list | tuple):
        return [_fitting(x, dtype) for x in xs]
    if xs.__class__ not in (int, float, complex):
        return unmasked(xs)
    if dtype.kind not in "biufc":  # numpy cannot convert these dtypes
        return sh.convert(xs, dtype)
    return Literal(_on_host(xs, dtype).item(), Aval((), dtype))


def _no_array(xs: Any) -> ShapeError:
    """Return the error for nested lists that numpy refuses."""
    depth = 0
    while isinstance(xs, list | tuple) and xs:
        xs, depth = xs[0], depth + 1
    if depth > _MOST_AXES:
        return ShapeError(
            f"the lists are nested {depth} deep, and arrays have {_MOST_AXES} axes at most",
            fix="leave out axes of size 1",
        )
    return ShapeError(
        "the lists have different lengths",
        fix="make all rows equally long, pad them, or keep them ragged: plait.Pile.from_list(rows)",
    )


_MOST_AXES = 64


def _collect(xs: Sequence[Any], leaves: list[Any]) -> None:
    for x in xs:
        if isinstance(x, list | tuple | range):
            _collect(x, leaves)
        else:
            leaves.append(x)


def _converts(x: ArrayLike) -> bool:
    return isinstance(x, Value) or hasattr(x, "__jax_array__") or hasattr(x, "__plait_array__")


def _stacked(xs: object) -> Any:
    if not isinstance(xs, list | tuple):
        return value(xs)
    return stacked([_stacked(x) for x in xs])


def _dtype_of_numbers(classes: set, leaves: list[Any], host: np.ndarray) -> np.dtype:
    """Return the default dtype for Python numbers alone; numpy's scalars and arrays fix theirs."""
    if not leaves:
        return types.default_dtype(types.FLOATING)
    typed = [types.WEAK[c] for c in classes if c in types.WEAK]
    typed += {
        Aval((), v.dtype) for v in leaves if v.__class__ not in types.WEAK and hasattr(v, "dtype")
    }
    if not typed or any(c not in types.WEAK and not hasattr(c, "dtype") for c in classes):
        return host.dtype
    return types.promote(typed)[0]


@placeable
def asarray(
    a: Any, dtype: DTypeLike | None = None, order: str | None = None, *, copy: bool | None = None
) -> AnyArray:
    """Convert `a` to an array; an array of that dtype is returned as it is.  See `array`.

    copy: True: the result owns its memory; False: it shares that of `a`.  Raises CopyError if it
    cannot share it.  As numpy.asarray.

    >>> import plait
    >>> plait.numpy.asarray([1, 2]).dtype.name
    'int32'
    """
    if copy is False:
        return _uncopied(a, dtype)
    return array(a, dtype, bool(copy))


def _uncopied(a: Any, dtype: Any) -> Any:
    if isinstance(a, np.ndarray):
        a = from_dlpack(a, copy=False)
    kept = isinstance(a, Value) and not isinstance(a, Literal)
    if kept and (dtype is None or types.asked_dtype(dtype) == a.aval.dtype):
        return a
    raise CopyError("asarray was to make no copy, and has to", fix="leave out copy=False")


def copy(a: ArrayLike, order: str | None = None) -> AnyArray:
    """Copy an array into memory of its own.

    a: any shape and dtype.  As numpy.copy.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.copy(np.arange(3)).tolist()
    [0, 1, 2]
    """
    x = materialise_at_ground(value(a))
    return el.copied(x)


@placeable
def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False) -> AnyArray:
    """Convert an array to another dtype: floats are cut towards zero, any nonzero value is True.

    dtype: None is the default float.
    copy: whether the result owns its memory even if `x` has that dtype.  As numpy.astype.

    Raises NotAnArrayError if `x` is not an array, and OperandTypeError if `dtype` is not a dtype.

    >>> import numpy as np, plait
    >>> plait.numpy.astype(np.array([1.7, -1.7]), int).tolist()
    [1, -1]
    """
    out = _of_one(x, types.asked_dtype(dtype))
    return el.owned(out, x) if copy else out


def fromfunction(
    function: Callable, shape: SupportsIndex | Shape, *, dtype: DTypeLike = float, **kwargs: object
) -> AnyArray:
    """Call `function` on the indices of every position: one array for each axis.

    Args:
      function: takes an array for each axis; it is called once.
      shape: shape of these arrays.
      dtype: dtype of these arrays.

    As numpy.fromfunction.

    Raises TypeRule if `function` is not callable, and ShapeError if a size is not a non-negative
    integer.

    >>> import plait
    >>> plait.numpy.fromfunction(lambda i, j: 10 * i + j, (2, 2), dtype=int).tolist()
    [[0, 1], [10, 11]]
    """
    return function(*indices(sh.normal_shape(shape), types.asked_dtype(dtype)), **kwargs)


# ---- from one value --------------------------------------------------------------------------


@placeable
def zeros(shape: SupportsIndex | Shape, dtype: DTypeLike | None = None) -> AnyArray:
    """Return zeros.

    Args:
      shape: ints or symbolic sizes.
      dtype: the default float if not given.

    As numpy.zeros.

    Raises ShapeError if a size is not a non-negative integer, and OperandTypeError if `dtype` is
    not a dtype.

    >>> import plait
    >>> plait.numpy.zeros((2, 3)).shape
    (2, 3)
    """
    return sh.fill(0, Aval(sh.normal_shape(shape), types.asked_dtype(dtype)))


@placeable
def ones(shape: SupportsIndex | Shape, dtype: DTypeLike | None = None) -> AnyArray:
    """Return ones, in the default float if no dtype is given.  As numpy.ones.

    Raises ShapeError if a size is not a non-negative integer, and OperandTypeError if `dtype` is
    not a dtype.

    >>> import plait
    >>> plait.numpy.ones(2).dtype.name
    'float32'
    """
    return sh.fill(1, Aval(sh.normal_shape(shape), types.asked_dtype(dtype)))


@placeable
def empty(shape: SupportsIndex | Shape, dtype: DTypeLike | None = None) -> AnyArray:
    """Return zeros: arrays always have defined contents.  As numpy.empty.

    Raises ShapeError if a size is not a non-negative integer, and OperandTypeError if `dtype` is
    not a dtype.

    >>> import plait
    >>> plait.numpy.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype)


@placeable
def full(
    shape: SupportsIndex | Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None
) -> AnyArray:
    """Return an array filled with `fill_value`.

    Args:
      shape: ints or symbolic sizes.
      fill_value: a number, or an array that broadcasts to the shape.
      dtype: that of the value if not given.

    As numpy.full.

    Raises ShapeError if a size is not a non-negative integer or `fill_value` does not broadcast,
    NotAnArrayError if `fill_value` is not an array, and OperandTypeError if `dtype` is not a dtype.

    >>> import plait
    >>> plait.numpy.full((2,), 7).tolist()
    [7, 7]
    """
    return _filled(sh.normal_shape(shape), fill_value, dtype)


def _filled(shape: tuple, x: object, dtype: object) -> Any:
    return materialise_at_ground(sh.broadcast_to(_typed(x, dtype), shape))


def _like(a: Any, dtype: Any, shape: Any) -> Aval:
    is_batch = hasattr(type(a), "__plait_function__")  # `value` leaves it to its class
    aval = a if hasattr(a, "shape") and hasattr(a, "dtype") and not is_batch else value(a)
    weak = dtype is None and bool(getattr(aval, "weak_type", False))  # as in operations with `a`
    dtype = canonical(aval.dtype) if dtype is None else types.asked_dtype(dtype)
    return Aval(tuple(aval.shape) if shape is None else sh.normal_shape(shape), dtype, weak)


@placeable
def zeros_like(
    a: ArrayLike, dtype: DTypeLike | None = None, shape: SupportsIndex | Shape | None = None
) -> AnyArray:
    """Return zeros of the shape and dtype of `a` (any object that has both), unless others are
    given.  An array of the same shape is placed on the devices of `a`.

    As numpy.zeros_like.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.zeros_like(np.arange(2)).tolist()
    [0, 0]
    """
    return beside(materialise_at_ground(sh.fill(0, _like(a, dtype, shape))), a)


@placeable
def ones_like(
    a: ArrayLike, dtype: DTypeLike | None = None, shape: SupportsIndex | Shape | None = None
) -> AnyArray:
    """Return ones of the shape and dtype of `a`, unless others are given.  As numpy.ones_like.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.ones_like(np.arange(2)).tolist()
    [1, 1]
    """
    return beside(materialise_at_ground(sh.fill(1, _like(a, dtype, shape))), a)


@placeable
def empty_like(
    prototype: ArrayLike, dtype: DTypeLike | None = None, shape: SupportsIndex | Shape | None = None
) -> AnyArray:
    """Return zeros of the shape and dtype of `prototype`.  As numpy.empty_like.

    Raises NotAnArrayError if `prototype` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.empty_like(np.ones((2, 3))).shape
    (2, 3)
    """
    return zeros_like(prototype, dtype, shape)


@placeable
def full_like(
    a: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike | None = None,
    shape: SupportsIndex | Shape | None = None,
) -> AnyArray:  # fmt: skip
    """Return `fill_value` everywhere, in the shape and dtype of `a`, unless others are given.

    As numpy.full_like.

    Raises NotAnArrayError if an operand is not an array, and ShapeError if shapes do not fit.

    >>> import numpy as np, plait
    >>> plait.numpy.full_like(np.ones(2), 7).tolist()
    [7.0, 7.0]
    """
    aval = _like(a, dtype, shape)
    v = _typed(fill_value, aval.dtype) if dtype else sh.convert_into(fill_value, aval.dtype)
    v = sh.convert(v, aval.dtype, True) if aval.weak_type else v
    return beside(materialise_at_ground(sh.broadcast_to(v, aval.shape)), a)


# ---- ranges --------------------------------------------------------------------------------


def _known(name: str, *xs: Any) -> list[Any]:
    """Return numbers as Python numbers, leaving None; refuse traced ones."""
    out: list[Any] = []
    for x in xs:
        x = known(x)
        if isinstance(x, Tracer):
            raise ConcretizationError(
                f"the size of {name}(...) depends on {x!r}, which has no value while it is traced",
                fix="make that argument static (jit's static_argnums), or take a fixed size",
            )
        out.append(np.asarray(x).item() if isinstance(x, Value | np.ndarray | np.generic) else x)
    return out


@placeable
def arange(
    start: ArrayLike, stop: ArrayLike | None = None, step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> AnyArray:  # fmt: skip
    """Return numbers from `start` (0 if only one is given) up to `stop`, which is excluded.

    Args:
      start, stop: numbers; `stop` may be a symbolic size.
      step: the distance; 1 if not given.
      dtype: by default that of the numbers.

    Raises ConcretizationError for traced numbers.  As numpy.arange.

    >>> import plait
    >>> plait.numpy.arange(2, 10, 3).tolist()
    [2, 5, 8]
    """
    given: tuple[Any, Any] = (0, start) if stop is None else (start, stop)
    first, last = given
    if last.__class__ is Dim or first.__class__ is Dim:
        return _symbolic_range(first, last, step, dtype)
    if dtype is None:
        kind = types.promote([value(v).aval for v in (first, last, step) if v is not None])[0]
    else:
        kind = types.asked_dtype(dtype)
    first, last, step = _known("arange", first, last, step)
    try:
        host = np.arange(first, last, step)  # type: ignore[call-overload]
    except ZeroDivisionError:
        raise ShapeError("arange with a step of zero has no end", fix="give another step") from None
    if kind == types.BOOL and len(host) > 2:
        raise OperandTypeError(
            f"arange counts to {len(host)}, and booleans to 2", fix="leave dtype out"
        )
    if kind.kind == "i" and first == 0 and step in (None, 1) and isinstance(last, int):
        return sh.iota(kind, (len(host),))
    return computed(host.astype(kind))


def _whole(x: Dim | int) -> Any:
    """Return a float that is an integer as an integer, and anything else unchanged."""
    return int(x) if isinstance(x, float | np.floating) and x.is_integer() else x


def _symbolic_range(first: int, last: Dim, step: Any, dtype: Any) -> Any:
    if dtype is None and any(isinstance(v, float) for v in (first, last, step)):
        dtype = types.default_dtype(types.FLOATING)
    first, last, step = map(_whole, (first, last, 1 if step is None else step))
    if any(v.__class__ not in (int, Dim) for v in (first, last)):
        raise ShapeError(
            f"arange needs whole numbers beside symbolic sizes, got {first!r} and {last!r}",
            fix="give a whole number, and add the fraction to the result",
        )
    if step.__class__ is not int or not step:
        raise ShapeError(
            f"arange to a symbolic size cannot take steps of {step!r}",
            fix="give an integer that is not zero, or multiply the result",
        )
    kind = types.asked_dtype(dtype, types.INTEGER)
    way = last - first if step > 0 else first - last
    out = sh.iota(kind, (max_dim((way + abs(step) - 1) // abs(step), 0),))
    out = out if step == 1 else el.mul(out, step)
    return out if first.__class__ is int and first == 0 else el.add(out, sh.size_value(first, kind))


@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = ..., endpoint: bool = ...,
    retstep: Exactly[False] = ..., dtype: DTypeLike | None = ..., axis: int = ..., *,
    device: object = ..., out_sharding: object = ...,
) -> AnyArray: ...  # fmt: skip
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = ..., endpoint: bool = ..., retstep: bool = ...,
    dtype: DTypeLike | None = ..., axis: int = ..., *,
    device: object = ..., out_sharding: object = ...,
) -> AnyArray | tuple[AnyArray, AnyArray]: ...  # fmt: skip
@placeable
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: DTypeLike | None = None, axis: int = 0,
) -> AnyArray | tuple[AnyArray, AnyArray]:  # fmt: skip
    """Return `num` evenly spaced numbers from `start` to `stop`.

    Args:
      start, stop: numbers or arrays, which broadcast.
      num: their number.
      endpoint: whether `stop` is the last of them.
      retstep: whether to return (numbers, distance).
      dtype: dtype of the result; integers are rounded down.
      axis: position of the new axis, for arrays.

    Raises TypeRule for a negative `num`.  As numpy.linspace.

    Raises DimMismatch if shapes do not broadcast, and AxisError for an axis that the result lacks.

    >>> import plait
    >>> plait.numpy.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    num = size_given(num)
    if decide_ge(num, 0) is False:
        raise OperandTypeError(
            f"linspace of {num} numbers", fix="give a number that is not negative"
        )
    a, b = el.floating((start, stop))
    kind = a.aval.dtype if dtype is None else types.asked_dtype(dtype)
    divisor = max_dim(num - 1 if endpoint else num, 1)
    known = num.__class__ is int and not a.aval.ndim
    if known and a.__class__ is b.__class__ is Literal:
        host, gap = np.linspace(a.value, b.value, num, endpoint, retstep=True)  # type: ignore[attr-defined]
        host = np.floor(host) if kind.kind in "iu" else host
        out = computed(host.astype(kind))
    else:
        gap = el.div(el.sub(b, a), divisor)
        out = _between(a, b, num, divisor, endpoint)
        out = el.floor(out) if kind.kind in "iu" else out
        out = sh.moveaxis(sh.convert(out, kind), 0, sh.normal_axis(axis, out.aval.ndim))
    return (out, array(gap, a.aval.dtype)) if retstep else out


def _between(a: Value, b: Value, num: Dim | int, divisor: Dim | int, endpoint: bool) -> Any:
    """Return them along a new first axis; the last one is exactly `b`."""
    part = a.aval.dtype if a.aval.dtype.kind != "c" else np.zeros(0, a.aval.dtype).real.dtype
    position = sh.reshape(sh.iota(part, (num,)), (num,) + (1,) * a.aval.ndim)
    divisor = sh.size_value(divisor, part) if divisor.__class__ is Dim else divisor
    t = el.div(position, divisor)
    out = el.add(el.mul(a, el.sub(1, t)), el.mul(b, t))
    reached = endpoint and not decide_ge(1, num)
    return el.select(el.eq(position, divisor), b, out) if reached else out


def logspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, base: Any = 10.0,
    dtype: DTypeLike | None = None, axis: int = 0,
) -> AnyArray:  # fmt: skip
    """Return `base` to the power of evenly spaced exponents; see `linspace`.  As numpy.logspace.

    Raises NotAnArrayError if an operand is not an array, DimMismatch if shapes do not broadcast,
    and AxisError if `start` has no such axis.

    >>> import plait
    >>> plait.numpy.logspace(0, 3, 4, base=2.0).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    if all(v.__class__ in (int, float) for v in (start, stop, base)) and num.__class__ is not Dim:
        host = np.logspace(start, stop, num.__index__(), endpoint, base)  # type: ignore[call-overload]
        return computed(host.astype(types.asked_dtype(dtype)))
    out = el.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return out if dtype is None else sh.convert(out, types.asked_dtype(dtype))


def geomspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
    dtype: DTypeLike | None = None, axis: int = 0,
) -> AnyArray:  # fmt: skip
    """Return numbers from `start` to `stop`, with equal ratios between neighbours.

    Arguments are those of `linspace`.  Real ends must have one sign; complex ones are joined by a
    spiral.  Raises TypeRule for known ends that are zero.  As numpy.geomspace.

    Raises DimMismatch if shapes do not broadcast, and AxisError for an axis that `start` lacks.

    >>> import plait
    >>> plait.numpy.geomspace(1, 8, 4).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    if all(v.__class__ in (int, float) for v in (start, stop)) and num.__class__ is not Dim:
        host = np.geomspace(start, stop, num.__index__(), endpoint)  # type: ignore[call-overload]
        return computed(host.astype(types.asked_dtype(dtype)))
    a, b = cast(tuple[Any, Any], el.floating((start, stop)))
    known = [v.value if v.__class__ is Literal and is_symbolic(v.aval.shape) else v for v in (a, b)]
    if any(not isinstance(v, Tracer) and not np.asarray(v).all() for v in known):
        raise ArgumentError("geomspace from or to zero", fix="give ends that are not zero")
    sign = el.sign(a)  # for complex numbers a direction; the other end is relative to it
    logs = linspace(el.log(el.div(a, sign)), el.log(el.div(b, sign)), num, endpoint)
    out = el.mul(sign, el.exp(logs))
    position = sh.reshape(sh.iota(np.int32, (num,)), (num,) + (1,) * a.aval.ndim)
    out = el.select(el.eq(position, 0), a, out)
    reached = endpoint and not decide_ge(1, num)
    out = el.select(el.eq(position, max_dim(num - 1, 1)), b, out) if reached else out
    out = sh.moveaxis(out, 0, sh.normal_axis(axis, out.aval.ndim))
    return out if dtype is None else sh.convert(out, types.asked_dtype(dtype))


# ---- grids ---------------------------------------------------------------------------------


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[AnyArray]:
    """Return the coordinates of a grid: one array for each vector.

    Args:
      xi: vectors (or numbers).
      copy: accepted for compatibility.
      sparse: whether the arrays keep size 1 along the other axes.
      indexing: "xy", the first two axes swapped, or "ij".

    Raises TypeRule for arrays with several axes, and for another `indexing`.  As numpy.meshgrid.

    >>> import numpy as np, plait
    >>> [x.shape for x in plait.numpy.meshgrid(np.arange(2), np.arange(3))]
    [(3, 2), (3, 2)]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"indexing {indexing!r} is unknown", fix='use "xy" or "ij"')
    xs = [value(x) for x in xi]
    for x in xs:
        if x.aval.ndim > 1:
            raise ShapeError(f"meshgrid takes vectors, not {x.aval!r}", fix="use .ravel()")
    n = len(xs)
    order = list(range(n))
    if indexing == "xy" and n > 1:
        order[:2] = 1, 0
    sizes = [x.aval.shape[0] if x.aval.ndim else 1 for x in xs]
    full_shape = tuple([sizes[i] for i in order])
    out = []
    for i, x in enumerate(xs):
        own = [1] * n
        own[order[i]] = sizes[i]
        x = sh.reshape(x, tuple(own))
        out.append(materialise_at_ground(x if sparse else sh.broadcast_to(x, full_shape)))
    return out


@overload
def indices(
    dimensions: Sequence[Any], dtype: DTypeLike | None = ..., sparse: Exactly[False] = ...,
) -> AnyArray: ...  # fmt: skip
@overload
def indices(
    dimensions: Sequence[Any], dtype: DTypeLike | None = ..., sparse: bool = ...,
) -> AnyArray | tuple[AnyArray, ...]: ...  # fmt: skip
def indices(
    dimensions: Sequence[Any], dtype: DTypeLike | None = None, sparse: bool = False
) -> AnyArray | tuple[AnyArray, ...]:
    """Return, for each axis of a shape, the position of every element along it.

    Args:
      dimensions: a shape.
      dtype: the default integer if not given.
      sparse: whether to return a tuple of arrays with size 1 along the other axes.

    Raises TypeRule for a boolean dtype, and for dimensions that are one number.  As numpy.indices.

    >>> import plait
    >>> plait.numpy.indices((2, 3)).shape
    (2, 2, 3)
    """
    if hasattr(dimensions, "__index__") and not getattr(dimensions, "ndim", 0):
        raise ArgumentError(f"indices of {dimensions!r}", fix=f"write indices(({dimensions},))")
    shape = sh.normal_shape(dimensions)
    kind = types.asked_dtype(dtype, types.INTEGER)
    if kind == types.BOOL:
        raise OperandTypeError("indices are numbers, not booleans", fix="convert the result")
    if not sparse:
        parts = [sh.expand_dims(sh.iota(kind, shape, i), 0) for i in range(len(shape))]
        if not parts:
            return zeros((0,), kind)
        return stacked([sh.reshape(p, shape) for p in parts])
    own = lambda i: [d if k == i else 1 for k, d in enumerate(shape)]  # noqa: E731
    return tuple([sh.iota(kind, own(i), i) for i in range(len(shape))])


class _Grid:
    """Grids by slices: `mgrid[0:3, 0:1:5j]`."""

    def __init__(self, sparse: bool):
        self._sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if key == ():
            return zeros((0,), int) if not self._sparse else []
        one = not isinstance(key, tuple)
        parts = [_slice_range(s) for s in ((key,) if one else key)]
        dtype = types.promote([p.aval for p in parts])[0]
        parts = [sh.convert(p, dtype) for p in parts]
        if one:
            return parts[0]
        grid = meshgrid(*parts, sparse=self._sparse, indexing="ij")
        return grid if self._sparse else stacked(grid)


def _slice_range(s: slice) -> Any:
    start = 0 if s.start is None else s.start
    if isinstance(s.step, complex):
        return linspace(start, s.stop, int(abs(s.step)))
    return arange(start, s.stop, s.step)


mgrid = _Grid(sparse=False)
"""`mgrid[0:2, 0:3]`: the coordinates of a grid, as numpy.mgrid."""
ogrid = _Grid(sparse=True)
"""`ogrid[0:2, 0:3]`: the same with size 1 along the other axes, as numpy.ogrid."""
