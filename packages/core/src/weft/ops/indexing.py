"""Indexing: boxes at computed places, and gathering and scattering windows.

Dimension numbers are those of StableHLO, with the components of an index along the last axis of
the indices.

Invariant: what lies outside is clamped, dropped or filled as the `mode` says, never read from a
neighbour: batching axes are axes of the operation and no part of an index.  Primitives count
places from the front; the functions that users call also count negative ones from the end.
"""

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import door
from ..dims import Dim, is_symbolic
from ..errors import SubscriptError, TypeRule
from ..interpreter import Value
from ..primitive import Ints, Primitive, Sizes, primitive
from ..traits import Indexing
from ..types import BOOL, INT32, INTEGER, OPAQUE, Aval, category, no_number
from ..values import Literal, as_value
from ..xla.lower import lower_rules
from ..xla.mlir import attr, boolean, i64s
from .elementwise import add, lt, mul, neg, select
from .shape import (
    broadcast_to,
    convert,
    iota_,
    materialise_at_ground,
    normal_axis,
    reshape,
    slice_,
)

CLIP, FILL, PROMISE = "clip", "fill", "promise_in_bounds"
_MODES = {None: FILL, "fill": FILL, "drop": FILL, "clip": CLIP, "promise_in_bounds": PROMISE}


class GatherScatterMode(enum.StrEnum):
    """What happens outside: the same as the plain strings."""

    CLIP = CLIP
    FILL_OR_DROP = FILL
    PROMISE_IN_BOUNDS = PROMISE


def normal_mode(mode: Any) -> str:
    """The mode as primitives spell it; "drop" and "fill" are one."""
    try:
        return _MODES[mode if mode is None else str(mode)]
    except KeyError:
        raise TypeRule(
            f"there is no indexing mode {mode!r}",
            fix='use "clip", "fill" (when reading), "drop" (when writing) or "promise_in_bounds"',
        ) from None


class GatherDimensionNumbers(NamedTuple):
    """How the axes of a gather's operand, indices and result correspond.

    Attributes:
      offset_dims: axes of the result that are axes of the window.
      collapsed_slice_dims: axes of the operand along which the window has size 1, dropped.
      start_index_map: the axis of the operand that each component of an index is a place on.
      operand_batching_dims, start_indices_batching_dims: axes that go together one to one.
    """

    offset_dims: Ints
    collapsed_slice_dims: Ints
    start_index_map: Ints
    operand_batching_dims: Ints = ()
    start_indices_batching_dims: Ints = ()


class ScatterDimensionNumbers(NamedTuple):
    """How the axes of a scatter's operand, indices and updates correspond.

    Attributes:
      update_window_dims: axes of the updates that are axes of the window.
      inserted_window_dims: axes of the operand along which the window has size 1, dropped.
      scatter_dims_to_operand_dims: the axis of the operand that each component of an index is a
        place on.
      operand_batching_dims, scatter_indices_batching_dims: axes that go together one to one.
    """

    update_window_dims: Ints
    inserted_window_dims: Ints
    scatter_dims_to_operand_dims: Ints
    operand_batching_dims: Ints = ()
    scatter_indices_batching_dims: Ints = ()


# ---- symbolic sizes as values --------------------------------------------------------------


@primitive("core.dim")
def dim_(*, size: Dim) -> Aval:
    """A symbolic size, as a number."""
    return Aval((), INT32)


@lower_rules.rule(dim_)
def _(e, xs, ins, outs, size):
    return e.size(size)


def size_value(n: Any, dtype: np.dtype) -> Any:
    """A size, which may be symbolic, as a value of this dtype."""
    if n.__class__ is Dim:
        return convert(dim_.bind(size=n), dtype)
    return Literal(n, Aval((), dtype))


def numbered(shape: tuple, dtype: np.dtype) -> Any:
    """0, 1, 2, ... in row-major order, by an iota of each axis: partitioned without moving data."""
    aval = Aval(shape, dtype)
    total: Any = None
    stride: Any = 1
    for axis in range(len(shape) - 1, -1, -1):
        n = iota_.bind(shape=shape, axis=axis, dtype=dtype)
        if stride.__class__ is Dim:
            n = mul.bind(n, broadcast_to(size_value(stride, dtype), shape))
        elif stride != 1:
            n = mul.bind(n, Literal(stride, aval))
        total = n if total is None else add.bind(total, n)
        stride = stride * shape[axis]
    return Literal(0, aval) if total is None else total


