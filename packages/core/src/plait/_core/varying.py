"""Along which axes of a mesh the results of an operation vary.

In a program that several devices run, each on its pieces, types say along which axes of the mesh
a value may differ (`Aval.vma`).  A result varies along every axis that an operand varies along,
unless its primitive says otherwise (`Primitive.vma`: a sum over devices is the same for all).

Invariant: type rules see types that vary along no axis, so none of them has to know of this.  An
operand that varies less than its operation is used as if it varied as much; reverse mode takes that
back by summing its cotangent over the devices (`plait_autodiff.transpose`).  Operations with
programs conform to their operands instead (`conforming`).
"""

from collections.abc import Callable, Sequence
from typing import Any

from .._types.avals import NOWHERE, Aval

__all__ = ["Vma", "of_result", "retyped", "union"]

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
