"""Rearranging: shapes, axes, joining, splitting, repeating, turning.

Invariant: elements are moved and never computed with; out of range axes and sizes that do not fit
are errors at once, whatever the values.
"""

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Dim, divide_exact, product
from ..errors import AxisError, ConcretizationError, TypeRule
from ..interpreter import Tracer, Value
from ..ops import elementwise as el
from ..ops import shape as sh
from ..ops.indexing import dynamic_slice_in_dim, size_value
from ..ops.shape import convert, materialise_at_ground, normal_axes, normal_axis, normal_shape
from ..ops.subscript import take
from ..surface import value
from ..types import BOOL, Aval, broadcast_shapes
from .creation import _number_dtype

# ---- shapes --------------------------------------------------------------------------------


def _order(order: str, what: str) -> None:
    if order not in ("C", "F"):
        raise TypeRule(f'{what}: order must be "C" or "F", not {order!r}', fix='use order="C"')


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """The same elements in another shape.

    Args:
      a: an array.
      shape: ints, of which one may be -1: as many as are left.
      order: "C", the last axis fastest, or "F", the first.
      copy: accepted for likeness.

    Raises TypeRule if the number of elements differs.  As numpy.reshape.
    """
    _order(order, "reshape")
    if order == "F":
        turned = normal_shape(shape)[::-1]
        return sh.transpose(sh.reshape(sh.transpose(a), turned))
    return materialise_at_ground(sh.reshape(a, shape))


def ravel(a: Any, order: str = "C") -> Any:
    """All elements as a vector, in row-major ("C") or column-major ("F") order.

    As numpy.ravel.
    """
    return reshape(a, (-1,) if value(a).aval.size != 0 else (0,), order)


def transpose(a: Any, axes: Any = None) -> Any:
    """Axes in another order, reversed by default.  As numpy.transpose."""
    return materialise_at_ground(sh.transpose(a, axes))


def permute_dims(a: Any, /, axes: Any) -> Any:
    """Axes in another order.  As numpy.permute_dims."""
    return transpose(a, axes)


