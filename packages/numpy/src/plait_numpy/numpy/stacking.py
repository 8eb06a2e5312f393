"""Joining and splitting of arrays.

Invariant: elements are moved and never computed with, except that several arrays are promoted to
one dtype; the positions of splits never depend on traced values.
"""

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    OperandTypeError,
    OutOfBounds,
    ShapeError,
)
from plait.ext import Tracer, Value, materialise_at_ground
from plait.ext.ops import shape as sh
from plait.ext.ops.shape import convert, normal_axis
from plait.ext.sizes import Dim, divide_exact, max_dim, min_dim
from plait.ext.surface import dispatched, judge_widening, value
from plait.ext.types import asked_dtype
from plait.typing import Array, ArrayLike, DTypeLike

from .interchange import known
from .manipulation import atleast_1d, atleast_3d, ravel, two_axes
from .masking import unwritten

__all__ = [
    "append", "array_split", "block", "column_stack", "concat", "concatenate", "dsplit", "dstack",
    "hsplit", "hstack", "split", "stack", "vsplit", "vstack",
]  # fmt: skip

# ---- joining -------------------------------------------------------------------------------


def _rows(arrays: Any, what: str) -> list:
    """Return several arrays, given in a sequence or as the rows of one."""
    if isinstance(arrays, Value | np.ndarray):
        arrays = value(arrays)
        if not arrays.aval.ndim:
            raise OperandTypeError(
                f"{what} takes several arrays, not {arrays.aval!r}", fix="give a list"
            )
        return [arrays[i] for i in range(len(arrays))]
    return [value(x) for x in arrays]


def _recast(xs: list, dtype: object) -> list:
    return xs if dtype is None else [convert(x, asked_dtype(dtype)) for x in xs]


