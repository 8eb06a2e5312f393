"""Indexing: gathering windows at indices.

Dimension numbers are those of StableHLO, with the components of an index along the last axis of
the indices.

Invariant: positions outside are clamped or filled as `mode` says, never read from a neighbour.
Batching axes are axes of the operation and not part of an index.
"""

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._base import jaxlib_api
from .._base.errors import ArgumentError, OperandTypeError, ShapeError
from .._base.jaxlib_api import IrValue
from .._core.array import as_value, fits
from .._core.interpreter import Value
from .._core.primitive import Ints, primitive
from .._plugins.traits import Indexing
from .._types.avals import BOOL, INT32, INTEGER, Aval, category
from .._types.dims import Dim, is_symbolic
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import attr, boolean, i64s
from ..typing import Array, ArrayLike
from .empty_axes import make_room, take_back, together, with_room
from .shape import keep_imaginary, materialise_at_ground, normal_shape, reshape
from .sizes import integers
from .static_arguments import flag, record

__all__ = ["CLIP", "FILL", "gather_", "GatherDimensionNumbers", "PROMISE", "taken"]

CLIP, FILL, PROMISE = "clip", "fill", "promise_in_bounds"
_MODES = {None: FILL, "fill": FILL, "drop": FILL, "clip": CLIP, "promise_in_bounds": PROMISE}


class GatherScatterMode(enum.StrEnum):
    """The treatment of positions outside; members equal the plain strings."""

    CLIP = CLIP
    FILL_OR_DROP = FILL
    PROMISE_IN_BOUNDS = PROMISE


def normal_mode(mode: "GatherScatterMode | str | None") -> str:
    """Return the mode as primitives spell it; "drop" and "fill" are the same."""
    try:
        return _MODES[mode if mode is None else str(mode)]
    except KeyError:
        raise ArgumentError(
            f"there is no indexing mode {mode!r}",
            fix='use "clip", "fill" (when reading), "drop" (when writing) or "promise_in_bounds"',
        ) from None


class GatherDimensionNumbers(NamedTuple):
    """The correspondence between axes of a gather's operand, indices and result.

    Attributes:
      offset_dims: axes of the result that are axes of the window.
      collapsed_slice_dims: axes of the operand along which the window has size 1, dropped.
      start_index_map: the axis of the operand for each component of an index.
      operand_batching_dims, start_indices_batching_dims: axes paired one to one.
    """

    offset_dims: Ints
    collapsed_slice_dims: Ints
    start_index_map: Ints
    operand_batching_dims: Ints = ()
    start_indices_batching_dims: Ints = ()


# ---- the primitive -------------------------------------------------------------------------


def correspond(name: str, x: Aval, indices: Aval, window: Ints, dropped: Ints, to: Ints,
               together: Ints, with_: Ints) -> None:  # fmt: skip
    """Check the requirements that gather and scatter share on dimension numbers."""
    if indices.category != INTEGER or not indices.ndim:
        raise ShapeError(
            f"{name}: indices are integers with components along the last axis, not {indices!r}",
            fix="convert with .astype(int), and add a last axis",
        )
    if indices.shape[-1] != len(to):
        raise ShapeError(
            f"{name}: an index of {indices!r} has {indices.shape[-1]} components, and the "
            f"dimension numbers map {len(to)}",
            fix="the last axis of the indices has one component for each axis mapped",
        )
    if any(not 0 <= a < x.ndim for a in (*dropped, *together)) or any(
        not 0 <= b < indices.ndim - 1 for b in with_
    ):
        raise ShapeError(
            f"{name}: axes {dropped} and batching axes {together} are not among the {x.ndim} of "
            f"{x!r}, or batching axes {with_} not among those of {indices!r} but the last",
            fix="count axes from 0",
        )
    if len(window) + len(dropped) + len(together) != x.ndim or len({*dropped, *together}) != len(
        dropped
    ) + len(together):
        raise ShapeError(
            f"{name}: {len(window)} axes of the window, {len(dropped)} dropped and "
            f"{len(together)} batching axes are not the {x.ndim} axes of {x!r}",
            fix="each axis of the operand is in the window, dropped, or a batching axis",
        )
    if list(dropped) != sorted(dropped) or list(together) != sorted(together):
        raise ShapeError(
            f"{name}: dropped axes {dropped} and batching axes {together} must be in order",
            fix="sort them; batching axes of the indices go along with those of the operand",
        )
    if len(set(to)) != len(to) or {*to} & {*together} or any(not 0 <= a < x.ndim for a in to):
        raise ShapeError(
            f"{name}: components of the index map to axes {to} of {x!r}",
            fix="map each to another axis, which is not a batching axis",
        )
    if len(together) != len(with_) or any(
        x.shape[a] != indices.shape[b] for a, b in zip(together, with_)
    ):
        raise ShapeError(
            f"{name}: batching axes {together} of {x!r} and {with_} of {indices!r} do not go "
            "together",
            fix="name as many of each, of equal sizes",
        )


