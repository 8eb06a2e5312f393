"""Positions of extremes: argmax and argmin return the position of one, is_max and is_min mark all.

An element is found by comparing all elements with the extreme.  A compiler may compute the
elements a second time for that and round them differently; then none equals the extreme.  Where
that can happen, one reduction of pairs carries the position along with the extreme.

Invariant: argmax means the first of several equal extremes, and nan counts as an extreme, in
whatever order the backend combines elements.  is_max marks at least one element unless there is a
nan.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._base.errors import AxisError, OperandTypeError, ShapeError
from .._base.jaxlib_api import IrValue, limits
from .._core.array import as_value
from .._core.carrier import expand_rules
from .._core.interpreter import Value
from .._core.primitive import Ints, Primitive, primitive
from .._plugins.traits import Discrete
from .._types.avals import BOOL, COMPLEX, INTEGER, Aval, asked_dtype, category, default_dtype
from .._types.dims import Dim, is_symbolic
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import i64, i64s
from .elementwise import ANY, ORDERED, agreed, eq, once
from .reduction import (
    extreme,
    highest,
    lowest,
    plain,
    reduce_by,
    reduce_max,
    reduce_min,
    without_axes,
)
from .shape import broadcast_in_dim, expand_dims, normal_axis, reshape

__all__ = ["argmax", "argmax_", "argmin", "argmin_", "dtype_for_indices", "is_max", "is_min"]

# ---- primitives ----------------------------------------------------------------------------


def _place(name: str, x: Aval, axis: int, index_dtype: np.dtype) -> Aval:
    agreed(name, ORDERED, x)
    out = without_axes(x, (axis,))
    n = x.shape[axis]
    if n.__class__ is int and n == 0:
        raise AxisError(
            f"{name} of {x!r} along axis {axis}, which is empty",
            fix="check the size first: nothing has no extreme",
        )
    if category(index_dtype) != INTEGER:
        raise OperandTypeError(
            f"{name}: {index_dtype} cannot hold an index", fix="use an integer dtype"
        )
    if n.__class__ is int and n - 1 > int(limits(index_dtype)[1]):
        raise ShapeError(
            f"{name}: indices of an axis of size {n} do not fit in {index_dtype.name}",
            fix="use a wider index_dtype",
        )
    return Aval(out.shape, index_dtype)


@primitive("core.argmax", traits=(Discrete,))
def argmax_(x: Aval, *, axis: int, index_dtype: np.dtype) -> Aval:
    """Return the position of the greatest element along `axis`: the first of several.  Nan counts
    as greater than all."""
    return _place("argmax", x, axis, index_dtype)


@primitive("core.argmin", traits=(Discrete,))
def argmin_(x: Aval, *, axis: int, index_dtype: np.dtype) -> Aval:
    """Return the position of the least element along `axis`: the first of several.  Nan counts as
    less than all."""
    return _place("argmin", x, axis, index_dtype)


@primitive("core.is_max", traits=(Discrete,))
def is_max(x: Aval, *, axes: Ints) -> Aval:
    """Mark the elements that equal the greatest along `axes`; none if one of them is nan."""
    return _mark("is_max", x, axes)


@primitive("core.is_min", traits=(Discrete,))
def is_min(x: Aval, *, axes: Ints) -> Aval:
    """Mark the elements that equal the least along `axes`; none if one of them is nan."""
    return _mark("is_min", x, axes)


def _mark(name: str, x: Aval, axes: Ints) -> Aval:
    agreed(name, ANY, x)
    without_axes(x, axes)
    return Aval(x.shape, BOOL)


_SHORT = 32
"""Along shorter axes one reduction of pairs beats two plain ones (10 times for 10 elements on
CPUs); along longer ones the plain ones, which are vectorised, win (2 to 4 times)."""


def _placing(prim: Primitive, op: str, direction: str, start: Callable) -> None:
    @lower_rules.rule(prim)
    def _(
        e: Emitter,
        xs: list[IrValue],
        ins: list[Aval],
        outs: list[Aval],
        axis: int,
        index_dtype: np.dtype,
    ):
        (x,), (aval,), (out,) = xs, ins, outs
        counted = Aval(aval.shape, index_dtype)
        index = positions(e, counted, axis)
        n = aval.shape[axis]
        if n.__class__ is int and n < _SHORT or not e.unit.rounds_alike:
            return _of_pairs(e, x, index, aval, out, (axis,), direction, start(aval.dtype))[1]
        best = reduce_by(e, x, aval, out.with_dtype(aval.dtype), (axis,), start(aval.dtype),
                       plain(op))  # fmt: skip
        rest = [i for i in range(aval.ndim) if i != axis]
        flags = Aval(aval.shape, BOOL)
        there = e.compare(x, e.broadcast(best, rest, aval), "EQ", flags)
        if aval.inexact:
            nan = e.compare(x, x, "NE", flags)
            there = e.op("stablehlo.or", [there, nan], flags)
        never = e.constant(highest(index_dtype), counted)
        index = e.op("stablehlo.select", [there, index, never], counted)
        return reduce_by(e, index, counted, out, (axis,), highest(index_dtype), plain("minimum"))


def positions(e: Emitter, aval: Aval, axis: int) -> Any:
    """Return 0, 1, 2, ... along `axis`."""
    if not is_symbolic(aval.shape):
        return e.op("stablehlo.iota", [], aval, iota_dimension=i64(axis))
    return e.op("stablehlo.dynamic_iota", [e.shape(aval.shape)], aval, iota_dimension=i64(axis))


def _of_pairs(
    e: Emitter, x, index: IrValue, aval: Aval, out: Aval, axes: Ints, direction: str, start: float
):
    """Return the extreme and its position, from one reduction."""
    cell, at, pred = Aval((), aval.dtype), Aval((), out.dtype), Aval((), BOOL)

    def step(r: Emitter, args: list[IrValue]):
        a, i, b, j = args
        logic = lambda f, x, y: r.op("stablehlo." + f, [x, y], pred)  # noqa: E731
        ahead = r.compare(a, b, direction, pred)
        same = r.compare(a, b, "EQ", pred)
        if aval.inexact:
            nan, other = (r.compare(v, v, "NE", pred) for v in (a, b))
            ahead = logic("or", ahead, nan)
            same = logic("or", same, logic("and", nan, other))
        # Of equal elements, and of two nans, the lesser index wins.
        earlier = logic("and", same, r.compare(i, j, "LT", pred))
        later = logic("and", same, r.compare(i, j, "GT", pred))
        keep = logic("and", logic("or", ahead, earlier), r.op("stablehlo.not", [later], pred))
        value = r.op("stablehlo.select", [keep, a, b], cell)
        return [value, r.op("stablehlo.select", [keep, i, j], at)]

    first = [e.constant(start, cell), e.constant(highest(out.dtype), at)]
    kinds = (cell, at)
    return e.op(
        "stablehlo.reduce", [x, index, *first], out.with_dtype(aval.dtype), out,
        regions=[((*kinds, *kinds), step)], dimensions=i64s(*axes),
    )  # fmt: skip


_placing(argmax_, "maximum", "GT", lowest)
_placing(argmin_, "minimum", "LT", highest)


def _marking(
    prim: Primitive, reduction: Primitive, op: str, direction: str, start: Callable
) -> None:
    best_of = extreme(op)

    @expand_rules.rule(prim)
    def _(x: Value, *, axes: tuple[int, ...]):
        x = once.bind(x)
        best = reduction.bind(x, axes=axes)
        return eq.bind(x, broadcast_in_dim.bind(best, shape=x.aval.shape, dims=_rest(x.aval, axes)))

    @lower_rules.rule(prim)
    def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], axes: tuple[int, ...]):
        (x,), (aval,), (flags,) = xs, ins, outs
        reduced, rest, first = without_axes(aval, axes), _rest(aval, axes), start(aval.dtype)
        if e.unit.rounds_alike or not aval.inexact or aval.category == COMPLEX:
            best = reduce_by(e, x, aval, reduced, axes, first, best_of)
            return e.compare(x, e.broadcast(best, rest, aval), "EQ", flags)
        names = _names(e, aval)
        where = Aval(reduced.shape, np.int64)
        # The rounding of `x` may differ between its uses, so equality alone could mark nothing.
        # The position that is reduced along with the extreme marks one element in any case.
        best, at = _of_pairs(e, x, names, aval, where, axes, direction, first)
        ties = e.compare(x, e.broadcast(best, rest, aval), "EQ", flags)
        named = Aval(aval.shape, np.int64)
        it = e.compare(names, e.broadcast(at, rest, named), "EQ", flags)
        of_numbers = e.compare(best, best, "EQ", Aval(reduced.shape, BOOL))
        it = e.op("stablehlo.and", [it, e.broadcast(of_numbers, rest, flags)], flags)
        return e.op("stablehlo.or", [ties, it], flags)


def _rest(x: Aval, axes: Ints) -> Ints:
    return tuple([i for i in range(x.ndim) if i not in axes])


def _names(e: Emitter, x: Aval) -> Any:
    """Return a different number for each element of an array of this shape."""
    flat, shaped = positions(e, Aval((x.size,), np.int64), 0), Aval(x.shape, np.int64)
    if is_symbolic(x.shape):
        return e.op("stablehlo.dynamic_reshape", [flat, e.shape(x.shape)], shaped)
    return e.op("stablehlo.reshape", [flat], shaped)


_marking(is_max, reduce_max, "maximum", "GT", lowest)
_marking(is_min, reduce_min, "minimum", "LT", highest)


# ---- functions for users -------------------------------------------------------------------


def _finder(prim: Primitive, which: str, example: list[int]):
    name = prim.name.rpartition(".")[2]

    def find(
        x: Any, axis: Any = None, *, keepdims: bool = False, index_dtype: type | None = None
    ) -> Any:
        x = as_value(x)
        n = x.aval.ndim
        if axis is None:
            x, at = reshape(x, (x.aval.size,)), 0
        else:
            at = normal_axis(axis, n)
        size = x.aval.shape[at]
        dtype = dtype_for_indices(size) if index_dtype is None else asked_dtype(index_dtype)
        out = prim.bind(x, axis=at, index_dtype=dtype)
        if not keepdims:
            return out
        return expand_dims(out, tuple(range(n)) if axis is None else at)

    find.__name__ = find.__qualname__ = name
    find.__doc__ = (
        f"Where the {which} element is, as numpy's: the first if there are several; nan counts\n"
        "as the extreme.\n\n"
        "Args:\n"
        "  x: a boolean, integer or floating array.\n"
        "  axis: along which axis; None: in the flattened array.\n"
        "  keepdims: whether the axis stays, with size 1.\n"
        "  index_dtype: of the result; the default integer unless the axis is too long for it.\n\n"
        "Raises AxisError for an axis that `x` lacks or that is empty.\n\n"
        ">>> import numpy as np\n"
        f">>> {name}(np.array([[3, 1], [2, 5]]), axis=0).tolist()\n"
        f"{example}\n"
    )
    return find


def dtype_for_indices(n: Dim | int) -> np.dtype:
    """Return the default integer dtype, or int64 if an axis of size `n` needs it."""
    default = default_dtype(INTEGER)
    fits = n.__class__ is not int or n - 1 <= int(limits(default)[1])
    return default if fits else np.dtype(np.int64)


argmax = _finder(argmax_, "greatest", [0, 1])
argmin = _finder(argmin_, "least", [1, 0])