def matrix_transpose(x: Any, /) -> Any:
    """The last two axes swapped.  As numpy.matrix_transpose."""
    return swapaxes(x, -1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Two axes swapped.  As numpy.swapaxes."""
    x = value(a)
    n = x.aval.ndim
    i, j = normal_axis(axis1, n, "axis1"), normal_axis(axis2, n, "axis2")
    perm = list(range(n))
    perm[i], perm[j] = j, i
    return transpose(x, tuple(perm))


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Some axes elsewhere, the others in their order.

    Args:
      a: an array.
      source, destination: an axis, or as many of each.

    As numpy.moveaxis.
    """
    return materialise_at_ground(sh.moveaxis(a, source, destination))


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """One axis before the place `start`.  As numpy.rollaxis."""
    x = value(a)
    n = x.aval.ndim
    at, start = normal_axis(axis, n), normal_axis(start, n + 1, "start")
    return moveaxis(x, at, start - 1 if at < start else start)


def squeeze(a: Any, axis: Any = None) -> Any:
    """Without axes of size 1: all of them, or those named.

    Raises TypeRule for an axis of another size.  As numpy.squeeze.
    """
    return materialise_at_ground(sh.squeeze(a, axis))


def expand_dims(a: Any, axis: Any) -> Any:
    """With new axes of size 1, at places of the result.  As numpy.expand_dims."""
    return sh.expand_dims(a, axis)


def broadcast_to(array: Any, shape: Any) -> Any:
    """Repeated along new axes and those of size 1.

    Raises TypeRule if sizes are neither equal nor 1.  As numpy.broadcast_to.
    """
    return materialise_at_ground(sh.broadcast_to(array, shape))


def broadcast_arrays(*args: Any) -> list:
    """Arrays in one shape.  As numpy.broadcast_arrays."""
    xs = [value(x) for x in args]
    target = broadcast_shapes([x.aval.shape for x in xs])
    return [broadcast_to(x, target) for x in xs]


def atleast_1d(*arys: Any) -> Any:
    """With one axis at least: an array, or a list for several.  As numpy.atleast_1d."""
    return _each(arys, lambda x: sh.reshape(x, (1,)) if not x.aval.ndim else x)


def atleast_2d(*arys: Any) -> Any:
    """With two axes at least; new ones come first.  As numpy.atleast_2d."""
    return _each(arys, _two_axes)


def _two_axes(x: Any) -> Any:
    n = x.aval.ndim
    return x if n > 1 else sh.expand_dims(x, tuple(range(2 - n)))


def atleast_3d(*arys: Any) -> Any:
    """With three axes at least: a vector becomes (1, n, 1), a matrix (n, m, 1).

    As numpy.atleast_3d.
    """
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _each(arys, lambda x: sh.expand_dims(x, new.get(x.aval.ndim, ())))


def _each(arys: Sequence[Any], f: Any) -> Any:
    out = [materialise_at_ground(f(value(x))) for x in arys]
    return out[0] if len(out) == 1 else out


# ---- joining -------------------------------------------------------------------------------


def _rows(arrays: Any, what: str) -> list:
    """Several arrays, given in a sequence or as the rows of one."""
    if isinstance(arrays, Value | np.ndarray):
        arrays = value(arrays)
        if not arrays.aval.ndim:
            raise TypeRule(f"{what} takes several arrays, not {arrays.aval!r}", fix="give a list")
        return [arrays[i] for i in range(len(arrays))]
    return [value(x) for x in arrays]


def _recast(xs: list, dtype: Any) -> list:
    return xs if dtype is None else [convert(x, _number_dtype(dtype)) for x in xs]


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Any:
    """One after the other along an axis; flattened first if it is None.

    Args:
      arrays: of one shape but for that axis; dtypes are promoted.
      axis: which.
      dtype: of the result.

    Raises TypeRule for sizes that do not fit.  As numpy.concatenate.
    """
    xs = _recast(_rows(arrays, "concatenate"), dtype)
    if axis is None:
        xs, axis = [ravel(x) for x in xs], 0
    return sh.concatenate(xs, axis)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """One after the other along an axis.  As numpy.concat."""
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Any:
    """Along a new axis, at a place of the result.

    Raises TypeRule for different shapes.  As numpy.stack.
    """
    xs = _recast(_rows(arrays, "stack"), dtype)
    for x in xs:
        if x.aval.shape != xs[0].aval.shape:
            raise TypeRule(
                f"{xs[0].aval!r} and {x.aval!r} can not be stacked", fix="give one shape"
            )
    return sh.stack(xs, axis)


def unstack(x: Any, /, *, axis: int = 0) -> tuple:
    """The parts along an axis, without it.  As numpy.unstack."""
    x = value(x)
    at = normal_axis(axis, x.aval.ndim)
    parts = [sh.slice_in_dim(x, i, i + 1, axis=at) for i in range(_size(x, at))]
    return tuple([sh.squeeze(p, at) for p in parts])


def _size(x: Any, axis: int) -> int:
    n = x.aval.shape[axis]
    if n.__class__ is Dim:
        raise TypeRule(f"axis {axis} of {x.aval!r} has no fixed size", fix="give a fixed size")
    return n


def vstack(tup: Any, dtype: Any = None) -> Any:
    """Rows one below the other; vectors are rows.  As numpy.vstack."""
    return sh.concatenate([_two_axes(x) for x in _recast(_rows(tup, "vstack"), dtype)], 0)


def hstack(tup: Any, dtype: Any = None) -> Any:
    """Side by side: along the second axis, or the only one.  As numpy.hstack."""
    xs = [atleast_1d(x) for x in _recast(_rows(tup, "hstack"), dtype)]
    return sh.concatenate(xs, 0 if xs and xs[0].aval.ndim == 1 else 1)


def dstack(tup: Any, dtype: Any = None) -> Any:
    """Behind each other: along the third axis.  As numpy.dstack."""
    return sh.concatenate([atleast_3d(x) for x in _recast(_rows(tup, "dstack"), dtype)], 2)


def column_stack(tup: Any) -> Any:
    """Columns side by side; vectors are columns.  As numpy.column_stack."""
    xs = [x if x.aval.ndim > 1 else sh.reshape(x, (x.aval.size, 1))
          for x in _rows(tup, "column_stack")]  # fmt: skip
    return sh.concatenate(xs, 1)


def block(arrays: Any) -> Any:
    """A matrix of nested lists of blocks: the innermost lists go along the last axis.

    As numpy.block.
    """
    depth = _depth(arrays)
    joined, _ = _block(arrays, 0, depth)
    return materialise_at_ground(joined)


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(a) for a in arrays}
    if len(depths) != 1:
        raise TypeRule("block: the lists are not equally deep", fix="nest all of them alike")
    return depths.pop() + 1


