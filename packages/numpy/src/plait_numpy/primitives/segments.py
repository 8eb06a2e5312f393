"""Reductions over segments: the elements with one number form a segment.

Invariant: a segment without elements has the neutral element; elements whose number is out of
range belong to no segment.
"""

from collections.abc import Callable
from typing import Any

from plait.errors import AxisError, ConcretizationError, OperandTypeError
from plait.ext import Aval, Tracer, as_value
from plait.ext.ops.elementwise import floor_divide
from plait.ext.ops.indexing import At
from plait.ext.ops.reduction import highest, lowest, max_, min_, prod, sum_
from plait.ext.ops.shape import fill, iota
from plait.ext.types import INTEGER
from plait.typing import Array, ArrayLike

from ..refusals import explain

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _count(ids: Any, num_segments: int | None) -> Any:
    if num_segments is not None:
        return num_segments if hasattr(num_segments, "variables") else num_segments.__index__()
    if isinstance(ids, Tracer):
        raise ConcretizationError(
            f"the number of segments is the greatest of {ids!r}, which has no value while it is "
            "traced",
            fix="give num_segments",
        )
    return int(max_(ids)) + 1 if ids.aval.size else 0


def _segmented(
    name: str,
    data: object,
    ids: Any,
    num_segments: int | None,
    is_sorted: bool,
    unique: bool,
    bucket_size: int | None,
    mode: Any,
    neutral: Callable[..., Any],
    method: str,
    join: Callable[..., Any],
) -> Any:
    x, ids = as_value(data), as_value(ids)
    if ids.aval.category != INTEGER:
        raise OperandTypeError(
            f"{name}: the numbers of segments are {ids.aval!r}", fix="give integers"
        )
    lead = ids.aval.ndim
    if x.aval.shape[:lead] != ids.aval.shape:
        raise AxisError(
            f"{name}: {x.aval!r} with numbers of segments {ids.aval!r}",
            fix="give a number for each row of the data",
        )
    n, cell = _count(ids, num_segments), x.aval.shape[lead:]
    start = neutral(x.aval.dtype)
    options = dict(mode=mode, indices_are_sorted=is_sorted, unique_indices=unique,
                   wrap_negative_indices=False)  # fmt: skip
    if bucket_size is None:
        out = fill(start, Aval((n, *cell), x.aval.dtype))
        return getattr(At(out)[ids], method)(x, **options)
    if lead != 1:
        raise AxisError(f"{name} in buckets takes a vector of numbers", fix="use .ravel()")
    bucket = floor_divide(iota(ids.aval.dtype, ids.aval.shape), bucket_size)
    buckets = -(-ids.aval.shape[0] // bucket_size)
    out = fill(start, Aval((buckets, n, *cell), x.aval.dtype))
    return join(getattr(At(out)[bucket, ids], method)(x, **options), 0)


def segment_sum(
    data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
    indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
    mode: object = None,
) -> Array:  # fmt: skip
    """Return the sum of the rows of each segment.

    Args:
      data: rows, one for each number.
      segment_ids: the segment of each row: integers, in any order.  Rows with other numbers than
        0, 1, ..., num_segments - 1 are left out.
      num_segments: the number of segments.  By default it is one more than the greatest number,
        which must then be known.
      indices_are_sorted: a promise, which may make it faster.
      unique_indices: a promise that no number occurs twice.
      bucket_size: rows are first summed in buckets of this many, which loses fewer digits.
      mode: the treatment of numbers out of range, as in `x.at[...]`.

    Returns (num_segments, ...).  Raises TypeRule for numbers that are not integers, AxisError for
    data of another length.

    >>> import numpy as np
    >>> segment_sum(np.array([1, 2, 3, 4]), np.array([0, 0, 2, 0]), 4).tolist()
    [7, 0, 3, 0]
    """
    return _segmented("segment_sum", data, segment_ids, num_segments, indices_are_sorted,
                      unique_indices, bucket_size, mode, lambda d: 0, "add", sum_)  # fmt: skip


def segment_prod(
    data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
    indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
    mode: object = None,
) -> Array:  # fmt: skip
    """Return the product of the rows of each segment; 1 without rows.  See `segment_sum`."""
    return _segmented("segment_prod", data, segment_ids, num_segments, indices_are_sorted,
                      unique_indices, bucket_size, mode, lambda d: 1, "multiply",
                      prod)  # fmt: skip


def segment_max(
    data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
    indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
    mode: object = None,
) -> Array:  # fmt: skip
    """Return the greatest of the rows of each segment; the least number without rows.

    See `segment_sum`.
    """
    return _segmented("segment_max", data, segment_ids, num_segments, indices_are_sorted,
                      unique_indices, bucket_size, mode, lowest, "max", max_)  # fmt: skip


def segment_min(
    data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
    indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
    mode: object = None,
) -> Array:  # fmt: skip
    """Return the least of the rows of each segment; the greatest number without rows.

    See `segment_sum`.
    """
    return _segmented("segment_min", data, segment_ids, num_segments, indices_are_sorted,
                      unique_indices, bucket_size, mode, highest, "min", min_)  # fmt: skip


explain(globals())