# ---- boxes ---------------------------------------------------------------------------------


def _place(name: str, x: Aval, starts: Sequence[Aval], sizes: Sequence[Any]) -> None:
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise TypeRule(
            f"{name}: {len(starts)} places and {len(sizes)} sizes for {x!r}",
            fix=f"give {x.ndim} of each, one for each axis",
        )
    for s in starts:
        if s.ndim or s.category != INTEGER or s.dtype != starts[0].dtype:
            raise TypeRule(
                f"{name}: places must be integers without axes and of one dtype, not {s!r}",
                fix="convert them with .astype",
            )
    for i, (n, m) in enumerate(zip(x.shape, sizes)):
        if n.__class__ is int and m.__class__ is int and m > n:
            raise TypeRule(
                f"{name}: a box of size {m} does not fit axis {i} of {x!r}",
                fix=f"make it at most {n}",
            )


@primitive("core.dynamic_slice", traits=(Indexing,))
def dynamic_slice_(x: Aval, *starts: Aval, sizes: Sizes) -> Aval:
    """The box of `sizes` at `starts`, moved inside where it sticks out."""
    _place("dynamic_slice", x, starts, sizes)
    return x.with_shape(sizes)


@lower_rules.rule(dynamic_slice_)
def _(e, xs, ins, outs, sizes):
    if not is_symbolic(sizes):
        return e.op("stablehlo.dynamic_slice", xs, outs[0], slice_sizes=i64s(*sizes))
    n = len(sizes)
    vector = Aval((n,), INT32)
    starts = _stacked(e, [_narrow(e, v, a) for v, a in zip(xs[1:], ins[1:])])
    room = [a - b for a, b in zip(ins[0].shape, sizes)]
    zero = e.constant(0, vector)
    starts = e.op("stablehlo.clamp", [zero, starts, e.shape(room)], vector)
    limits = e.op("stablehlo.add", [starts, e.shape(sizes)], vector)
    box = [xs[0], starts, limits, e.constant(1, vector)]
    return e.op("stablehlo.real_dynamic_slice", box, outs[0])


def _narrow(e, x, aval):
    """A place as an i32, brought into its range."""
    if aval.dtype == INT32:
        return x
    low, high = (e.constant(v, aval) for v in (max(0, int(door.limits(aval.dtype)[0])), 2**31 - 1))
    wide = aval.dtype.itemsize > 4 or aval.dtype == np.uint32
    x = e.op("stablehlo.clamp", [low, x, high], aval) if wide else x
    return e.op("stablehlo.convert", [x], Aval((), INT32))


def _stacked(e, xs):
    parts = [e.op("stablehlo.reshape", [x], Aval((1,), INT32)) for x in xs]
    return e.op("stablehlo.concatenate", parts, Aval((len(xs),), INT32), dimension=attr("0 : i64"))


@primitive("core.dynamic_update_slice", traits=(Indexing,))
def dynamic_update_slice_(x: Aval, box: Aval, *starts: Aval) -> Aval:
    """`x` with `box` written at `starts`, moved inside where it sticks out."""
    if box.ndim != x.ndim or box.dtype != x.dtype:
        raise TypeRule(
            f"dynamic_update_slice: {box!r} is no box of {x!r}",
            fix="it must have as many axes, and the same dtype",
        )
    _place("dynamic_update_slice", x, starts, box.shape)
    return x


@lower_rules.rule(dynamic_update_slice_)
def _(e, xs, ins, outs):
    return e.op("stablehlo.dynamic_update_slice", xs, outs[0])


# ---- gather --------------------------------------------------------------------------------


