"""Indexing: read and write the elements that an index plan selects, with primitives.

Computed positions outside are clamped when reading and dropped when writing, unless a mode says
otherwise.

Invariant: at most one operation here writes an element.  Ranges with steps leave the elements
between them as they are, and negative steps reverse the elements read and written.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._base.errors import ShapeError
from .._core.array import Literal, as_value
from .._core.interpreter import Value, current
from .._types.avals import BOOL, INT32, Aval, broadcast_shapes, promote
from . import composed
from . import elementwise as el
from .dynamic_slicing import dynamic_slice_, dynamic_update_slice_
from .index_plans import ALL, LOOSE, NEW, POINT, POSITIONS, ROWS, SCALAR, IndexPlan, extent
from .indexing import CLIP, FILL, GatherDimensionNumbers, default_fill, gather_
from .scattering import (
    ScatterDimensionNumbers,
    scatter_,
    scatter_add_,
    scatter_max_,
    scatter_min_,
    scatter_mul_,
)
from .shape import (
    broadcast_in_dim,
    broadcast_to,
    concatenate,
    convert,
    expand_dims,
    fill,
    iota_,
    pad_,
    reshape,
    rev,
    slice_,
    squeeze,
    squeeze_,
)
from .sizes import from_front, size_value

INT64 = np.dtype(np.int64)


class Spec(NamedTuple):
    """The treatment of positions.

    Attributes:
      mode: of `indexing.normal_mode`; None is "clip" when reading and "fill" when writing.
      fill_value: the value read outside.
      ordered, unique: promises about the positions.
    """

    mode: str | None = None
    fill_value: Any = None
    ordered: bool = False
    unique: bool = False


PLAIN = Spec()


# ---- reading -------------------------------------------------------------------------------


def read(x: Any, plan: IndexPlan, values: Sequence[Any], spec: Spec = PLAIN) -> Any:
    """Read the elements that a plan selects.

    Args:
      x: an array.
      plan, values: of `index_plans.parse`.
      spec: the treatment of positions outside.
    """
    if plan.grown:
        x = expand_dims(x, plan.grown)
    if spec.mode == FILL and x.aval.size.__class__ is int and not x.aval.size:
        value = default_fill(x.aval.dtype) if spec.fill_value is None else spec.fill_value
        return fill(value, x.aval.with_shape(result_shape(x, plan, values)))
    if plan.many or (spec.mode == FILL and SCALAR in plan.entries):
        x = _gathered(x, plan, values, spec)
    elif values:
        x = _boxed(x, plan.entries, values)
    kept = [a for a in plan.layout if a != NEW]
    back, at = [], 0
    for a in kept:
        if a == POSITIONS:
            at += _rank(plan, values)
        else:
            if plan.entries[a].__class__ is tuple and plan.entries[a][1] < 0:
                back.append(at)
            at += 1
    if back:
        x = rev.bind(x, axes=tuple(back))
    new = _new_axes(plan, values)
    return expand_dims(x, new) if new else x


def _rank(plan: IndexPlan, values: Sequence[Any]) -> int:
    """Return the number of axes that the index arrays have together."""
    return max(v.aval.ndim for e, v in _named(plan, values) if e in (ROWS, LOOSE))


def _named(plan: IndexPlan, values: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return (entry, value) of the axes that have a position."""
    return list(zip([e for e in plan.entries if e != ALL], values, strict=True))


def _new_axes(plan: IndexPlan, values: Sequence[Any]) -> tuple[int, ...]:
    """Return the axes of the result that the array lacks."""
    new, at = [], 0
    for a in plan.layout:
        if a == NEW:
            new.append(at)
        at += _rank(plan, values) if a == POSITIONS else 1
    return tuple(new)


def _boxed(x: Value, entries: Sequence[Any], values: Sequence[Any]) -> Any:
    """Read a box, with a plain slice if its position may be part of the program."""
    it = iter(values)
    starts = [0 if e == ALL else next(it) for e in entries]
    sizes = _box(x, entries)
    steps = tuple([abs(e[1]) if e.__class__ is tuple else 1 for e in entries])
    fixed = not any(isinstance(s, Value) for s in starts)
    by = current()
    if fixed and (by.staging or by.fixed_boxes):
        if sizes != x.aval.shape or max(steps) > 1:
            limits = tuple([a + m for a, m in zip(starts, sizes)])
            x = slice_.bind(x, starts=tuple(starts), limits=limits, strides=steps)
    else:
        # A traced position in an axis of size 1 stays an operand: checks of indices look at it.
        if not fixed or sizes != x.aval.shape:
            x = dynamic_slice_.bind(x, *_as_positions(x, entries, starts), sizes=sizes)
        x = _stepped(x, steps)
    points = tuple([i for i, e in enumerate(entries) if e in (POINT, SCALAR)])
    return squeeze_.bind(x, axes=points) if points else x