@dispatched
def concatenate(
    arrays: Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Join arrays along an axis; flatten them first if it is None.

    Args:
      arrays: equal shapes, except along that axis; dtypes are promoted.
      axis: axis to join along.
      dtype: dtype of the result.

    Raises TypeRule for sizes that do not fit.  As numpy.concatenate.

    >>> import numpy as np, plait
    >>> plait.numpy.concatenate([np.ones((2, 1)), np.ones((2, 2))], axis=1).shape
    (2, 3)
    """
    xs = _recast(_rows(arrays, "concatenate"), dtype)
    if axis is None:
        xs, axis = [ravel(x) for x in xs], 0
    return _judged(arrays, dtype, sh.concatenate(xs, axis))


def _judged(arrays: Value | Sequence[Any], asked: Any, out: Value) -> Any:
    """Return the joined arrays; warn if an array of numpy made them wider."""
    if asked is None and isinstance(arrays, list | tuple):
        judge_widening(arrays, out.aval.dtype)
    return out


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an axis.  As numpy.concat.

    Raises ShapeError if sizes of other axes differ, AxisError for an axis that the arrays lack, and
    ArgumentError if `arrays` is empty.

    >>> import numpy as np, plait
    >>> plait.numpy.concat([np.array([1]), np.array([2, 3])]).tolist()
    [1, 2, 3]
    """
    return concatenate(arrays, axis)


@dispatched
def stack(
    arrays: Sequence[ArrayLike], axis: int = 0, out: None = None, dtype: DTypeLike | None = None
) -> Array:
    """Join arrays along a new axis, at a position of the result.

    arrays: of one shape; axis: the new one; out: must be None; dtype: dtype of the result.  Raises
    TypeRule for different shapes.  As numpy.stack.

    >>> import numpy as np, plait
    >>> plait.numpy.stack([np.arange(2), np.arange(2)], axis=1).tolist()
    [[0, 0], [1, 1]]
    """
    unwritten(out)
    xs = _recast(_rows(arrays, "stack"), dtype)
    for x in xs:
        if x.aval.shape != xs[0].aval.shape:
            raise ShapeError(
                f"{xs[0].aval!r} and {x.aval!r} cannot be stacked", fix="give one shape"
            )
    return _judged(arrays, dtype, sh.stack(xs, axis))


@dispatched
def vstack(tup: Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the first axis; vectors are rows.  As numpy.vstack.

    Raises NotAnArrayError if a part is not an array, ShapeError if sizes of other axes differ, and
    ArgumentError if `tup` is empty.

    >>> import numpy as np, plait
    >>> plait.numpy.vstack([np.arange(2), np.arange(2)]).tolist()
    [[0, 1], [0, 1]]
    """
    return sh.concatenate([two_axes(x) for x in _recast(_rows(tup, "vstack"), dtype)], 0)


@dispatched
def hstack(tup: Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the second axis, or the only one.  As numpy.hstack.

    Raises NotAnArrayError if a part is not an array, ShapeError if sizes of other axes differ, and
    ArgumentError if `tup` is empty.

    >>> import numpy as np, plait
    >>> plait.numpy.hstack([np.array([1]), np.array([2, 3])]).tolist()
    [1, 2, 3]
    """
    xs = [atleast_1d(x) for x in _recast(_rows(tup, "hstack"), dtype)]
    return sh.concatenate(xs, 0 if xs and xs[0].aval.ndim == 1 else 1)


def dstack(tup: Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the third axis.  As numpy.dstack.

    Raises NotAnArrayError if a part is not an array, ShapeError if sizes of other axes differ, and
    ArgumentError if `tup` is empty.

    >>> import numpy as np, plait
    >>> plait.numpy.dstack([np.ones(2), np.ones(2)]).shape
    (1, 2, 2)
    """
    return sh.concatenate([atleast_3d(x) for x in _recast(_rows(tup, "dstack"), dtype)], 2)


def column_stack(tup: Sequence[ArrayLike]) -> Array:
    """Join columns side by side; vectors are columns.  As numpy.column_stack.

    Raises NotAnArrayError if a part is not an array, ShapeError if sizes of other axes differ, and
    ArgumentError if `tup` is empty.

    >>> import numpy as np, plait
    >>> plait.numpy.column_stack([np.arange(2), np.arange(2)]).tolist()
    [[0, 0], [1, 1]]
    """
    xs = [x if x.aval.ndim > 1 else sh.reshape(x, (x.aval.size, 1))
          for x in _rows(tup, "column_stack")]  # fmt: skip
    return sh.concatenate(xs, 1)


def block(arrays: Any) -> Array:
    """Join nested lists of blocks: the innermost lists go along the last axis.

    Raises TypeRule for lists of different depths.  As numpy.block.

    >>> import numpy as np, plait
    >>> plait.numpy.block([[np.eye(2), np.zeros((2, 1))]]).shape
    (2, 3)
    """
    depth = _depth(arrays)
    joined, _ = _block(arrays, 0, depth)
    return materialise_at_ground(joined)


def _depth(arrays: object) -> int:
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(a) for a in arrays}
    if len(depths) != 1:
        raise ArgumentError("block: the lists are not equally deep", fix="nest all of them alike")
    return depths.pop() + 1


def _block(arrays: Any, level: int, depth: int) -> tuple[Any, int]:
    """Return (joined array, number of axes it must have)."""
    if level == depth:
        x = value(arrays)
        return x, builtins.max(x.aval.ndim, depth)
    parts = [_block(a, level + 1, depth) for a in arrays]
    rank = builtins.max([n for _, n in parts])
    xs = [sh.expand_dims(x, tuple(range(rank - x.aval.ndim))) for x, _ in parts]
    return sh.concatenate(xs, rank - depth + level), rank


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Append `values` to `arr`: both flattened, or along an axis.  As numpy.append.

    Raises NotAnArrayError if an operand is not an array, and AxisError if `arr` has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.append(np.array([1, 2]), np.array([[3], [4]])).tolist()
    [1, 2, 3, 4]
    """
    return concatenate([value(arr), value(values)], axis)


# ---- splitting -----------------------------------------------------------------------------


_MOST_PARTS = 2**20
"""Most parts of a split, far above any real use; more could not be listed in a second."""


def _split(what: str, ary: object, sections: Any, axis: int, even: bool) -> list:
    x = value(ary)
    at = normal_axis(axis, x.aval.ndim)
    n = x.aval.shape[at]
    if hasattr(sections, "__index__") and not getattr(sections, "ndim", 0):
        positions = _even(what, n, sections.__index__(), even)
    else:
        sections = known(sections)
        if isinstance(sections, Tracer):
            raise ConcretizationError(
                f"{what} at {sections!r}, whose values are not known",
                fix="split at fixed positions",
            )
        given = np.asarray(sections)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise OperandTypeError(
                f"{what} at {sections!r}", fix="give a number of parts, or integers"
            ).given(sections)
        inner = [int(i) for i in given]
        inner = [max_dim(i + n, 0) if i < 0 else min_dim(i, n) for i in inner]
        positions = [0, *inner, n]
    ends = zip(positions, positions[1:])
    return [sh.slice_in_dim(x, a, max_dim(a, b), axis=at) for a, b in ends]


def _even(what: str, n: Dim | int, count: int, even: bool) -> list:
    if count < 1:
        raise ArgumentError(f"{what} into {count} parts", fix="give at least one")
    if count > _MOST_PARTS:
        raise OutOfBounds(f"{what} into {count} parts", fix=f"give at most {_MOST_PARTS}")
    if n.__class__ is Dim and even:
        step = divide_exact(n, count)
        return [step * i for i in range(count)] + [n]
    if even and n % count:
        raise ShapeError(
            f"{what}: an axis of size {n} does not divide into {count} parts",
            fix="use array_split, or another number",
        )
    step, more = divmod(n, count)
    return [i * step + min_dim(i, more) for i in range(count + 1)]


def split(ary: ArrayLike, indices_or_sections: object, axis: int = 0) -> list[Array]:
    """Split along an axis: into equal parts, or at given positions.

    Raises TypeRule if the size does not divide.  As numpy.split.

    >>> import numpy as np, plait
    >>> [part.tolist() for part in plait.numpy.split(np.arange(4), [1])]
    [[0], [1, 2, 3]]
    """
    return _split("split", ary, indices_or_sections, axis, even=True)


def array_split(ary: ArrayLike, indices_or_sections: object, axis: int = 0) -> list[Array]:
    """Split as `split`; the first parts may be longer by one.

    Raises ConcretizationError for traced positions.  As numpy.array_split.

    >>> import numpy as np, plait
    >>> [len(part) for part in plait.numpy.array_split(np.arange(5), 2)]
    [3, 2]
    """
    return _split("array_split", ary, indices_or_sections, axis, even=False)


def vsplit(ary: ArrayLike, indices_or_sections: object) -> list[Array]:
    """Split along the first axis; see `split`.  As numpy.vsplit.

    Raises NotAnArrayError if `ary` is not an array, AxisError if it has fewer than two axes, and
    ShapeError if the parts differ in size.

    >>> import numpy as np, plait
    >>> [x.shape for x in plait.numpy.vsplit(np.ones((4, 1)), 2)]
    [(2, 1), (2, 1)]
    """
    _has_axes("vsplit", ary, 2)
    return _split("vsplit", ary, indices_or_sections, 0, even=True)


def _has_axes(name: str, ary: object, least: int) -> None:
    x = value(ary)
    if x.aval.ndim < least:
        raise AxisError(f"{name} takes arrays of {least} axes or more, not {x.aval!r}",
                        fix="use split, which takes the axis")  # fmt: skip


def hsplit(ary: ArrayLike, indices_or_sections: object) -> list[Array]:
    """Split along the second axis, or the only one; see `split`.  As numpy.hsplit.

    Raises NotAnArrayError if `ary` is not an array, AxisError if it has no axes, and ShapeError if
    the parts differ in size.

    >>> import numpy as np, plait
    >>> [x.shape for x in plait.numpy.hsplit(np.ones((1, 4)), 2)]
    [(1, 2), (1, 2)]
    """
    return _split("hsplit", ary, indices_or_sections, 1 if value(ary).aval.ndim > 1 else 0, True)


def dsplit(ary: ArrayLike, indices_or_sections: object) -> list[Array]:
    """Split along the third axis; see `split`.  As numpy.dsplit.

    Raises NotAnArrayError if `ary` is not an array, AxisError if it has fewer than three axes, and
    ShapeError if the parts differ in size.

    >>> import numpy as np, plait
    >>> [x.shape for x in plait.numpy.dsplit(np.ones((1, 1, 4)), 2)]
    [(1, 1, 2), (1, 1, 2)]
    """
    return _split("dsplit", ary, indices_or_sections, 2, even=True)