def _correspond(name: str, x: Aval, indices: Aval, window: Ints, dropped: Ints, to: Ints,
                together: Ints, with_: Ints) -> None:  # fmt: skip
    """What gather and scatter ask of their dimension numbers alike."""
    if indices.category != INTEGER or not indices.ndim:
        raise TypeRule(
            f"{name}: indices are integers with components along the last axis, not {indices!r}",
            fix="convert with .astype(int), and add a last axis",
        )
    if indices.shape[-1] != len(to):
        raise TypeRule(
            f"{name}: an index of {indices!r} has {indices.shape[-1]} components, and the "
            f"dimension numbers map {len(to)}",
            fix="the last axis of the indices has one component for each axis mapped",
        )
    if len(window) + len(dropped) + len(together) != x.ndim or len({*dropped, *together}) != len(
        dropped
    ) + len(together):
        raise TypeRule(
            f"{name}: {len(window)} axes of the window, {len(dropped)} dropped and "
            f"{len(together)} batching axes are not the {x.ndim} axes of {x!r}",
            fix="each axis of the operand is in the window, dropped, or a batching axis",
        )
    if len(set(to)) != len(to) or {*to} & {*together} or any(not 0 <= a < x.ndim for a in to):
        raise TypeRule(
            f"{name}: components of the index map to axes {to} of {x!r}",
            fix="map each to another axis, which is no batching axis",
        )
    if len(together) != len(with_) or any(
        x.shape[a] != indices.shape[b] for a, b in zip(together, with_)
    ):
        raise TypeRule(
            f"{name}: batching axes {together} of {x!r} and {with_} of {indices!r} do not go "
            "together",
            fix="name as many of each, of equal sizes",
        )


def _none(indices: Aval) -> bool:
    """Whether there is no index at all."""
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
    """A window of `slice_sizes` for each index, along the last axis of `indices`.

    `fill_value` is what stands for windows outside if the mode is "fill"; None is nan, or of
    integers the least (if signed) or the greatest, or True.
    """
    offset, collapsed, to, together, with_ = dimension_numbers
    _correspond("gather", x, indices, offset, collapsed, to, together, with_)
    dropped = {*collapsed, *together}
    for i, (n, m) in enumerate(zip(x.shape, slice_sizes, strict=True)):
        if i in dropped and m != 1:
            raise TypeRule(
                f"gather: axis {i} is dropped, and the window has size {m} there", fix="make it 1"
            )
        if n.__class__ is int and m.__class__ is int and not 0 <= m <= n and not _none(indices):
            raise TypeRule(
                f"gather: a window of size {m} does not fit axis {i} of {x!r}",
                fix=f"make it at most {n}",
            )
    window = iter([m for i, m in enumerate(slice_sizes) if i not in dropped])
    others = iter(indices.shape[:-1])
    ndim = indices.ndim - 1 + len(offset)
    if tuple(sorted(set(offset))) != offset or any(a >= ndim for a in offset):
        raise TypeRule(
            f"gather: {offset} are not axes of the result, in order", fix=f"use 0 to {ndim - 1}"
        )
    return x.with_shape([next(window if i in offset else others) for i in range(ndim)])


@lower_rules.rule(gather_)
def _(e, xs, ins, outs, dimension_numbers, slice_sizes, mode, fill_value, indices_are_sorted,
      unique_indices):  # fmt: skip
    n = dimension_numbers
    if _none(ins[1]):
        return e.constant(0, outs[0])
    text = (
        f"#stablehlo.gather<offset_dims = {list(n.offset_dims)}, "
        f"collapsed_slice_dims = {list(n.collapsed_slice_dims)}, "
        f"operand_batching_dims = {list(n.operand_batching_dims)}, "
        f"start_indices_batching_dims = {list(n.start_indices_batching_dims)}, "
        f"start_index_map = {list(n.start_index_map)}, index_vector_dim = {ins[1].ndim - 1}>"
    )
    how = dict(dimension_numbers=attr(text), indices_are_sorted=boolean(indices_are_sorted))
    if is_symbolic(slice_sizes):
        sizes = e.shape(slice_sizes)
        if ins[1].dtype != INT32:
            sizes = e.op("stablehlo.convert", [sizes], Aval((len(slice_sizes),), ins[1].dtype))
        out = e.op("stablehlo.dynamic_gather", [*xs, sizes], outs[0], **how)
    else:
        out = e.op("stablehlo.gather", xs, outs[0], slice_sizes=i64s(*slice_sizes), **how)
    if mode != FILL:
        return out
    inside = _inside(e, xs[1], ins, n.start_index_map, slice_sizes)
    keep = [i for i in range(outs[0].ndim) if i not in n.offset_dims]
    inside = e.broadcast(inside, keep, Aval(outs[0].shape, BOOL))
    value = default_fill(outs[0].dtype) if fill_value is None else fill_value
    return e.op("stablehlo.select", [inside, out, e.constant(value, outs[0])], outs[0])


