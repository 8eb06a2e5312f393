"""Gather and scatter, in all modes, with bounds of each example's own sizes.

Invariant: an index is clipped to, or tested against, the sizes of its example.  Values at undefined
indices are never written, nor read for a defined result.
"""

from typing import Any

import plait.numpy as pnp
from plait.ext.errors import MissingRule
from plait.ext.ir import Primitive
from plait.ext.ops import indexing as ix
from plait.ext.trace import Value
from plait.ext.types import Opaque
from plait.typing import Array

from ...interpreter import batching_rules
from ..carrier import Ragged, pile_rules
from ..layouts import fit
from ..operation import FLAT, PADDED
from .row_indexing import gathered, scattered, widened


def _room(r: Ragged, x: Value, sizes: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """Return the greatest start of a window, for each example and axis: [size, axes]."""
    columns = []
    for a in axes:
        d = x.aval.shape[a] - sizes[a]
        columns.append(r.lengths(d) if r.caps.mine(d) else pnp.full(r.size, d, "int32"))
    return pnp.stack(columns, 1) if columns else pnp.zeros((r.size, 0), "int32")


def _starts(r: Ragged, indices: Value, room: Value) -> tuple[Any, Any]:
    """Return (indices [size, ..., k] clipped into range, which were in range: [size, ...])."""
    at = widened(r.data(indices, PADDED))
    most = room.reshape((r.size, *(1,) * (at.ndim - 2), room.shape[-1])).astype(at.dtype)
    fits = pnp.logical_and(at >= 0, at <= most).all(-1)
    return pnp.clip(at, 0, pnp.maximum(most, 0)), fits


def _window(
    r: Ragged, prim: Primitive, x: Value, sizes: tuple[int, ...], axes: tuple[int, ...]
) -> tuple:
    """Return window sizes at capacity; a ragged window spans the whole axis."""
    found = []
    for a, (n, m) in enumerate(zip(x.aval.shape, sizes, strict=True)):
        if not r.caps.mine(n) and not r.caps.mine(m):
            found.append(m)
        elif r.caps.mine(n) and n == m:
            found.append(r.caps.longest(n))
        elif not r.caps.mine(m):
            found.append(m)
        else:
            raise MissingRule(
                f"{r.does}: {prim} of windows of size {m} along axis {a} of {x.aval!r}",
                fix="take a window with lax.dynamic_slice",
            )
    return tuple(found)


@pile_rules.rule(ix.gather_)
def _(r, args, out, *, dimension_numbers, slice_sizes, mode, fill_value, **promises):
    x, indices = args
    numbers = dimension_numbers
    axes = numbers.start_index_map
    flat = gathered(r, x, indices, out, numbers, slice_sizes)
    if flat is not None:
        return _completed(r, out, numbers, mode, fill_value, *flat)
    room = _room(r, x, slice_sizes, axes)
    at, fits = _starts(r, indices, room)
    sizes = _window(r, ix.gather_, x, slice_sizes, axes)
    y = r.data(x, PADDED)
    # An example with too few rows reads 0, as everywhere for symbolic sizes.
    some, short = None, []
    for a in axes:
        n, m = x.aval.shape[a], slice_sizes[a]
        if not r.may_lack(n, m):
            continue
        if m == 1:
            here = r.lengths(n) > 0
            some = here if some is None else pnp.logical_and(some, here)
        else:
            short.append(a)
    y = r.masked(y, x.aval, tuple(short), 0) if short else y
    for a, m in enumerate(sizes):
        if y.shape[a + 1] < m or (y.shape[a + 1] == 0 and m == 0 and a in axes):
            y = fit(y, a + 1, max(m, 1))
    rule: Any = batching_rules.find(ix.gather_)
    got, d = rule(
        r,
        (y, at),
        (0, 0),
        dimension_numbers=numbers,
        slice_sizes=sizes,
        mode=ix.CLIP,
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=False,
    )
    got = r.move(got, d, 0)
    if some is not None:
        some = some.reshape((r.size, *(1,) * (fits.ndim - 1)))
    return _completed(r, out, numbers, mode, fill_value, got, fits, some, 1, PADDED)


def _completed(
    r: Ragged, out: Any, numbers: Any, mode: str, fill_value: float | None,
    got: Value, fits: Value, some: Array | None, lead: int, how: str = FLAT,
) -> Any:  # fmt: skip
    """Return the values read, with 0 for examples without rows, and the fill value outside.

    `lead` axes are in front of those of one example."""

    def chosen(flags: Any, got: Value, other: float) -> Any:
        keep = [i for i in range(out.ndim) if i not in numbers.offset_dims]
        shape = [1] * got.ndim
        for i, n in zip([*range(lead), *[i + lead for i in keep]], flags.shape, strict=True):
            shape[i] = n
        return pnp.where(flags.reshape(shape), got, pnp.asarray(other, got.dtype))

    if some is not None and not isinstance(out.dtype, Opaque):  # keys have no zero
        got = chosen(some, got, 0)
    if mode == ix.FILL:
        got = chosen(fits, got, _outside(out.dtype) if fill_value is None else fill_value)
    return r.result(out, got, how)


def _outside(dtype: Any) -> Any:
    """Return the default value of reads outside; see `gather_`."""
    if dtype.kind == "b":
        return True
    if dtype.kind not in "iu":
        return float("nan")
    bounds = pnp.iinfo(dtype)
    return int(bounds.max if dtype.kind == "u" else bounds.min)


def _scatter(prim: Primitive) -> None:
    @pile_rules.rule(prim)
    def _(r, args, out, *, dimension_numbers, mode, **promises):
        x, indices, updates = args
        n = dimension_numbers
        sizes = ix.window_sizes(x.aval, updates.aval, n)
        axes = n.scatter_dims_to_operand_dims
        flat = scattered(r, prim, args, out, n, sizes, mode)
        if flat is not None:
            return flat
        at, fits = _starts(r, indices, _room(r, x, sizes, axes))
        _window(r, prim, x, sizes, axes)
        there = _there(r, indices)
        if mode == ix.FILL:
            there = fits if there is None else pnp.logical_and(there, fits)
        if there is not None:
            shape = (*there.shape, *(1,) * (at.ndim - there.ndim))
            at = pnp.where(there.reshape(shape), at, -(1 << 24))  # outside: nothing is written
        rule: Any = batching_rules.find(prim)
        got, d = rule(
            r,
            (r.data(x, PADDED), at, r.data(updates, PADDED)),
            (0, 0, 0),
            dimension_numbers=n,
            mode=ix.FILL,
            indices_are_sorted=False,
            unique_indices=False,
        )
        return r.result(out, r.move(got, d, 0), PADDED)


def _there(r: Ragged, indices: Value) -> Any:
    """Return which indices are defined: [size, ...]; None if all."""
    found = None
    ndim = indices.aval.ndim - 1
    for a in r.axes(indices.aval):
        inside = r.rows(indices.aval.shape[a]).inside
        shape = [1] * (ndim + 1)
        shape[0], shape[a + 1] = inside.shape
        here = inside.reshape(shape)
        found = here if found is None else pnp.logical_and(found, here)
    if found is None:
        return None
    lead = r.data(indices, PADDED).shape[:-1]
    return pnp.broadcast_to(found, lead)


for _prim in (ix.scatter_, ix.scatter_add_, ix.scatter_mul_, ix.scatter_min_, ix.scatter_max_):
    _scatter(_prim)
