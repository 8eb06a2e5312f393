"""Gather and scatter along flat rows: places of an example become places among all rows.

One operation handles the existing rows, whereas the padded layout has as many rows per example as
the longest.

Invariant: a place that does not exist, or belongs to an example without rows, counts as outside.
Writes there are dropped, and the caller replaces the values read there.
"""

from collections.abc import Sequence
from typing import Any

import plait.numpy as pnp
from plait.ext.ir import Primitive
from plait.ext.ops.indexing import CLIP, FILL, gather_
from plait.ext.trace import Value
from plait.ext.types import Aval
from plait.typing import Array

from ..carrier import Ragged
from ..layouts import along
from ..operation import FLAT, PADDED
from ..row_access import rows_at
from ..tables import I32

__all__ = ["gathered", "scattered", "widened"]

_OUTSIDE = (1 << 31) - 1


def _values(r: Ragged, x: Value) -> Any:
    """Return values flat; [size, ...] for values without ragged axes."""
    return r.data(x, FLAT if r.axes(x.aval) else PADDED)


def widened(at: Value) -> Any:
    """Return starts in a dtype that also holds the sizes."""
    return at.astype(I32) if at.dtype.itemsize < 4 else at


class Indices:
    """Starts of windows, flat or of each example, and values of examples aligned with them."""

    def __init__(self, r: Ragged, indices: Value):
        self.r = r
        axes = r.axes(indices.aval)
        self.rows = r.rows(indices.aval.shape[axes[0]]) if axes else None
        self.axis = axes[0] if axes else None
        self.lead = 0 if axes else 1
        """Number of axes in front of those of one example."""
        self.at = widened(_values(r, indices))
        self.ndim = self.at.ndim - 1

    def each(self, values: Array) -> Any:
        """Return values of each example, [size], aligned with the starts."""
        if self.rows is None:
            return along(values, 0, self.ndim)
        return along(rows_at(values, self.rows.owner), self.axis, self.ndim)  # type: ignore[arg-type]

    @property
    def example(self) -> Any:
        """The number of each start's example; `size` for starts that do not exist."""
        if self.rows is None:
            return along(pnp.arange(self.r.size, dtype=I32), 0, self.ndim)
        return along(self.rows.example, self.axis, self.ndim)  # type: ignore[arg-type]

    @property
    def there(self) -> Any:
        """Which starts exist; None: all."""
        return None if self.rows is None else along(self.rows.there, self.axis, self.ndim)  # type: ignore[arg-type]

    def columns(self, x: Value, sizes: Sequence[Any], axes: Sequence[int]) -> tuple[list[Any], Any]:
        """Return (the starts along each axis, clipped to where windows fit; which of them fit)."""
        found, fits = [], None
        for k, a in enumerate(axes):
            n = x.aval.shape[a]
            i = self.at[..., k]
            if self.r.caps.mine(n):
                most = self.each(self.r.lengths(n) - sizes[a]).astype(i.dtype)
            else:
                most = pnp.asarray(n - sizes[a], i.dtype)
            here = pnp.logical_and(i >= 0, i <= most)
            fits = here if fits is None else pnp.logical_and(fits, here)
            found.append(pnp.clip(i, 0, pnp.maximum(most, 0)).astype(I32))
        return found, fits


def _alone(r: Ragged, x: Value, axes: Sequence[int], sizes: Sequence[Any]) -> bool:
    """Return whether the only ragged axis of `x` is flat, and single rows are taken along it."""
    own = r.axes(x.aval)
    if len(own) != 1 or own[0] not in axes or r.how(x) == PADDED:
        return False
    return sizes[own[0]].__class__ is int and sizes[own[0]] == 1


def _simple(r: Ragged, indices: Value) -> bool:
    """Return whether starts of windows lie flat, or are equally many in each example."""
    own = r.axes(indices.aval)
    return not own or (
        len(own) == 1 and own[0] < indices.aval.ndim - 1 and r.how(indices) != PADDED
    )