def default_fill(dtype: np.dtype) -> Any:
    """What is read outside: nan, or of integers the least or the greatest, or True."""
    if dtype == BOOL:
        return True
    if category(dtype) != INTEGER:
        return float("nan")
    return int(door.limits(dtype)[0 if dtype.kind == "i" else 1])


def _limits(e, ins, axes, sizes):
    """The greatest places of windows on these axes, as wide as the indices are."""
    room = [ins[0].shape[a] - sizes[a] for a in axes]
    aval = Aval((len(room),), ins[1].dtype)
    if is_symbolic(room):
        v = e.shape(room)
        return v if aval.dtype == INT32 else e.op("stablehlo.convert", [v], aval)
    top = int(door.limits(aval.dtype)[1])
    return e.constant(np.array([min(r, top) for r in room], aval.dtype), aval)


def _inside(e, indices, ins, axes, sizes):
    """Whether the window at each index lies inside."""
    aval = ins[1]
    each = aval.shape[:-1]
    if not axes:
        return e.constant(True, Aval(each, BOOL))
    high = e.broadcast(_limits(e, ins, axes, sizes), [aval.ndim - 1], aval)
    flags = Aval(aval.shape, BOOL)
    low = e.compare(indices, e.constant(0, aval), "GE", flags)
    ok = e.op("stablehlo.and", [low, e.compare(indices, high, "LE", flags)], flags)
    cell = Aval((), BOOL)
    every = [((cell, cell), lambda r, ab: [r.op("stablehlo.and", ab, cell)])]
    init = e.constant(True, cell)
    return e.op("stablehlo.reduce", [ok, init], Aval(each, BOOL), regions=every,
                dimensions=i64s(aval.ndim - 1))  # fmt: skip


def taken(x: Any, places: Any, axis: int) -> Any:
    """Elements of `x` at different places along `axis`, given for each place of the result."""
    n = x.aval.ndim
    rest = tuple([i for i in range(n) if i != axis])
    return gather_.bind(
        x,
        reshape(places, (*places.aval.shape, 1)),
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), rest, rest),
        slice_sizes=(1,) * n,
        mode=PROMISE,
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=True,
    )


# ---- scatter -------------------------------------------------------------------------------


def window_sizes(x: Aval, updates: Aval, numbers: ScatterDimensionNumbers) -> tuple:
    """The size of the window along each axis of the operand."""
    dropped = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    sizes = iter([updates.shape[a] for a in numbers.update_window_dims])
    return tuple([1 if i in dropped else next(sizes) for i in range(x.ndim)])


def _check_scatter(name, x, indices, updates, n) -> Aval:
    window, inserted, to, together, with_ = n
    _correspond(name, x, indices, window, inserted, to, together, with_)
    if updates.ndim != indices.ndim - 1 + len(window) or updates.dtype != x.dtype:
        raise TypeRule(
            f"{name}: updates {updates!r} for indices {indices!r} into {x!r}",
            fix=f"they need dtype {x.dtype} and {indices.ndim - 1 + len(window)} axes",
        )
    if tuple(sorted(set(window))) != window or any(a >= updates.ndim for a in window):
        raise TypeRule(f"{name}: {window} are not axes of {updates!r}, in order")
    rest = tuple([d for i, d in enumerate(updates.shape) if i not in window])
    if rest != indices.shape[:-1]:
        raise TypeRule(
            f"{name}: updates {updates!r} are not one window for each of the indices {indices!r}",
            fix=f"the axes that are no axes of the window must have sizes {indices.shape[:-1]}",
        )
    for i, (d, m) in enumerate(zip(x.shape, window_sizes(x, updates, n))):
        if d.__class__ is int and m.__class__ is int and m > d and not _none(indices):
            raise TypeRule(
                f"{name}: a window of size {m} does not fit axis {i} of {x!r}",
                fix=f"make it at most {d}",
            )
    return x.strong() if not updates.weak_type else x