def _stepped(x: Value, steps: Sequence[int]) -> Any:
    """Return every `steps`-th element along each axis."""
    if max(steps, default=1) == 1:
        return x
    return slice_.bind(x, starts=(0,) * len(steps), limits=x.aval.shape, strides=tuple(steps))


def _box(x: Value, entries: Sequence[Any]) -> tuple:
    """Return the sizes of the box that is read or written for each position."""
    return tuple(
        [
            n if e == ALL else extent(e) if e.__class__ is tuple else 1
            for n, e in zip(x.aval.shape, entries)
        ]
    )


def _as_positions(x: Value, entries: Sequence[Any], starts: Sequence[Any]) -> list[Any]:
    """Return positions as operands of one dtype, counted from the front."""
    wide = any(isinstance(s, Value) and s.aval.dtype == INT64 for s in starts) or any(
        s.__class__ is int and s >= 2**31 for s in starts
    )
    dtype = INT64 if wide else INT32
    out = []
    for e, s, n in zip(entries, starts, x.aval.shape):
        v = convert(s, dtype) if isinstance(s, Value) else size_value(s, dtype)
        out.append(from_front(v, n) if e == SCALAR else v)
    return out


def _gathered(x: Value, plan: IndexPlan, values: Sequence[Any], spec: Spec) -> Any:
    """Read a window for each of the positions."""
    entries = plan.entries
    index, rank = _index(x, plan, values)
    kept = [a for a in plan.layout if a >= 0]
    front = plan.layout[: plan.layout.index(POSITIONS)] if plan.many else ()
    first = sum([a >= 0 for a in front])
    sizes = _box(x, entries)
    out = gather_.bind(
        x,
        index,
        dimension_numbers=GatherDimensionNumbers(
            tuple([i if i < first else i + rank for i in range(len(kept))]),
            tuple([i for i, e in enumerate(entries) if e.__class__ is int and e != ALL]),
            tuple([i for i, e in enumerate(entries) if e != ALL]),
        ),
        slice_sizes=sizes,
        mode=spec.mode or CLIP,
        fill_value=spec.fill_value,
        indices_are_sorted=spec.ordered or not plan.many,
        unique_indices=spec.unique or not plan.many,
    )
    steps = [abs(entries[a][1]) if entries[a].__class__ is tuple else 1 for a in kept]
    return _stepped(out, [*steps[:first], *[1] * rank, *steps[first:]])


def _index(
    x: Value, plan: IndexPlan, values: Sequence[Any], runs: Sequence[int] = ()
) -> tuple[Any, int]:
    """Return (indices with a component for each axis that has a position, number of other axes).

    `runs` are the ranges written position by position, in the order of the layout; each adds an
    axis.
    """
    named = [(a, e) for a, e in enumerate(plan.entries) if e != ALL]
    many = [v.aval.shape for (_, e), v in zip(named, values) if e in (ROWS, LOOSE)]
    shape = broadcast_shapes(many) if many else ()
    order = [a for a in plan.layout if a == POSITIONS or a in runs]
    sizes: list[Any] = []
    where: dict[int, int] = {}
    for a in order:
        where[a] = len(sizes)
        sizes += shape if a == POSITIONS else [plan.entries[a][0]]
    rank = len(sizes)
    wide = any(isinstance(v, Value) and v.aval.dtype == INT64 for v in values)
    dtype = INT64 if wide or any(v.__class__ is int and v >= 2**31 for v in values) else INT32
    cell = Aval((*sizes, 1), dtype)
    columns = []
    for (a, e), v in zip(named, values):
        v = convert(v, dtype) if isinstance(v, Value) else size_value(v, dtype)
        if e in (LOOSE, SCALAR):
            v = from_front(v, x.aval.shape[a])
        at = where.get(POSITIONS, 0) + len(shape) - v.aval.ndim
        if a in where:
            v = _run(v, plan.entries[a])
            at = where[a]
        if v.__class__ is Literal:
            columns.append(Literal(v.value, cell))  # type: ignore[attr-defined]
        else:
            dims = tuple(range(at, at + v.aval.ndim))
            columns.append(broadcast_in_dim.bind(v, shape=cell.shape, dims=dims))
    return concatenate(columns, rank), rank