def no_index(indices: Aval) -> bool:
    """Return True if the array of indices is known to be empty."""
    return any(d.__class__ is int and d == 0 for d in indices.shape[:-1])


@primitive("core.gather", traits=(Indexing,))
def gather_(
    x: Aval,
    indices: Aval,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Ints,
    mode: str,
    fill_value: bool | int | float | complex | None,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> Aval:
    """Read a window of `slice_sizes` for each index, along the last axis of `indices`.

    `fill_value` replaces windows outside if the mode is "fill".  None is nan for floats, the least
    (signed) or greatest integer, or True.
    """
    offset, collapsed, to, together, with_ = dimension_numbers
    correspond("gather", x, indices, offset, collapsed, to, together, with_)
    dropped = {*collapsed, *together}
    for i, (n, m) in enumerate(zip(x.shape, slice_sizes, strict=True)):
        if i in dropped and m != 1:
            raise ShapeError(
                f"gather: axis {i} is dropped, and the window has size {m} there", fix="make it 1"
            )
        if n.__class__ is int and m.__class__ is int and not 0 <= m <= n and not no_index(indices):
            raise ShapeError(
                f"gather: a window of size {m} does not fit axis {i} of {x!r}",
                fix=f"make it at most {n}",
            )
    window = iter([m for i, m in enumerate(slice_sizes) if i not in dropped])
    others = iter(indices.shape[:-1])
    ndim = indices.ndim - 1 + len(offset)
    if tuple(sorted(set(offset))) != offset or any(a >= ndim for a in offset):
        raise ShapeError(
            f"gather: {offset} are not axes of the result, in order", fix=f"use 0 to {ndim - 1}"
        )
    return x.with_shape([next(window if i in offset else others) for i in range(ndim)])


@lower_rules.rule(gather_)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    dimension_numbers: "GatherDimensionNumbers",
    slice_sizes: tuple[int | Dim, ...],
    mode: str,
    fill_value: float | None,
    indices_are_sorted: bool,
    unique_indices: bool,
):
    n = dimension_numbers
    if no_index(ins[1]):
        return e.constant(0, outs[0])
    text = (
        f"#stablehlo.gather<offset_dims = {list(n.offset_dims)}, "
        f"collapsed_slice_dims = {list(n.collapsed_slice_dims)}, "
        f"operand_batching_dims = {list(n.operand_batching_dims)}, "
        f"start_indices_batching_dims = {list(n.start_indices_batching_dims)}, "
        f"start_index_map = {list(n.start_index_map)}, index_vector_dim = {ins[1].ndim - 1}>"
    )
    wide, places, rows = ins[0], ins[1], outs[0]
    if is_symbolic(ins[0].shape) or is_symbolic(slice_sizes):
        wide = with_room(ins[0], slice_sizes)
        many, one = n.operand_batching_dims, n.start_indices_batching_dims
        others = [i for i in range(outs[0].ndim) if i not in n.offset_dims]
        places = together(ins[1], ins[0], wide, one, many)
        rows = together(outs[0], ins[0], wide, [others[i] for i in one], many)
    operands = [make_room(e, xs[0], ins[0], wide), make_room(e, xs[1], ins[1], places)]
    how = dict(dimension_numbers=attr(text), indices_are_sorted=boolean(indices_are_sorted))
    if is_symbolic(slice_sizes):
        sizes = e.shape(slice_sizes)
        if ins[1].dtype != INT32:
            sizes = e.op("stablehlo.convert", [sizes], Aval((len(slice_sizes),), ins[1].dtype))
        out = e.op("stablehlo.dynamic_gather", [*operands, sizes], rows, **how)
    else:
        out = e.op("stablehlo.gather", operands, rows, slice_sizes=i64s(*slice_sizes), **how)
    out = take_back(e, out, rows, outs[0])
    if mode != FILL:
        return out
    inside = _inside(e, xs[1], ins, n.start_index_map, slice_sizes)
    keep = [i for i in range(outs[0].ndim) if i not in n.offset_dims]
    inside = e.broadcast(inside, keep, Aval(outs[0].shape, BOOL))
    value = default_fill(outs[0].dtype) if fill_value is None else fill_value
    return e.op("stablehlo.select", [inside, out, e.constant(value, outs[0])], outs[0])