def _scatter(verb: str, hlo: str | None, doc: str) -> Primitive:
    name = "scatter" + verb

    def rule(
        x: Aval,
        indices: Aval,
        updates: Aval,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        mode: str,
        indices_are_sorted: bool,
        unique_indices: bool,
    ) -> Aval:
        if hlo in ("minimum", "maximum") and x.dtype.kind == "c":
            raise TypeRule(f"{name}: complex numbers have no order", fix="use the real part")
        if hlo is not None and x.category == OPAQUE:
            raise no_number(name, x)
        return _check_scatter(name, x, indices, updates, dimension_numbers)

    rule.__doc__ = doc
    p = Primitive("core." + name, rule, (Indexing,))

    @lower_rules.rule(p)
    def _(e, xs, ins, outs, dimension_numbers, mode, indices_are_sorted, unique_indices):
        n, (x, indices, updates) = dimension_numbers, xs
        if _none(ins[1]):
            return x
        if mode == CLIP and n.scatter_dims_to_operand_dims:
            sizes = window_sizes(ins[0], ins[2], n)
            high = _limits(e, ins, n.scatter_dims_to_operand_dims, sizes)
            high = e.broadcast(high, [ins[1].ndim - 1], ins[1])
            low = e.constant(0, ins[1])
            indices = e.op("stablehlo.clamp", [low, indices, high], ins[1])
        cell = Aval((), ins[0].dtype)
        body = lambda r, ab: [r.op("stablehlo." + hlo, ab, cell)] if hlo else [ab[1]]  # noqa: E731
        text = (
            f"#stablehlo.scatter<update_window_dims = {list(n.update_window_dims)}, "
            f"inserted_window_dims = {list(n.inserted_window_dims)}, "
            f"input_batching_dims = {list(n.operand_batching_dims)}, "
            f"scatter_indices_batching_dims = {list(n.scatter_indices_batching_dims)}, "
            f"scatter_dims_to_operand_dims = {list(n.scatter_dims_to_operand_dims)}, "
            f"index_vector_dim = {ins[1].ndim - 1}>"
        )
        return e.op(
            "stablehlo.scatter", [x, indices, updates], outs[0],
            regions=[((cell, cell), body)], scatter_dimension_numbers=attr(text),
            indices_are_sorted=boolean(indices_are_sorted), unique_indices=boolean(unique_indices),
        )  # fmt: skip

    return p


scatter_ = _scatter("", None, "`x` with the window at each index replaced by the update for it.")
scatter_add_ = _scatter("_add", "add", "`x` with updates added to the windows at the indices.")
scatter_mul_ = _scatter("_mul", "multiply", "`x` with windows multiplied by the updates.")
scatter_min_ = _scatter("_min", "minimum", "`x` with the lesser of windows and updates.")
scatter_max_ = _scatter("_max", "maximum", "`x` with the greater of windows and updates.")


