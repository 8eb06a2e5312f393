"""The operators, indexing and methods of values.

Invariant: this is the only module that installs operations on values (`Value.receive`).  Operators
skip promotion for a Python scalar that is not wider than the array.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, SupportsIndex

import numpy as np

from plait.typing import Array, ArrayLike, Axis, DTypeLike, Shape

from .._base.errors import ArgumentError, AxisError, MissingPlugin, OperandTypeError, ShapeError
from .._base.lazy import later
from .._base.tracebacks import border, leaving
from .._core.array import Array as ConcreteArray
from .._core.array import Literal
from .._core.buffers import first
from .._core.dispatch import dispatched
from .._core.interpreter import Value, admitted_sizes, current
from .._core.primitive import Primitive
from .._plugins.metadata import resolve
from .._types.avals import (
    BOOLEAN,
    COMPLEX,
    FLOATING,
    INT32,
    INTEGER,
    NOTHING,
    OPAQUE,
    asked_dtype,
    category,
    default_dtype,
)
from .._types.dims import Dim
from . import argreduction, composed, contraction, conversion, reduction, shape, sizes, subscript
from . import elementwise as el
from .layout import free, placed

_NONE: dict[str, Any] = {}
_PROTOCOLS = "__plait_array__", "__jax_array__"
_OTHERS = (Value, np.ndarray, np.generic, int, float, complex)
_CONTAINERS = {list, tuple, set, dict}


def _operand(x: object) -> bool:
    """Return True if an operator takes `x`; otherwise Python asks the class of `x`.

    A class with only `__array__` may have labels, units or gradients, which a conversion would
    drop.  So may a class of numpy's arrays with universal functions of its own.  Containers raise
    TypeError: their classes would repeat them, or compare them as objects.
    """
    if isinstance(x, _OTHERS):
        if x.__class__ is np.ndarray or not isinstance(x, np.ndarray):
            return True
        return type(x).__array_ufunc__ is np.ndarray.__array_ufunc__
    if x.__class__ in _CONTAINERS:
        raise OperandTypeError(
            f"operators take arrays and numbers, not {type(x).__name__}",
            fix="make an array of it with plait.numpy.asarray",
        )
    return any(hasattr(x, name) for name in _PROTOCOLS)


def _refused(x: Any) -> Any:
    """Return NotImplemented, so that Python asks the class of `x`, unless it is one of Python's
    that would refuse or repeat the array with words about neither."""
    if x is None:
        raise OperandTypeError(
            "operators take arrays and numbers, not None",
            fix="a function without `return` returns None: return its result",
        )
    if x.__class__ is str or x.__class__ is bytes:
        raise OperandTypeError(
            f"operators take arrays and numbers, not {x!r}",
            fix="convert the text first: float(text)",
        )
    return NotImplemented


def _unequal(x: Any) -> Any:
    """Return NotImplemented: by identity, an array equals no value of another kind."""
    return NotImplemented


# Each operator trims its own traceback: the `try` costs nothing while nothing is raised, and a
# decorator would cost a call.


def _fast(prim: Primitive, general: Callable, kinds: tuple[int, ...] | None = None) -> Callable:
    """Return a binary operator: `prim` where no promotion is needed, else `general`.

    A Python scalar that is not wider than the array takes the array's type.  If `kinds` is given,
    this holds for arrays of these categories only.  `general` takes the others (`/` converts
    integers first, and `<` compares complex numbers by parts).
    """
    refused = _unequal if prim is el.eq or prim is el.ne else _refused

    def op(self: Any, other: ArrayLike) -> Array:
        try:
            a = self.aval
            if kinds is None or a.category in kinds:
                k = other.__class__
                if k is float or k is int:
                    c = a.category
                    if (
                        FLOATING <= c <= COMPLEX
                        or (
                            c == INTEGER
                            and k is int
                            and (0 <= other < 8 or (a.dtype is INT32 and -(2**31) <= other < 2**31))  # pyright: ignore[reportOperatorIssue]
                        )
                        # The primitive refuses these, with its name in the error.
                        or (c == OPAQUE and prim is not el.eq and prim is not el.ne)
                    ):
                        if not a.weak_type or c == FLOATING:
                            return current().apply(prim, (self, Literal(other, a)), _NONE)
                elif isinstance(other, Value) and other.aval is a:
                    return current().apply(prim, (self, other), _NONE)
            if other.__class__ is ConcreteArray or _operand(other):
                return general(self, other)
            return refused(other)
        except BaseException as e:
            leaving(e)
            raise

    return op


def _reflected(general: Callable) -> Callable:
    """Return `general` as the operator of its right operand."""

    def op(self: Any, other: ArrayLike) -> Array:
        try:
            if other.__class__ is ConcreteArray or _operand(other):
                return general(other, self)
            return _refused(other)
        except BaseException as e:
            leaving(e)
            raise

    return op


def _plain(general: Callable) -> Callable:
    """Return `general` as the operator of its left operand."""

    def op(self: Any, other: ArrayLike) -> Array:
        try:
            if other.__class__ is ConcreteArray or _operand(other):
                return general(self, other)
            return _refused(other)
        except BaseException as e:
            leaving(e)
            raise

    return op


def _divmod(self: Any, other: ArrayLike) -> tuple[Array, Array]:
    try:
        return _both(self, other) if _operand(other) else _refused(other)
    except BaseException as e:
        leaving(e)
        raise


def _rdivmod(self: Any, other: ArrayLike) -> tuple[Array, Array]:
    try:
        return _both(other, self) if _operand(other) else _refused(other)
    except BaseException as e:
        leaving(e)
        raise


def _both(x: Any, y: ArrayLike) -> tuple[Array, Array]:
    """Return the rounded quotients and the remainders."""
    return composed.floor_divide(x, y), composed.modulo(x, y)


def _one(general: Callable) -> Callable:
    def op(self: Any) -> Array:
        try:
            return general(self)
        except BaseException as e:
            leaving(e)
            raise

    return op


def _getitem(self: Any, index: object) -> Array:
    try:
        return subscript.getitem(self, index)
    except BaseException as e:
        leaving(e)
        raise


def _shift_right(x: Value, y: int) -> Any:
    unsigned = x.aval.dtype.kind == "u" if isinstance(x, Value) else False
    return (el.shift_right_logical if unsigned else el.shift_right_arithmetic)(x, y)


def _arithmetic() -> dict[str, Any]:
    """Return the operators, reflected ones included."""
    members: dict[str, Any] = {}
    fast = {"add": el.add, "sub": el.sub, "mul": el.mul}
    for name, prim in fast.items():
        members[f"__{name}__"] = _fast(prim, prim)
        members[f"__r{name}__"] = _reflected(prim)
    members["__truediv__"] = _fast(el.div, composed.true_divide, (FLOATING, COMPLEX))
    members["__rtruediv__"] = _reflected(composed.true_divide)
    general = {
        "floordiv": composed.floor_divide,
        "mod": composed.modulo,
        "pow": composed.power,
        "and": el.and_,
        "or": el.or_,
        "xor": el.xor,
        "lshift": el.shift_left,
        "rshift": _shift_right,
        "matmul": contraction.matmul,
    }
    for name, f in general.items():
        members[f"__{name}__"] = _plain(f)
        members[f"__r{name}__"] = _reflected(f)
    members["__divmod__"], members["__rdivmod__"] = _divmod, _rdivmod
    for prim in (el.eq, el.ne):
        members[f"__{prim.name.rpartition('.')[2]}__"] = _fast(prim, prim)
    orderings = {
        el.lt: composed.less,
        el.le: composed.less_equal,
        el.gt: composed.greater,
        el.ge: composed.greater_equal,
    }
    real = (BOOLEAN, INTEGER, FLOATING, NOTHING, OPAQUE)
    for prim, ordering in orderings.items():
        members[f"__{prim.name.rpartition('.')[2]}__"] = _fast(prim, ordering, real)
    return members | {
        "__neg__": _one(el.neg),
        "__pos__": _itself,
        "__abs__": _one(el.abs_),
        "__invert__": _one(el.not_),
        "__round__": _round,
    }


def _round(x: Value, ndigits: int | None = None) -> Array:
    """Round as Python does: without `ndigits`, floats become integers."""
    if ndigits is not None or x.aval.category == COMPLEX:
        return _numpy().round(x, ndigits or 0)
    if x.aval.category != FLOATING:
        return x
    return shape.convert(el.round_even(x), default_dtype(INTEGER))


def _itself(self: Any) -> Array:
    return self


def _contains(self: Any, item: ArrayLike) -> bool:
    return bool(reduction.any_(el.eq(self, item)))


def _iterate(self: Any) -> Iterator[Array]:
    if not self.aval.ndim:
        raise ShapeError(
            "an array without axes cannot be iterated over",
            fix="write plait.numpy.atleast_1d(x), or map over the array that has its axis",
        )
    return (subscript.getitem(self, i) for i in range(len(self)))


def _iter(self: Any) -> Iterator[Array]:
    try:
        return _iterate(self)
    except BaseException as e:
        leaving(e)
        raise


@dispatched
def _astype(self: Any, dtype: DTypeLike | None, copy: bool = False) -> Array:
    """Convert the elements to another dtype, and return them as an array of the same shape.

    bool, int, float and complex stand for the default dtypes of their kind, None for the default
    float.  `copy`: whether the result owns its memory even if it has the same dtype, so that it
    outlives an array that is donated or deleted.  As numpy.ndarray.astype.

    >>> import plait
    >>> plait.numpy.asarray([1.5, -1.5]).astype(int)
    Array([ 1, -1], dtype=int32)
    """
    out = shape.convert(self, asked_dtype(dtype))
    return el.owned(out, self) if copy else out


@dispatched
def _reshape(
    self: Any, *sizes: SupportsIndex | Dim | Shape, order: str = "C", out_sharding: object = None
) -> Array:
    """Arrange the same elements in another shape, and return that array.

    `sizes` are ints or one tuple.  One of them may be -1: it is inferred from the number of
    elements.  `order`: "C" if the last axis is the fastest, "F" if the first one is.  Raises
    ShapeError if the numbers of elements differ.  As numpy.ndarray.reshape.

    >>> import plait
    >>> plait.numpy.arange(6).reshape(2, -1).shape
    (2, 3)
    """
    to = sizes[0] if len(sizes) == 1 else sizes
    x = free(self, out_sharding)
    out = shape.reshape(x, to) if order == "C" else _numpy().reshape(x, to, order)
    return placed(out, out_sharding)


def _raveled(self: Any, order: str = "C", *, out_sharding: object = None) -> Array:
    """Return all elements as a vector, the last axis fastest ("F": the first one).

    As numpy.ndarray.ravel and flatten, which are the same here.
    """
    return _reshape(self, -1, order=order, out_sharding=out_sharding)


@dispatched
def _transpose(self: Any, *axes: Axis | None) -> Array:
    """Put the axes in another order, by default the reversed one, and return that array.

    `axes` are the present numbers of the new axes: ints or one tuple.  As numpy.ndarray.transpose.

    >>> import plait
    >>> plait.numpy.zeros((2, 3, 4)).transpose(1, 2, 0).shape
    (3, 4, 2)
    """
    if not axes or axes == (None,):
        return shape.transpose(self)
    return shape.transpose(self, axes[0] if len(axes) == 1 else axes)


@dispatched
def _swapped(self: Any) -> Array:
    """Transpose the matrices in the last two axes; AxisError if there are fewer axes."""
    n = self.aval.ndim
    if n < 2:
        raise AxisError(
            f"mT swaps the last two axes, and {self.aval!r} has {n}",
            fix="use .T, or give it another axis: x[:, None]",
        )
    return shape.transpose(self, (*range(n - 2), n - 1, n - 2))


def _real(self: Any) -> Array:
    """Return the real part of each element; a real array is returned itself."""
    return el.real(self) if self.aval.dtype.kind == "c" else self


def _imag(self: Any) -> Array:
    """Return the imaginary part of each element; zeros for a real array."""
    return el.imag(self) if self.aval.dtype.kind == "c" else el.mul(self, 0)


@border
def _compress(
    self: Any, condition: ArrayLike, axis: SupportsIndex | None = None, **options: object
) -> Array:
    """Return the slices along an axis where a condition holds; of elements, without an axis.

    `condition` is a vector of booleans.  As numpy.ndarray.compress; `plait.numpy.compress` names
    the options.
    """
    return _numpy().compress(condition, self, axis, **options)


@border
def _view(self: Any, dtype: DTypeLike | None = None, *sizes: Any) -> Array:
    """Read the same bits as elements of another dtype, and return that array.

    The last axis becomes longer or shorter if the dtypes have different sizes.  Raises ShapeError
    if its bits do not divide into whole elements, or the array has no axis.  bool, int, float and
    complex stand for the default dtypes of their kind, None for the default float.  As
    numpy.ndarray.view.

    >>> import plait
    >>> plait.numpy.asarray([1.0]).view("uint16").tolist()
    [0, 16256]
    """
    if sizes or isinstance(dtype, int | tuple):
        raise OperandTypeError(
            f"view was given sizes, {(dtype, *sizes) if sizes else dtype}, where it takes a dtype",
            fix="write x.reshape(shape) for another shape",
        )
    want = asked_dtype(dtype)
    if self.dtype == want:
        return self
    if self.dtype == bool:
        self = shape.convert(self, np.uint8)
    old, new, sizes = conversion.bits_of(self.dtype), conversion.bits_of(want), self.shape
    if not old or not new:  # float0, which is refused
        return conversion.bitcast(self, want)
    if old != new and (not sizes or sizes[-1] * old % new):
        raise ShapeError(
            f"{self.aval!r} cannot be viewed as {want.name}: the last axis has no whole number "
            "of such elements",
            fix="view an array whose last axis is a multiple of the wider dtype's size",
        )
    if COMPLEX in (self.aval.category, category(want)):
        return _view_parts(self, want)
    if old == new:
        return conversion.bitcast(self, want)
    if old < new:
        self = shape.reshape(self, (*sizes[:-1], sizes[-1] * old // new, new // old))
    bits = conversion.bitcast(self, want)
    return shape.reshape(bits, (*sizes[:-1], sizes[-1] * old // new))


def _view_parts(x: Array, want: Any) -> Any:
    """View `x` as `want` where either is complex: two floats, one after the other."""
    if not x.ndim:
        return shape.reshape(_view_parts(shape.reshape(x, (1,)), want), ())
    if x.aval.category == COMPLEX:
        parts = shape.stack([el.real(x), el.imag(x)], -1)
        x = shape.reshape(parts, (*x.shape[:-1], 2 * x.shape[-1]))
    if category(want) != COMPLEX:
        return _view(x, want)
    x = _view(x, np.dtype(f"float{4 * want.itemsize}"))
    return el.complex_(x[..., ::2], x[..., 1::2])


def _byteswap(self: Any, inplace: bool = False) -> Array:
    """Return every number with its bytes in the opposite order, complex ones part by part.

    Raises ArgumentError if `inplace`.  As numpy.ndarray.byteswap.
    """
    if inplace:
        raise ArgumentError("arrays are never written to", fix="leave out inplace, use the result")
    dtype = self.aval.dtype
    if dtype.kind == "c":
        return el.complex_(_byteswap(el.real(self)), _byteswap(el.imag(self)))
    if dtype.itemsize == 1:
        return self
    parts = conversion.bitcast(self, np.uint8)
    return conversion.bitcast(shape.rev.bind(parts, axes=(self.aval.ndim,)), dtype)


class _OfNumpy:
    """A method that calls the function of this name in `plait.numpy`, imported at its first use."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, x: Value, cls: Any = None) -> Any:
        f = _function(self.name)
        Value.receive({self.name: f})  # Later look-ups find the function directly.
        return f if x is None else f.__get__(x)


