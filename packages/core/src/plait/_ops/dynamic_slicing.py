"""Dynamic slices: boxes of an array read and written at computed positions.

Invariant: a box lies inside the array; one that extends beyond it is moved.  Primitives count
positions from the front; the functions that users call also count negative ones from the end.
"""

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from .._base import jaxlib_api
from .._base.errors import OperandTypeError, ShapeError, SubscriptError
from .._base.jaxlib_api import IrValue
from .._core.array import Literal, as_value
from .._core.interpreter import Value, admitted_sizes
from .._core.primitive import Sizes, primitive
from .._plugins.traits import Indexing
from .._types.avals import INT32, INTEGER, Aval
from .._types.dims import Dim, decide_ge, is_symbolic, max_dim
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import attr, i64s
from ..typing import Array, ArrayLike, Shape
from . import shape as sh
from .empty_axes import make_room, take_back, with_room
from .index_plans import is_inside, unknown_position
from .sizes import from_front, integers, size_value

__all__ = [
    "dynamic_slice_", "dynamic_slice_in_dim", "dynamic_update_slice_",
    "dynamic_update_slice_in_dim", "index_in_dim",
]  # fmt: skip

# ---- primitives ----------------------------------------------------------------------------


def _place(name: str, x: Aval, starts: Sequence[Aval], sizes: Sequence[Any]) -> None:
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise ShapeError(
            f"{name}: {len(starts)} positions and {len(sizes)} sizes for {x!r}",
            fix=f"give {x.ndim} of each, one for each axis",
        )
    for s in starts:
        if s.ndim or s.category != INTEGER or s.dtype != starts[0].dtype:
            raise OperandTypeError(
                f"{name}: positions must be integers without axes and of one dtype, not {s!r}",
                fix="convert them with .astype",
            )
    for i, (n, m) in enumerate(zip(x.shape, sizes)):
        if n.__class__ is int and m.__class__ is int and m > n:
            raise ShapeError(
                f"{name}: a box of size {m} does not fit axis {i} of {x!r}",
                fix=f"make it at most {n}",
            )


@primitive("core.dynamic_slice", traits=(Indexing,))
def dynamic_slice_(x: Aval, *starts: Aval, sizes: Sizes) -> Aval:
    """Read the box of `sizes` at `starts`, moved inside if it extends beyond the array."""
    _place("dynamic_slice", x, starts, sizes)
    return x.with_shape(sizes)


@lower_rules.rule(dynamic_slice_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], sizes: tuple[int, ...]):
    wide = with_room(ins[0], sizes)
    xs = [make_room(e, xs[0], ins[0], wide), *xs[1:]]
    if not is_symbolic(sizes):
        xs = [xs[0], *_within(e, xs[1:], ins[1:], wide.shape, sizes)]
        return e.op("stablehlo.dynamic_slice", xs, outs[0], slice_sizes=i64s(*sizes))
    n = len(sizes)
    vector = Aval((n,), INT32)
    starts = _stacked(e, [_narrow(e, v, a) for v, a in zip(xs[1:], ins[1:])])
    room = [a - b for a, b in zip(wide.shape, sizes)]
    zero = e.constant(0, vector)
    starts = e.op("stablehlo.clamp", [zero, starts, e.shape(room)], vector)
    limits = e.op("stablehlo.add", [starts, e.shape(sizes)], vector)
    box = [xs[0], starts, limits, e.constant(1, vector)]
    return e.op("stablehlo.real_dynamic_slice", box, outs[0])


def _within(
    e: Emitter,
    starts: list[IrValue],
    avals: list[Aval],
    shape: tuple[int, ...],
    sizes: tuple[int, ...],
):
    """Clamp positions to keep the box within the array.

    The operation clamps by definition, but the compiler omits it on axes divided over devices.
    """
    if not e.is_divided or is_symbolic((*shape, *sizes)):
        return starts
    found = []
    for x, a, n, size in zip(starts, avals, shape, sizes, strict=True):
        last = min(n - size, int(jaxlib_api.limits(a.dtype)[1]))
        ends = e.constant(0, a), e.constant(last, a)
        found.append(e.op("stablehlo.clamp", [ends[0], x, ends[1]], a))
    return found


def _narrow(e: Emitter, x: IrValue, aval: Aval):
    """Convert a position to i32, clamped to its range."""
    if aval.dtype == INT32:
        return x
    low, high = (
        e.constant(v, aval) for v in (max(0, int(jaxlib_api.limits(aval.dtype)[0])), 2**31 - 1)
    )
    wide = aval.dtype.itemsize > 4 or aval.dtype == np.uint32
    x = e.op("stablehlo.clamp", [low, x, high], aval) if wide else x
    return e.op("stablehlo.convert", [x], Aval((), INT32))


def _stacked(e: Emitter, xs: list[IrValue]):
    parts = [e.op("stablehlo.reshape", [x], Aval((1,), INT32)) for x in xs]
    return e.op("stablehlo.concatenate", parts, Aval((len(xs),), INT32), dimension=attr("0 : i64"))


