"""Piles in piles: the number of elements of an inner pile, and their rows, may differ between the
examples of the outer one.

The inner piles are padded to the greatest capacities, and are merged into one pile.

Invariant: elements that an inner pile lacks are empty, and never enter a sum.
"""

from typing import Any

from plait.ext.errors import MissingRule
from plait.ext.ir import dims_of
from plait.ext.sizes import Dim
from plait.ext.trace import Value
from plait.ext.types import Aval

from ..batching import Merged
from ..capacities import COUNTS, PRESENCE, presence
from ..carrier import Ragged, pile_rules
from ..operation import PADDED, pile_map
from ..tables import I32


@pile_rules.rule(pile_map)
def _(r: Ragged, args, params: dict):
    args = [r.settled(a) for a in args]
    if r.dims.isdisjoint(dims_of([[a.aval for a in args], *params.values()])):
        return r.plainly(pile_map, args, params)
    program, count = params["program"], params["size"]
    if not r.dims.isdisjoint(dims_of([program])) or params["axis_name"] is not None:
        raise MissingRule(
            f"{r.does}: a map over a pile inside speaks of sizes of the pile around",
            fix="pass what depends on them to it as an argument",
        )
    k = len(params["sizes"])
    sizes = tuple(
        [s._replace(**{k: _static(r, getattr(s, k)) for k in COUNTS}) for s in params["sizes"]]
    )
    fixed = {**params, "sizes": sizes, "size": _static(r, count)}
    outs = pile_map.infer(tuple([a.aval for a in args]), params)
    lengths = [_lengths(r, a) for a in args[:k]]
    values = [_padded(r, a) for a in args[k:]]
    differs = count.__class__ is Dim and r.caps.mine(count)
    if differs and not any(s.name == PRESENCE for s in sizes):
        fixed["sizes"] = (*sizes, presence())
        lengths.append(_of_present(r, count))
    got = Merged(r, lengths, fixed).apply(values)
    return [_taken(r, y, a) for y, a in zip(got, outs, strict=True)]


def _static(r: Ragged, n: Any) -> int:
    return r.caps.longest(n) if r.caps.mine(n) else n


def _lengths(r: Ragged, n: Any) -> Any:
    """Return the lengths of the elements of each inner pile, 0 for elements that it lacks."""
    x = r.data(n, PADDED)
    if r.axes(n.aval):
        x = r.masked(x, n.aval, r.axes(n.aval), 0)
    return r.lift(n.aval.with_shape(x.shape[1:]), 0, (x,))


def _of_present(r: Ragged, count: Dim) -> Any:
    """Return 1 for the elements that each inner pile has, and 0 for those that it lacks."""
    there = r.rows(count).inside.astype(I32)
    return r.lift(Aval(there.shape[1:], I32), 0, (there,))


def _padded(r: Ragged, a: Any) -> Any:
    """Return an operand with static sizes."""
    if not r.axes(a.aval):
        return a
    x = r.data(a, PADDED)
    return r.lift(a.aval.with_shape(x.shape[1:]), 0, (x,))


def _taken(r: Ragged, y: Value, aval: Aval) -> Any:
    if not r.axes(aval):
        return y
    return r.result(aval, r.to_form(y, 0)[0], PADDED)
