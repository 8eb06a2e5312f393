"""Index plans: an index, read by numpy's rules, as a plan and the positions in it.

An `IndexPlan` is hashable and holds no position: `x[3]` and `x[4]` have one plan, so that one
program serves both.  The positions are returned beside it.

Invariant: a plan describes elements inside the array, and its negative positions are already
counted from the front.  Entries SCALAR, ROWS and LOOSE, whose positions are known only later, may
lie outside; SCALAR and LOOSE may be negative.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .._base.config import config
from .._base.errors import (
    ConcretizationError,
    NotAnIndexError,
    SubscriptError,
    TypeRule,
    UndecidedDim,
    UnknownMask,
    UnknownSlice,
)
from .._core.array import Literal, as_value, unmasked
from .._core.interpreter import Value, admitted_sizes
from .._types.avals import BOOL, INTEGER, Aval, default_dtype
from .._types.dims import Dim, decide_eq, decide_ge, is_symbolic, max_dim, min_dim
from .elementwise import lt, select
from .shape import broadcast_in_dim, stack
from .sizes import integers, size_value

ALL, POINT, SCALAR, ROWS, LOOSE = range(5)
"""Entries of an axis: ALL keeps it, POINT has a known position inside, SCALAR a computed one, ROWS
many, LOOSE many that may be negative.  Other entries are ranges, (size, step): kept, from the least
position read."""

NEW, POSITIONS = -1, -2
"""Axes of the result that the array lacks: NEW has size 1, POSITIONS are those of all
index arrays, together."""


class IndexPlan(NamedTuple):
    """The effect of an index, without its positions.

    Attributes:
      entries: one for each axis, see above.
      layout: axes of the result in order: an axis of the array, NEW, or POSITIONS.
      grown: axes of size 1 that the array gets first, one for each boolean scalar.
    """

    entries: tuple
    layout: tuple
    grown: tuple = ()

    @property
    def many(self) -> bool:
        """True if index arrays take part."""
        return ROWS in self.entries or LOOSE in self.entries

    @property
    def computed(self) -> bool:
        """True if some positions are known only later, and may lie outside."""
        return self.many or SCALAR in self.entries


def extent(entry: Any) -> Any:
    """Return the size of the box that a range reads from."""
    size, step = entry
    if step in (1, -1) or (size.__class__ is int and size == 0):
        return size
    if size.__class__ is Dim:
        return size + max_dim(size - 1, 0) * (abs(step) - 1)
    return (size - 1) * abs(step) + 1


# ---- the items of an index -----------------------------------------------------------------


def items_of(index: Any) -> tuple:
    """Return the index as a tuple of items; a list is one item, converted to an array."""
    if index.__class__ is tuple:
        return tuple([_item(i) for i in index])
    return (_item(index),)


def _item(i: Any) -> Any:
    """Convert an item to None, Ellipsis, a slice, int, Dim, bool, numpy array or Value."""
    kind = i.__class__
    if kind is Dim:
        return admitted_sizes(i)
    if kind is int or kind is slice or i is None or i is Ellipsis or kind is bool:
        return i
    if kind is Literal and is_symbolic(i.aval.shape):
        cell = Literal(i.value, i.aval.with_shape(()))
        i = broadcast_in_dim.bind(cell, shape=i.aval.shape, dims=())
    elif kind is Literal:
        i = i.numpy()
    if isinstance(i, np.ndarray | np.generic):
        if i.dtype == BOOL:
            return unmasked(i) if i.ndim else bool(i)
        if i.dtype.kind in "iu":
            return np.asarray(unmasked(i)) if i.ndim else int(i)
        raise _not_integers(f"an array of dtype {i.dtype}")
    if isinstance(i, Value):
        if i.aval.dtype != BOOL and i.aval.category != INTEGER:
            raise _not_integers(repr(i.aval))
        return bool(concrete_mask(i)) if i.aval.dtype == BOOL and not i.aval.ndim else i
    if isinstance(i, list | tuple | range):
        return _item(_of_sequence(i))
    if hasattr(i, "__index__"):
        return i.__index__()
    if isinstance(i, str | float | complex | bytes) or not hasattr(i, "__array__"):
        raise _not_integers(_short(i))
    return _item(as_value(i))


def _of_sequence(i: Any) -> Any:
    """Convert nested lists in an index to an array of integers or booleans, as numpy does."""
    leaves = list(_leaves(i))
    if any(isinstance(v, Value | Dim) for v in leaves):
        return _stacked(i)
    try:
        host = np.asarray(i)
    except ValueError:
        raise _uneven(i) from None
    if not leaves and not host.size:
        return host.astype(np.int32)
    if host.dtype.kind not in "biu":
        raise _not_integers(f"the {i.__class__.__name__} {_short(i)}")
    return host


def _leaves(i: Any) -> Iterator[Any]:
    for v in i:
        if isinstance(v, list | tuple | range):
            yield from _leaves(v)
        else:
            yield v


def _stacked(i: Value | int | list[Any]) -> Any:
    """Stack nested lists that hold traced values or symbolic sizes."""
    if i.__class__ is Dim:
        return size_value(i, default_dtype(INTEGER))
    if not isinstance(i, list | tuple | range):
        return as_value(i)
    parts = [_stacked(v) for v in i]
    if len({v.aval.shape for v in parts}) > 1:
        raise _uneven(i)
    return stack(parts)


def _uneven(i: Any) -> TypeRule:
    return NotAnIndexError(
        f"an array cannot be indexed with {_short(i)}, whose parts have different shapes",
        fix="to index several axes write x[i, j]",
    )


def _short(x: object) -> str:
    text = repr(x)
    return text if len(text) < 40 else text[:37] + "..."


def _not_integers(what: str) -> TypeRule:
    return NotAnIndexError(
        f"an array cannot be indexed with {what}",
        fix="an index is made of integers, slices, None, `...`, and arrays of integers or booleans",
    )


def concrete_mask(mask: np.ndarray | Value) -> np.ndarray:
    """Return a boolean array as numpy's; raises ConcretizationError if it has no value yet."""
    if not isinstance(mask, Value):
        return mask
    try:
        return mask.concrete().numpy()  # type: ignore[attr-defined]
    except ConcretizationError:
        fix = (
            "use plait.numpy.where(mask, x, other); x.at[mask].set(value) works if the value has "
            "no axis for the elements picked"
        )
        if is_symbolic(mask.aval.shape):
            fix += "; rows of a pile are picked outside of vmap, by a pile of booleans: p[mask]"
        raise UnknownMask(
            f"how many elements the boolean index {mask!r} picks is not known while tracing",
            fix=fix,
        ) from None


