"""Slices, reversals, padding and concatenation: rows that move to other positions.

For each place of the result, a function computes which position of the operand it reads.  It uses
the place's own position and the sizes of its example.

Invariant: positions count within the example; values beyond its end are never read for a defined
place of the result.
"""

from collections.abc import Callable, Sequence
from typing import Any

import plait.numpy as pnp
from plait.ext.ops.indexing import dynamic_slice_, dynamic_update_slice_
from plait.ext.ops.shape import concatenate_, pad_, rev, slice_
from plait.ext.sizes import Dim
from plait.ext.trace import Value
from plait.ext.types import Aval

from ..carrier import Ragged, pile_rules
from ..layouts import along
from ..operation import FLAT, PADDED
from ..row_access import rows_at
from ..tables import I32, Rows

Source = Callable[["Places"], Any]
"""A map from the places of a result to the positions that they read."""


class Places:
    """The places along one axis of a result, in a layout.

    `position` counts them within their example; `of(d)` returns a size, or a value of each
    example, for each place.
    """

    def __init__(self, r: Ragged, d: Dim | int, how: str):
        self.r, self.how = r, how
        self.rows: Rows | None = r.rows(d) if r.caps.mine(d) else None
        if how == FLAT:
            assert self.rows is not None
            self.position = self.rows.position
        else:
            n = r.caps.longest(d) if self.rows is not None else d
            self.position = pnp.arange(n, dtype=I32)[None, :]

    def of(self, d: Dim | int) -> Any:
        if d.__class__ is int:
            return d
        return self.each(self.r.lengths(d))

    def each(self, values: Value) -> Any:
        """Return values of each example, [size], for each place."""
        if self.how == FLAT:
            assert self.rows is not None
            return rows_at(values, self.rows.owner)
        return values[:, None]


def pick(r: Ragged, x: Value, aval: Aval, axis: int, d: Dim | int, source: Source, how: str) -> Any:
    """Read the values, of type `aval`, at other positions along `axis`, whose new size is `d`.

    The result is in the layout `how`; positions outside of an example read undefined values."""
    places = Places(r, d, how)
    at = source(places)
    n = aval.shape[axis]
    if how == FLAT:
        t = r.rows(n)
        rows = rows_at(t.first, places.rows.owner) + at  # type: ignore[union-attr]
        return rows_at(x, rows, axis)
    width = x.shape[axis + 1]
    if width == 0:
        return _taken(x, at[0], axis + 1)
    at = pnp.broadcast_to(at, (r.size, at.shape[1]))
    spread = [1] * x.ndim
    spread[0], spread[axis + 1] = at.shape
    index = pnp.clip(at, 0, width - 1).reshape(spread)
    return pnp.take_along_axis(x, index, axis=axis + 1, mode="clip")


def _taken(x: Value, at: Value, axis: int) -> Any:
    """Take rows at positions along an axis; zeros if the axis is empty."""
    n = x.shape[axis]
    if n == 0:
        return pnp.zeros((*x.shape[:axis], at.shape[0], *x.shape[axis + 1 :]), x.dtype)
    return rows_at(x, at, axis)


def where(r: Ragged, d: Dim | int, how: str, axis: int, ndim: int, test: Source) -> Any:
    """Evaluate `test` on the places along `axis`, for each element of the result."""
    if how == FLAT:
        ragged = r.caps.mine(d)
        flags = test(Places(r, d, FLAT if ragged else PADDED))
        return along(flags if ragged else flags[0], axis, ndim)
    flags = test(Places(r, d, how))
    flags = pnp.broadcast_to(flags, (r.size, flags.shape[1]))
    spread = [1] * (ndim + 1)
    spread[0], spread[axis + 1] = flags.shape
    return flags.reshape(spread)


