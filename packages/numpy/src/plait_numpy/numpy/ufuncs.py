"""The methods of numpy's elementwise functions: reduce, accumulate, outer, ...

Functions of this package have these as attributes, so that a plain call costs no more.

Invariant: a fold goes from the first element to the last, one loop step for each, unless the
function has a reduction of its own.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.errors import ArgumentError, AxisError, OperandTypeError
from plait.ext import Literal
from plait.ext.control import fori_loop, scan
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.cumulative import cumprod, cumsum
from plait.ext.ops.elementwise import rounded, single
from plait.ext.ops.indexing import At, getitem
from plait.ext.ops.reduction import all_, any_, max_, min_, prod, sum_
from plait.ext.surface import value
from plait.ext.trace import Value, copy_names, name_of
from plait.ext.types import asked_dtype, dtype_of
from plait.typing import Array

from . import arithmetic, logic, masking, transcendental
from .mapping import vectorize
from .masking import unwritten
from .selection import where as chosen


class _Functions(type):
    """A metaclass that makes functions with these methods count as instances of `ufunc`."""

    def __instancecheck__(cls, x: object) -> bool:
        return hasattr(x, "reduceat") and isinstance(getattr(x, "nin", None), int)


class ufunc(metaclass=_Functions):  # noqa: N801
    """A function of elements, with methods that apply it along axes.

    Args:
      func: takes `nin` numbers (arrays without axes) and returns `nout`; it is staged and mapped.
      nin, nout: numbers of arguments and of results.
      name: for messages.
      nargs: must be nin + nout, if it is given.
      identity: initial value of a fold; None: the first element.
      call: applies the function to arrays, which broadcast, instead of mapping `func`.
      reduce, accumulate, at, reduceat: implementations to use instead of folding by `call`; they
        take the arguments of these methods.

    Raises TypeRule where numbers of arguments do not fit.

    >>> import numpy as np, plait
    >>> most = plait.numpy.ufunc(lambda x, y: abs(x) + abs(y), 2, 1, identity=0)
    >>> int(most.reduce(np.array([1, -2, 3]))), most.nargs
    (6, 3)
    """

    nin: int
    nout: int
    nargs: int
    identity: object
    __name__: str

    def __init__(
        self, func: Callable, /, nin: int, nout: int, *, name: str | None = None,
        nargs: int | None = None, identity: object = None, call: Callable | None = None,
        reduce: Callable | None = None, accumulate: Callable | None = None,
        at: Callable | None = None, reduceat: Callable | None = None,
    ):  # fmt: skip
        if nargs not in (None, nin + nout):
            raise ArgumentError(
                f"a ufunc of {nin} arguments with {nout} results has {nin + nout}, not {nargs}",
                fix="leave nargs out",
            )
        copy_names(self, func)
        self.nin, self.nout, self.nargs, self.identity = nin, nout, nin + nout, identity
        self.__name__ = name or name_of(func, "ufunc")
        self._call = vectorize(func) if call is None else call
        self._of_numpy = call is not None
        self._reduce, self._accumulate, self._at, self._reduceat = reduce, accumulate, at, reduceat

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r}>"

    def __call__(self, *args: Any, out: None = None, where: Any = None) -> Any:
        """Apply the function to arrays; where `where` is False, the result is zero."""
        if len(args) != self.nin:
            raise OperandTypeError(
                f"{self.__name__} takes {self.nin} arrays, not {len(args)}", fix="give as many"
            )
        return masking.kept(self._call(*args), where, out)

    def _in_single(self, fold: Callable, x: Value) -> Any:
        """Compute `fold(x)`.  Narrow floats go through float32, rounded once, if the function is
        numpy's; other functions may depend on the dtype."""
        return rounded(fold(single(x)), x) if self._of_numpy else fold(x)

    def _binary(self, does: str) -> None:
        if (self.nin, self.nout) != (2, 1):
            raise ArgumentError(
                f"{self.__name__}.{does} needs a function of two arrays with one result",
                fix="this one is called only",
            )

    def reduce(
        self, array: object, axis: object = 0, dtype: object = None, out: None = None,
        keepdims: bool = False, initial: Any = None, where: Any = None,
    ) -> Any:  # fmt: skip
        """Fold over axes (None: all): f(f(x[0], x[1]), x[2]) ...

        Args:
          array: any shape.
          axis: an int, a tuple of ints, or None.
          dtype: dtype of the fold; by default the array's (sums of narrow integers are wider).
          out: must be None.
          keepdims: whether to keep the axes, with size 1.
          initial: precedes the first element; `where` needs it without an identity.
          where: a mask; elements where it is False are skipped.
        """
        self._binary("reduce")
        unwritten(out)
        x = value(array)
        x = x if dtype is None else sh.convert(x, asked_dtype(dtype))
        if self._reduce is not None:
            options: dict[str, Any] = {} if initial is None else {"initial": initial}
            if where is not None:
                options["where"] = where
            return _as_asked(self._reduce(x, axis=axis, keepdims=keepdims, **options), dtype)
        axes = sh.normal_axes(axis, x.aval.ndim)
        kept = None if where is None else _rows(sh.broadcast_to(value(where), x.aval.shape), axes)
        result = self._in_single(lambda x: self._folded(_rows(x, axes), kept, initial), x)
        return _with_axes(result, axes) if keepdims else result

    def _folded(self, rows: Value, kept: Value | None, initial: float | None) -> Any:
        start = initial
        if initial is None and self.identity is not None:  # -1 of unsigned integers is all bits
            start = np.asarray(self.identity).astype(rows.aval.dtype)
        n = rows.aval.shape[0]
        if start is None and (kept is not None or n == 0):
            raise ArgumentError(
                f"{self.__name__}.reduce has nothing to start with: it has no identity",
                fix="give `initial`",
            )
        cell = rows.aval.shape[1:]
        if start is None:
            carry, rows = sh.reshape(sh.slice_in_dim(rows, 0, 1), cell), sh.slice_in_dim(rows, 1, n)
        else:
            carry = sh.broadcast_to(sh.convert(value(start), rows.aval.dtype), cell)
        carry = sh.convert(carry, _result(self._call, carry, rows))

        def step(c: Array, row: Array | tuple[Array, ...]) -> Any:
            x, keep = row if kept is not None else (row, None)
            new = self._call(c, x)
            return (new if keep is None else chosen(keep, new, c)), None

        return scan(step, carry, rows if kept is None else (rows, kept))[0]

    def accumulate(
        self, array: object, axis: int = 0, dtype: object = None, out: None = None
    ) -> Any:
        """Return every stage of `reduce` along one axis.  array, axis, dtype, out: as there."""
        self._binary("accumulate")
        unwritten(out)
        x = value(array)
        x = x if dtype is None else sh.convert(x, asked_dtype(dtype))
        if self._accumulate is not None:
            return _as_asked(self._accumulate(x, axis=axis), dtype)
        at = sh.normal_axis(axis, x.aval.ndim)
        return self._in_single(lambda x: self._accumulated(x, at), x)

    def _accumulated(self, x: Value, at: int) -> Any:
        rows = sh.moveaxis(x, at, 0)
        n = rows.aval.shape[0]
        if n == 0:
            return x
        first = sh.slice_in_dim(rows, 0, 1)
        carry = sh.reshape(first, rows.aval.shape[1:])
        carry = sh.convert(carry, _result(self._call, carry, rows))
        step = lambda c, row: (self._call(c, row),) * 2  # noqa: E731
        rest = scan(step, carry, sh.slice_in_dim(rows, 1, n))[1]
        return sh.moveaxis(sh.concatenate([sh.convert(first, rest.aval.dtype), rest]), 0, at)

    def outer(self, A: object, B: object, /) -> Any:
        """Apply the function to every element of one array with every element of the other."""
        self._binary("outer")
        a, b = value(A), value(B)
        return self._call(sh.reshape(a, a.aval.shape + (1,) * b.aval.ndim), b)

    def at(self, a: object, indices: object, b: object = None, *, inplace: bool = False) -> Any:
        """Return the array with f(a[i], b) at positions; repeated positions are changed repeatedly.

        Args:
          a: any array.
          indices: as in `a[indices]`: integers, slices, arrays, or a tuple of them.
          b: broadcasts to `a[indices]`; None for a function of one array.
          inplace: must be False: arrays are immutable.
        """
        if inplace:
            raise ArgumentError(
                "arrays are never written to", fix="use the result, with inplace=False"
            )
        x = value(a)
        if self._at is not None:
            return self._at(x, indices, b)
        return self._visited(x, indices, b)

    def _visited(self, x: Value, indices: object, b: Any) -> Any:
        """Visit one position after the other, by its index in the flattened array."""
        numbers = getitem(
            sh.reshape(sh.iota(dtype_of("int32"), (x.aval.size,)), x.aval.shape), indices
        )
        numbers, shape = sh.reshape(numbers, (-1,)), numbers.aval.shape
        others = None if b is None else sh.reshape(sh.broadcast_to(value(b), shape), (-1,))
        flat = sh.reshape(x, (-1,))

        def visit(k: Value, y: Value) -> Any:
            i = numbers[k]
            new = self._call(y[i]) if others is None else self._call(y[i], others[k])
            return At(y)[i].set(new)

        return sh.reshape(fori_loop(0, numbers.aval.size, visit, flat), x.aval.shape)

    def reduceat(
        self, a: object, indices: object, axis: int = 0, dtype: object = None, out: None = None
    ) -> Any:
        """Reduce slices of one axis: each from an index to the next one, the last to the end.
        Where the next index is not greater, return the element at the index.

        a, axis, dtype, out: as in `reduce`; indices: a vector of integers.
        """
        self._binary("reduceat")
        unwritten(out)
        x = value(a)
        x = x if dtype is None else sh.convert(x, asked_dtype(dtype))
        if self._reduceat is not None:
            return self._reduceat(x, indices, axis=axis)
        at, first = sh.normal_axis(axis, x.aval.ndim), value(indices)
        if first.aval.ndim != 1:
            raise AxisError(f"reduceat: the indices are {first.aval!r}", fix="give a vector")
        return self._in_single(lambda x: self._pieces(x, first, at), x)

    def _pieces(self, x: Value, first: Value, at: int) -> Any:
        rows = sh.moveaxis(x, at, 0)
        n = rows.aval.shape[0]
        if first.aval.shape[0] == 0:
            return sh.moveaxis(getitem(rows, first), 0, at)
        end = sh.broadcast_to(sh.convert(value(n), first.aval.dtype), (1,))
        last = sh.concatenate([sh.slice_in_dim(first, 1, first.aval.shape[0]), end])
        carry = getitem(rows, first)
        wide = lambda v: sh.reshape(v, v.aval.shape + (1,) * (rows.aval.ndim - 1))  # noqa: E731
        first, last = wide(first), wide(last)

        def step(c: Array, row: Sequence[Array]) -> Any:
            j, v = row
            inside = el.and_(el.lt(first, j), el.lt(j, last))
            return chosen(inside, self._call(c, v), c), None

        carry = sh.convert(carry, _result(self._call, carry, rows))
        positions = sh.iota(first.aval.dtype, (n,))
        return sh.moveaxis(scan(step, carry, (positions, rows))[0], 0, at)


