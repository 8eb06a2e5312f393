"""Results of operations with programs that are operands, unchanged.

A branch may return an operand, and a loop may leave a part of its carry alone.  A rule that
computes all results anew (a map whose predicate varies) would treat these like the others: it would
copy them for every element, and report that they differ between elements.

Invariant: the answer follows from the wiring alone.  A result counts only if every program that
gives it forwards the same operand.  Operations with custom rules forward nothing, since a
derivative of the result need not be that of the operand.
"""

from collections.abc import Sequence
from typing import Any

from .._core.higher_order import Slots
from .._core.ir import Program, Var, derived

__all__ = ["forwarded"]

Origin = int | None
"""The number of the operand that a value always equals; None if there is none."""


def forwarded(prim: Any, params: dict[str, Any]) -> list[Origin]:
    """Return, for each result of an operation with programs, the operand that it always equals.

    Args:
      prim: the primitive.
      params: its parameters, which hold no functions that are still to be staged.
    """
    w: Slots = prim.higher.slots(params)
    if w.rules or w.whole:
        return [None] * len(w.outputs)
    # A slot that is missing here has no source yet: it may still turn out to be an operand.
    origins: dict[int, Origin] = {s: i for i, s in enumerate(w.operands)}
    for s in w.seen.union(w.outputs):
        if w.mapped.get(s) or w.cut.get(s):  # a value outside is not the one that programs see
            origins[s] = None
    while _spread(w, origins):
        pass
    return [origins.get(s) for s in w.outputs]


def _spread(w: Slots, origins: dict[int, Origin]) -> bool:
    """Take the origins through all programs; return whether one changed."""
    changed = False
    for program, ins, outs in w.bodies:
        for s, k in zip(outs, forwarded_inputs(program), strict=True):
            if k is not None and ins[k] not in origins:
                continue  # from a slot that nothing has reached yet
            origin = None if k is None else origins[ins[k]]
            if s not in origins:
                origins[s], changed = origin, True
            elif origins[s] is not None and origins[s] != origin:
                origins[s], changed = None, True
    return changed


def forwarded_inputs(program: Program) -> Sequence[Origin]:
    """Return, for each output, the number of the input that it always equals; None if none."""
    return derived(program, "forwarded", lambda: _forwarded_inputs(program))


def _forwarded_inputs(program: Program) -> tuple[Origin, ...]:
    origins: dict[Any, int] = {v: i for i, v in enumerate(program.inputs)}
    for e in program.eqns:
        if e.prim.higher is None or e.prim.higher.pending(e.params):
            continue
        for v, k in zip(e.outputs, forwarded(e.prim, e.params), strict=True):
            a = None if k is None else e.inputs[k]
            if isinstance(a, Var) and a in origins:
                origins[v] = origins[a]
    return tuple([origins.get(a) if isinstance(a, Var) else None for a in program.outputs])