def as_scatter(n: GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """The numbers of the scatter that writes where a gather reads."""
    return ScatterDimensionNumbers(*n)


def as_gather(n: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    """The numbers of the gather that reads where a scatter writes."""
    return GatherDimensionNumbers(*n)


# ---- as users say it -----------------------------------------------------------------------


def integers(x: Any, what: str) -> Any:
    """Integers of at least 32 bits that are good as places."""
    x = as_value(x)
    if x.aval.category != INTEGER:
        raise TypeRule(f"{what} must be integers, not {x.aval!r}", fix="convert with .astype(int)")
    dtype = x.aval.dtype
    if dtype in (INT32, np.int64):
        return x
    if dtype.itemsize < 4:
        return convert(x, INT32)
    signed = INT32 if dtype.itemsize == 4 else np.dtype(np.int64)
    top = Literal(int(door.limits(signed)[1]), x.aval)
    return convert(select(lt(x, top), x, top), signed)


def from_front(i: Any, n: Any) -> Any:
    """Places, of which negative ones are counted from the end of an axis of size `n`."""
    if i.__class__ is Literal and n.__class__ is int:
        return Literal(i.value + n, i.aval) if i.value < 0 else i
    zero = Literal(0, i.aval)
    size = broadcast_to(size_value(n, i.aval.dtype), i.aval.shape)
    return select.bind(lt.bind(i, zero), add.bind(i, size), i)


def _starts(x: Any, starts: Any, what: str) -> list[Any]:
    places: list[Any]
    if isinstance(starts, Value | np.ndarray) and starts.ndim == 1:
        v = as_value(starts)
        ends = range(v.aval.shape[0])
        rows = [slice_.bind(v, starts=(k,), limits=(k + 1,), strides=(1,)) for k in ends]
        places = [reshape(r, ()) for r in rows]
    else:
        places = [*starts]  # type: ignore[misc]
    if len(places) != x.aval.ndim:
        raise TypeRule(
            f"{what}: {len(places)} places for the {x.aval.ndim} axes of {x.aval!r}",
            fix="give one for each axis",
        )
    values = [from_front(integers(s, "places"), n) for s, n in zip(places, x.aval.shape)]
    wide = any(v.aval.dtype != INT32 for v in values)
    dtype = np.dtype(np.int64) if wide else INT32
    return [convert(v, dtype) for v in values]


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Any) -> Any:
    """The box of `slice_sizes` whose corner is at `start_indices`.

    Args:
      operand: an array.
      start_indices: an integer (or array without axes) for each axis; negative ones count from
        the end.  A box that sticks out is moved inside.
      slice_sizes: a size for each axis.

    Raises TypeRule if the numbers do not fit the array.

    >>> import weft as wf
    >>> wf.lax.dynamic_slice(wf.numpy.arange(5), (3,), (4,))
    Array([1, 2, 3, 4], dtype=int32)
    """
    x = materialise_at_ground(as_value(operand))
    return dynamic_slice_.bind(
        x, *_starts(x, start_indices, "dynamic_slice"), sizes=tuple(slice_sizes)
    )


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Any:
    """`operand` with the box `update` written at `start_indices`; places as in `dynamic_slice`.

    >>> import weft as wf
    >>> wf.lax.dynamic_update_slice(wf.numpy.zeros(4), wf.numpy.ones(2), (1,))
    Array([0., 1., 1., 0.], dtype=float32)
    """
    x = materialise_at_ground(as_value(operand))
    box = convert(update, x.aval.dtype, x.aval.weak_type)
    return dynamic_update_slice_.bind(x, box, *_starts(x, start_indices, "dynamic_update_slice"))


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: Any, axis: int = 0) -> Any:
    """`slice_size` elements from `start_index` along one axis."""
    x = as_value(operand)
    at = normal_axis(axis, x.aval.ndim)
    starts, sizes = [0] * x.aval.ndim, list(x.aval.shape)
    starts[at], sizes[at] = start_index, slice_size
    return dynamic_slice(x, starts, sizes)


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    """The element at `index` along one axis, which is kept with size 1, or dropped."""
    x = as_value(operand)
    out = dynamic_slice_in_dim(x, index, 1, axis)
    return out if keepdims else _without(out, normal_axis(axis, x.aval.ndim))