def _as_asked(out: Any, dtype: object) -> Any:
    """Return a fold in the dtype asked for: sums widen narrow integers.  Truth values stay."""
    out = value(out)
    return (
        out if dtype is None or out.aval.dtype == np.bool_ else sh.convert(out, asked_dtype(dtype))
    )


def _rows(x: Value, axes: tuple) -> Any:
    """Move the axes to fold to the front, as one."""
    rest = [d for i, d in enumerate(x.aval.shape) if i not in axes]
    count = math.prod([x.aval.shape[i] for i in axes])
    return sh.reshape(sh.moveaxis(x, axes, tuple(range(len(axes)))), (count, *rest))


def _with_axes(x: Value, axes: tuple) -> Any:
    return sh.expand_dims(x, tuple(sorted(axes)))


def _result(f: Callable, carry: Array, rows: Array) -> Any:
    """Return the dtype in which a fold stays."""
    cell = Literal(0, rows.aval.with_shape(()))
    return value(f(Literal(0, carry.aval.with_shape(())), cell)).aval.dtype


def frompyfunc(func: Callable, /, nin: int, nout: int, *, identity: object = None) -> ufunc:
    """Make a `ufunc` from a function of numbers, which is staged once and mapped.

    Args:
      func: takes `nin` numbers (arrays without axes), returns `nout`.
      nin, nout: numbers of arguments and of results.
      identity: initial value of folds.

    As numpy.frompyfunc, except that results are arrays of numbers.

    >>> import numpy as np, plait
    >>> f = plait.numpy.frompyfunc(lambda x, y: 10 * x + y, 2, 1)
    >>> int(f.reduce(np.array([1, 2, 3])))
    123
    """
    return ufunc(func, nin, nout, identity=identity)