@primitive("core.dynamic_update_slice", traits=(Indexing,))
def dynamic_update_slice_(x: Aval, box: Aval, *starts: Aval) -> Aval:
    """Write `box` into `x` at `starts`, moved inside if it extends beyond the array."""
    if box.ndim != x.ndim or box.dtype != x.dtype:
        raise OperandTypeError(
            f"dynamic_update_slice: {box!r} is not a box of {x!r}",
            fix="it must have as many axes, and the same dtype",
        )
    _place("dynamic_update_slice", x, starts, box.shape)
    return x


@lower_rules.rule(dynamic_update_slice_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    wide = with_room(ins[0], ins[1].shape)
    x = make_room(e, xs[0], ins[0], wide)
    starts = _within(e, xs[2:], ins[2:], wide.shape, ins[1].shape)
    out = e.op("stablehlo.dynamic_update_slice", [x, xs[1], *starts], wide)
    return take_back(e, out, wide, outs[0])


# ---- functions for users -------------------------------------------------------------------


def _counting(x: Value, allowed: bool | tuple[bool, ...], what: str) -> tuple[bool, ...]:
    """Return, for each axis, True if negative positions count from its end."""
    if isinstance(allowed, bool | np.bool):
        return (bool(allowed),) * x.aval.ndim
    try:
        each = tuple([bool(a) for a in allowed])
    except TypeError:
        each = ()
    if len(each) != x.aval.ndim:
        raise ShapeError(
            f"{what}: allow_negative_indices is {allowed!r}, for {x.aval!r}",
            fix="give a boolean, or one for each axis",
        )
    return each


def _inside(i: Any, n: Any, what: str) -> Any:
    """Return a position that counts from the front; raises SubscriptError if it is negative."""
    if i.__class__ is Literal and i.value < 0:
        raise SubscriptError(
            f"{what}: position {i.value} on an axis of size {n} is negative",
            fix="leave allow_negative_indices out, or count from the front",
        )
    return i


def _starts(x: Value, starts: object, what: str, allowed: Any = True) -> list[Any]:
    positions: list[Any]
    if isinstance(starts, Value | np.ndarray) and starts.ndim == 1:
        v = as_value(starts)
        ends = range(v.aval.shape[0])
        rows = [sh.slice_.bind(v, starts=(k,), limits=(k + 1,), strides=(1,)) for k in ends]
        positions = [sh.reshape(r, ()) for r in rows]
    else:
        try:
            positions = [*starts]  # type: ignore[misc]
        except TypeError:
            raise OperandTypeError(
                f"{what}: positions {starts!r}", fix="give an integer for each axis, in a tuple"
            ) from None
    if len(positions) != x.aval.ndim:
        raise ShapeError(
            f"{what}: {len(positions)} positions for the {x.aval.ndim} axes of {x.aval!r}",
            fix="give one for each axis",
        )
    values = [
        from_front(integers(s, "positions"), n)
        if back
        else _inside(integers(s, "positions"), n, what)
        for s, n, back in zip(positions, x.aval.shape, _counting(x, allowed, what))
    ]
    for v in values:
        if v.aval.ndim:
            raise OperandTypeError(
                f"{what}: a position is {v.aval!r}",
                fix="give an integer without axes for each axis",
            )
    wide = any(v.aval.dtype != INT32 for v in values)
    dtype = np.dtype(np.int64) if wide else INT32
    return [sh.convert(v, dtype) for v in values]


def dynamic_slice(
    operand: ArrayLike, start_indices: ArrayLike | Sequence[ArrayLike], slice_sizes: Shape, *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:  # fmt: skip
    """Read the box of `slice_sizes` whose corner is at `start_indices`.

    Args:
      operand: an array.
      start_indices: an integer (or array without axes) for each axis; negative ones count from
        the end.  A box that extends beyond the array is moved inside.
      slice_sizes: a size for each axis.
      allow_negative_indices: a boolean, or one for each axis.  False promises that positions are
        not negative, and saves the test.

    Raises TypeRule if the numbers do not fit the array.

    >>> import plait
    >>> plait.lax.dynamic_slice(plait.numpy.arange(5), (3,), (4,))
    Array([1, 2, 3, 4], dtype=int32)
    """
    x = sh.materialise_at_ground(as_value(operand))
    starts = _starts(x, start_indices, "dynamic_slice", allow_negative_indices)
    return dynamic_slice_.bind(x, *starts, sizes=sh.normal_shape(slice_sizes))


def dynamic_update_slice(
    operand: ArrayLike, update: ArrayLike, start_indices: ArrayLike | Sequence[ArrayLike], *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:  # fmt: skip
    """Return `operand` with the box `update`, of the same rank, written at `start_indices`.

    Positions and `allow_negative_indices` are as in `dynamic_slice`.  Raises TypeRule if the box
    is larger than the operand, or the numbers of axes and positions differ.

    >>> import plait
    >>> plait.lax.dynamic_update_slice(plait.numpy.zeros(4), plait.numpy.ones(2), (1,))
    Array([0., 1., 1., 0.], dtype=float32)
    """
    x = sh.materialise_at_ground(as_value(operand))
    box = sh.fitting("dynamic_update_slice", update, x)
    starts = _starts(x, start_indices, "dynamic_update_slice", allow_negative_indices)
    return dynamic_update_slice_.bind(x, box, *starts)


def dynamic_slice_in_dim(
    operand: ArrayLike, start_index: ArrayLike, slice_size: SupportsIndex | Dim, axis: int = 0, *,
    allow_negative_indices: bool = True,
) -> Array:  # fmt: skip
    """Read `slice_size` elements from `start_index` along one axis; positions as `dynamic_slice`.

    Raises AxisError for an axis out of range, TypeRule for sizes that do not fit.

    >>> import plait
    >>> plait.lax.dynamic_slice_in_dim(plait.numpy.arange(5), 1, 2).tolist()
    [1, 2]
    """
    x = as_value(operand)
    at = sh.normal_axis(axis, x.aval.ndim)
    starts: list[Any] = [0] * x.aval.ndim
    sizes = list(x.aval.shape)
    starts[at], sizes[at] = start_index, slice_size
    return dynamic_slice(x, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *,
    allow_negative_indices: bool = True,
) -> Array:  # fmt: skip
    """Read the element at `index` along one axis, which is kept with size 1, or dropped.

    Positions are as in `dynamic_slice`.  Raises AxisError for an axis out of range.

    >>> import plait
    >>> plait.lax.dynamic_index_in_dim(plait.numpy.arange(5), -1, keepdims=False).item()
    4
    """
    x = as_value(operand)
    out = dynamic_slice_in_dim(x, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if keepdims else _without(out, sh.normal_axis(axis, x.aval.ndim))


def _without(x: Array, axis: int) -> Any:
    return sh.reshape(x, (*x.aval.shape[:axis], *x.aval.shape[axis + 1 :]))


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Read the element at a fixed `index` along one axis, which is kept with size 1, or dropped.

    Raises SubscriptError (an IndexError) for an index out of range, AxisError for such an axis.

    >>> import plait
    >>> plait.lax.index_in_dim(plait.numpy.arange(5), 3, keepdims=False).item()
    3
    """
    x = as_value(operand)
    at = sh.normal_axis(axis, x.aval.ndim)
    try:
        n = x.aval.shape[at]
        i: Any = admitted_sizes(index) if index.__class__ is Dim else index.__index__()
    except (AttributeError, TypeError):
        raise OperandTypeError(
            f"index_in_dim: the index must be an integer, not {index!r}",
            fix="use dynamic_index_in_dim for one that is computed",
        ) from None
    inside = is_inside(i, n)
    if inside is None:
        if not is_inside(i, max_dim(n, 1)):
            raise unknown_position(i, n)
        i = n + i if decide_ge(i, 0) is False else i
        return dynamic_index_in_dim(x, size_value(i, INT32), at, keepdims)
    if not inside:
        raise SubscriptError(
            f"index {i} is out of range for axis {at} of {x.aval!r}",
            fix=f"use an index in [-{n}, {n})",
        )
    i = i + n if decide_ge(i, 0) is False else i
    box = lambda new, old: tuple([new if k == at else d for k, d in enumerate(old)])  # noqa: E731
    none, ones = (0,) * x.aval.ndim, (1,) * x.aval.ndim
    out = sh.slice_.bind(x, starts=box(i, none), limits=box(i + 1, x.aval.shape), strides=ones)
    return out if keepdims else _without(out, at)


def dynamic_update_slice_in_dim(
    operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *,
    allow_negative_indices: bool = True,
) -> Array:  # fmt: skip
    """Return `operand` with the box `update` written from `start_index` along one axis.

    Positions are as in `dynamic_slice`.  Raises AxisError for an axis out of range, TypeRule if the
    box does not fit.

    >>> import plait
    >>> zeros, one = plait.numpy.zeros(3), plait.numpy.ones(1)
    >>> plait.lax.dynamic_update_slice_in_dim(zeros, one, 1, 0).tolist()
    [0.0, 1.0, 0.0]
    """
    x = as_value(operand)
    starts: list[Any] = [0] * x.aval.ndim
    starts[sh.normal_axis(axis, x.aval.ndim)] = start_index
    return dynamic_update_slice(x, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *,
    allow_negative_indices: bool = True,
) -> Array:  # fmt: skip
    """Return `operand` with the element at `index` along one axis replaced by `update`.

    `update` has that axis with size 1, or lacks it.  Positions are as in `dynamic_slice`.  Raises
    AxisError for an axis out of range, TypeRule if the update does not fit.

    >>> import plait
    >>> plait.lax.dynamic_update_index_in_dim(plait.numpy.zeros(3), 1.0, 1, 0).tolist()
    [0.0, 1.0, 0.0]
    """
    x, u = as_value(operand), as_value(update)
    at = sh.normal_axis(axis, x.aval.ndim)
    if u.aval.ndim != x.aval.ndim:
        u = sh.reshape(u, (*u.aval.shape[:at], 1, *u.aval.shape[at:]))
    return dynamic_update_slice_in_dim(
        x, u, index, at, allow_negative_indices=allow_negative_indices
    )
