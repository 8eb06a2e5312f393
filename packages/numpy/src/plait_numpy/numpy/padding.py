"""Padding, in numpy's modes.

Invariant: existing elements are copied by slices, so that derivatives are slices and sums.  Axes
are padded one after the other, so that corners equal numpy's.
"""

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.errors import ArgumentError, OperandTypeError, ShapeError, Unsupported
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.indexing import index_in_dim
from plait.ext.ops.reduction import max_, mean, min_
from plait.ext.ops.shape import convert_into, size_value
from plait.ext.ops.taking import take
from plait.ext.sizes import Dim, admitted_sizes, decide_ge, max_dim, min_dim
from plait.ext.surface import value
from plait.ext.trace import Value
from plait.ext.types import INTEGER
from plait.typing import Array, ArrayLike

from .creation import linspace
from .mapping import apply_along_axis
from .statistics import median

_COPIES = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS = {"maximum": max_, "minimum": min_, "mean": mean, "median": median}


def pad(
    array: ArrayLike, pad_width: object, mode: str | Callable = "constant", **kwargs: Any
) -> Array:
    """Add elements at both ends of axes.

    Args:
      array: any shape and dtype.
      pad_width: a number, a pair (before, after), a pair for each axis, or a dictionary from axes
        to these.
      mode: "constant" (with `constant_values`), "edge", "reflect", "symmetric" (both with
        `reflect_type`), "wrap", "linear_ramp" (with `end_values`), "maximum", "minimum", "mean",
        "median" (with `stat_length`) or "empty".  Or a function, which is called with each vector
        of the array padded by zeros, its (before, after), its axis, and a dictionary of `kwargs`;
        axes are passed in order.  It returns the vector with new ends.

    Raises TypeRule for other modes and options.  As numpy.pad.

    >>> import numpy as np, plait
    >>> plait.numpy.pad(np.array([1, 2, 3]), (2, 1), mode="reflect").tolist()
    [3, 2, 1, 2, 3, 2]
    """
    x = value(array)
    widths = _widths(pad_width, x.aval.ndim)
    if any(w.__class__ is int and w < 0 for pair in widths for w in pair):
        raise ArgumentError(f"pad by {pad_width}: widths cannot be negative", fix="cut with slices")
    if callable(mode):
        return _by_function(x, widths, mode, kwargs)
    known = {"constant": "constant_values", "linear_ramp": "end_values", "reflect": "reflect_type",
             "symmetric": "reflect_type", **dict.fromkeys(_STATISTICS, "stat_length")}  # fmt: skip
    if mode not in ("constant", "empty", "linear_ramp", *_COPIES, *_STATISTICS):
        raise Unsupported(
            f"pad has no mode {mode!r}",
            fix=f"use one of constant, empty, linear_ramp, {', '.join((*_COPIES, *_STATISTICS))}",
        )
    if set(kwargs) - {known.get(mode)}:
        raise ArgumentError(
            f"pad in mode {mode!r} does not take {', '.join(sorted(kwargs))}",
            fix=f"it takes {known.get(mode, 'no options')}",
        )
    out = _pad(x, widths, mode, kwargs.get(known.get(mode, "")))
    return sh.materialise_at_ground(out)


def _by_function(x: Value, widths: list[tuple], function: Callable, options: dict) -> Array:
    out: Any = _constant(x, widths, 0)
    for axis, width in enumerate(widths):
        out = apply_along_axis(function, axis, out, width, axis, options)
    return sh.materialise_at_ground(out)


def _widths(pad_width: object, ndim: int) -> list[tuple]:
    """Return (before, after) for each axis."""
    if isinstance(pad_width, dict):
        found = {sh.normal_axis(a, ndim): _pair(w) for a, w in pad_width.items()}
        return _whole([found.get(i, (0, 0)) for i in range(ndim)])
    return _whole(_pairs(pad_width, ndim, "pad_width"))


def _whole(widths: list[tuple]) -> list[tuple]:
    """Return pairs of widths; refuse widths that are neither integers nor symbolic sizes."""
    for w in [w for pair in widths for w in pair]:
        if isinstance(w, bool) or not (w.__class__ is Dim or hasattr(w, "__index__")):
            raise OperandTypeError(f"pad by {w!r}: widths are integers", fix="write pad_width=1")
    return [tuple([_width(w) for w in pair]) for pair in widths]


def _width(w: Any) -> Any:
    return admitted_sizes(w) if w.__class__ is Dim else w.__index__()