# ---- the functions of this package -----------------------------------------------------------


def _at(method: str) -> Callable:
    return lambda x, indices, b: getattr(At(x)[indices], method)(b)


_OWN: dict[Any, tuple[Any, dict[str, Any]]] = {
    arithmetic.add: (0, {"reduce": sum_, "accumulate": cumsum, "at": _at("add")}),
    arithmetic.multiply: (1, {"reduce": prod, "accumulate": cumprod, "at": _at("multiply")}),
    arithmetic.maximum: (None, {"reduce": max_, "at": _at("max")}),
    arithmetic.minimum: (None, {"reduce": min_, "at": _at("min")}),
    arithmetic.subtract: (None, {"at": lambda x, i, b: At(x)[i].add(el.neg(value(b)))}),
    arithmetic.divide: (None, {}),
    arithmetic.power: (None, {}),
    arithmetic.floor_divide: (None, {}),
    arithmetic.remainder: (None, {}),
    arithmetic.fmod: (None, {}),
    arithmetic.fmax: (None, {}),
    arithmetic.fmin: (None, {}),
    arithmetic.hypot: (0, {}),
    arithmetic.gcd: (0, {}),
    arithmetic.lcm: (1, {}),
    transcendental.logaddexp: (-float("inf"), {}),
    transcendental.logaddexp2: (-float("inf"), {}),
    transcendental.arctan2: (None, {}),
    logic.bitwise_and: (-1, {}),
    logic.bitwise_or: (0, {}),
    logic.bitwise_xor: (0, {}),
    logic.left_shift: (None, {}),
    logic.right_shift: (None, {}),
    logic.logical_and: (True, {"reduce": all_}),
    logic.logical_or: (False, {"reduce": any_}),
    logic.logical_xor: (False, {}),
}  # fmt: skip
_METHODS = ("reduce", "accumulate", "outer", "at", "reduceat", "identity", "nin", "nout", "nargs")


def _equip() -> None:
    """Set the methods as attributes of functions of two arrays, and of `negative`."""
    for f, (identity, folds) in _OWN.items():
        made = ufunc(f, 2, 1, identity=identity, call=f, **folds)
        for name in _METHODS:
            setattr(f, name, getattr(made, name))
    made = ufunc(arithmetic.negative, 1, 1, call=arithmetic.negative)
    for name in _METHODS:
        setattr(arithmetic.negative, name, getattr(made, name))


_equip()