def _run(least: Value, entry: tuple) -> Any:
    """Return the positions of a range that begins at `least`."""
    size, step = entry
    shape = Aval((size,), least.aval.dtype)
    count = iota_.bind(shape=(size,), axis=0, dtype=shape.dtype)
    steps = el.mul.bind(count, Literal(abs(step), shape))
    positions = el.add.bind(steps, broadcast_to(least, shape.shape))
    return rev.bind(positions, axes=(0,)) if step < 0 else positions


# ---- writing -------------------------------------------------------------------------------

COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda x, v: v,
    "add": el.add.bind,
    "multiply": el.mul.bind,
    "min": el.minimum.bind,
    "max": el.maximum.bind,
}
SCATTER = {
    "set": scatter_,
    "add": scatter_add_,
    "multiply": scatter_mul_,
    "min": scatter_min_,
    "max": scatter_max_,
}


def write(
    x: Value, plan: IndexPlan, values: Sequence[Any], v: Any, op: str, spec: Spec = PLAIN
) -> Any:
    """Write `v` by `op` to the elements of `x` that a plan selects; arguments as `read`."""
    if op in _DERIVED:
        return _DERIVED[op](x, plan, values, v, spec)
    if plan.grown:
        small = x.aval.shape
        x = expand_dims(x, plan.grown)
        inner = IndexPlan(plan.entries, plan.layout)
        return reshape(write(x, inner, values, v, op, spec), small)
    v = convert(v, x.aval.dtype, x.aval.weak_type)
    result = result_shape(x, plan, values)
    v = _spread(v, result, x)
    if x.aval.size.__class__ is int and not x.aval.size:
        return x  # An empty array has no position inside.
    if plan.computed:
        return _scattered(x, plan, values, v, op, spec)
    if op != "set":
        v = COMBINE[op](read(x, plan, values), v)
    return _replaced(x, plan, values, v)


def shape_of_positions(plan: IndexPlan, values: Sequence[Any]) -> tuple:
    """Return the common shape of arrays of positions."""
    return broadcast_shapes([v.aval.shape for e, v in _named(plan, values) if e in (ROWS, LOOSE)])


def result_shape(x: Value, plan: IndexPlan, values: Sequence[Any]) -> tuple:
    """Return the shape of the elements that a plan reads."""
    shape: list[Any] = []
    for a in plan.layout:
        if a == NEW:
            shape.append(1)
        elif a == POSITIONS:
            shape += shape_of_positions(plan, values)
        else:
            e = plan.entries[a]
            shape.append(e[0] if e.__class__ is tuple else x.aval.shape[a])
    return tuple(shape)


def _spread(v: Value, shape: tuple, x: Value) -> Any:
    """Broadcast `v` to the written elements; further leading axes of size 1 are dropped."""
    extra = v.aval.ndim - len(shape)
    if extra > 0 and all(d.__class__ is int and d == 1 for d in v.aval.shape[:extra]):
        v = reshape(v, v.aval.shape[extra:])
    fits = v.aval.ndim <= len(shape) and not any(
        d.__class__ is int and n.__class__ is int and d not in (1, n)
        for d, n in zip(v.aval.shape[::-1], shape[::-1])
    )
    if not fits:
        raise ShapeError(
            f"a value of shape {v.aval.shape} cannot be written where {x.aval!r} has "
            f"elements of shape {shape}",
            fix="give one that broadcasts to that shape",
        )
    return broadcast_to(v, shape)


def _kept_layout(v: Value, plan: IndexPlan, values: Sequence[Any]) -> Any:
    """Return the written value without the axes that the array lacks."""
    new = _new_axes(plan, values)
    return squeeze(v, new) if new else v


def _replaced(x: Value, plan: IndexPlan, values: Sequence[Any], v: Any) -> Any:
    """Replace a box; a range with steps keeps the elements between."""
    v = _kept_layout(v, plan, values)
    entries = plan.entries
    kept = [entries[a] for a in plan.layout if a != NEW]
    back = tuple([i for i, e in enumerate(kept) if e.__class__ is tuple and e[1] < 0])
    if back:
        v = rev.bind(v, axes=back)
    sizes = _box(x, entries)
    if not values or any(m.__class__ is int and m == 0 for m in sizes):
        return x if values else v
    it = iter(values)
    starts = [0 if e == ALL else next(it) for e in entries]
    points = tuple([i for i, e in enumerate(entries) if e == POINT])
    if points:
        v = _with_axes(v, points)
    positions = _as_positions(x, entries, starts)
    steps = [abs(e[1]) if e.__class__ is tuple else 1 for e in entries]
    if max(steps) > 1:
        whole = sizes == x.aval.shape
        v = _between(x if whole else dynamic_slice_.bind(x, *positions, sizes=sizes), v, steps)
    return v if sizes == x.aval.shape else dynamic_update_slice_.bind(x, v, *positions)


