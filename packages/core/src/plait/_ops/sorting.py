"""Sorting along an axis, and the greatest elements along one.

The order is total, as numpy's: nans come last, -0.0 equals 0.0, complex numbers are ordered by
real part, then by imaginary part.

Invariant: a sort without ties to break costs as much as a sort of integers.  XLA's CPU backend
sorts a single operand by plain `<` four times as fast as by any other comparison.  Floats alone are
therefore sorted as integers in the same order.  A key of up to 32 bits with other operands is
packed with its position in one 64-bit integer.  After the sort, all operands are gathered at these
positions.  Two such keys alone, the first not a float, are one 64-bit integer.  Several keys with
other operands are sorted by the last key first, as in radix sort (Knuth, "The Art of Computer
Programming", vol. 3, 5.2.5).  On CPUs numpy sorts the integers (`numpy_sorts`).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base.errors import AxisError, OperandTypeError, ShapeError
from .._base.jaxlib_api import IrValue, limits
from .._base.lazy import later
from .._core.array import as_value
from .._core.carrier import expand_rules
from .._core.interpreter import Value
from .._core.primitive import primitive
from .._plugins.traits import Discrete
from .._types.avals import (
    BOOL,
    COMPLEX,
    FLOAT32,
    FLOATING,
    INT32,
    NOTHING,
    Aval,
    category,
    nothing_to_do,
)
from .._types.dims import Dim, is_symbolic
from .._xla.cpu_forms import cpu_form_rules
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import attr, boolean, i64, i64s
from .argreduction import dtype_for_indices, positions
from .elementwise import ORDERED, agreed
from .empty_axes import make_room, take_back, with_room
from .shape import iota, moveaxis, normal_axis, reshape, rev, slice_in_dim

__all__ = ["argsort", "argsort_", "sort", "sort_", "sort_together", "top_k", "top_k_"]

INT64 = np.dtype(np.int64)

# ---- sort ----------------------------------------------------------------------------------


@primitive("core.sort", many=True)
def sort_(*xs: Aval, axis: int, num_keys: int, stable: bool) -> list:
    """Sort the rows of all operands along `axis` by the first `num_keys` of them."""
    if not xs or not 1 <= num_keys <= len(xs):
        raise OperandTypeError(
            f"sort by {num_keys} keys of {len(xs)} operands",
            fix="num_keys is at least 1 and at most the number of operands",
        )
    if any(x.category == NOTHING for x in xs[:num_keys]):
        raise nothing_to_do(xs[:num_keys])
    for x in xs:
        if x.shape != xs[0].shape:
            raise ShapeError(
                f"{xs[0]!r} and {x!r} cannot be sorted together",
                fix="give operands of one shape",
            )
    if not 0 <= axis < xs[0].ndim:
        raise AxisError(
            f"sort: there is no axis {axis} in {xs[0]!r}",
            fix="give an axis of the operands, counted from the front",
        )
    return list(xs)


@lower_rules.rule(sort_)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    axis: int,
    num_keys: int,
    stable: bool,
):
    key = ins[0]
    if not is_symbolic(key.shape) and key.size == 0:
        return xs
    if len(xs) == 1 and key.category != COMPLEX:
        return [_alone(e, xs[0], key, axis)]
    n, keys = key.shape[axis], ins[:num_keys]
    few = n.__class__ is not int or n < 2**31
    small = all(map(_is_small, keys))
    if small and few and e.unit.platforms == ("cpu",):
        if len(xs) == num_keys == 2 and key.category != FLOATING:
            return _pair(e, xs, ins, axis)
        return _packed(e, xs, ins, axis, num_keys)
    real = all(k.category != COMPLEX for k in keys)
    if real and few and _by_numpy(e, Aval(key.shape, INT64)) is not None:
        return _packed(e, xs, ins, axis, num_keys)
    return _sort(e, xs, ins, axis, stable, lambda r, pairs: _before(r, pairs, ins[:num_keys]))


def _is_small(key: Aval) -> bool:
    return key.category != COMPLEX and key.dtype.itemsize <= 4


def _sort(
    e: Emitter,
    xs: list[IrValue],
    avals: Sequence[Aval],
    axis: int,
    stable: bool,
    before: Callable[..., Any],
) -> list:
    """Sort by `before(emitter, pairs)`, which compares the first of each pair with the second."""
    cells = [Aval((), a.dtype) for a in avals for _ in range(2)]

    def body(r: Emitter, args: list[IrValue]):
        return [before(r, list(zip(args[::2], args[1::2])))]

    out = e.op(
        "stablehlo.sort", xs, *avals, regions=[(cells, body)], dimension=i64(axis),
        is_stable=boolean(stable),
    )  # fmt: skip
    return [out] if len(avals) == 1 else out


_FLAG = Aval((), BOOL)


def _before(r: Emitter, pairs: list[tuple[Any, ...]], keys: Sequence[Aval]) -> Any:
    """Compare in lexicographic order: by a key if it differs, else by the next one."""
    spread = [k for (a, b), t in zip(pairs, keys) for k in _plain_keys(r, a, b, t)]
    *first, (a, b, t) = spread
    out = _less(r, a, b, t)
    for a, b, t in reversed(first):
        less, more = _less(r, a, b, t), _less(r, b, a, t)
        out = r.op("stablehlo.select", [more, r.constant(False, _FLAG), out], _FLAG)
        out = r.op("stablehlo.or", [less, out], _FLAG)
    return out


def _plain_keys(r: Emitter, a: IrValue, b: IrValue, key: Aval) -> list:
    """Return real keys for one that may be complex; which parts are nan counts first."""
    if key.category != COMPLEX:
        return [(a, b, Aval((), key.dtype))]
    part = Aval((), FLOAT32 if key.dtype.itemsize == 8 else np.float64)
    real, imag = ([r.op(f"stablehlo.{p}", [v], part) for v in (a, b)] for p in ("real", "imag"))
    nans = [[r.compare(v, v, "NE", _FLAG) for v in vs] for vs in (real, imag)]
    return [(*nans[0], _FLAG), (*nans[1], _FLAG), (*real, part), (*imag, part)]


def _less(r: Emitter, a: IrValue, b: IrValue, cell: Aval) -> Any:
    less = r.compare(a, b, "LT", _FLAG)
    if cell.category != FLOATING:
        return less
    number, nan = r.compare(a, a, "EQ", _FLAG), r.compare(b, b, "NE", _FLAG)
    return r.op("stablehlo.or", [less, r.op("stablehlo.and", [number, nan], _FLAG)], _FLAG)


def _alone(e: Emitter, x: IrValue, aval: Aval, axis: int) -> Any:
    """Sort one real operand by `<`, as integers of its width.  Negative zeros come first."""
    widened = _widened(aval)
    if widened is not aval:
        x = e.op("stablehlo.convert", [x], widened)
    if widened.category != FLOATING:
        x = _increasing(e, x, widened, axis)
    else:
        bits, whole = _ordered_bits(e, _with_one(e, x, widened, nan=True), widened)
        bits = _increasing(e, bits, whole, axis)
        x = e.op("stablehlo.bitcast_convert", [_flipped(e, bits, whole)], widened)
    return x if widened is aval else e.op("stablehlo.convert", [x], aval)


def _increasing(e: Emitter, x: Any, aval: Aval, axis: int) -> Any:
    """Sort one operand by `<`, which is total for its dtype."""
    by_numpy = _by_numpy(e, aval)
    if by_numpy is not None:
        return by_numpy.increasing(e, x, aval, axis)
    return _sort(e, [x], [aval], axis, False, _by_less)[0]


def _by_numpy(e: Emitter, aval: Aval) -> Any:
    """Return the module that lets numpy sort integers of this type; None if that does not pay."""
    module = later("_ops.numpy_sorts") if e.calls_numpy else None
    return module if module is not None and module.pays(aval) else None


def _widened(aval: Aval) -> Aval:
    """Return the type that keys are sorted in.

    Dtypes narrower than a byte and floats of 8 bits are converted, which keeps their order.
    """
    if aval.category == FLOATING and aval.dtype.itemsize == 1:
        return Aval(aval.shape, FLOAT32)
    return Aval(aval.shape, INT32) if aval.dtype.name in ("int4", "uint4") else aval


def _with_one(e: Emitter, x: IrValue, aval: Aval, nan: bool = False, zero: bool = False) -> Any:
    """Return `x` with a single representation of nan, or of zero."""
    flags = Aval(aval.shape, BOOL)
    if zero:
        nought = e.constant(0, aval)
        x = e.op("stablehlo.select", [e.compare(x, nought, "EQ", flags), nought, x], aval)
    if nan:
        bad = e.compare(x, x, "NE", flags)
        x = e.op("stablehlo.select", [bad, e.constant(np.nan, aval), x], aval)
    return x


def _ordered_bits(e: Emitter, x: IrValue, aval: Aval) -> tuple[Any, Aval]:
    """Return floats as signed integers in the same order, and their type."""
    whole = Aval(aval.shape, np.dtype(f"int{aval.dtype.itemsize * 8}"))
    return _flipped(e, e.op("stablehlo.bitcast_convert", [x], whole), whole), whole


def _flipped(e: Emitter, bits: IrValue, whole: Aval) -> Any:
    """Invert all bits but the sign of negative numbers; it is its own inverse."""
    width = whole.dtype.itemsize * 8
    sign = e.op("stablehlo.shift_right_arithmetic", [bits, e.constant(width - 1, whole)], whole)
    low = e.constant(2 ** (width - 1) - 1, whole)
    mask = e.op("stablehlo.and", [sign, low], whole)
    return e.op("stablehlo.xor", [bits, mask], whole)


def _packed(e: Emitter, xs: list[IrValue], ins: Sequence[Aval], axis: int, num_keys: int) -> list:
    """Sort by each key, the last one first; equal elements keep the order found so far."""
    order = Aval(ins[0].shape, INT32)
    at: Any = None
    for i in reversed(range(num_keys)):
        x = xs[i] if at is None else _gathered(e, xs[i], ins[i], at, order, axis)
        here = _order(e, x, ins[i], axis)
        at = here if at is None else _gathered(e, at, order, here, order, axis)
    return [_gathered(e, x, a, at, order, axis) for x, a in zip(xs, ins)]


def _by_less(r: Emitter, pairs: list[tuple[Any, ...]]) -> Any:
    ((a, b),) = pairs
    return r.compare(a, b, "LT", _FLAG)


def _together(e: Emitter, upper: IrValue, lower: IrValue, wide: Aval) -> Any:
    """Pack a small number with one of 0 to 2**32 - 1, which orders equal numbers."""
    upper = e.op("stablehlo.shift_left", [upper, e.constant(32, wide)], wide)
    return e.op("stablehlo.or", [upper, lower], wide)


def _lower_half(e: Emitter, packed: IrValue, wide: Aval) -> Any:
    return e.op("stablehlo.and", [packed, e.constant(2**32 - 1, wide)], wide)


def _order(e: Emitter, x: IrValue, key: Aval, axis: int) -> Any:
    """Return the positions of the elements in sorted order.

    The sorted 64-bit integers have the key in the upper half and the position in the lower.  Where
    numpy sorts, keys may be 64-bit numbers themselves.
    """
    if not _is_small(key):
        if key.category == FLOATING:
            x, key = _ordered_bits(e, _with_one(e, x, key, nan=True, zero=True), key)
        return later("_ops.numpy_sorts").order(e, x, key, axis)
    wide = Aval(key.shape, INT64)
    packed = _together(e, _small_key(e, x, key, wide, zero=True), positions(e, wide, axis), wide)
    packed = _increasing(e, packed, wide, axis)
    return e.op("stablehlo.convert", [_lower_half(e, packed, wide)], Aval(key.shape, INT32))


def _pair(e: Emitter, xs: list[IrValue], ins: Sequence[Aval], axis: int) -> list:
    """Sort by two keys without other operands, as one integer.  Negative zeros come first.

    The first key must not be a float: its zeros would have to be equal in the integer, and could
    not be distinguished afterwards.
    """
    wide = Aval(ins[0].shape, INT64)
    lower, base = _small_key(e, xs[1], ins[1], wide, zero=False), e.constant(2**31, wide)
    lower = e.op("stablehlo.add", [lower, base], wide)  # to start at 0
    packed = _together(e, _small_key(e, xs[0], ins[0], wide, zero=False), lower, wide)
    packed = _increasing(e, packed, wide, axis)
    upper = e.op("stablehlo.shift_right_arithmetic", [packed, e.constant(32, wide)], wide)
    lower = e.op("stablehlo.subtract", [_lower_half(e, packed, wide), base], wide)
    return [_of_small_key(e, k, a, wide) for k, a in zip((upper, lower), ins)]


def _small_key(e: Emitter, x: IrValue, aval: Aval, wide: Aval, zero: bool) -> Any:
    """Return a key of at most 32 bits as a signed 64-bit integer of that size, in the same order.

    If `zero`, all zeros become one.
    """
    if aval.category == FLOATING:
        single = Aval(aval.shape, FLOAT32)
        if aval is not single:
            x = e.op("stablehlo.convert", [x], single)
        x, aval = _ordered_bits(e, _with_one(e, x, single, nan=True, zero=zero), single)
    x = e.op("stablehlo.convert", [x], wide)
    if aval.dtype == np.uint32:
        x = e.op("stablehlo.subtract", [x, e.constant(2**31, wide)], wide)
    return x


def _of_small_key(e: Emitter, x: IrValue, aval: Aval, wide: Aval) -> Any:
    """Return the key that `_small_key` converted to an integer."""
    if aval.dtype == np.uint32:
        x = e.op("stablehlo.add", [x, e.constant(2**31, wide)], wide)
    if aval.category != FLOATING:
        return e.op("stablehlo.convert", [x], aval)
    whole, single = Aval(aval.shape, INT32), Aval(aval.shape, FLOAT32)
    bits = _flipped(e, e.op("stablehlo.convert", [x], whole), whole)
    x = e.op("stablehlo.bitcast_convert", [bits], single)
    return x if aval is single else e.op("stablehlo.convert", [x], aval)


def _gathered(e: Emitter, x: IrValue, aval: Aval, at: IrValue, places: Aval, axis: int) -> Any:
    """Read `x` at positions along `axis`, one for each position of the result.

    The result has the shape of the positions, whose type is `places`.
    """
    n = aval.ndim
    one = (1,) * n
    wide, wide_places = with_room(aval, one), with_room(places, one)
    x, at = make_room(e, x, aval, wide), make_room(e, at, places, wide_places)
    out = wide_places.with_dtype(aval.dtype)
    rest = [i for i in range(n) if i != axis]
    numbers = (
        f"collapsed_slice_dims = [{axis}], operand_batching_dims = {rest}, "
        f"start_indices_batching_dims = {rest}, start_index_map = [{axis}], index_vector_dim = {n}"
    )
    found = e.op(
        "stablehlo.gather", [x, at], out, dimension_numbers=attr(f"#stablehlo.gather<{numbers}>"),
        slice_sizes=i64s(*one), indices_are_sorted=boolean(False),
    )  # fmt: skip
    return take_back(e, found, out, places.with_dtype(aval.dtype))


def _least(dtype: np.dtype) -> Any:
    """Return a lower bound of all elements."""
    return -np.inf if category(dtype) == FLOATING else int(limits(dtype)[0])


@primitive("core.argsort", traits=(Discrete,))
def argsort_(x: Aval, *, axis: int, stable: bool, descending: bool, index_dtype: np.dtype) -> Aval:
    """Return the order that sorts along `axis`."""
    sort_.infer((x,), dict(axis=axis, num_keys=1, stable=stable))
    return Aval(x.shape, index_dtype)


@expand_rules.rule(argsort_)
def _(x: Value, *, axis: int, stable: bool, descending: bool, index_dtype: np.dtype):
    positions = iota(index_dtype, x.aval.shape, axis)
    if descending:
        x, positions = (rev.bind(v, axes=(axis,)) for v in (x, positions))
    _, out = sort_.bind(x, positions, axis=axis, num_keys=1, stable=stable)
    return rev.bind(out, axes=(axis,)) if descending else out


# ---- the greatest elements ------------------------------------------------------------------


@primitive("core.top_k", many=True)
def top_k_(x: Aval, *, k: int) -> list:
    """Return the `k` greatest along the last axis, the greatest first, and their positions.

    Nan is greater than all, and of equal elements the first comes first.
    """
    agreed("top_k", ORDERED, x)
    if not x.ndim:
        raise AxisError(f"top_k of {x!r}, which has no axis", fix="give an array with axes")
    n = x.shape[-1]
    if k < 0 or (n.__class__ is int and k > n):
        raise ShapeError(
            f"there are no {k} greatest of {n} elements", fix=f"use k between 0 and {n}"
        )
    if n.__class__ is int and n - 1 > int(limits(INT32)[1]):
        raise ShapeError(
            f"top_k: indices of an axis of size {n} do not fit in int32",
            fix="take the greatest of parts, and then of these",
        )
    shape = (*x.shape[:-1], k)
    return [x.with_shape(shape), Aval(shape, INT32)]


@cpu_form_rules.rule(top_k_)
def _(avals: Sequence[Aval], *, k: int):
    return later("_ops.sorting_forms").form_of(avals, k=k)


@lower_rules.rule(top_k_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], k: int):
    (x,), (aval,) = xs, ins
    if not is_symbolic(aval.shape) and aval.size == 0:
        return [e.constant(0, out) for out in outs]
    key = _widened(aval)
    y = x if key is aval else e.op("stablehlo.convert", [x], key)
    if key.category == FLOATING:
        y = _with_one(e, y, key, nan=True, zero=True)
    best = [Aval(outs[0].shape, key.dtype), outs[1]]
    wide = with_room(key, (*key.shape[:-1], k))
    y = make_room(e, y, key, wide, _least(key.dtype))
    _, at = e.op("chlo.top_k", [y], *best, k=i64(k), largest=boolean(True))
    values = _gathered(e, x, aval, at, outs[1], aval.ndim - 1)
    return [values, at]


# ---- functions for users -------------------------------------------------------------------


def _sortable(x: Any, axis: float | None) -> tuple[Any, int]:
    x = as_value(x)
    if axis is None:
        return reshape(x, (x.aval.size,)), 0
    return x, normal_axis(axis, x.aval.ndim)


def sort(x: object, axis: int | None = -1, *, stable: bool = True, descending: bool = False) -> Any:
    """Sort along an axis, as numpy's: nans last, complex numbers by real part first.

    Args:
      x: an array.
      axis: an int; None: the flattened array.
      stable: True if equal elements (which may differ as zeros do) keep their order.
      descending: True for the greatest first, nans before all.

    Raises AxisError for an axis that `x` lacks.

    >>> import numpy as np
    >>> sort(np.array([3.0, np.nan, 1.0])).tolist()
    [1.0, 3.0, nan]
    """
    x, at = _sortable(x, axis)
    (out,) = sort_.bind(x, axis=at, num_keys=1, stable=bool(stable))
    return rev.bind(out, axes=(at,)) if descending else out


def argsort(x: Any, axis: int | None = -1, *, stable: bool = True, descending: bool = False) -> Any:
    """Return the order that sorts, as numpy's: indices along an axis.

    Args:
      x: an array.
      axis: an int; None: of the flattened array.
      stable: True if equal elements keep their order.
      descending: True for the greatest first, nans before all.

    Returns integers of the default dtype.  Raises AxisError for an axis that `x` lacks.

    >>> import numpy as np
    >>> argsort(np.array([3.0, 1.0, 2.0])).tolist()
    [1, 2, 0]
    """
    x, at = _sortable(x, axis)
    dtype = dtype_for_indices(x.aval.shape[at])
    return argsort_.bind(
        x, axis=at, stable=bool(stable), descending=bool(descending), index_dtype=dtype
    )


def sort_together(
    xs: Sequence[Any], axis: int = -1, num_keys: int = 1, stable: bool = True
) -> list[Any]:
    """Sort several arrays of one shape by the first `num_keys` of them.

    Later keys decide where earlier ones are equal.  Raises TypeRule for different shapes, AxisError
    for an axis out of range.

    >>> import numpy as np
    >>> keys, goods = sort_together([np.array([2, 1]), np.array([20, 10])])
    >>> goods.tolist()
    [10, 20]
    """
    vs = [as_value(x) for x in xs]
    at = normal_axis(axis, vs[0].aval.ndim) if vs else 0
    return sort_.bind(*vs, axis=at, num_keys=int(num_keys), stable=bool(stable))


def top_k(x: Any, k: int, axis: int = -1) -> list[Any]:
    """Return the `k` greatest elements along an axis, in descending order, and int32 indices.

    Nans count as greater than all; of equal elements the first comes first.  Raises TypeRule if
    there are no `k` elements, AxisError for an axis that `x` lacks.

    >>> import numpy as np
    >>> values, indices = top_k(np.array([1.0, 5.0, 3.0]), 2)
    >>> values.tolist(), indices.tolist()
    ([5.0, 3.0], [1, 2])
    """
    x = as_value(x)
    at = normal_axis(axis, x.aval.ndim)
    if k.__class__ is Dim:
        return _top_by_sorting(x, k, at)
    out = top_k_.bind(moveaxis(x, at, -1), k=k.__index__())
    return [moveaxis(v, -1, at) for v in out]


def _top_by_sorting(x: Any, k: int, axis: int) -> list[Any]:
    """Return the `k` greatest elements and their indices, for a symbolic size `k`.

    The compiler's operation takes numbers only.  The array is sorted in reverse, so that of equal
    elements the first comes last, and the result is reversed again.
    """
    n = x.aval.shape[axis]
    if k > n:
        raise ShapeError(f"there are no {k} greatest of {n} elements", fix="use a smaller size")
    at = iota(INT32, x.aval.shape, axis)
    found = sort_together([rev.bind(v, axes=(axis,)) for v in (x, at)], axis, 1, True)
    return [rev.bind(slice_in_dim(v, n - k, n, axis=axis), axes=(axis,)) for v in found]
