"""What `+`, `[]` and `.sum()` mean on values.

Invariant: this is the one module that hands operations to values (`Value.receive`).  Operators
with a Python scalar that is no wider than the array skip promotion.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._base.errors import (
    ArgumentError,
    AxisError,
    ShapeError,
)
from .._base.lazy import later
from .._base.tracebacks import border, leaving
from .._core.array import Array, Literal
from .._core.interpreter import Value, current
from .._plugins.metadata import resolve
from .._types.avals import (
    COMPLEX,
    FLOATING,
    INT32,
    INTEGER,
    asked_dtype,
    default_dtype,
)
from .._types.dims import Dim
from . import contraction, conversion, reduction, shape, sizes, subscript
from . import elementwise as el
from .layout import placed

_NONE: dict[str, Any] = {}
_PROTOCOLS = "__plait_array__", "__jax_array__", "__array__"
_OTHERS = (Value, np.ndarray, np.generic, int, float, complex)


def _operand(x: Any) -> bool:
    """Whether an operator takes it; lists and strings are left to Python."""
    return isinstance(x, _OTHERS) or any(hasattr(x, name) for name in _PROTOCOLS)


# Each is a border: its `try` costs nothing while nothing is raised, and no call.


def _fast(prim: Any, general: Callable, inexact_only: bool = False) -> Callable:
    """A binary operator.  A scalar no wider than we are takes our type: no promotion to do."""

    def op(self: Any, other: Any) -> Any:
        try:
            a = self.aval
            if not inexact_only or a.inexact:
                k = other.__class__
                if k is float or k is int:
                    c = a.category
                    if FLOATING <= c <= COMPLEX or (
                        c == INTEGER
                        and k is int
                        and (0 <= other < 8 or (a.dtype is INT32 and -(2**31) <= other < 2**31))
                    ):
                        if not a.weak_type or c == FLOATING:
                            return current().apply(prim, (self, Literal(other, a)), _NONE)
                elif isinstance(other, Value) and other.aval is a:
                    return current().apply(prim, (self, other), _NONE)
            return general(self, other) if _operand(other) else NotImplemented
        except BaseException as e:
            leaving(e)
            raise

    return op


def _reflected(general: Callable) -> Callable:
    def op(self: Any, other: Any) -> Any:
        try:
            return general(other, self) if _operand(other) else NotImplemented
        except BaseException as e:
            leaving(e)
            raise

    return op


def _plain(general: Callable) -> Callable:
    def op(self: Any, other: Any) -> Any:
        try:
            return general(self, other) if _operand(other) else NotImplemented
        except BaseException as e:
            leaving(e)
            raise

    return op


def _one(general: Callable) -> Callable:
    def op(self: Any) -> Any:
        try:
            return general(self)
        except BaseException as e:
            leaving(e)
            raise

    return op


def _getitem(self: Any, index: Any) -> Any:
    try:
        return subscript.getitem(self, index)
    except BaseException as e:
        leaving(e)
        raise


def _shift_right(x: Any, y: Any) -> Any:
    unsigned = x.aval.dtype.kind == "u" if isinstance(x, Value) else False
    return (el.shift_right_logical if unsigned else el.shift_right_arithmetic)(x, y)


def _arithmetic() -> dict[str, Any]:
    """The operators, reflected ones included."""
    members: dict[str, Any] = {}
    fast = {"add": el.add, "sub": el.sub, "mul": el.mul}
    for name, prim in fast.items():
        members[f"__{name}__"] = _fast(prim, prim)
        members[f"__r{name}__"] = _reflected(prim)
    members["__truediv__"] = _fast(el.div, el.true_divide, inexact_only=True)
    members["__rtruediv__"] = _reflected(el.true_divide)
    general = {
        "floordiv": el.floor_divide,
        "mod": el.modulo,
        "pow": el.power,
        "and": el.and_,
        "or": el.or_,
        "xor": el.xor,
        "lshift": el.shift_left,
        "rshift": _shift_right,
        "matmul": contraction.matmul,
        "divmod": lambda x, y: (el.floor_divide(x, y), el.modulo(x, y)),
    }
    for name, f in general.items():
        members[f"__{name}__"] = _plain(f)
        members[f"__r{name}__"] = _reflected(f)
    for prim in el.COMPARISONS:
        members[f"__{prim.name.rpartition('.')[2]}__"] = _fast(prim, prim)
    return members | {
        "__neg__": _one(el.neg),
        "__pos__": lambda self: self,
        "__abs__": _one(el.abs_),
        "__invert__": _one(el.not_),
        "__round__": lambda self, ndigits=None: _round(self, ndigits),
    }


def _round(x: Any, ndigits: int | None) -> Any:
    if x.aval.category != FLOATING:
        return x
    if not ndigits:
        return el.round_even(x)
    scale = 10.0**ndigits
    return el.round_even(x * scale) / scale


def _iterate(self: Any) -> Iterator[Any]:
    if not self.aval.ndim:
        raise TypeError("an array without axes can not be iterated over")
    return (subscript.getitem(self, i) for i in range(len(self)))


@border
def _astype(self: Any, dtype: Any, copy: bool = False) -> Any:
    """The array in another dtype; bool, int, float, complex and None stand for the default ones."""
    return shape.convert(self, asked_dtype(dtype))


@border
def _reshape(self: Any, *sizes: Any, order: str = "C", out_sharding: Any = None) -> Any:
    """The same elements in another shape."""
    to = sizes[0] if len(sizes) == 1 else sizes
    out = shape.reshape(self, to) if order == "C" else _numpy().reshape(self, to, order)
    return placed(out, out_sharding)


def _raveled(self: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """The same elements along one axis."""
    return _reshape(self, -1, order=order, out_sharding=out_sharding)


@border
def _transpose(self: Any, *axes: Any) -> Any:
    """Axes in another order; reversed by default."""
    if not axes or axes == (None,):
        return shape.transpose(self)
    return shape.transpose(self, axes[0] if len(axes) == 1 else axes)


def _swapped(self: Any) -> Any:
    """The last two axes swapped."""
    n = self.aval.ndim
    if n < 2:
        raise AxisError(
            f"mT swaps the last two axes, and {self.aval!r} has {n}",
            fix="use .T, or give it another axis: x[:, None]",
        )
    return shape.transpose(self, (*range(n - 2), n - 1, n - 2))


def _real(self: Any) -> Any:
    return el.real(self) if self.aval.dtype.kind == "c" else self


def _imag(self: Any) -> Any:
    return el.imag(self) if self.aval.dtype.kind == "c" else el.mul(self, 0)


@border
def _compress(self: Any, condition: Any, axis: Any = None, **options: Any) -> Any:
    """The slices along an axis (elements, without one) at which the condition holds."""
    return _numpy().compress(condition, self, axis, **options)


@border
def _view(self: Any, dtype: Any = None) -> Any:
    """The same bits as elements of another dtype: the last axis becomes longer or shorter.

    Raises TypeRule where numpy does: an axis that can not be divided, or none.
    """
    want = np.dtype(default_dtype(FLOATING) if dtype is None else dtype)
    old, new, sizes = conversion.bits_of(self.dtype), conversion.bits_of(want), self.shape
    if self.dtype == bool:
        self = shape.convert(self, np.uint8)
    if old == new:
        return conversion.bitcast(self, want)
    if not sizes or sizes[-1] * old % new:
        raise ShapeError(
            f"{self.aval!r} can not be viewed as {want.name}: the last axis has no whole number "
            "of such elements",
            fix="view an array whose last axis is a multiple of the wider dtype's size",
        )
    if old < new:
        self = shape.reshape(self, (*sizes[:-1], sizes[-1] * old // new, new // old))
    bits = conversion.bitcast(self, want)
    return shape.reshape(bits, (*sizes[:-1], sizes[-1] * old // new))


def _byteswap(self: Any, inplace: bool = False) -> Any:
    """Every number with its bytes in the opposite order; complex ones part by part."""
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
    """A method that is the function of `plait.numpy` of its name, imported when first used."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, x: Any, cls: Any = None) -> Any:
        f = getattr(_numpy(), self.name)
        Value.receive({self.name: f})  # from now on it is found without us
        return f if x is None else f.__get__(x)


