"""Variance analysis: along which mesh axes the values of a program differ between devices.

A value is the same on all devices if it depends on nothing divided, or was reduced over the axes
that divide it.  Only such a value can be a result that is not divided.

A typed shard_map has similar information in its types, for derivatives.  There gathered values
vary, since their cotangents do; here they count as equal.  pmap and xmap, which have no such types,
use this analysis too.

Invariant: the answer is an upper bound.  It follows the wiring of operations with programs, so it
has no case for any particular one.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.ir import Program, Var, ambient_of, dims_of, programs_in
from plait.ext.ops.collective import all_gather_, pmax_, pmin_, psum_
from plait.ext.trace import Slots, Value

__all__ = ["varying"]

Axes = frozenset[str]
NONE: Axes = frozenset()
LEVELLING = frozenset((psum_, pmax_, pmin_, all_gather_))
"""Collectives whose result is the same on all devices of the axis."""


def varying(
    program: Program,
    inputs: Sequence[Axes],
    seen: Callable[[Any, Axes], None] | None = None,
    sized: Axes = NONE,
) -> list[Axes]:
    """Return, for each output, the axes along which it may differ, given those of the inputs.

    Args:
      program: the program to analyse.
      inputs: the axes along which each input may differ.
      seen: called as `seen(equation, axes)` for each operation, also in inner programs.  `axes`
        are those along which operands or results may differ, and those that the operation names.
      sized: the axes along which symbolic sizes (the lengths of a pile) may differ.
    """
    known: dict[Any, Axes] = dict(zip(program.inputs, inputs, strict=True))

    def read(a: Value) -> Axes:
        return known.get(a, NONE) if a.__class__ is Var else NONE

    for e in program.eqns:
        ins = [read(a) for a in e.inputs]
        if e.prim.higher is not None:
            outs = _through(e, e.prim.higher.slots(e.params), ins, seen, sized)
            said = [v for k, v in e.params.items() if not programs_in({k: v})]
            if sized and dims_of(said):  # a size may be the number of turns of a loop
                outs = [axes | sized for axes in outs]
        else:
            if sized and dims_of((*e.params.values(), *(v.aval for v in (*e.inputs, *e.outputs)))):
                ins.append(sized)
            outs = [_after(e, NONE.union(*ins))] * len(e.outputs)
            if seen is not None:
                seen(e, NONE.union(*ins, ambient_of(e.prim, e.params)))
        known.update(zip(e.outputs, outs, strict=True))
    return [read(a) for a in program.outputs]


def _after(e: Any, ins: Axes) -> Axes:
    named = ambient_of(e.prim, e.params)
    levels = e.prim in LEVELLING and not e.params.get("groups")  # results differ between groups
    return ins - named if levels else ins | named


def _through(
    e: Any, w: Slots, ins: Sequence[Axes], seen: Callable | None, sized: Axes
) -> list[Axes]:
    """Grow the axes of each slot until nothing changes; a predicate's axes reach every result.

    An operand that no inner program reads gives a size, or else may act as a predicate.
    """
    hidden = e.prim.higher.binds(e.params)
    predicates = w.plain - w.sizes
    passed = {*w.outputs, *predicates, *(s for _, inner, _ in w.bodies for s in inner)}
    unseen = NONE.union(*(a for s, a in zip(w.operands, ins, strict=True) if s not in passed))
    sized |= unseen
    slots: list[Axes] = [NONE] * w.count
    for s, axes in zip(w.operands, ins, strict=True):
        slots[s] |= axes
    if not any(p.dims for p, _, _ in w.bodies):
        for s in w.outputs:
            slots[s] |= unseen
    before: list[Axes] | None = None
    while before != slots:
        before = list(slots)
        for p, inner, outer in w.bodies:
            got = varying(p, [slots[s] for s in inner], seen, sized)
            for s, axes in zip(outer, got, strict=True):
                slots[s] |= axes - hidden
        decides = NONE.union(*(slots[s] for s in predicates))
        for s in w.outputs:
            slots[s] |= decides
    if seen is not None:
        for s in w.outputs:
            seen(e, slots[s])
        # A predicate decides whether the operation runs, so it meets the axes the operation names.
        seen(e, NONE.union(*(slots[s] for s in predicates), ambient_of(e.prim, e.params)))
    return [slots[s] for s in w.outputs]
