"""Rows of a pile, picked by a mask of its rows: each element keeps those that the mask holds for.

Known rows are picked by numpy.  Traced ones move to the front of their element, at the capacities
of the pile, since their number is not known before the program runs.

Invariant: rows keep their order, and none gets to another element.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import plait.numpy as pnp
from plait.errors import SubscriptError
from plait.ext.errors import ShapeError
from plait.ext.ops.opaque import unwrap, wrap
from plait.ext.trace import Value
from plait.ext.types import Aval, Opaque
from plait.ext.values import as_value

from .capacities import Size, capacities_of
from .carrier import Ragged
from .choosing import known
from .elements import piles_in, shown
from .guarding import expect_equal, is_passive
from .lengths import one_of, size_of
from .making import with_rows
from .row_access import chosen, put, rows_at
from .tables import I32

if TYPE_CHECKING:
    from .pile import Pile

__all__ = ["picked"]


def picked(p: "Pile", mask: Any) -> Any:
    """Return the pile of the rows of `p` for which the mask, a pile of booleans, is true."""
    rows = mask._columns()
    if [(t.dtype, t.ndim, len(mask._axes(t))) for _, t in rows] != [(np.bool_, 1, 1)]:
        raise SubscriptError(
            f"rows of a pile are picked by {shown(mask)}",
            fix="give a pile of booleans, one for each row: p[p > 0]",
        )
    ((marks, _),) = rows
    columns = p._columns()
    _expect_rows(p, [u for _, u in columns])
    expect_equal([p._lengths[0], mask._lengths[0]])
    (size,), (n,) = p._sizes, p._lengths
    size = size._replace(least=0, multiple=1)
    xs = [x for x, _ in columns]
    if known(n, marks, *xs):
        xs, n, size = _by_numpy(xs, n, marks, size)
    else:
        xs, n = _traced(p._ragged(), [u for _, u in columns], xs, marks)
    types = [u for _, u in columns]
    return p._of(xs, (n,), types, (size,), p._tree, p._count)


def _expect_rows(p: "Pile", types: Sequence[Aval]) -> None:
    names = {str(t.shape[0]) if t.ndim else "" for t in types}
    if piles_in(p._tree) or len(p._sizes) != 1 or names != {p._sizes[0].name}:
        raise ShapeError(
            f"rows of {shown(p)} are picked by a mask",
            fix="give a pile of arrays that differ in size along their first axis only",
        )
    if any(p._axes(t) != (0,) for t in types):
        raise ShapeError(
            f"rows of {shown(p)}, which differ along several axes, are picked by a mask",
            fix="give a pile of arrays that differ in size along their first axis only",
        )


def _by_numpy(xs: Sequence[Any], n: Any, mask: Any, size: Size) -> tuple[list[Any], Any, Size]:
    lengths = np.asarray(n)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    keep = np.asarray(mask)[: len(owner)]
    counts = np.bincount(owner[keep], minlength=len(lengths)).astype(np.int32)
    made = one_of(as_value(counts))
    if not size.spare:  # a capacity that the user chose stays
        size = size_of(size.name, made, 0, 0)
    rows = capacities_of((size,), len(lengths)).rows(size.whole)
    return [_kept(x, keep, rows) for x in xs], made, size


def _kept(x: Any, keep: np.ndarray, rows: int) -> Any:
    opaque = x.dtype if x.dtype.__class__ is Opaque else None
    taken = np.asarray(unwrap(x) if opaque is not None else x)[: len(keep)][keep]
    if is_passive(x):
        return np.zeros((rows, *taken.shape[1:]), x.dtype)
    y = with_rows(as_value(taken), 0, rows)
    return y if opaque is None else wrap(y, opaque)


def _traced(
    r: Ragged, types: Sequence[Aval], xs: Sequence[Any], mask: Value
) -> tuple[list[Any], Any]:
    t = r.rows(types[0].shape[0])
    keep = as_value(mask)[: t.rows] & t.there
    counts = put(pnp.zeros(r.size, I32), t.owner, keep.astype(I32), "add")
    before = pnp.cumsum(keep, dtype=I32) - keep
    # Row number `place` of the result is the row that so many picked ones precede.
    source = put(pnp.zeros(t.rows, I32), pnp.where(keep, before, t.rows), pnp.arange(t.rows))
    there = pnp.arange(t.rows) < keep.sum()
    made = []
    for x in xs:
        if is_passive(x):
            made.append(x)
            continue
        y = rows_at(as_value(x), source)
        made.append(y if y.dtype.__class__ is Opaque else chosen(there, (0,), y, 0))
    return made, counts
