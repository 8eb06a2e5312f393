"""Dead code elimination: unused equations, and unused inputs and outputs of sub-programs.

Invariant: equations with effects stay.
"""

from collections.abc import Sequence
from typing import Any

from .._core.higher_order import Part, Slots
from .._core.ir import Eqn, Program, derived, fewer, swept
from .._types.avals import Aval
from .pieces import remade


def dce(program: Program, keep: Sequence[bool] | None = None) -> tuple[Program, tuple[bool, ...]]:
    """Return the program reduced to what some outputs need, and for each input whether it is left.

    Args:
      program: the program.
      keep: for each output whether it is wanted; by default all are.

    Equations with effects stay.  Sub-programs lose unused operands, unwanted results, and parts of
    a loop's carry that no result depends on.
    """
    wanted = (True,) * len(program.outputs) if keep is None else tuple(map(bool, keep))
    found = derived(program, ("dce", wanted), lambda: _needed(program, wanted))
    return (program, (True,) * len(program.inputs)) if found is None else found


def _needed(program: Program, wanted: tuple[bool, ...]) -> tuple[Program, tuple[bool, ...]] | None:
    """Return the reduced program, and which inputs are left; None if all of it is needed."""
    outputs = [a for a, k in zip(program.outputs, wanted, strict=True) if k]
    eqns, live = swept(program.eqns, outputs, narrowed)
    used = tuple([v in live for v in program.inputs])
    if all(wanted) and all(used) and all(a is b for a, b in zip(eqns, program.eqns)):
        if len(eqns) == len(program.eqns):
            return None
    inputs = [v for v, u in zip(program.inputs, used) if u]
    return remade(program, inputs, eqns, outputs, live), used


def narrowed(e: Eqn, live: set[Any]) -> Eqn:
    """Return an operation with programs in its cheaper form, without unused slots.

    A slot is unused if no wanted result depends on it, through any program and any turn of a loop;
    this follows from the wiring.  Operations with custom rules stay unchanged, since a rule may
    need values that the function itself does not.
    """
    e = fewer(e, live)
    higher = e.prim.higher
    if higher is None or higher.pending(e.params):
        return e
    w: Slots = higher.slots(e.params)
    if w.rules:
        return e
    needed = _needed_slots(w, [o in live for o in e.outputs])
    if len(needed) == w.count:
        return e
    programs = [
        _narrow(p, [s in needed for s in ins], [s in needed for s in outs])
        for p, ins, outs in w.bodies
    ]
    avals = _outside(w, e)
    parts = [
        (Part(avals[s], tuple(range(avals[s].ndim))),) if s in needed else ()
        for s in range(w.count)
    ]
    operands = [a for s, a in zip(w.operands, e.inputs, strict=True) if s in needed]
    outputs = [v for s, v in zip(w.outputs, e.outputs, strict=True) if s in needed]
    operands, params = higher.rebuild(e.params, programs, parts, operands, [])
    return Eqn(e.prim, operands, outputs, params, e.where)


def _needed_slots(w: Slots, wanted: Sequence[bool]) -> set[int]:
    """Return the slots of wanted results, and all slots that these depend on.

    A slot that the operation itself reads or writes (a predicate, a counter) stays.
    """
    given, taken = set(w.operands), set(w.outputs)
    read = {s for _, ins, _ in w.bodies for s in ins}
    written = {s for _, _, outs in w.bodies for s in outs}
    needed = {*w.plain, *(given ^ read), *(taken ^ written)}
    needed.update([s for s, k in zip(w.outputs, wanted, strict=True) if k])
    before = -1
    while before != len(needed):
        before = len(needed)
        for p, ins, outs in w.bodies:
            used = dce(p, [s in needed for s in outs])[1]
            needed.update([s for s, u in zip(ins, used, strict=True) if u])
    return needed


def _narrow(p: Program, ins: Sequence[bool], outs: Sequence[bool]) -> Program:
    """Return the program with these inputs (it may ignore some) and these outputs."""

    def make() -> Program:
        small, used = dce(p, outs)
        inputs = [v for v, k in zip(p.inputs, ins) if k]
        return small if tuple(ins) == used else small.with_inputs(inputs)

    return derived(p, ("narrow", tuple(ins), tuple(outs)), make)


def _outside(w: Slots, e: Eqn) -> dict[int, Aval]:
    """Return the type at each slot; for operands and results, that of the equation."""
    avals: dict[int, Aval] = {}
    for p, ins, outs in w.bodies:
        avals.update(zip((*ins, *outs), (*p.in_avals, *p.out_avals)))
    avals.update({s: a.aval for s, a in zip(w.operands, e.inputs)})
    avals.update({s: v.aval for s, v in zip(w.outputs, e.outputs)})
    return avals