def default_fill(dtype: np.dtype) -> Any:
    """Return the default value outside: nan, the least or greatest integer, or True."""
    if dtype == BOOL:
        return True
    if category(dtype) != INTEGER:
        return float("nan")
    return int(jaxlib_api.limits(dtype)[1 if "uint" in dtype.name else 0])


def greatest_places(
    e: Emitter, ins: list[Aval], axes: tuple[int, ...], sizes: tuple[int | Dim, ...]
):
    """Return the greatest positions of windows on these axes, in the dtype of the indices."""
    room = [ins[0].shape[a] - sizes[a] for a in axes]
    aval = Aval((len(room),), ins[1].dtype)
    if is_symbolic(room):
        v = e.shape(room)
        return v if aval.dtype == INT32 else e.op("stablehlo.convert", [v], aval)
    top = int(jaxlib_api.limits(aval.dtype)[1])
    return e.constant(np.array([min(r, top) for r in room], aval.dtype), aval)


def _inside(
    e: Emitter, indices, ins: list[Aval], axes: tuple[int, ...], sizes: tuple[int | Dim, ...]
):
    """Mark the indices whose window lies inside."""
    aval = ins[1]
    each = aval.shape[:-1]
    if not axes:
        return e.constant(True, Aval(each, BOOL))
    high = e.broadcast(greatest_places(e, ins, axes, sizes), [aval.ndim - 1], aval)
    flags = Aval(aval.shape, BOOL)
    low = e.compare(indices, e.constant(0, aval), "GE", flags)
    ok = e.op("stablehlo.and", [low, e.compare(indices, high, "LE", flags)], flags)
    cell = Aval((), BOOL)
    every = [((cell, cell), lambda r, ab: [r.op("stablehlo.and", ab, cell)])]
    init = e.constant(True, cell)
    return e.op("stablehlo.reduce", [ok, init], Aval(each, BOOL), regions=every,
                dimensions=i64s(aval.ndim - 1))  # fmt: skip


def taken(x: Value, positions: Value, axis: int) -> Any:
    """Read `x` at positions along `axis`, one for each element of the result."""
    n = x.aval.ndim
    rest = tuple([i for i in range(n) if i != axis])
    return gather_.bind(
        x,
        reshape(positions, (*positions.aval.shape, 1)),
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), rest, rest),
        slice_sizes=(1,) * n,
        mode=PROMISE,
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=True,
    )


# ---- functions for users -------------------------------------------------------------------


def gather(
    operand: ArrayLike, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int], *, unique_indices: bool = False, indices_are_sorted: bool = False,
    mode: Any = None, fill_value: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Read the window of `slice_sizes` at each of `start_indices`.

    Args:
      operand: an array.
      start_indices: integers; an index is along the last axis, and counts from the front.
      dimension_numbers: the roles of axes, see `GatherDimensionNumbers`.
      slice_sizes: the size of the window along each axis of the operand.
      unique_indices, indices_are_sorted: promises, which make it faster.
      mode: the treatment of windows outside: "fill" (the default), "clip" or "promise_in_bounds".
      fill_value: the value that "fill" reads outside; by default nan for floats, the least (signed)
        or greatest integer, or True.

    Raises TypeRule if axes or sizes do not fit.

    >>> import numpy as np, plait
    >>> numbers = plait.lax.GatherDimensionNumbers((1,), (), (0,))
    >>> plait.lax.gather(np.arange(5), np.array([[1], [3]]), numbers, (2,)).tolist()
    [[1, 2], [3, 4]]
    """
    x = materialise_at_ground(as_value(operand))
    return gather_.bind(
        x,
        integers(start_indices, "indices"),
        dimension_numbers=record("gather", GatherDimensionNumbers, dimension_numbers),
        slice_sizes=normal_shape(slice_sizes),
        mode=normal_mode(mode),
        fill_value=normal_fill(fill_value, x.aval.dtype),
        indices_are_sorted=flag("gather", "indices_are_sorted", indices_are_sorted),
        unique_indices=flag("gather", "unique_indices", unique_indices),
    )


def normal_fill(value: Any, dtype: np.dtype) -> Any:
    """Return a fill value as a Python scalar of the kind of `dtype`."""
    if value is None:
        return None
    v = np.asarray(value)
    if v.ndim:
        raise OperandTypeError(f"a fill value is a number, not {value!r}", fix="give a scalar")
    keep_imaginary(Aval((), v.dtype), dtype)
    if value.__class__ is int and category(dtype) == INTEGER:
        value = fits(value, dtype)
    with np.errstate(all="ignore"):
        kind = category(dtype)
        return (
            v.astype(dtype).item()
            if dtype.kind in "biufc"
            else (int(v) if kind == INTEGER else float(v))
        )