def _pair(w: Any) -> tuple:
    return tuple(w) if isinstance(w, tuple | list) else (w, w)


def _pairs(given: Any, ndim: int, what: str) -> list[tuple]:
    """Return a pair for each axis, from a number, a pair, or one (pair) for each axis."""
    given = _listed(given)
    if isinstance(given, tuple | list):
        given = [_listed(i) for i in given]
    items = list(given) if isinstance(given, tuple | list) else [given]
    if all(not isinstance(i, tuple | list) for i in items):
        if 1 <= len(items) <= 2:
            return [(items[0], items[-1])] * ndim
    else:
        pairs = [(i[0], i[0]) if len(i) == 1 else i for i in map(_pair, items)]
        if len(pairs) in (1, ndim) and all(len(i) == 2 for i in pairs):
            return pairs * (ndim if len(pairs) == 1 else 1)
    raise ShapeError(
        f"{what} {given!r} does not fit an array with {ndim} axes",
        fix="give a number, a pair, or a pair for each axis",
    )


def _listed(x: object) -> Any:
    """Return an array with axes as a list, and anything else as it is."""
    return np.asarray(x).tolist() if getattr(x, "ndim", 0) else x


def _pad(
    x: Value,
    widths: Sequence[tuple],
    mode: str,
    option: float | str | tuple[int | tuple[Any, ...], ...] | None,
) -> Any:
    if mode in ("constant", "empty"):
        return _constant(x, widths, 0 if option is None else option)
    ends = (
        _pairs(0 if option is None else option, x.aval.ndim, "end_values")
        if (mode == "linear_ramp")
        else []
    )
    lengths = _pairs(option, x.aval.ndim, "stat_length") if mode in _STATISTICS else []
    for axis, (low, high) in enumerate(widths):
        if (low, high) == (0, 0):
            continue
        if mode in _STATISTICS:
            x = _statistic(x, axis, low, high, mode, lengths[axis])
        elif mode == "linear_ramp":
            x = _ramp(x, axis, low, high, ends[axis])
        else:
            x = _copied(x, axis, low, high, mode, option)
    return x


def _constant(x: Value, widths: Sequence[tuple], values: Any) -> Any:
    if not isinstance(values, tuple | list | np.ndarray | dict):
        return sh.pad(x, convert_into(values, x.aval.dtype), [(a, b, 0) for a, b in widths])
    if isinstance(values, dict):
        pairs = [_pair(values.get(i, 0)) for i in range(x.aval.ndim)]
    else:
        pairs = _pairs(values, x.aval.ndim, "constant_values")
    for axis, ((low, high), (first, last)) in enumerate(zip(widths, pairs)):
        none = [(0, 0, 0)] * x.aval.ndim
        for v, width in ((first, (low, 0, 0)), (last, (0, high, 0))):
            at = [width if i == axis else w for i, w in enumerate(none)]
            x = sh.pad(x, convert_into(v, x.aval.dtype), at)
    return x


# ---- copies of elements --------------------------------------------------------------------


def _copied(x: Value, axis: int, low: int, high: int, mode: str, option: Any) -> Any:
    n = x.aval.shape[axis]
    if n == 0:
        raise ShapeError(
            f"axis {axis} of {x.aval!r} is empty: there is nothing to pad with",
            fix='use mode="constant"',
        )
    if option not in (None, "even", "odd"):
        raise ArgumentError(f"reflect_type {option!r} is unknown", fix='use "even" or "odd"')
    if n.__class__ is Dim or low.__class__ is Dim or high.__class__ is Dim:
        return _copied_by_position(x, axis, low, high, mode, option)
    if option == "odd":
        return _odd(x, axis, low, high, mode)
    positions = np.pad(np.arange(n), (low, high), mode)  # type: ignore[call-overload]
    return sh.concatenate([_run(x, axis, *r) for r in _runs(positions)], axis)


def _copied_by_position(x: Value, axis: int, low: int, high: int, mode: str, option: Any) -> Any:
    """Pad symbolic sizes by computing the source position of each element."""
    n = x.aval.shape[axis]
    if option == "odd":
        raise ShapeError(
            f'pad with reflect_type="odd" of axis {axis} of {x.aval!r}: how often it is mirrored '
            "is not known",
            fix='use reflect_type="even", or another mode',
        )
    total = low + n + high
    last = size_value(n - 1, np.dtype(np.int32))
    k = el.sub(sh.iota(np.int32, (total,)), size_value(low, np.dtype(np.int32)))
    if mode == "edge":
        at = el.clamp(0, k, last)
    else:
        period = {"wrap": n, "symmetric": 2 * n, "reflect": 2 * (n - 1)}[mode]
        at = el.modulo(k, size_value(max_dim(period, 1), np.dtype(np.int32)))
        if mode != "wrap":
            mirrored = el.sub(size_value(period - (mode == "symmetric"), at.aval.dtype), at)
            at = el.select(el.gt(at, last), mirrored, at)
    return take(x, at, axis, mode="clip")


