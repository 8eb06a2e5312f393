"""Evaluation of `pile_map`: its program runs under the carrier of piles.

Invariant: results have the usual forms of their types, or are summed over all examples.
"""

from typing import TYPE_CHECKING, Any

import plait.numpy as pnp
from plait.ext.ir import Program, evaluate
from plait.ext.rules import expand_rules
from plait.ext.trace import Value, current, opened, use
from plait.ext.types import Aval, Opaque
from plait.ext.values import as_value

from .carrier import Ragged
from .operation import SHARED, STACKED, SUMMED, pile_map

if TYPE_CHECKING:
    from .capacities import Size


@expand_rules.rule(pile_map)
def _(
    *xs: Value,
    program: Program,
    kinds: tuple[str, ...],
    outs: tuple[str, ...],
    sizes: "tuple[Size, ...]",
    size: int,
    axis_name: str | None,
    padded: bool,
):
    if size.__class__ is int and size == 0:
        # No row exists to gather from, and every result is empty or zero.
        params = {"program": program, "kinds": kinds, "outs": outs, "sizes": sizes, "size": size}
        types = pile_map.infer(
            tuple([as_value(x).aval for x in xs]),
            {**params, "axis_name": axis_name, "padded": padded},
        )
        if not any(isinstance(t.dtype, Opaque) for t in types):
            return [pnp.zeros(t.shape, t.dtype) for t in types]
    k = len(sizes)
    ambient = tuple([as_value(x) for x in xs[:k]])
    around = current()
    observed = around.observed
    r = Ragged(observed or around, size, axis_name, sizes, padded, ambient=ambient)
    with opened(r):
        args = [_given(r, x, q, v.aval) for x, q, v in zip(xs[k:], kinds, program.inputs)]
        with use(around.observing(r) if observed else r):
            got = evaluate(program, args)
    with use(r.parent):  # type: ignore[arg-type]
        taken = [_taken(r, y, q) for y, q in zip(got, outs, strict=True)]
        if observed is None:
            return taken
        # What inspects the results must not find the places beyond the last row.
        which = zip(taken, got, outs)
        return [y if q == SUMMED else r.cleaned(y, v.aval) for y, v, q in which]


def _given(r: Ragged, x: Value, kind: str, aval: Aval) -> Any:
    return x if kind == SHARED else r.lift(aval, r.usual(aval), (x,))


def _taken(r: Ragged, y: Value, kind: str) -> Any:
    if kind != SUMMED:
        x = r.to_form(y, r.usual(y.aval))[0]
        return r.of_examples(x, 0) if kind == STACKED else x
    f, parts = r.split(y)
    if f is None:
        return r.collect(y.aval, (r.move(parts[0], None, 0),), 0, None)[0]
    return r.collect(y.aval, parts, f, None)[0]
