"""Variance analysis: along which mesh axes the values of a program differ between devices.

A value that does not depend on anything divided, or was reduced over what it was divided by, is
the same on all devices; only such a value can be a result that is not divided.

Types say much the same where shard_map is typed, for derivatives: there what is gathered varies,
since its cotangents do.  Here it is known to be equal, and pmap and xmap, which have no types of
that kind, ask too.

Invariant: the answer is an upper bound.  It follows the wiring of operations with programs, so it
needs to know none of them.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.ir import Program, Var, ambient_of, dims_of, programs_in
from plait.ext.ops.collective import all_gather_, pmax_, pmin_, psum_
from plait.ext.trace import Slots

__all__ = ["varying"]

Axes = frozenset[str]
NONE: Axes = frozenset()
LEVELLING = frozenset((psum_, pmax_, pmin_, all_gather_))
"""Collectives after which all have the same."""


def varying(
    program: Program,
    inputs: Sequence[Axes],
    seen: Callable[[Any, Axes], None] | None = None,
    sized: Axes = NONE,
) -> list[Axes]:
    """For each output, the axes along which it may differ, from those of the inputs.

    `seen(equation, axes)` is called for each operation, in inner programs too, with all axes that
    meet there: those along which operands or results may differ, and those it speaks of.  `sized`
    are those along which sizes that are known by name may differ (the lengths of a pile).
    """
    known: dict[Any, Axes] = dict(zip(program.inputs, inputs, strict=True))

    def read(a: Any) -> Axes:
        return known.get(a, NONE) if a.__class__ is Var else NONE

    for e in program.eqns:
        ins = [read(a) for a in e.inputs]
        if e.prim.higher is not None:
            outs = _through(e, e.prim.higher.slots(e.params), ins, seen, sized)
            said = [v for k, v in e.params.items() if not programs_in({k: v})]
            if sized and dims_of(said):  # how often, for instance
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
    levels = e.prim in LEVELLING and not e.params.get("groups")  # groups differ from each other
    return ins - named if levels else ins | named


def _through(
    e: Any, w: Slots, ins: Sequence[Axes], seen: Callable | None, sized: Axes
) -> list[Axes]:
    """Slots grow until nothing changes; what decides (a predicate) reaches every result.

    What no program sees says how large things are, or else may decide."""
    hidden = e.prim.higher.binds(e.params)
    passed = {*w.outputs, *w.plain, *(s for _, inner, _ in w.bodies for s in inner)}
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
        decides = NONE.union(*(slots[s] for s in w.plain))
        for s in w.outputs:
            slots[s] |= decides
    if seen is not None:
        for s in w.outputs:
            seen(e, slots[s])
        # what decides whether something is done meets what that speaks of
        seen(e, NONE.union(*(slots[s] for s in w.plain), ambient_of(e.prim, e.params)))
    return [slots[s] for s in w.outputs]