_OF_NUMPY = [
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "conj",
    "conjugate", "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min", "nonzero", "prod",
    "ptp", "repeat", "round", "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take",
    "trace", "var",
]  # fmt: skip


_OF_CORE = {
    "all": reduction.all_, "any": reduction.any_, "argmax": argreduction.argmax,
    "argmin": argreduction.argmin, "max": reduction.max_, "mean": reduction.mean,
    "min": reduction.min_, "prod": reduction.prod, "sum": reduction.sum_,
}  # fmt: skip
"""Methods that core has without the array library, whose functions accept more arguments."""


def _function(name: str) -> Any:
    """Return the function that a method calls."""
    try:
        return getattr(_numpy(), name)
    except MissingPlugin:
        if name in _OF_CORE:
            return _OF_CORE[name]
        raise


@cache
def _numpy() -> Any:
    """Return `plait.numpy`, which is imported at its first use only."""
    return resolve("numpy")


def _namespace(self: Any, *, api_version: str | None = None) -> Any:
    """Return `plait.numpy`, which has the functions of the array API standard.

    Raises ArgumentError for a version of the standard that is newer than the one it has.
    """
    namespace = _numpy()
    known = namespace.__array_api_version__
    if api_version is not None and api_version > known:
        raise ArgumentError(
            f"version {api_version} of the array API standard is not known",
            fix=f"ask for {known} or an earlier one",
        )
    return namespace


