"""Slices of different sizes, sent from each position to each along a named axis.

Invariant: a row of the result is a row sent there if sender and receiver both count it, and the row
of `output` otherwise.  Contradictory sizes never move anything else.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from .._base.errors import OperandTypeError, ShapeError
from .._core.array import as_value
from .._core.interpreter import Value
from .._types.avals import INT32
from ..typing import Array, ArrayLike
from . import elementwise as el
from .collective import all_gather, axis_index, members
from .dynamic_slicing import dynamic_index_in_dim
from .reduction import max_
from .shape import broadcast_to, convert, expand_dims, fill, iota, reshape, stack
from .sizes import integers
from .taking import take


def ragged_all_to_all(
    operand: ArrayLike, output: ArrayLike, input_offsets: ArrayLike, send_sizes: ArrayLike,
    output_offsets: ArrayLike, recv_sizes: ArrayLike, *, axis_name: Hashable,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
) -> Array:  # fmt: skip
    """Send slices of `operand`, of any sizes, to each position, and write received ones into
    `output`.

    Along an axis of `n` positions each has `k = n * m` slices, `m` for each position, in order.
    Slice `i` is the `send_sizes[i]` rows from `input_offsets[i]` on.  It goes to position
    `i // m`, which writes it at row `output_offsets[i]`.  `recv_sizes` are the sizes of the
    slices received, those from the first position first.  Where slices overlap the last one counts.

    Sizes may depend on data, so every position receives everything and takes its part.  This
    costs as much as `all_gather` of `operand`, in memory and in time.

    Args:
      operand: an array of at least one axis.
      output: an array of the same dtype, and of the same shape but for the first axis.
      input_offsets, send_sizes, output_offsets, recv_sizes: vectors of `k` integers.
      axis_name: a name, or a tuple of names, that is bound outside; the first varies slowest.
      axis_index_groups: as of `all_gather`.

    Returns:
      An array like `output`.  Rows not counted by both sender and receiver, and rows that would
      come from outside of `operand`, are those of `output`.

    Raises ShapeError for other shapes, OperandTypeError for other dtypes, AxisError for unbound
    names.
    """
    x, out = as_value(operand), as_value(output)
    n = members("ragged_all_to_all", axis_name, axis_index_groups)
    _expect_alike(x, out)
    tables = _tables((input_offsets, send_sizes, output_offsets, recv_sizes), n)
    gathered = lambda v, tiled: all_gather(  # noqa: E731
        v, axis_name, axis_index_groups=axis_index_groups, tiled=tiled
    )
    if 0 in (x.aval.shape[0], out.aval.shape[0]):
        return out
    every, got = gathered(x, True), tables[3]
    (k,) = got.aval.shape
    told = reshape(gathered(stack(tables[:3]), False), (n, 3, n, k // n))
    place = _place(axis_name, axis_index_groups)
    mine = dynamic_index_in_dim(told, place, 2, keepdims=False)  # the slices sent to this position
    first, sent, at = [reshape(mine[:, i], (k,)) for i in range(3)]
    rows = out.aval.shape[0]
    last = _last_of(iota(INT32, (rows,)), first, at, el.minimum(sent, got), x.aval.shape[0])
    which = el.maximum(last, 0)
    row = take(first, which, 0, "clip") + iota(INT32, (rows,)) - take(at, which, 0, "clip")
    moved = take(every, which // (k // n) * x.aval.shape[0] + row, 0, "clip")
    there = reshape(last >= 0, (rows, *(1,) * (out.aval.ndim - 1)))
    return el.select(broadcast_to(there, out.aval.shape), moved, out)


def _last_of(rows: Value, first: Value, at: Value, count: Value, size: int) -> Any:
    """Return for each row of the result the last slice that covers it, -1 if there is none."""
    (k,) = at.aval.shape
    into = rows - expand_dims(at, 1)  # the offset into each slice, for each row
    source = expand_dims(first, 1) + into
    within = (into >= 0) & (into < expand_dims(count, 1)) & (source >= 0) & (source < size)
    numbers = broadcast_to(iota(INT32, (k, 1)), within.aval.shape)
    return max_(el.select(within, numbers, fill(-1, numbers.aval)), axis=0, initial=-1)


def _place(axis_name: Any, groups: Any) -> Any:
    """Return this position along the axis, or in its group."""
    here = axis_index(axis_name)
    if not groups:
        return here
    table = np.zeros(sum(map(len, groups)), np.int32)
    for group in groups:
        table[list(group)] = range(len(group))
    return take(table, here, 0, "clip")


def _expect_alike(x: Value, out: Value) -> None:
    if not x.aval.ndim or not out.aval.ndim or x.aval.shape[1:] != out.aval.shape[1:]:
        raise ShapeError(
            f"ragged_all_to_all: operand {x.aval!r} and output {out.aval!r} have rows of different "
            "shapes",
            fix="give arrays of at least one axis, which differ in the size of the first one only",
        )
    if x.aval.dtype != out.aval.dtype:
        raise OperandTypeError(
            f"ragged_all_to_all: operand is {x.aval!r}, and output {out.aval!r}",
            fix="convert one of them, with .astype",
        )


def _narrow(v: Value) -> Any:
    """Convert `v` to int32; values beyond are clamped, and name no row in either case."""
    if v.aval.dtype == INT32:
        return v
    least, most = -(2**31), 2**31 - 1
    return convert(el.maximum(el.minimum(v, most), least), INT32)


def _tables(given: tuple[Any, ...], n: int) -> list[Any]:
    """Return the vectors of offsets and sizes, as int32."""
    names = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")
    found = [_narrow(integers(v, name)) for v, name in zip(given, names, strict=True)]
    shapes = {v.aval.shape for v in found}
    (k, *rest) = found[0].aval.shape or (0, 0)
    if len(shapes) > 1 or rest or not k or k % n:
        said = ", ".join([f"{name} {v.aval!r}" for name, v in zip(names, found)])
        raise ShapeError(
            f"ragged_all_to_all: offsets and sizes must be vectors of one length, a multiple of "
            f"{n}, and are {said}",
            fix="give as many slices to each of the positions along the axis",
        )
    return found