def _block(arrays: Any, level: int, depth: int) -> tuple[Any, int]:
    """(joined, number of axes it must have)."""
    if level == depth:
        x = value(arrays)
        return x, builtins.max(x.aval.ndim, depth)
    parts = [_block(a, level + 1, depth) for a in arrays]
    rank = builtins.max([n for _, n in parts])
    xs = [sh.expand_dims(x, tuple(range(rank - x.aval.ndim))) for x, _ in parts]
    return sh.concatenate(xs, rank - depth + level), rank


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """`values` after `arr`: both flattened, or along an axis.  As numpy.append."""
    return concatenate([value(arr), value(values)], axis)


# ---- splitting -----------------------------------------------------------------------------


def _split(what: str, ary: Any, sections: Any, axis: int, even: bool) -> list:
    x = value(ary)
    at = normal_axis(axis, x.aval.ndim)
    n = x.aval.shape[at]
    if hasattr(sections, "__index__") and not getattr(sections, "ndim", 0):
        places = _even(what, n, sections.__index__(), even)
    else:
        if isinstance(sections, Tracer):
            raise ConcretizationError(
                f"{what} at {sections!r}, whose values are not known", fix="split at fixed places"
            )
        inner = [int(i) for i in np.asarray(sections)]
        inner = [builtins.max(i + n, 0) if i < 0 else builtins.min(i, n) for i in inner]
        places = [0, *inner, n]
    ends = zip(places, places[1:])
    return [sh.slice_in_dim(x, a, b if b >= a else a, axis=at) for a, b in ends]


