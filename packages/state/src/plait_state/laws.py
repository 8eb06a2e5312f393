"""The conformance law of the table `discharge`, for `plait.testing`.

    an operation whose programs read a reference returns the same as for the array that it holds

Invariant: the other side of the comparison applies the operation to arrays alone.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from plait.ext.ir import Primitive, Program, evaluate
from plait.ext.trace import as_list, staged
from plait.ext.values import from_numpy
from plait_testing.ext import Inapplicable, agree

from .discharge import discharge_rules
from .ref import Ref, made
from .types import ref_type

__all__ = ["discharge_law"]


def discharge_law(prim: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]) -> int:
    """Check that an operation returns the same with a reference in place of one operand.

    Each operand is replaced in turn, except carries, rows and choices.  Returns the number of
    comparisons; raises Inapplicable if no operand can be replaced.
    """
    values = [from_numpy(x) for x in args]
    want = [np.asarray(y) for y in as_list(prim.bind(*values, **params))]
    count = 0
    for i in _constants(prim, params):
        ref = made(values[i])
        given = [ref if k == i else x for k, x in enumerate(values)]
        got = as_list(prim.bind(*given, **_reading(prim, params, i)))
        count += agree(got, want, None, f"a reference for operand {i}")
    if not count:
        raise Inapplicable("every operand is a carry, a row or a choice")
    return count


def _constants(prim: Primitive, params: dict[str, Any]) -> Iterator[int]:
    """Yield the numbers of operands that programs take and do not return."""
    assert prim.higher is not None
    w = prim.higher.slots(params)
    taken = {s for _, ins, _ in w.bodies for s in ins}
    given = {s for _, _, outs in w.bodies for s in outs}
    for i, s in enumerate(w.operands):
        if s in taken and s not in given and s not in w.mapped and s not in w.plain:
            yield i


def _reading(prim: Primitive, params: dict[str, Any], i: int) -> dict[str, Any]:
    """Return the parameters of an operation whose programs read operand `i` from a reference."""
    assert prim.higher is not None
    w = prim.higher.slots(params)
    new = {id(p): _of_reference(p, [s == w.operands[i] for s in ins]) for p, ins, _ in w.bodies}
    return {k: _replaced(v, new) for k, v in params.items()}


def _replaced(x: Any, new: dict[int, Any]) -> Any:
    """Return a parameter with `new` values for objects found by their `id`."""
    if x.__class__ is tuple:
        return tuple([_replaced(part, new) for part in x])
    return new.get(id(x), x)


def _of_reference(program: Program, which: Sequence[bool]) -> Program:
    types = [ref_type(a) if w else a for a, w in zip(program.in_avals, which, strict=True)]

    def run(*xs: Any) -> list[Any]:
        return evaluate(program, [x.read() if isinstance(x, Ref) else x for x in xs])

    return staged(run, types, program.name)


def _has_rule(prim: Primitive) -> bool:
    """Return whether the table has a rule for it; other operations are applied without one."""
    return discharge_rules.find(prim) is not None


discharge_law.applies = _has_rule  # type: ignore[attr-defined]