# ---- from an index to a plan ---------------------------------------------------------------


class _Reading:
    """The state while one index is parsed."""

    def __init__(self, shape: Sequence[Any], strict: bool, wrap: bool):
        self.sizes, self.strict, self.wrap = list(shape), strict, wrap
        self.entries: list[Any] = []
        self.values: list[Any] = []
        self.layout: list[int] = []
        self.grown: list[int] = []
        self.picks: list[tuple[int, int]] = []  # (number of the item, where in the layout)

    def take(self, k: int, item: Any) -> None:
        """Parse item number `k`."""
        if item is None:
            self.layout.append(NEW)
        elif item.__class__ is slice:
            self.range(item)
        elif item.__class__ is bool:
            self.grown.append(len(self.entries))
            self.sizes.insert(len(self.entries), 1)
            self.pick(k, ROWS, as_value(np.zeros(int(item), np.int32)))
        elif item.__class__ is int or item.__class__ is Dim:
            self.point(k, item)
        elif item.dtype == BOOL:
            self.mask(k, concrete_mask(item))
        elif not item.ndim:
            self.pick(k, SCALAR, self.unwrapped(integers(item, "indices")))
        elif isinstance(item, np.ndarray):
            self.rows(k, item)
        else:
            self.loose(k, item)

    def pick(self, k: int, entry: int, value: Value) -> None:
        axis = len(self.entries)
        n = self.sizes[axis]
        if self.strict and n.__class__ is int and not n and 0 not in value.shape:
            raise SubscriptError(
                f"axis {axis - len(self.grown)} has size 0: there is nothing to index",
                fix="index other axes, or use a slice",
            )
        self.picks.append((k, len(self.layout)))
        self.entries.append(entry)
        self.values.append(value)

    def loose(self, k: int, item: Any) -> None:
        """Parse many positions whose signs are not known."""
        signed = item.dtype.kind != "u"
        self.pick(k, LOOSE if signed and self.wrap else ROWS, integers(item, "indices"))

    def unwrapped(self, i: Any) -> Any:
        """Return a computed position; if negative ones are outside, so far that none wraps."""
        if self.wrap:
            return i
        least = Literal(int(np.iinfo(i.aval.dtype).min), i.aval)
        return select(lt(i, Literal(0, i.aval)), least, i)

    def whole(self, count: int) -> None:
        """Keep `count` axes as they are."""
        for _ in range(count):
            self.layout.append(len(self.entries))
            self.entries.append(ALL)

    def point(self, k: int, i: float) -> None:
        axis = len(self.entries)
        n = self.sizes[axis]
        if n.__class__ is Dim or i.__class__ is Dim:
            return self.symbolic_point(k, i, n)
        inside = (-n if self.wrap else 0) <= i < n
        if not inside and self.refuses(n):
            self.outside(i, n)
        if inside:
            self.picks.append((k, len(self.layout)))
            self.entries.append(POINT)
            self.values.append(i + n if i < 0 else i)
        else:
            i = min(max(i, -n - 1), n) if self.wrap or i >= 0 else -n - 1
            self.pick(k, SCALAR, Literal(i, Aval((), np.int32)))
        return None

    def symbolic_point(self, k: int, i: Any, n: Dim) -> None:
        """Parse a fixed position where sizes are symbolic.

        A position counts as computed if it is inside for all sizes but 0, or if a mode is given.
        `empty_axes` defines the value that is read from an empty axis.
        """
        front = decide_ge(i, 0)
        inside = is_inside(i, n)
        if not self.wrap and not front:
            inside = front
        if inside is False and self.strict:
            self.outside(i, n)
        if inside and front is not None:
            self.picks.append((k, len(self.layout)))
            self.entries.append(POINT)
            self.values.append(i if front else i + n)
            return
        if self.strict and not inside and not is_inside(i, max_dim(n, 1)):
            raise unknown_position(i, n)
        i = i + n if front is False and self.wrap else i
        self.pick(k, SCALAR, self.unwrapped(size_value(i, np.dtype(np.int32))))

    def refuses(self, n: int) -> bool:
        """Return whether fixed integers out of range are an error on an axis of this size."""
        return self.strict and (config.check_static_indices or not n)

    def outside(self, i: Any, n: Dim | int) -> NoReturn:
        """Refuse a fixed index."""
        axis = len(self.entries) - len(self.grown)
        least = f"-{n}" if self.wrap else 0
        raise SubscriptError(
            f"index {i} is out of range for axis {axis} of size {n}",
            fix=("the axis is empty; " if n == 0 else f"use an index in [{least}, {n}); ")
            + f'x.at[{i}].get(mode="fill") reads outside, set(v, mode="drop") writes nothing',
        )

    def rows(self, k: int, i: np.ndarray) -> None:
        n = self.sizes[len(self.entries)]
        if n.__class__ is Dim:
            return self.loose(k, i)
        i = (np.minimum(i, n) if i.dtype == np.uint64 else i).astype(np.int64)
        least = -n if self.wrap else 0
        wrong = i.size and not (least <= i.min() and i.max() < n)
        if wrong and self.refuses(n):
            self.outside(i[(i < least) | (i >= n)][0].item(), n)
        i = np.maximum(np.where((i < 0) & self.wrap, i + n, np.minimum(i, n)), -1)
        return self.pick(k, ROWS, as_value(i.astype(np.int32 if n < 2**31 else np.int64)))

    def mask(self, k: int, mask: np.ndarray) -> None:
        at = len(self.entries)
        want = tuple(self.sizes[at : at + mask.ndim])
        if len(want) != mask.ndim or any(m not in (0, n) for m, n in zip(mask.shape, want)):
            raise SubscriptError(
                f"a boolean index of shape {mask.shape} for axes of sizes {want}",
                fix="it must have the sizes of the axes that it picks from",
            )
        for i in np.nonzero(mask):
            self.rows(k, i)

    def range(self, s: slice) -> None:
        axis = len(self.entries)
        n = self.sizes[axis]
        self.layout.append(axis)
        start, size, step = slice_of(s, n)
        if size == n and step == 1:
            self.entries.append(ALL)
        else:
            self.entries.append((size, step))
            self.values.append(start)

    def plan(self) -> IndexPlan:
        layout = self.layout
        if ROWS in self.entries or LOOSE in self.entries:
            # As in numpy, the axes of index arrays come first unless the arrays stand side by side.
            numbers = [k for k, _ in self.picks]
            together = numbers[-1] - numbers[0] < len(set(numbers))
            layout.insert(self.picks[0][1] if together else 0, POSITIONS)
        return IndexPlan(tuple(self.entries), tuple(layout), tuple(self.grown))