def _odd(x: Value, axis: int, low: int, high: int, mode: str) -> Any:
    """Mirror positions and values at the ends: twice the edge less the mirrored element."""
    while low or high:
        n = x.aval.shape[axis]
        room = n - 1 if mode == "reflect" else n
        if not room:  # numpy repeats a single element
            return _copied(x, axis, low, high, "edge", None)
        a, b = builtins.min(low, room), builtins.min(high, room)
        first, last = sh.slice_in_dim(x, 0, 1, axis=axis), sh.slice_in_dim(x, n - 1, n, axis=axis)
        skip = 1 if mode == "reflect" else 0
        front = sh.rev.bind(sh.slice_in_dim(x, skip, skip + a, axis=axis), axes=(axis,))
        back = sh.slice_in_dim(x, n - skip - b, n - skip, axis=axis)
        back = sh.rev.bind(back, axes=(axis,))
        mirrored = [el.sub(el.mul(first, 2), front), x, el.sub(el.mul(last, 2), back)]
        x = sh.concatenate(mirrored, axis)
        low, high = low - a, high - b
    return x


def _runs(positions: np.ndarray) -> list[tuple[int, int, int]]:
    """Return (first, count, step) of runs that ascend, descend, or stay."""
    out: list[tuple[int, int, int]] = []
    steps = np.diff(positions)
    start = 0
    while start < len(positions):
        end = start + 1
        step = int(steps[start]) if start < len(steps) else 1
        if step in (-1, 0, 1):
            while end < len(positions) and steps[end - 1] == step:
                end += 1
        else:
            step = 1
        out.append((int(positions[start]), end - start, step))
        start = end
    return out


def _run(x: Value, axis: int, first: int, count: int, step: int) -> Array:
    if step == 0:
        one = sh.slice_in_dim(x, first, first + 1, axis=axis)
        shape = [count if i == axis else d for i, d in enumerate(x.aval.shape)]
        return sh.broadcast_to(one, shape)
    if step == 1:
        return sh.slice_in_dim(x, first, first + count, axis=axis)
    part = sh.slice_in_dim(x, first - count + 1, first + 1, axis=axis)
    return sh.rev.bind(part, axes=(axis,))


# ---- computed values -----------------------------------------------------------------------


def _statistic(x: Value, axis: int, low: int, high: int, mode: str, lengths: tuple) -> Any:
    n = x.aval.shape[axis]
    sides = []
    for k, length in enumerate(lengths):
        count = n if length is None else min_dim(length, n)
        if decide_ge(0, count):
            raise ShapeError(f"pad: stat_length {length} over an axis of size {n}", fix="give more")
        part = (0, count) if k == 0 else (n - count, n)
        v = _STATISTICS[mode](sh.slice_in_dim(x, *part, axis=axis), axis, keepdims=True)
        if mode in ("mean", "median") and x.aval.category == INTEGER:
            v = el.round_even(v)
        shape = [(low, high)[k] if i == axis else d for i, d in enumerate(x.aval.shape)]
        sides.append(sh.broadcast_to(convert_into(v, x.aval.dtype), shape))
    return sh.concatenate([sides[0], x, sides[1]], axis)


def _ramp(x: Value, axis: int, low: int, high: int, ends: tuple) -> Any:
    n = x.aval.shape[axis]
    if n == 0:
        raise ShapeError(f"axis {axis} of {x.aval!r} is empty", fix='use mode="constant"')
    sides = []
    for end, edge, width in ((ends[0], 0, low), (ends[1], n - 1, high)):
        start = sh.squeeze(index_in_dim(x, edge, axis), axis)
        ramp = linspace(end, start, width, endpoint=False, axis=axis)
        whole = x.aval.category == INTEGER
        sides.append(convert_into(el.floor(ramp) if whole else ramp, x.aval.dtype))
    back = sh.rev.bind(sides[1], axes=(axis,))
    return sh.concatenate([sides[0], x, back], axis)
