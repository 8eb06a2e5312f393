"""Cumulative sums and their like.

Invariant: what an example gets depends on its own rows alone; sums are never differences of sums
over all rows, which would lose digits.
"""

from typing import Any

import plait.numpy as pnp
from plait import (
    lax,
)
from plait.ext.ops.cumulative import (
    cumsum_,
)
from plait.ext.rules import (
    Cumulative,
)
from plait.ext.types import (
    FLOATING,
)

from ..capacities import TILE
from ..carrier import Ragged, pile_rules
from ..layouts import along, from_tiles, to_tiles
from ..operation import FLAT

__all__: list[str] = []


@pile_rules.rule(Cumulative)
def _(prim, r, args, out, *, axis, reverse):
    how = r.like(args, out)
    params = {"axis": axis, "reverse": reverse}
    if axis not in r.axes(out) and how == FLAT:
        return r.result(out, prim.bind(*[r.data(a, FLAT) for a in args], **params), FLAT)
    if prim is cumsum_ and how == FLAT and out.category == FLOATING:
        return r.result(out, _sums(r, args[0], axis, reverse), FLAT)
    return r.by_padding(prim, args, out, params)


def _sums(r: Ragged, x: Any, a: int, reverse: bool) -> Any:
    """Within tiles, by a triangular product, and the sums of the tiles before."""
    d = x.aval.shape[a]
    t = r.rows(d)
    y = pnp.moveaxis(to_tiles(r, r.data(x, FLAT), a, d), a + 1, 1)
    triangle = pnp.tril(pnp.ones((TILE, TILE), y.dtype))
    triangle = triangle.T if reverse else triangle
    inside = pnp.moveaxis(pnp.tensordot(triangle, y, ((1,), (1,))), 0, 1)
    total = y.sum(1)
    if reverse:
        ends = pnp.concatenate([t.lengths, pnp.zeros(1, t.lengths.dtype)])[t.tile_example]
        new = t.tile_position[:, -1] + 1 >= ends
    else:
        new = t.tile_position[:, 0] == 0
    flags = pnp.broadcast_to(along(new, 0, total.ndim), total.shape)
    run = _segmented(flags, total, reverse)
    return from_tiles(r, pnp.moveaxis(inside + (run - total)[:, None], 1, a + 1), a, d)


def _segmented(new: Any, x: Any, reverse: bool) -> Any:
    """Sums of rows, begun anew where `new` says."""

    def join(p: Any, q: Any) -> tuple:
        (f, u), (g, v) = p, q
        return f | g, v + pnp.where(g, 0, u)

    turned = (lambda v: v[::-1]) if reverse else (lambda v: v)
    return turned(lax.associative_scan(join, (turned(new), turned(x)))[1])