def parse(
    shape: Sequence[Any], index: object, strict: bool = True, wrap: bool = True
) -> tuple[IndexPlan, list[Any]]:
    """Return (plan, positions) of an index into an array of this shape.

    Args:
      shape: of the array; sizes may be symbolic.
      index: the expression in the brackets.
      strict: True if fixed integers out of range are an error, unless the setting
        `check_static_indices` says otherwise.
      wrap: True if negative positions count from the end; else they are out of range.

    Raises SubscriptError, an IndexError, for elements that the array lacks, and TypeRule for
    objects that are not an index.
    """
    items = items_of(index)
    dots = [k for k, i in enumerate(items) if i is Ellipsis]
    if len(dots) > 1:
        raise SubscriptError("an index has more than one Ellipsis", fix="leave one")
    axes = sum([_axes(i) for i in items])
    if axes > len(shape):
        raise SubscriptError(
            f"too many indices: {axes} for an array of {len(shape)} axes, of shape {tuple(shape)}",
            fix="give one for each axis at most; None adds an axis",
        )
    reading = _Reading(shape, strict, wrap)
    for k, item in enumerate(items):
        if item is Ellipsis:
            reading.whole(len(shape) - axes)
        else:
            reading.take(k, item)
    if not dots:
        reading.whole(len(shape) - axes)
    return reading.plan(), reading.values


