"""Known integers while a module is read: static and symbolic sizes, and places of devices.

A module computes shapes from the sizes of its arguments.  That arithmetic is evaluated here, so
that `dynamic_reshape` and similar operations get shapes of numbers and symbolic sizes.  Arithmetic
on the device number is evaluated as well, into places along axes of the mesh.

Invariant: known numbers are exact.  An operation whose result is a number outside the range of its
dtype, or depends on an undecided question about sizes, is read like any other.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

import plait
from plait.ext.errors import PlaitError
from plait.ext.ops.shape import concatenate, convert, expand_dims, reshape, size_value
from plait.ext.sizes import Dim, is_symbolic, max_dim, min_dim
from plait.ext.types import Aval
from plait.ext.values import Literal, as_value

from .module import Op
from .table import enum


class Known:
    """Integers or booleans whose values are known while reading.

    Attributes:
      items: numbers or symbolic sizes, in row-major order.
      shape: their shape, of at most two axes.
      dtype: their dtype in the module.
    """

    __slots__ = ("items", "shape", "dtype")

    def __init__(self, items: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype):
        self.items, self.shape, self.dtype = tuple(items), shape, dtype

    def key(self) -> Any:
        """Return a hashable key that identifies the values."""
        return Known, self.items, self.shape, self.dtype

    def value(self) -> Any:
        """Return an array value for operations."""
        if len(self.shape) > 1:
            return reshape(Known(self.items, (len(self.items),), self.dtype).value(), self.shape)
        if not self.shape and self.items[0].__class__ is not Dim:
            return Literal(self.items[0], Aval((), self.dtype))
        if not is_symbolic(self.items):
            return as_value(np.array(self.items, self.dtype).reshape(self.shape))
        each = [
            size_value(n, self.dtype) if n.__class__ is Dim else as_value(np.array(n, self.dtype))
            for n in self.items
        ]
        return concatenate([expand_dims(v, 0) for v in each], 0) if self.shape else each[0]


class Place(NamedTuple):
    """A part of a device's number on a mesh: number // divisor % modulus.

    In the number of a device the last axis of the mesh is the fastest.

    Attributes:
      mesh: (name, size) of each axis.
      divisor, modulus: the part of the number.
      dtype: its dtype in the module.
    """

    mesh: tuple[tuple[str, int], ...]
    divisor: int
    modulus: int
    dtype: np.dtype

    def after(self, op: Op, others: Sequence[Any]) -> "Place | None":
        """Return the result of an operation on it, or None if the result is not a `Place`."""
        if op.name == "stablehlo.convert" and op.types[0].dtype.kind in "iu":
            return self._replace(dtype=op.types[0].dtype)
        if op.name not in ("stablehlo.divide", "stablehlo.remainder"):
            return None
        (by,) = others
        k = by.items[0] if by.__class__ is Known and not by.shape else 0
        if k.__class__ is not int or k < 1 or self.modulus % k:
            return None
        if op.name == "stablehlo.remainder":
            return self._replace(modulus=k)
        return self._replace(divisor=self.divisor * k, modulus=self.modulus // k)

    def value(self) -> Any:
        """Return a value computed from places along the bound axes."""
        strides = np.cumprod([1, *[k for _, k in self.mesh[:0:-1]]])[::-1].tolist()
        axes = [(n, k, s) for (n, k), s in zip(self.mesh, strides) if k > 1]
        end = self.divisor * self.modulus
        mine = [(n, k, s) for n, k, s in axes if s >= self.divisor and s * k <= end]
        whole = prod([k for _, k, _ in mine]) == self.modulus
        found: Any = np.int32(0)
        for n, _, s in mine if whole else axes:
            at = plait.lax.axis_index(n)
            scale = s // self.divisor if whole else s
            at = at if scale == 1 else at * np.int32(scale)
            found = at if found.__class__ is np.int32 else found + at
        if not whole:
            found = found // np.int32(self.divisor) % np.int32(self.modulus)
        return convert(as_value(found), self.dtype)


_MOST = 64
"""The most elements of a constant that is treated as sizes; no shape needs more."""


def known_constant(x: np.ndarray[Any, Any]) -> "Known | None":
    """Return a constant array as known values; None if it cannot be sizes."""
    if x.ndim > 2 or x.size > _MOST or x.dtype.kind not in "iub":
        return None
    return Known(x.reshape(-1).tolist(), x.shape, x.dtype)


def folded(op: Op, xs: Sequence[Known]) -> "Known | None":
    """Return the result of an operation on known values; None if it is not known."""
    rule = _FOLDS.get(op.name)
    if rule is None or len(op.types) != 1 or op.types[0].dtype.kind not in "iub":
        return None
    dtype = op.types[0].dtype
    try:
        found = rule(op, xs)
        if found is None or not all(_holds(dtype, n) for n in found[0]):
            return None
    except (PlaitError, ZeroDivisionError, TypeError, IndexError, KeyError, ValueError):
        return None
    items, shape = found
    return Known(items, shape, dtype)


_SIZED = 32
"""The least number of bits of a dtype that holds every size."""


def _holds(dtype: np.dtype, n: Dim | int) -> bool:
    """Return whether a dtype holds a known number for all sizes.

    Raises UndecidedDim if that depends on the sizes.
    """
    if dtype.kind == "b":
        return n.__class__ is bool
    info = np.iinfo(dtype)
    if n.__class__ is not Dim:
        return info.min <= n <= info.max
    # Everything that a module computes shapes from is within +-(2**31 - 1), as sizes are.
    wide = info.bits >= _SIZED
    return (wide and info.min < 0 or bool(n >= info.min)) and (wide or bool(n <= info.max))


def _each(f: Callable) -> Callable:
    """Return a fold that applies a function to each element."""

    def rule(op: Op, xs: Sequence[Known]) -> Any:
        rows = zip(*[x.items for x in xs], strict=True)
        return [f(*row) for row in rows], xs[0].shape

    return rule


def _quotient(a: Any, b: int) -> Any:
    """Return a quotient, rounded towards zero.

    A quotient of symbolic sizes must be exact, or of non-negative operands.  Raises TypeError for
    others.
    """
    if not is_symbolic((a, b)):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    exact = a // b
    if exact * b == a or (a >= 0 and b > 0):
        return exact
    raise TypeError


def _remainder(a: Dim | int, b: int) -> Any:
    return a - _quotient(a, b) * b


def _compared(op: Op, xs: Sequence[Known]) -> Any:
    relation = _RELATIONS[enum(op.attributes["comparison_direction"])]
    return _each(lambda a, b: bool(relation(a, b)))(op, xs)


_RELATIONS: dict[str, Callable] = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}


def _converted(op: Op, xs: Sequence[Known]) -> Any:
    dtype, of = op.types[0].dtype, xs[0].dtype
    if dtype.kind == "b":
        return [bool(n != 0) for n in xs[0].items], xs[0].shape
    wrapped = lambda n: int(np.array(n, of).astype(dtype))  # noqa: E731
    return [n if n.__class__ is Dim else wrapped(n) for n in xs[0].items], xs[0].shape


def _selected(op: Op, xs: Sequence[Known]) -> Any:
    p, a, b = xs
    flags = p.items if p.shape else p.items * len(a.items)
    return [m if f else n for f, m, n in zip(flags, a.items, b.items, strict=True)], a.shape


def _reshaped(op: Op, xs: Sequence[Known]) -> Any:
    shape = op.types[0].shape
    return (xs[0].items, shape) if len(shape) < 3 and None not in shape else None


def _spread(op: Op, xs: Sequence[Known]) -> Any:
    shape = op.types[0].shape
    if len(shape) > 1 or None in shape or xs[0].shape and xs[0].shape != shape:
        return None
    return xs[0].items * (1 if xs[0].shape or not shape else int(shape[0] or 0)), shape


def _joined(op: Op, xs: Sequence[Known]) -> Any:
    if len(xs[0].shape) != 1:
        return None
    items = [n for x in xs for n in x.items]
    return items, (len(items),)


def _sliced(op: Op, xs: Sequence[Known]) -> Any:
    if len(xs[0].shape) != 1:
        return None
    at = op.attributes
    start, stop, step = (at[k][0] for k in ("start_indices", "limit_indices", "strides"))
    items = xs[0].items[start:stop:step]
    return items, (len(items),)


def _product(op: Op, a: Dim | int, b: Dim | int) -> Any:
    return (a and b) if op.types[0].dtype.kind == "b" else a * b


def _bits(of_flags: Callable, of_numbers: Callable) -> Callable:
    """Return a fold with one function for booleans and one for integers.

    Symbolic sizes have no bits, so the fold fails on them.
    """

    def rule(op: Op, xs: Sequence[Known]) -> Any:
        return _each(of_flags if op.types[0].dtype.kind == "b" else of_numbers)(op, xs)

    return rule


def _inverted(op: Op, xs: Sequence[Known]) -> Any:
    if op.types[0].dtype.kind == "b":
        return _each(lambda a: not a)(op, xs)
    ones = np.iinfo(op.types[0].dtype).max if op.types[0].dtype.kind == "u" else -1
    return _each(lambda a: ones - a)(op, xs)


def _sum(op: Op, xs: Sequence[Known]) -> Any:
    if op.types[0].dtype.kind == "b":
        return None
    return _each(lambda a, b: a + b)(op, xs)


_FOLDS: dict[str, Callable] = {
    "stablehlo.add": _sum,
    "stablehlo.subtract": _each(lambda a, b: a - b),
    "stablehlo.multiply": lambda op, xs: _each(lambda a, b: _product(op, a, b))(op, xs),
    "stablehlo.divide": _each(_quotient),
    "stablehlo.remainder": _each(_remainder),
    "stablehlo.negate": _each(lambda a: -a),
    "stablehlo.maximum": _each(max_dim),
    "stablehlo.minimum": _each(min_dim),
    "stablehlo.and": _bits(lambda a, b: a and b, lambda a, b: a & b),
    "stablehlo.or": _bits(lambda a, b: a or b, lambda a, b: a | b),
    "stablehlo.not": _inverted,
    "stablehlo.sign": _each(lambda a: bool(a > 0) - bool(a < 0)),
    "stablehlo.abs": _each(lambda a: a if a >= 0 else -a),
    "stablehlo.clamp": _each(lambda low, x, high: min_dim(max_dim(low, x), high)),
    "stablehlo.compare": _compared,
    "stablehlo.convert": _converted,
    "stablehlo.select": _selected,
    "stablehlo.reshape": _reshaped,
    "stablehlo.broadcast_in_dim": _spread,
    "stablehlo.concatenate": _joined,
    "stablehlo.slice": _sliced,
    "stablehlo.optimization_barrier": _each(lambda a: a),
}
