"""The division of an operation's results over the explicit axes of a mesh.

Types record it (`Aval.division`).  A package that has meshes derives it for results from the types
of operands (`Division.results`).  Type rules see types without it.  Results of operations with
programs are divided as the results of their programs, by their wiring.

The user did not write the operations of a carrier's rule, or of a rule for transposition, so the
user's types do not constrain them.  Their operands are `released`, and the results are brought to
the types of the operation.

Invariant: types without a division cost nothing here.  An operation on operands without one has
results without one, unless its parameters set one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._types.avals import Aval, Division
from .._types.dims import Dim
from . import varying
from .array import Literal
from .higher_order import Wiring

if TYPE_CHECKING:
    from .primitive import Primitive

__all__ = ["lie_as", "of_programs", "of_result", "released", "with_axis", "without_axis"]


def of_result(prim: "Primitive", avals: tuple[Aval, ...], params: dict[str, Any]) -> Any:
    """Return the type of the result, or the types of the results, of an operation."""
    for a in avals:
        if a.division is not None:
            bare = tuple([b.with_sharding(None) for b in avals])
            outs = varying.of_result(prim.rule, prim.vma, bare, params)
            return a.division.results(prim, avals, params, outs)
    return varying.of_result(prim.rule, prim.vma, avals, params)


def of_programs(higher: Wiring | None, params: dict[str, Any], outs: list[Aval]) -> Any:
    """Return the types of the results of an operation with programs: the types in its programs,
    with the axes that these do not see added."""
    if higher is None or not isinstance(outs, tuple | list):
        return outs
    w = higher.slots(params)
    if not w.mapped:
        return outs
    inside: dict[int, Aval] = {}
    for program, _, ends in w.bodies:
        inside.update(zip(ends, program.out_avals, strict=True))
    return [
        _around(o, inside.get(s), w.mapped.get(s)) for s, o in zip(w.outputs, outs, strict=True)
    ]


def _around(out: Aval, inner: Aval | None, axes: tuple[int, ...] | None) -> Aval:
    """Return the type of a result that its program sees without these axes."""
    if inner is None or inner.division is None or axes is None or out.division is not None:
        return out
    names = iter(inner.division.entries(inner.ndim))
    entries = [() if i in axes else next(names) for i in range(out.ndim)]
    return out.with_sharding(inner.division.with_entries(entries))


def without_axis(aval: Aval, axis: int) -> Aval:
    """Return the type of a row along an axis."""
    new = aval.with_shape((*aval.shape[:axis], *aval.shape[axis + 1 :]))
    if aval.division is None:
        return new
    entries = aval.division.entries(aval.ndim)
    return new.with_sharding(aval.division.with_entries((*entries[:axis], *entries[axis + 1 :])))


def with_axis(aval: Aval, axis: int, size: Dim | int, names: tuple[str, ...] = ()) -> Aval:
    """Return the type of a stack, along a new axis that is divided over the mesh axes `names`."""
    new = aval.with_shape((*aval.shape[:axis], size, *aval.shape[axis:]))
    if aval.division is None:
        return new
    entries = aval.division.entries(aval.ndim)
    over = (*entries[:axis], names, *entries[axis:])
    return new.with_sharding(aval.division.with_entries(over))


def lie_as(x: Any, sharding: Division | None) -> Any:
    """Return the value with this division in its type; None removes the division."""
    have = x.aval.division
    if have is sharding or have == sharding:
        return x
    if x.__class__ is Literal:
        return Literal(x.value, x.aval.with_sharding(sharding))
    return have.release(x) if sharding is None else sharding.constrain(x)


def released(xs: Sequence[Any]) -> list[Any]:
    """Return the values, with types that record no division."""
    return [x if x.aval.division is None else lie_as(x, None) for x in xs]