def _device(self: Any) -> Any:
    """Return the device of the array, or its sharding on several; None for a traced value."""
    if not isinstance(self, ConcreteArray):
        return None
    placement = self.key.placement
    there = (first(),) if placement is None else placement.place.devices
    return self.sharding if len(there) > 1 else later("_api.hardware").devices()[there[0]]


@border
def _to_device(self: Any, device: object, /, *, stream: object = None) -> Array:
    """Move the array to another device, or lay it out by a sharding, and return it.

    If it is there already, it is returned itself.  `stream` has no effect.  plait-sharding must be
    installed.
    """
    return self if device == _device(self) else resolve("device_put")(self, device)


def _at(self: Any) -> subscript.At:
    """Return an object that updates elements of a copy: `x.at[index].set(v)`, and `add`,
    `multiply`, `min`, `max`, `get`, ... instead of `set`.

    >>> import plait
    >>> plait.numpy.zeros(3).at[1].add(5.0)
    Array([0., 5., 0.], dtype=float32)
    """
    return subscript.At(self)


@dispatched
def _reversed_axes(self: Any) -> Array:
    """Return the array with its axes in reversed order."""
    return shape.transpose(self)


def _nbytes(self: Any) -> int:
    """Return the number of bytes of all elements: `size * itemsize`."""
    return self.size * self.aval.dtype.itemsize


