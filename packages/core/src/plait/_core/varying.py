"""Along which axes of a mesh the results of an operation vary.

In a program that several devices run, each on its pieces, types say along which axes of the mesh
a value may differ (`Aval.vma`).  A result varies along every axis that an operand varies along,
unless its primitive says otherwise (`Primitive.vma`: a sum over devices is the same for all).

Invariant: type rules see types that vary along no axis, so none of them has to know of this.  An
operand that varies less than its operation is used as if it varied as much; reverse mode takes that
back by summing its cotangent over the devices (`plait_autodiff.transpose`).
"""

from collections.abc import Callable, Sequence
from typing import Any

from .._types.avals import NOWHERE, Aval
from .higher_order import Wiring

__all__ = ["Vma", "of_programs", "of_result", "retyped", "union"]

Vma = frozenset[str]


def union(avals: Sequence[Aval]) -> Vma:
    """Return the axes along which any of these vary."""
    found = NOWHERE
    for a in avals:
        if a.vma:
            found = found | a.vma if found else a.vma
    return found


def of_result(
    rule: Callable[..., Any],
    vma: Callable[[Vma, dict[str, Any]], Vma] | None,
    avals: tuple[Aval, ...],
    params: dict[str, Any],
) -> Any:
    """Return what the type rule says, on the axes that follow from the operands'."""
    axes = union(avals)
    if vma is None and not axes:
        return rule(*avals, **params)
    out = rule(*[a.with_vma(NOWHERE) for a in avals], **params)
    return retyped(out, axes if vma is None else vma(axes, params))


def retyped(out: Any, axes: Vma) -> Any:
    """Return the type of a result, or the list of those of several, that varies along the axes."""
    if isinstance(out, tuple | list):
        return [t.with_vma(axes) for t in out]
    return out.with_vma(axes)


def of_programs(
    higher: Wiring | None, avals: tuple[Aval, ...], params: dict[str, Any], outs: Any
) -> Any:
    """Return the types of the results of an operation with programs, or with an effect, varying
    as its wiring says.

    A slot varies along all axes that one of its ends does.  An operand may vary along axes of which
    its programs know nothing (they were made before somebody divided it): then all is computed per
    position along these axes, and every result varies along them, as by a predicate that varies.
    """
    many = isinstance(outs, tuple | list)
    if not (union(avals) or (many and union(outs))):
        return outs
    if higher is None:
        return retyped(outs, union(avals))
    w = higher.slots(params)
    seen: list[Vma] = [NOWHERE] * w.count
    known: list[Vma | None] = [None] * w.count
    for program, ins, ends in w.bodies:
        for s, a in zip((*ins, *ends), (*program.in_avals, *program.out_avals), strict=True):
            seen[s] |= a.vma
        for s, a in zip(ins, program.in_avals, strict=True):
            before = known[s]
            known[s] = a.vma if before is None else before & a.vma
    everywhere = NOWHERE
    for s, a in zip(w.operands, avals, strict=True):
        inside = None if s in w.plain else known[s]
        everywhere |= a.vma if inside is None else a.vma - inside
    bound = higher.binds(params)
    given = outs if many else [outs]
    found = [
        t.with_vma((t.vma | seen[s] | everywhere) - bound)
        for s, t in zip(w.outputs, given, strict=True)
    ]
    return found if many else found[0]