def _even(what: str, n: Any, count: int, even: bool) -> list:
    if count < 1:
        raise TypeRule(f"{what} into {count} parts", fix="give at least one")
    if n.__class__ is Dim:
        step = divide_exact(n, count)
        return [step * i for i in range(count)] + [n]
    if even and n % count:
        raise TypeRule(
            f"{what}: an axis of size {n} does not divide into {count} parts",
            fix="use array_split, or another number",
        )
    step, more = divmod(n, count)
    return [i * step + builtins.min(i, more) for i in range(count + 1)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list:
    """Parts along an axis: so many equal ones, or those between given places.

    Raises TypeRule if the size does not divide.  As numpy.split.
    """
    return _split("split", ary, indices_or_sections, axis, even=True)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list:
    """The same; the first parts may be longer by one.  As numpy.array_split."""
    return _split("array_split", ary, indices_or_sections, axis, even=False)


def vsplit(ary: Any, indices_or_sections: Any) -> list:
    """`split` along the first axis.  As numpy.vsplit."""
    return _split("vsplit", ary, indices_or_sections, 0, even=True)


def hsplit(ary: Any, indices_or_sections: Any) -> list:
    """`split` along the second axis, or the only one.  As numpy.hsplit."""
    return _split("hsplit", ary, indices_or_sections, 1 if value(ary).aval.ndim > 1 else 0, True)


def dsplit(ary: Any, indices_or_sections: Any) -> list:
    """`split` along the third axis.  As numpy.dsplit."""
    return _split("dsplit", ary, indices_or_sections, 2, even=True)


# ---- repeating -----------------------------------------------------------------------------


def tile(A: Any, reps: Any) -> Any:
    """The whole array repeated along each axis.

    Args:
      A: an array.
      reps: a number, or one for each of the last axes.

    As numpy.tile.
    """
    x = value(A)
    times = normal_shape(reps)
    n = builtins.max(len(times), x.aval.ndim)
    times = (1,) * (n - len(times)) + times
    sizes = (1,) * (n - x.aval.ndim) + x.aval.shape
    pairs = [d for r, s in zip(times, sizes) for d in (r, s)]
    spread = sh.broadcast_to(sh.reshape(x, [d for s in sizes for d in (1, s)]), tuple(pairs))
    return materialise_at_ground(sh.reshape(spread, [r * s for r, s in zip(times, sizes)]))


def repeat(
    a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None
) -> Any:
    """Each element repeated.

    Args:
      a: an array.
      repeats: how often: a number, or one for each element along the axis.
      axis: which; None: the flattened array.
      total_repeat_length: the size of the result; needed if `repeats` is traced.  What is missing
        repeats the last element, what is too much is cut off.

    As numpy.repeat.

    >>> import numpy as np, weft as wf
    >>> wf.numpy.repeat(np.array([7, 8]), np.array([1, 3])).tolist()
    [7, 8, 8, 8]
    """
    x = value(a)
    if axis is None:
        x, axis = ravel(x), 0
    at = normal_axis(axis, x.aval.ndim)
    if repeats.__class__ is Dim or (hasattr(repeats, "__index__") and not _has_axes(repeats)
                                    and not isinstance(repeats, Tracer)):  # fmt: skip
        out = _repeated(x, repeats if repeats.__class__ is Dim else repeats.__index__(), at)
        if total_repeat_length is None:
            return out
        repeats = np.full(x.aval.shape[at], repeats.__index__())
    n = _size(x, at)
    if isinstance(repeats, Tracer):
        if total_repeat_length is None:
            raise ConcretizationError(
                f"the size of repeat(...) depends on {repeats!r}, which has no value while it is "
                "traced",
                fix="give total_repeat_length",
            )
        return take(x, _sources(repeats, n, total_repeat_length), at, mode="clip")
    places = np.repeat(np.arange(n), np.broadcast_to(np.asarray(repeats), (n,)))
    if total_repeat_length is not None:
        missing = builtins.max(total_repeat_length - len(places), 0)
        places = np.concatenate([places, np.full(missing, n - 1)])[:total_repeat_length]
    return take(x, places.astype(np.int32), at, mode="clip")


def _has_axes(x: Any) -> bool:
    return bool(getattr(x, "ndim", 0))


def _repeated(x: Any, times: Any, axis: int) -> Any:
    front, n, back = x.aval.shape[:axis], x.aval.shape[axis], x.aval.shape[axis + 1 :]
    spread = sh.broadcast_to(sh.expand_dims(x, axis + 1), (*front, n, times, *back))
    return materialise_at_ground(sh.reshape(spread, (*front, n * times, *back)))


def _sources(repeats: Any, n: int, total: int) -> Any:
    """Which element each place of the result comes from: how many ends lie at or before it."""
    ends = sh.broadcast_to(repeats, (n,)).cumsum()
    places = sh.iota(ends.aval.dtype, (total, n), 0)
    return sh.convert(el.le(sh.reshape(ends, (1, n)), places), np.int32).sum(1)


def resize(a: Any, new_shape: Any) -> Any:
    """Another shape, filled with the elements again and again.  As numpy.resize."""
    x, shape = ravel(a), normal_shape(new_shape)
    n, want = x.aval.size, product(shape)
    if n == 0 or want == 0:
        return sh.fill(0, Aval(shape, x.aval.dtype))
    times = -(-want // n)
    return reshape(sh.slice_in_dim(tile(x, times), 0, want), shape)


# ---- turning -------------------------------------------------------------------------------


def flip(m: Any, axis: Any = None) -> Any:
    """Reversed along axes, all of them by default.  As numpy.flip."""
    x = materialise_at_ground(value(m))
    axes = tuple(sorted(normal_axes(axis, x.aval.ndim)))
    return sh.rev.bind(x, axes=axes) if axes else x


def fliplr(m: Any) -> Any:
    """Reversed along the second axis.  As numpy.fliplr."""
    return flip(m, 1)


def flipud(m: Any) -> Any:
    """Reversed along the first axis.  As numpy.flipud."""
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Turned by a quarter `k` times, from the first axis of `axes` to the second.

    As numpy.rot90.
    """
    x = value(m)
    if len(axes) != 2:
        raise AxisError(f"rot90 in the axes {axes}", fix="name two axes")
    i, j = normal_axes(tuple(axes), x.aval.ndim, "axes")
    k = k.__index__() % 4
    if k == 2:
        return flip(x, (i, j))
    if k == 0:
        return materialise_at_ground(x)
    return swapaxes(flip(x, j), i, j) if k == 1 else flip(swapaxes(x, i, j), j)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Moved along axes; what leaves at the end comes in at the beginning.

    Args:
      a: an array.
      shift: how far: an integer, which may be traced, or one for each axis.
      axis: along which; None: in the flattened array.

    As numpy.roll.
    """
    x = value(a)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.aval.shape)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    shifts = shift if isinstance(shift, tuple | list) else (shift,)
    if isinstance(shift, Value | np.ndarray) and shift.ndim:
        shifts = list(unstack(shift))
    count = builtins.max(len(axes), len(shifts))
    if {len(axes), len(shifts)} - {1, count}:
        raise TypeRule(f"roll by {len(shifts)} along {len(axes)} axes", fix="give as many")
    for s, at in zip(list(shifts) * (count // len(shifts)), list(axes) * (count // len(axes))):
        x = _rolled(x, s, normal_axis(at, x.aval.ndim))
    return materialise_at_ground(x)


def _rolled(x: Any, shift: Any, axis: int) -> Any:
    n = x.aval.shape[axis]
    if n.__class__ is int and n < 2:
        return x
    if not isinstance(shift, Tracer) and n.__class__ is int:
        k = shift.__index__() % n
        if not k:
            return x
        cut = [sh.slice_in_dim(x, n - k, n, axis=axis), sh.slice_in_dim(x, 0, n - k, axis=axis)]
        return sh.concatenate(cut, axis)
    start = el.modulo(el.neg(shift), size_value(n, value(shift).aval.dtype))
    return dynamic_slice_in_dim(sh.concatenate([x, x], axis), start, n, axis)


# ---- inserting and deleting ----------------------------------------------------------------


def _fixed_places(what: str, obj: Any, n: int) -> np.ndarray:
    if isinstance(obj, Tracer):
        raise ConcretizationError(
            f"the shape of {what}(...) depends on {obj!r}, which has no value while it is traced",
            fix="give fixed places",
        )
    if isinstance(obj, slice):
        return np.arange(n)[obj]
    places = np.asarray(obj)
    if places.dtype == BOOL:
        return np.flatnonzero(places)
    if places.size and (places.min() < -n or places.max() > n):
        raise AxisError(f"{what}: a place is out of range for an axis of size {n}")
    return places


def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """Without the elements at given places: an int, several, a slice or a mask.

    As numpy.delete.
    """
    x = value(arr)
    if axis is None:
        x, axis = ravel(x), 0
    at = normal_axis(axis, x.aval.ndim)
    n = _size(x, at)
    keep = np.delete(np.arange(n), _fixed_places("delete", obj, n))
    return take(x, keep.astype(np.int32), at, mode="clip")


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """With `values` before given places: an int, several, or a slice.  As numpy.insert."""
    x, v = value(arr), value(values)
    if axis is None:
        x, axis = ravel(x), 0
    at = normal_axis(axis, x.aval.ndim)
    n = _size(x, at)
    places = _fixed_places("insert", obj, n)
    if not places.ndim and v.aval.ndim:  # as numpy: the values' first axis goes to the axis
        v = sh.moveaxis(v, 0, at) if v.aval.ndim == x.aval.ndim else v
    count = places.size
    if places.size == 1 and v.aval.ndim == x.aval.ndim:
        count = v.aval.shape[at] if v.aval.shape[at] != 1 else 1
        places = np.full(count, places.reshape(-1)[0])
    want = (*x.aval.shape[:at], count, *x.aval.shape[at + 1 :])
    v = sh.broadcast_to(convert(v, x.aval.dtype), want)
    marks = np.insert(np.zeros(n, np.int64), places.reshape(-1), np.arange(1, count + 1))
    source = np.where(marks > 0, n + marks - 1, np.cumsum(marks == 0) - 1)
    both = sh.concatenate([x, v], at)
    return take(both, source.astype(np.int32), at, mode="clip")


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Without leading ("f") and trailing ("b") zeros along axes (None: all); the values must be
    known.

    As numpy.trim_zeros.
    """
    x = value(filt)
    if isinstance(x, Tracer):
        raise ConcretizationError(
            f"the shape of trim_zeros({x!r}) depends on values that are not known while it is "
            "traced",
            fix="trim before, or mask instead",
        )
    places = np.nonzero(np.asarray(x))
    for i in sh.normal_axes(axis, x.aval.ndim):
        n = x.aval.shape[i]
        first, last = (places[i].min(), places[i].max() + 1) if places[i].size else (n, n)
        start = first if "f" in trim.lower() else 0
        stop = last if "b" in trim.lower() and places[i].size else (n if places[i].size else start)
        x = sh.slice_in_dim(x, int(start), int(stop), axis=i)
    return x