def gathered(
    r: Ragged, x: Value, indices: Value, out: Aval, numbers: Any, sizes: Sequence[Any]
) -> tuple[Any, ...] | None:
    """Return (values read, which starts were inside, which examples have rows, leading axes).

    Returns None if the layouts of the operands do not permit this."""
    axes = numbers.start_index_map
    if r.padded or not _alone(r, x, axes, sizes) or not _simple(r, indices):
        return None
    if r.axes(out) and not r.axes(indices.aval):
        return None
    (a,) = r.axes(x.aval)
    at = Indices(r, indices)
    columns, fits = at.columns(x, sizes, axes)
    t = r.rows(x.aval.shape[a])
    k = axes.index(a)
    columns[k] = columns[k] + at.each(t.first[:-1])
    got = gather_.bind(
        r.data(x, FLAT),
        pnp.stack(pnp.broadcast_arrays(*columns), -1),
        dimension_numbers=_shifted_reads(numbers, at.lead),
        slice_sizes=tuple(sizes),
        mode=CLIP,
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=False,
    )
    some = at.each(t.lengths > 0) if r.may_lack(x.aval.shape[a], 1) else None
    return got, fits, some, at.lead


def _shifted_reads(n: Any, lead: int) -> Any:
    up = lambda axes: tuple([a + lead for a in axes])  # noqa: E731
    return n._replace(
        offset_dims=up(n.offset_dims),
        start_indices_batching_dims=up(n.start_indices_batching_dims),
    )


def scattered(
    r: Ragged,
    prim: Primitive,
    args: Sequence[Any],
    out: Aval,
    numbers: Any,
    sizes: tuple[int, ...],
    mode: str,
) -> Any | None:
    """Return the result, a lifted value; None if the layouts of the operands do not permit this."""
    x, indices, updates = args
    axes = numbers.scatter_dims_to_operand_dims
    if r.padded or not _simple(r, indices) or r.how(updates) == PADDED:
        return None
    rows = bool(r.axes(x.aval))
    if rows and not _alone(r, x, axes, sizes):
        return None
    if not (rows or r.axes(indices.aval)) or len(r.axes(updates.aval)) != len(r.axes(indices.aval)):
        return None
    at = Indices(r, indices)
    columns, fits = at.columns(x, sizes, axes)
    counts = fits if mode == FILL else None
    more = [at.there]
    if rows:
        (a,) = r.axes(x.aval)
        t, k = r.rows(x.aval.shape[a]), axes.index(a)
        columns[k] = columns[k] + at.each(t.first[:-1])
        more.append(at.each(t.lengths > 0))
    else:
        columns = [at.example, *columns]
    for flags in more:
        if flags is not None:
            counts = flags if counts is None else pnp.logical_and(counts, flags)
    if counts is not None:
        columns[0] = pnp.where(counts, columns[0], _OUTSIDE)
    got = prim.bind(
        _values(r, x),
        pnp.stack(pnp.broadcast_arrays(*columns), -1),
        _values(r, updates),
        dimension_numbers=_shifted_writes(numbers, at.lead, 0 if rows else 1),
        mode=FILL,
        indices_are_sorted=False,
        unique_indices=False,
    )
    return r.result(out, got, FLAT)


def _shifted_writes(n: Any, lead: int, front: int) -> Any:
    """Renumber axes for updates with `lead` axes in front of those of one example.

    The operand has `front` such axes, which become the first ones that starts index."""
    of_updates = lambda axes: tuple([a + lead for a in axes])  # noqa: E731
    of_operand = lambda axes: tuple([a + front for a in axes])  # noqa: E731
    first = (0,) * front
    return n._replace(
        update_window_dims=of_updates(n.update_window_dims),
        inserted_window_dims=(*first, *of_operand(n.inserted_window_dims)),
        scatter_dims_to_operand_dims=(*first, *of_operand(n.scatter_dims_to_operand_dims)),
        operand_batching_dims=of_operand(n.operand_batching_dims),
        scatter_indices_batching_dims=of_updates(n.scatter_indices_batching_dims),
    )