def moved(
    r: Ragged, x: Value, out: Aval, sources: dict[int, Source], short: Sequence[int] = ()
) -> Any:
    """Return a value whose axes in `sources` are read at other positions.

    Along axes in `short` an example may have fewer rows than are read.  Such reads give 0, as
    everywhere for symbolic sizes."""
    shape = list(x.aval.shape)
    have, want = r.axes(x.aval), r.axes(out)
    how = FLAT if not r.padded and len(have) == 1 and have == want else PADDED
    how = PADDED if r.how(x) == PADDED else how
    y = r.data(x, how)
    aval = x.aval
    for axis, source in sources.items():
        plain = axis not in have and axis not in want
        if plain and how == FLAT:
            at = source(Places(r, out.shape[axis], PADDED))[0]  # the same for all examples
            y = _taken(y, at, axis)
        else:
            y = pick(r, y, aval, axis, out.shape[axis], source, how)
        shape[axis] = out.shape[axis]
        aval = aval.with_shape(shape)
    for axis in short:
        there = where(r, out.shape[axis], how, axis, out.ndim, _before(sources[axis], x, axis))
        y = pnp.where(there, y, pnp.zeros((), y.dtype))
    return r.result(out, y, how)


def _before(source: Source, x: Value, axis: int) -> Source:
    return lambda places: source(places) < places.of(x.aval.shape[axis])


# ---- static positions --------------------------------------------------------------------------


@pile_rules.rule(rev)
def _(r, args: list[Value], out: Aval, *, axes: tuple[int, ...]):
    sources = {a: _reversed(out.shape[a]) for a in axes}
    return moved(r, args[0], out, sources)


def _reversed(n: Dim) -> Source:
    return lambda places: places.of(n) - 1 - places.position


@pile_rules.rule(slice_)
def _(
    r,
    args: Sequence[Value],
    out,
    *,
    starts: tuple[int | Dim, ...],
    limits,
    strides: tuple[int, ...],
):
    (x,) = args
    whole = [
        s.__class__ is int and s == 0 and k == 1 and n == m
        for s, k, n, m in zip(starts, strides, x.aval.shape, out.shape)
    ]
    sources = {a: _from(s, k) for a, (s, k, w) in enumerate(zip(starts, strides, whole)) if not w}
    return moved(r, x, out, sources, [a for a in sources if r.may_lack(x.aval.shape[a], limits[a])])


def _from(start: Dim | int, stride: int) -> Source:
    return lambda places: places.of(start) + places.position * stride


@pile_rules.rule(pad_)
def _(
    r,
    args: Sequence[Value],
    out,
    *,
    low: Sequence[int],
    high: tuple[int | Dim, ...],
    interior: tuple[int, ...],
):
    x, value = args
    shapes = zip(low, interior, x.aval.shape, out.shape, strict=True)
    padded = {a: s for a, s in enumerate(shapes) if _pads(*s)}
    y = moved(r, x, out, {a: _unpadded(lo, step) for a, (lo, step, _, _) in padded.items()})
    if not padded:
        return y
    how = r.how(y) or PADDED
    there: Any = None
    for a, (lo, step, n, m) in padded.items():
        flags = where(r, m, how, a, out.ndim, _was(lo, step, n))
        there = flags if there is None else pnp.logical_and(there, flags)
    filled = pnp.where(there, r.data(y, how), _beside(r, value, out, how))
    return r.result(out, filled, how)


def _pads(low: int, step: int, n: Dim | int, m: Dim | int) -> bool:
    """Return whether padding adds elements before, between or behind those of an axis."""
    return low.__class__ is not int or low != 0 or step > 0 or n != m


def _unpadded(low: int, step: int) -> Source:
    return lambda places: (places.position - places.of(low)) // (step + 1)


