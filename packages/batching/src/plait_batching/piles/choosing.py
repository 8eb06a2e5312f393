"""Elements of piles: chosen by slices, indices or masks, and joined to larger batches.

The rows of the chosen elements are gathered.  Where lengths and rows are known numpy does it, so
that nothing is compiled for a batch; under a transformation the gather is one operation for each
leaf, with the derivatives that it has.

Invariant: lengths that are known stay known, and a gathered element is that of the loop.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait.ext.errors import ShapeError
from plait.ext.ops.opaque import unwrap, wrap
from plait.ext.sizes import is_symbolic
from plait.ext.trace import Tracer, Value, current
from plait.ext.types import Aval, Opaque
from plait.ext.values import as_value
from plait.typing import ArrayLike

from .capacities import TILE, Capacities, Size, capacities_of, examples_in, rounded, size_of_lengths
from .carrier import Ragged
from .guarding import is_passive
from .layouts import fit
from .lengths import are_examples
from .operation import FLAT, PADDED, layout, place
from .policy import bounded, in_force
from .row_access import rows_at

__all__ = ["Parts", "gathered", "in_order", "indices_of", "known"]


class Parts:
    """A pile in parts: columns of (rows, type of an element), lengths, and the bounds of sizes."""

    def __init__(
        self,
        columns: Sequence[tuple[Any, ...]],
        lengths: Sequence[Any],
        sizes: Sequence[Size],
        n: int,
    ):
        self.columns, self.sizes, self.count = tuple(columns), tuple(sizes), n
        self.lengths = tuple(map(as_value, lengths))
        self.caps = capacities_of(self.sizes, n)

    def ragged(self) -> Ragged:
        return Ragged(current(), self.count, None, self.sizes, False, ambient=self.lengths)


def known(*xs: ArrayLike) -> bool:
    """Return whether these values are known."""
    return not any(isinstance(x, Tracer) for x in xs)


def indices_of(at: Any, count: int) -> Any:
    """Return the numbers of the elements that a slice, a mask or an array of integers chooses.

    They are a numpy array if they are known."""
    if isinstance(at, slice):
        return np.arange(count)[at]
    if isinstance(at, list):
        at = np.asarray(at) if at else np.zeros(0, np.int32)
    if not known(at):
        at = as_value(at)
        if at.ndim == 1 and at.aval.dtype.kind in "iu":
            at = pnp.where(at < 0, at + count, at)
            return pnp.clip(at, 0, max(count - 1, 0)).astype("int32")
        raise ShapeError(
            f"the elements of a pile are chosen by {at.aval!r}",
            fix="choose by a vector of integers; a mask must be known",
        )
    n = np.asarray(at)
    if n.dtype == bool and n.shape == (count,):
        return np.flatnonzero(n)
    if n.ndim != 1 or n.dtype.kind not in "iu":
        raise ShapeError(
            f"the elements of a pile of {count} elements are chosen by {n.dtype}{list(n.shape)}",
            fix="choose by a vector of integers, or by a boolean for each element",
        )
    return np.arange(count)[n]


def in_order(batches: Sequence[tuple[Sequence[Size], Sequence[Any], int]]) -> Any:
    """Return the numbers of the elements of several batches, (sizes, lengths, count) of each,
    counted through: the examples in order, then the elements that are missing."""
    total = sum(count for _, _, count in batches)
    if not any(s.spare for sizes, _, _ in batches for s in sizes):
        return np.arange(total)
    found = []
    for sizes, lengths, count in batches:
        spare = [n for s, n in zip(sizes, lengths, strict=True) if s.spare]
        if known(*spare):
            there = examples_in(sizes, {s.name: n for s, n in zip(sizes, lengths, strict=True)})
            found.append(np.arange(count) < (count if there is None else there))
        else:
            found.append(are_examples(spare))
    if known(*found):
        return np.argsort(~np.concatenate(found), kind="stable")
    return pnp.argsort(~pnp.concatenate(found), stable=True).astype("int32")


def gathered(parts: Sequence[Parts], at: Any) -> Parts:
    """Return the elements number `at` of the piles, counted through, as one pile in parts."""
    count = at.shape[0]
    vectors = list(zip(*[p.lengths for p in parts], strict=True))
    lengths = [_taken(_joined(v), at) for v in vectors]
    bounds = zip(_bounds(parts), lengths, strict=True)
    # A shuffled batch keeps its capacities, so that it has the program of the batch.
    is_shuffled = len(parts) == 1 and known(at) and len(np.unique(at)) == count == parts[0].count
    sizes = parts[0].sizes if is_shuffled else tuple([_size(s, n, count) for s, n in bounds])
    out = Parts((), lengths, sizes, count)
    columns = []
    for column in zip(*[p.columns for p in parts], strict=True):
        t = column[0][1]
        if count == 0:
            shape = layout(t, out.caps, place(t, out.caps, False))
            columns.append((_nothing_like(column[0][0], shape.shape), t))
            continue
        x = _rows([x for x, _ in column], t, parts, at, out)
        # Rows beyond the last were read somewhere; their undefined cotangents must not get there.
        columns.append((out.ragged().cleaned(x, t) if not known(x) else x, t))
    return Parts(columns, lengths, sizes, count)


def _nothing_like(x: Value, shape: tuple) -> Any:
    """Return zeros of a shape, or opaque elements, with the dtype of `x`."""
    if x.dtype.__class__ is Opaque:
        return pnp.broadcast_to(as_value(x)[(0,) * x.ndim], shape)
    return np.zeros(shape, x.dtype) if is_passive(x) else pnp.zeros(shape, x.dtype)


def _bounds(parts: Sequence[Parts]) -> list[Size]:
    """Return the bounds of each size, of all piles together."""
    found = []
    for sizes in zip(*[p.sizes for p in parts], strict=True):
        rows, squares = (sum(getattr(s, k) for s in sizes) for k in ("rows", "squares"))
        spare = any(s.spare for s in sizes)
        longest = max(s.longest for s in sizes)
        found.append(Size(sizes[0].name, rows, longest, squares, spare=spare))
    return found


def _size(s: Size, n: Value, count: int) -> Size:
    """Return the bounds of a size of the chosen elements; an element may be chosen many times."""
    if known(n) and not is_symbolic(s.counts):
        policy = in_force(None)
        if policy is None:
            return size_of_lengths(s.name, np.asarray(n))._replace(spare=s.spare)
        policy.expect(n)
        return policy.size(s.name, count)
    if is_symbolic((*s.counts, count)):
        tiles = -(-s.longest // TILE)
        squares = count * tiles * tiles + 1
        return Size(s.name, s.longest * count, s.longest, squares, spare=s.spare)
    made = bounded(s.name, rounded(s.longest * count, 8, 64), s.longest, count)
    return made._replace(spare=s.spare)


def _joined(xs: Sequence[Any]) -> Any:
    if len(xs) == 1:
        return xs[0]
    return np.concatenate(list(map(np.asarray, xs))) if known(*xs) else pnp.concatenate(xs)


def _taken(n: Value, at: ArrayLike) -> Any:
    if known(n, at):
        return as_value(np.asarray(n)[np.asarray(at)].astype(np.int32))
    return rows_at(n, at)


def _rows(xs: Sequence, t: Aval, parts: Sequence[Parts], at: Any, out: Parts) -> Any:
    """Return the rows of the chosen elements, of one leaf."""
    how = place(t, parts[0].caps, False)
    if how == FLAT:
        return _flat_rows(xs, t, parts, at, out)
    padded = []
    longest = _longest(t, out.caps)
    for x, p in zip(xs, parts, strict=True):
        y = p.ragged().coerce(t, (as_value(x),), _form(how), (PADDED, 0))[0] if how != PADDED else x
        for a in p.caps.axes(t):
            y = fit(as_value(y), a + 1, longest(a))
        padded.append(y)
    y = padded[0] if len(padded) == 1 else pnp.concatenate(padded)
    y = np.asarray(y)[at] if known(y, at) and _is_numeric(y) else rows_at(y, at)
    r = out.ragged()
    return as_value(y) if how == PADDED else r.coerce(t, (as_value(y),), (PADDED, 0), _form(how))[0]


def _longest(t: Aval, caps: Capacities) -> Callable[[int], Any]:
    return lambda a: caps.longest(t.shape[a])


def _form(how: str) -> Any:
    return (how, 0)


def _is_numeric(x: Any) -> bool:
    return x.dtype.__class__ is not Opaque and not is_passive(x)


def _flat_rows(xs: Sequence, t: Aval, parts: Sequence[Parts], at: ArrayLike, out: Parts) -> Any:
    (a,) = out.caps.axes(t)
    d = t.shape[a]
    each = [p.ragged().lengths(d) for p in parts]
    starts, base = [], 0
    for x, n in zip(xs, each, strict=True):
        starts.append(base + _offsets(n))
        base += x.shape[a]
    room = out.caps.rows(d)
    places = _places(_joined(starts), _joined(each), at, room)
    if known(places, *xs):
        return _by_numpy(xs, places, a)
    x = as_value(xs[0]) if len(xs) == 1 else pnp.concatenate(list(xs), a)
    return rows_at(x, places, a)


def _offsets(n: ArrayLike) -> Any:
    """Return the first row of each element."""
    if known(n):
        n = np.asarray(n)
        return np.cumsum(n) - n
    return pnp.cumsum(n, dtype="int32") - n


def _places(starts: Any, lengths: Any, at: Any, room: int) -> Any:
    """Return the place of each row of the chosen elements; rows beyond the last are undefined."""
    if known(starts, lengths, at):
        starts, lengths = np.asarray(starts)[at], np.asarray(lengths)[at]
        found = np.arange(lengths.sum()) + np.repeat(starts - _offsets(lengths), lengths)
        return np.pad(found, (0, room - len(found))).astype(np.int32)
    starts, lengths = rows_at(starts, at), rows_at(lengths, at)
    ends = pnp.cumsum(lengths, dtype="int32")
    place = pnp.arange(room, dtype="int32")
    owner = pnp.minimum(pnp.searchsorted(ends, place, side="right"), len(ends) - 1)
    return rows_at(starts - (ends - lengths), owner) + place


def _by_numpy(xs: Sequence, places: np.ndarray, a: int) -> Any:
    opaque = xs[0].dtype if xs[0].dtype.__class__ is Opaque else None
    rows = [np.asarray(unwrap(x) if opaque is not None else x) for x in xs]
    x = rows[0] if len(rows) == 1 else np.concatenate(rows, a)
    taken = np.take(x, places, a) if x.shape[a] else np.zeros_like(x)
    if is_passive(x):
        return taken
    return as_value(taken) if opaque is None else wrap(as_value(taken), opaque)
