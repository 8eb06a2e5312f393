"""Components of tangents and cotangents, where a custom rule is lifted.

A component of integers or booleans (a length, a mask) has no derivative.  An operation with a
custom rule therefore passes none for it and expects none, while a lifted program has every
component of every value.

Invariant: a rule whose components all have derivatives is returned as it is.
"""

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

from .._types.avals import Aval
from .array import Literal
from .higher_order import Ends, Part
from .ir import Program, evaluate
from .staging import staged

__all__ = ["with_derivatives_alone"]

Parts = Sequence[tuple[Part, ...]]


def with_derivatives_alone(
    lifted: Program, ends: Ends, ambient: Sequence[Aval], ins: Parts, outs: Parts
) -> Program:
    """Return the lifted program of a rule without derivatives of components that have none.

    Beside a tangent, the component of its value stands for the one that is left out; beside a
    cotangent, whose value the rule does not get, zeros do.

    Args:
      lifted: the program; its inputs are the ambient values, then all components.
      ends: the slots of the rule.
      ambient: types of the ambient values.
      ins: the components of each input of the rule.
      outs: the components of each output.
    """
    sources = _values_of(ends.inputs, len(ins), ends.reverse)
    moved = _values_of(ends.outputs, len(outs), (*ends.outputs,) if ends.reverse else ())
    given = [[s is None or p.aval.varies for p in ps] for s, ps in zip(sources, ins, strict=True)]
    kept = [s is None or p.aval.varies for s, ps in zip(moved, outs, strict=True) for p in ps]
    if all(map(all, given)) and all(kept):
        return lifted

    def alone(*vs: Any) -> list[Any]:
        rest = iter(vs[len(ambient) :])
        rows: list[list[Any]] = []
        for source, here, ps in zip(sources, given, ins, strict=True):
            value = source.__class__ is int
            stand_in = rows[source] if value else [Literal(0, p.aval) for p in ps]  # type: ignore[index]
            rows.append([next(rest) if g else x for g, x in zip(here, stand_in, strict=True)])
        results = evaluate(lifted, [*vs[: len(ambient)], *(x for row in rows for x in row)])
        return [y for y, keep in zip(results, kept, strict=True) if keep]

    avals = [p.aval for here, ps in zip(given, ins, strict=True) for g, p in zip(here, ps) if g]
    return staged(alone, (*ambient, *avals), lifted.name)


def _values_of(
    slots: Sequence[int | EllipsisType], count: int, cotangents: Sequence[int | EllipsisType]
) -> list[int | EllipsisType | None]:
    """Return, for each input or output of a rule, the place of the value that it is a tangent of;
    an Ellipsis for a cotangent; None for a value.

    A tangent has the slot of a value before it.
    """
    places: dict[Any, int] = {}
    found: list[int | EllipsisType | None] = []
    for slot in slots:
        if slot is ...:
            found += [None] * (count - len(slots) + 1)
        elif slot in cotangents:
            found.append(...)
        else:
            found.append(places.get(slot))
            places.setdefault(slot, len(found) - 1)
    return found