def _itemsize(self: Any) -> int:
    """Return the number of bytes of one element."""
    return self.aval.dtype.itemsize


def _flat(self: Any) -> Array:
    """Return all elements as a vector, the last axis fastest."""
    return _reshape(self, -1)


def _no_item(self: Any, index: object, value: object) -> None:
    """Raise TypeError, since arrays are immutable."""
    raise ArgumentError(
        f"arrays are immutable, and {self.aval!r} cannot be written to",
        fix="write x = x.at[index].set(value), or .add(value), .multiply(value)",
    )


def _no_deletion(self: Any, index: Any) -> None:
    """Raise TypeError, since arrays are immutable."""
    raise ArgumentError(
        f"arrays are immutable, and elements of {self.aval!r} cannot be deleted",
        fix="write x = plait.numpy.delete(x, index)",
    )


def _methods() -> dict[str, Any]:
    """Return indexing, methods and properties."""
    return {
        "__getitem__": _getitem,
        "__setitem__": _no_item,
        "__delitem__": _no_deletion,
        "__iter__": _iter,
        "__contains__": _contains,
        "__array_namespace__": _namespace,
        "device": property(_device),
        "to_device": _to_device,
        "at": property(_at),
        "T": property(_reversed_axes),
        "mT": property(_swapped),
        "real": property(_real),
        "imag": property(_imag),
        "nbytes": property(_nbytes),
        "itemsize": property(_itemsize),
        "astype": _astype,
        "reshape": _reshape,
        "transpose": _transpose,
        "ravel": _raveled,
        "flatten": _raveled,
        "copy": el.copied,
        "flat": property(_flat),
        "byteswap": _byteswap,
        "compress": _compress,
        "view": _view,
        **{name: _OfNumpy(name) for name in _OF_NUMPY},
    }


def _number(size: Dim) -> Any:
    """Return a symbolic size as an array value: a weak integer, as a Python int is."""
    dtype = default_dtype(INTEGER)
    return shape.convert(sizes.size_value(admitted_sizes(size), dtype), dtype, True)


Value.receive(_arithmetic() | _methods())
Dim.count_with(_number)