def _was(low: int, step: int, n: Dim | int) -> Source:
    def test(places: Places) -> Any:
        at = places.position - places.of(low)
        inside = pnp.logical_and(at >= 0, at // (step + 1) < places.of(n))
        return pnp.logical_and(inside, at % (step + 1) == 0) if step else inside

    return test


def _beside(r: Ragged, value: Value, out: Aval, how: str) -> Any:
    """Return a scalar, which may differ per example, in a shape that broadcasts to `out`."""
    v, d = r.dense(value)
    if d is None:
        return v
    if how == FLAT:
        (a,) = r.axes(out)
        return along(rows_at(v, r.rows(out.shape[a]).owner), a, out.ndim)
    return v.reshape((r.size, *(1,) * out.ndim))


@pile_rules.rule(concatenate_)
def _(r, args, out, *, axis):
    if axis not in r.axes(out):
        how = r.like(args, out)
        lead = 0 if how == FLAT else 1
        got = concatenate_.bind(*[r.data(a, how) for a in args], axis=axis + lead)
        return r.result(out, got, how)
    alone = all(r.axes(a.aval) == r.axes(out) == (axis,) for a in args)
    how = FLAT if alone and not r.padded else PADDED
    n = out.shape[axis]
    total, start = None, 0
    for a in args:
        m = a.aval.shape[axis]
        got = pick(r, r.data(a, how), a.aval, axis, n, _from(-1 * start, 1), how)
        if total is None:
            total = got
        else:
            here = where(r, n, how, axis, out.ndim, _after(start))
            total = pnp.where(here, got, total)
        start = start + m
    return r.result(out, total, how)


def _after(start: Any) -> Source:
    return lambda places: places.position >= places.of(start)


# ---- dynamic positions -----------------------------------------------------------------------


def _start(r: Ragged, s: Value, room: Dim) -> Any:
    """Return the start for each example, clipped to where the box fits: [size]."""
    v, d = r.dense(s)
    v = v if d is not None else pnp.broadcast_to(v, (r.size,))
    most = r.lengths(room) if r.caps.mine(room) else room
    return pnp.clip(v, 0, pnp.maximum(most, 0)).astype(I32)


@pile_rules.rule(dynamic_slice_)
def _(r, args: list[Value], out, *, sizes):
    x, *starts = args
    sources = {}
    for a, (s, n, m) in enumerate(zip(starts, x.aval.shape, sizes, strict=True)):
        if n == m:
            continue  # a slice of the whole axis always starts at 0
        sources[a] = _shifted(_start(r, s, n - m))
    if any(a not in r.axes(x.aval) for a in sources) and r.how(x) == FLAT:
        # Flat rows cannot be read at positions that differ per example along another axis.
        x = r.result(x.aval, r.data(x, PADDED), PADDED)
    return moved(r, x, out, sources, [a for a in sources if r.may_lack(x.aval.shape[a], sizes[a])])


def _shifted(start: Value) -> Source:
    return lambda places: places.each(start) + places.position


@pile_rules.rule(dynamic_update_slice_)
def _(r, args: list[Value], out):
    x, box, *starts = args
    part = tuple([a for a, (n, m) in enumerate(zip(out.shape, box.aval.shape)) if n != m])
    flat = not r.padded and part == r.axes(out) == r.axes(box.aval) and len(part) == 1
    how = PADDED if not flat or PADDED in (r.how(x), r.how(box)) else FLAT
    y, b, aval, inside = r.data(x, how), r.data(box, how), box.aval, None
    shape = list(aval.shape)
    for a in part:
        n, m = out.shape[a], box.aval.shape[a]
        start = _start(r, starts[a], n - m)
        b = pick(r, b, aval, a, n, _unshifted(start), how)
        here = where(r, n, how, a, out.ndim, _covered(start, m))
        inside = here if inside is None else pnp.logical_and(inside, here)
        shape[a] = n
        aval = aval.with_shape(shape)
    return r.result(out, b if inside is None else pnp.where(inside, b, y), how)


def _unshifted(start: Value) -> Source:
    return lambda places: places.position - places.each(start)


def _covered(start: Value, m: Dim | int) -> Source:
    def test(places: Places) -> Any:
        at = places.position - places.each(start)
        return pnp.logical_and(at >= 0, at < places.of(m))

    return test
