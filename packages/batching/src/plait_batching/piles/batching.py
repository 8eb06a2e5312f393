"""vmap of `pile_map`: if lengths differ between elements, their piles are merged into one.

Invariant: if all elements share the lengths, the wiring of the operation suffices, and no data
moves.
"""

from collections.abc import Sequence
from typing import Any

import plait.numpy as pnp
from plait.ext.errors import MissingRule
from plait.ext.trace import Value, use
from plait.ext.types import Aval
from plait.typing import Array

from ..interpreter import Batch, batching_rules
from .carrier import Ragged
from .operation import PADDED, RAGGED, SHARED, STACKED, SUMMED, pile_map

__all__ = ["Merged"]


@batching_rules.rule(pile_map)
def _(batch: Batch, args: list[Value], params: dict[str, Any]):
    k = len(params["sizes"])
    if all(batch.form_of(n) is None for n in args[:k]):
        return batch.through(pile_map, args, params)
    if params["size"].__class__ is int and params["size"] == 0:  # no rows to gather from
        types = pile_map.infer(tuple([a.aval for a in args]), params)
        return [batch.lift(t, None, (pnp.zeros(t.shape, t.dtype),)) for t in types]
    if params["axis_name"] is not None:
        raise MissingRule(
            f"{batch.does}: vmap over a pile, whose lengths are mapped, binds the axis name "
            f"{params['axis_name']!r}",
            fix="leave out axis_name, or map over the lengths one after the other (lax.map)",
        )
    return Merged(batch, args[:k], params).apply(args[k:])


class Merged:
    """All examples of all piles, as the examples of one pile."""

    def __init__(self, batch: Batch, lengths: Sequence[Any], params: dict[str, Any]):
        self.batch, self.params = batch, params
        self.outer, self.inner = batch.size, params["size"]
        self.count = self.outer * self.inner
        self.table = tuple(
            [s._replace(rows=s.rows * self.outer, squares=s.squares * self.outer)
             for s in params["sizes"]]
        )  # fmt: skip
        self.lengths = [self._together(n) for n in lengths]
        padded = params["padded"]
        self.each = Ragged(batch, self.inner, None, params["sizes"], padded, ambient=lengths)
        self.all = Ragged(
            batch.parent, self.count, None, self.table, padded, ambient=tuple(self.lengths)
        )

    def apply(self, args: Sequence[Any]) -> list[Any]:
        params = self.params
        program, outs = params["program"], params["outs"]
        kinds, values = [], []
        for x, kind, v in zip(args, params["kinds"], program.inputs, strict=True):
            kind, value = self._given(x, kind, v.aval)
            kinds.append(kind)
            values.append(value)
        wanted = tuple([STACKED if q == SUMMED else q for q in outs])
        new = {"kinds": tuple(kinds), "outs": wanted, "sizes": self.table, "size": self.count}
        got = pile_map.bind(*self.lengths, *values, **{**params, **new})
        triples = zip(got, outs, program.out_avals, strict=True)
        return [self._taken(y, q, t) for y, q, t in triples]

    def _together(self, x: Any) -> Any:
        """Reshape [outer, inner, ...] to [outer * inner, ...]."""
        x = self.batch.to_form(x, 0)[0]
        return pnp.reshape(x, (self.count, *x.shape[2:]))

    def _apart(self, x: Any) -> Any:
        return self.batch.wrap(pnp.reshape(x, (self.outer, self.inner, *x.shape[1:])), 0)

    def _given(self, x: Any, kind: str, aval: Aval) -> tuple[str, Any]:
        if kind == SHARED:
            if self.batch.form_of(x) is None:
                return SHARED, x
            x = self.batch.to_form(x, 0)[0]
            return STACKED, pnp.repeat(x, self.inner, axis=0)
        if kind == STACKED:
            return STACKED, self._together(x)
        with use(self.batch):
            y = self.each.coerce(aval, (x,), self.each.usual(aval), (PADDED, 0))[0]
        y = self._together(y)
        y = self.all.coerce(aval, (y,), (PADDED, 0), self.all.usual(aval))[0]
        return RAGGED, self.all.cleaned(y, aval)

    def _taken(self, y: Array, kind: str, aval: Any) -> Any:
        if kind == STACKED:
            return self._apart(y)
        if kind == SUMMED:
            y = pnp.reshape(y, (self.outer, self.inner, *y.shape[1:]))
            return self.batch.wrap(y.sum(1), 0)
        y = self.all.coerce(aval, (y,), self.all.usual(aval), (PADDED, 0))[0]
        y = self._apart(y)
        with use(self.batch):
            y = self.each.coerce(aval, (y,), (PADDED, 0), self.each.usual(aval))[0]
            return self.each.cleaned(y, aval)