def _between(box: Value, v: Value, steps: Sequence[int]) -> Any:
    """Replace every `steps`-th element of `box` by `v`."""
    none = (0,) * len(steps)
    spacing = dict(low=none, high=none, interior=tuple([s - 1 for s in steps]))
    yes, no = Literal(True, Aval(v.aval.shape, BOOL)), Literal(False, Aval((), BOOL))
    zero = Literal(0, Aval((), box.aval.dtype, box.aval.weak_type))
    here = pad_.bind(yes, no, **spacing)
    return el.select.bind(here, pad_.bind(v, zero, **spacing), box)


def _with_axes(v: Any, axes: Sequence[int]) -> Any:
    if v.__class__ is Literal:
        shape = list(v.aval.shape)
        for a in axes:
            shape.insert(a, 1)
        return Literal(v.value, v.aval.with_shape(shape))
    return expand_dims(v, tuple(axes))


def _scattered(
    x: Value, plan: IndexPlan, values: Sequence[Any], v: Any, op: str, spec: Spec
) -> Any:
    """Write a window for each position; ranges with steps are written position by position."""
    entries = plan.entries
    v = _kept_layout(v, plan, values)
    runs = [a for a in plan.layout if a >= 0 and _stepping(entries[a])]
    index, rank = _index(x, plan, values, runs)
    rank_of = lambda a: rank - len(runs) if a == POSITIONS else 1  # noqa: E731
    window, back, at = [], [], 0
    for a in plan.layout:
        if a == NEW:
            continue
        if a >= 0 and a not in runs:
            window.append(at)
            if entries[a].__class__ is tuple and entries[a][1] < 0:
                back.append(at)
        at += rank_of(a)
    if back:
        v = rev.bind(v, axes=tuple(back))
    numbers = ScatterDimensionNumbers(
        tuple(window),
        tuple([i for i, e in enumerate(entries) if e.__class__ is int and e != ALL or i in runs]),
        tuple([i for i, e in enumerate(entries) if e != ALL]),
    )
    return SCATTER[op].bind(
        x,
        index,
        v,
        dimension_numbers=numbers,
        mode=spec.mode or FILL,
        indices_are_sorted=spec.ordered or not rank,
        unique_indices=spec.unique or not plan.many,
    )


def _stepping(entry: Any) -> bool:
    return entry.__class__ is tuple and abs(entry[1]) > 1


def _factors(x: Value, plan: IndexPlan, values: Sequence[Any], v: Value, spec: Spec) -> Any:
    """Return ones with `v` multiplied in at the written positions."""
    v = as_value(v)
    dtype, weak = promote([x.aval, v.aval])
    ones = fill(1, Aval(x.aval.shape, dtype, weak))
    return write(ones, plan, values, v, "multiply", spec)


def _changed(f: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return an update that applies `f(x, v)` at known positions.

    At computed ones, which may repeat, `v` is the product of the values written there.
    """

    def do(x: Value, plan: IndexPlan, values: Sequence[Any], v: Value, spec: Spec) -> Any:
        if plan.computed:
            return f(x, _factors(x, plan, values, v, spec))
        new = f(read(x, plan, values), v)
        return write(convert(x, new.aval.dtype, new.aval.weak_type), plan, values, new, "set", spec)

    return do


_DERIVED: dict[str, Callable[..., Any]] = {
    "subtract": lambda x, f, vs, v, s: write(
        x, f, vs, el.neg(convert(v, x.aval.dtype, x.aval.weak_type)), "add", s
    ),
    "divide": _changed(composed.true_divide),
    "power": _changed(composed.power),
}


def masked(x: Any, mask: Any, v: Any, op: str) -> Any:
    """Write `v` by `op` to `x` where the mask, on the leading axes, is True."""
    m = mask.aval.ndim
    if op == "set":
        new = _spread(convert(v, x.aval.dtype, x.aval.weak_type), x.aval.shape, x)
    else:
        plain = IndexPlan((ALL,) * x.aval.ndim, tuple(range(x.aval.ndim)))
        new = write(x, plain, (), v, op)
    old = convert(x, new.aval.dtype, new.aval.weak_type)
    mask = (
        mask
        if m == x.aval.ndim
        else broadcast_in_dim.bind(mask, shape=x.aval.shape, dims=tuple(range(m)))
    )
    return el.select.bind(mask, new, old)