def _axes(item: Any) -> int:
    """Return the number of axes of the array that an item indexes."""
    if item is None or item is Ellipsis or item.__class__ is bool:
        return 0
    if item.__class__ is slice or item.__class__ is int or item.__class__ is Dim:
        return 1
    return item.ndim if item.dtype == BOOL else 1


def is_inside(i: Dim | int, n: Dim | int) -> bool | None:
    """Return True if an axis of size `n` always has position `i`, False if never, else None."""
    low, high = decide_ge(i, -n), decide_ge(n - 1, i)
    if low is False or high is False:
        return False
    return True if low and high else None


def unknown_position(i: Any, n: Any) -> UndecidedDim:
    """Return the error for a fixed position that an axis may lack."""
    try:
        known = -n <= i < n
    except UndecidedDim as e:
        error = UndecidedDim(
            f"index {i} of an axis of size {n}: {e.what}",
            fix=f'x.at[{i}].get(mode="fill") reads outside, set(v, mode="drop") writes nothing '
            f"there; {e.fix}",
        )
        error.asked, error.question = e.asked, e.question
        return error
    raise AssertionError(f"whether {i} is a position of {n} is known: {known}")


# ---- slices --------------------------------------------------------------------------------


def slice_of(s: slice, n: Dim | int) -> tuple[Any, Any, int]:
    """Return (least position read, size, step) of a slice of an axis of size `n`."""
    start, stop, step = _bound(s.start), _bound(s.stop), _bound(s.step)
    step = 1 if step is None else step
    if step.__class__ is not int or not step:
        raise SubscriptError(f"a slice cannot have step {step}", fix="use a number but 0")
    if n.__class__ is int and start.__class__ is not Dim and stop.__class__ is not Dim:
        a, b, step = slice(start, stop, step).indices(n)
        size = len(range(a, b, step))
        low = a if step > 0 else a + (size - 1) * step
        return low if size else 0, size, step
    if step > 0:
        a, b = _clipped(start, n, 0), _clipped(stop, n, n)
        return a, -(-max_dim(b - a, 0) // step), step
    a = min_dim(_clipped(start, n, n, least=-1), n - 1) if start is not None else n - 1
    b = -1 if stop is None else _clipped(stop, n, 0, least=-1)
    size = -(-max_dim(a - b, 0) // -step)
    if size.__class__ is int and size == 0:
        return 0, 0, step  # also of an axis of size 0, which has no position a or b
    return (b + 1 if step == -1 else a + (size - 1) * step), size, step


def _bound(v: Dim | int | None) -> Any:
    """Return the end of a slice as None, an int or a Dim."""
    if v is None or v.__class__ is int or v.__class__ is Dim:
        return admitted_sizes(v)
    try:
        return v.__index__()
    except (AttributeError, TypeError) as e:
        if isinstance(v, Value):
            raise UnknownSlice(
                f"the size of a slice must be known, and {v!r} has no value while tracing",
                fix="use plait.lax.dynamic_slice_in_dim(x, start, size) for a computed start, or "
                "plait.numpy.where with a comparison of positions",
            ) from None
        raise NotAnIndexError(f"a slice cannot end at {v!r}", fix="use integers") from e


def _clipped(v: Dim | int | None, n: Any, default: Dim | int, least: int = 0) -> Any:
    """Clip the end of a slice to [least, n], where sizes are symbolic."""
    if v is None:
        return default
    sign = v >= 0 if v.__class__ is int else decide_ge(v, 0)
    if sign is None and least == 0 and decide_eq(min_dim(max_dim(n + v, 0), max_dim(-v, 0)), 0):
        return max_dim(min_dim(v, n), 0)  # Counted from either end, it is 0 where `v` is negative.
    if sign is None:
        sign = v >= 0  # This raises UndecidedDim, whose message names the open comparison.
    return min_dim(v, n) if sign else max_dim(n + v, least)