def _without(x: Any, axis: int) -> Any:
    return reshape(x, (*x.aval.shape[:axis], *x.aval.shape[axis + 1 :]))


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """The element at a fixed `index` along one axis, which is kept with size 1, or dropped.

    Raises SubscriptError (an IndexError) if there is none.
    """
    x = as_value(operand)
    at = normal_axis(axis, x.aval.ndim)
    n, i = x.aval.shape[at], index.__index__()
    if not -n <= i < n:
        raise SubscriptError(
            f"index {i} is out of range for axis {at} of {x.aval!r}",
            fix=f"use an index in [-{n}, {n})",
        )
    i = i + n if i < 0 else i
    box = lambda new, old: tuple([new if k == at else d for k, d in enumerate(old)])  # noqa: E731
    none, ones = (0,) * x.aval.ndim, (1,) * x.aval.ndim
    out = slice_.bind(x, starts=box(i, none), limits=box(i + 1, x.aval.shape), strides=ones)
    return out if keepdims else _without(out, at)


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> Any:
    """`operand` with the box `update` written from `start_index` along one axis."""
    x = as_value(operand)
    starts: list[Any] = [0] * x.aval.ndim
    starts[normal_axis(axis, x.aval.ndim)] = start_index
    return dynamic_update_slice(x, update, starts)


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> Any:
    """`operand` with the element at `index` along one axis replaced."""
    x, u = as_value(operand), as_value(update)
    at = normal_axis(axis, x.aval.ndim)
    if u.aval.ndim != x.aval.ndim:
        u = reshape(u, (*u.aval.shape[:at], 1, *u.aval.shape[at:]))
    return dynamic_update_slice_in_dim(x, u, index, at)


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Any,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Any:
    """The window of `slice_sizes` at each of `start_indices`.

    Args:
      operand: an array.
      start_indices: integers; an index is along the last axis, and counts from the front.
      dimension_numbers: what axis is what, see `GatherDimensionNumbers`.
      slice_sizes: the size of the window along each axis of the operand.
      unique_indices, indices_are_sorted: promises, which make it faster.
      mode: "fill" (the default), "clip" or "promise_in_bounds": what is read outside.
      fill_value: what "fill" reads outside; by default nan, or of integers the least (if signed)
        or the greatest, or True.

    Raises TypeRule if axes or sizes do not fit.
    """
    x = materialise_at_ground(as_value(operand))
    return gather_.bind(
        x,
        integers(start_indices, "indices"),
        dimension_numbers=GatherDimensionNumbers(*map(tuple, dimension_numbers)),
        slice_sizes=tuple(slice_sizes),
        mode=normal_mode(mode),
        fill_value=normal_fill(fill_value, x.aval.dtype),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
    )


def normal_fill(value: Any, dtype: np.dtype) -> Any:
    """A fill value as a Python scalar of the kind of `dtype`."""
    if value is None:
        return None
    v = np.asarray(value)
    if v.ndim:
        raise TypeRule(f"a fill value is a number, not {value!r}", fix="give a scalar")
    with np.errstate(all="ignore"):
        kind = category(dtype)
        return (
            v.astype(dtype).item()
            if dtype.kind in "biufc"
            else (int(v) if kind == INTEGER else float(v))
        )


def _scattering(prim: Primitive, what: str) -> Any:
    def scatter_with(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
    ) -> Any:
        x = materialise_at_ground(as_value(operand))
        return prim.bind(
            x,
            integers(scatter_indices, "indices"),
            convert(updates, x.aval.dtype, x.aval.weak_type),
            dimension_numbers=ScatterDimensionNumbers(*map(tuple, dimension_numbers)),
            mode=normal_mode(mode),
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
        )

    name = prim.name.rpartition(".")[2]
    scatter_with.__name__ = scatter_with.__qualname__ = name
    scatter_with.__doc__ = f"""{what}

    Args:
      operand: an array.
      scatter_indices: integers; an index is along the last axis, and counts from the front.
      updates: a window for each index, of the operand's dtype.
      dimension_numbers: what axis is what, see `ScatterDimensionNumbers`.
      indices_are_sorted, unique_indices: promises, which make it faster.
      mode: "drop" (the default: windows that stick out are left out), "clip" (they are moved
        inside) or "promise_in_bounds".

    Raises TypeRule if axes or sizes do not fit.
    """
    return scatter_with


scatter = _scattering(
    scatter_, "`operand` with windows replaced; of several for one place any one counts."
)
scatter_add = _scattering(scatter_add_, "`operand` with updates added to windows.")
scatter_mul = _scattering(scatter_mul_, "`operand` with windows multiplied by updates.")
scatter_min = _scattering(scatter_min_, "`operand` with the lesser of windows and updates.")
scatter_max = _scattering(scatter_max_, "`operand` with the greater of windows and updates.")


def scatter_sub(operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: Any, **how):
    """`operand` with updates subtracted from windows; arguments as `scatter_add`."""
    return scatter_add(operand, scatter_indices, neg(updates), dimension_numbers, **how)
