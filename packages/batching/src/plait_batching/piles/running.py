"""Evaluation of `pile_map`: its program runs under the carrier of piles.

Invariant: results have the usual forms of their types, or are summed over all examples.
"""

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import plait.numpy as pnp
from plait import lax
from plait.ext.ir import Eqn, Program, evaluate
from plait.ext.ops.control_flow import scan
from plait.ext.rules import expand_rules
from plait.ext.sizes import is_symbolic
from plait.ext.trace import Carrier, Value, current, opened, use
from plait.ext.types import Aval, Opaque
from plait.ext.values import as_value

from .carrier import Ragged
from .operation import RAGGED, SHARED, STACKED, SUMMED, pile_map

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
    given = [as_value(x) for x in xs[k:]]

    def ragged(padded: bool, full: bool = False) -> Ragged:
        parent = current().observed or current()
        return Ragged(parent, size, axis_name, sizes, padded, full, ambient=ambient)

    r = ragged(padded)
    if not may_be_full(r, program):
        return _results(r, given, program, kinds, outs)

    def of_full_examples() -> list[Any]:
        flat, full = ragged(padded), ragged(True, True)

        def moved(x: Any, of: Ragged, to: Ragged, aval: Aval, kind: str) -> Any:
            # The carrier of full examples reshapes rows; another one would gather them.
            if kind != RAGGED:
                return x
            return full.coerce(aval, (x,), of.usual(aval), to.usual(aval))[0]

        ins, results = zip(given, program.inputs, kinds), zip(program.outputs, outs)
        xs = [moved(x, flat, full, v.aval, q) for x, v, q in ins]
        ys = _results(full, xs, program, kinds, outs)
        return [moved(y, full, flat, v.aval, q) for y, (v, q) in zip(ys, results)]

    are_full = [(n == s.longest).all() for n, s in zip(ambient, sizes)]
    of_others = lambda: _results(ragged(padded), given, program, kinds, outs)  # noqa: E731
    return lax.cond(reduce(and_, are_full), of_full_examples, of_others)


def _results(
    r: Ragged,
    given: Sequence[Any],
    program: Program,
    kinds: Sequence[str],
    outs: Sequence[str],
) -> list[Any]:
    """Return the results of all examples, in the usual layouts of a carrier."""
    around = current()
    observed = around.observed
    with opened(r):
        args = [_given(r, x, q, v.aval) for x, q, v in zip(given, kinds, program.inputs)]
        with use(around.observing(r) if observed else r):
            got = evaluate(program, args)
    with use(r.parent):  # type: ignore[arg-type]
        taken = [_taken(r, y, q) for y, q in zip(got, outs, strict=True)]
        if observed is None:
            return taken
        # What inspects the results must not find the places beyond the last row.
        which = zip(taken, got, outs)
        return [y if q == SUMMED else r.cleaned(y, v.aval) for y, v, q in which]


def may_be_full(r: Ragged, program: Program) -> bool:
    """Return whether a program has a second form, for batches whose examples are all of the
    greatest length.

    Pairs of rows are as many as those of padded examples then, and masks of pairs are what such a
    batch would pay for.  A scan would gather the rows of each turn.

    Pairs that enter or leave a program pass through memory where a branch ends, which costs more
    than masks: a gradient of attention took 420 ms with branches, and 370 without.
    """
    around = current()
    if r.size.__class__ is not int or around.observed or isinstance(around, Carrier):
        return False
    return (
        not program.effects
        and not program.axes
        and not any(s.spare or s.label or is_symbolic(s.counts) for s in r.table)
        and all(r.caps.fills(s.whole) for s in r.table)
        and all(len(r.axes(a)) < 2 for a in (*program.in_avals, *program.out_avals))
        and any(_pays_if_full(r, e) for e in program.eqns)
    )


def _pays_if_full(r: Ragged, e: Eqn) -> bool:
    """Return whether an operation makes pairs of rows, or turns once for each row."""
    if e.prim is scan and r.caps.mine(e.params["length"]):
        return True
    return any(len(r.axes(v.aval)) == 2 for v in e.outputs)


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