_OF_NUMPY = [
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "conj",
    "conjugate", "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min", "nonzero", "prod",
    "ptp", "repeat", "round", "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take",
    "trace", "var",
]  # fmt: skip


def _numpy() -> Any:
    """`plait.numpy`, which nothing of core imports before somebody uses it."""
    return later("numpy")


def _namespace(self: Any, *, api_version: str | None = None) -> Any:
    """The functions of the array API standard: `plait.numpy`."""
    namespace = _numpy()
    known = namespace.__array_api_version__
    if api_version is not None and api_version > known:
        raise ArgumentError(
            f"version {api_version} of the array API standard is not known",
            fix=f"ask for {known} or an earlier one",
        )
    return namespace


def _device(self: Any) -> Any:
    """Where it is: a device, or, on several of them, its sharding; None while it is traced."""
    if not isinstance(self, Array):
        return None
    placement = self.key.placement
    there = (0,) if placement is None else placement.place.devices
    return self.sharding if len(there) > 1 else later("_api.hardware").devices()[there[0]]


@border
def _to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
    """The array on another device, or as a sharding says; on its own, itself."""
    return self if device == _device(self) else resolve("device_put")(self, device)


def _no_item(self: Any, index: Any, value: Any) -> None:
    raise TypeError(
        f"arrays are immutable, and {self.aval!r} can not be written to.\n"
        "  write:  x = x.at[index].set(value)"
    )


def _methods() -> dict[str, Any]:
    """Indexing, methods and properties."""
    return {
        "__getitem__": _getitem,
        "__setitem__": _no_item,
        "__iter__": _one(_iterate),
        "__contains__": lambda self, item: bool(reduction.any_(el.eq(self, item))),
        "__array_namespace__": _namespace,
        "device": property(_device),
        "to_device": _to_device,
        "at": property(lambda self: subscript.At(self)),
        "T": property(lambda self: shape.transpose(self)),
        "mT": property(_swapped),
        "real": property(_real),
        "imag": property(_imag),
        "nbytes": property(lambda self: self.size * self.aval.dtype.itemsize),
        "itemsize": property(lambda self: self.aval.dtype.itemsize),
        "astype": _astype,
        "reshape": _reshape,
        "transpose": _transpose,
        "ravel": _raveled,
        "flatten": _raveled,
        "copy": el.copied,
        "flat": property(lambda self: _reshape(self, -1)),
        "byteswap": _byteswap,
        "compress": _compress,
        "view": _view,
        **{name: _OfNumpy(name) for name in _OF_NUMPY},
    }


def _number(size: Dim) -> Any:
    """A symbolic size among arrays: a weak integer, as a known one is."""
    dtype = default_dtype(INTEGER)
    return shape.convert(sizes.size_value(size, dtype), dtype, True)


Value.receive(_arithmetic() | _methods())
Dim.count_with(_number)
