"""Reverse mode through operations that apply one program to every row.

The program of such an operation reads operands of two kinds: those that all rows share, and those
with a value for each row.  Results are of the same kinds, or summed over all rows.  The halves and
the reversal of such an operation are operations of the same kind.  So the author of one describes
only how it is written, and no rules of division or reversal.  Forward mode follows from its wiring.

Invariant: a residual that is an operand is passed on.  Values that follow from shared operands
alone are computed once, not for each row.  Cotangents of shared operands are summed.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from plait.ext.ir import Primitive, Program, Var, effects_of, evaluate, live_equations
from plait.ext.trace import Value
from plait.ext.types import Aval

from .split import Split, choose, divide, merge, part, split_program, split_rules
from .transpose import Linear, is_linear, transpose_program, transpose_rules

__all__ = ["Rowwise", "rowwise"]


class Rowwise(ABC):
    """The description of an operation with a program on rows.

    Attributes:
      shared: the kind of operands that all rows share.
      summed: the kind of results that are summed over all rows.
    """

    shared: Any = "shared"
    summed: Any = "summed"

    def lead(self, params: dict[str, Any]) -> int:
        """Return the number of operands in front that no program reads (lengths, an order of rows).

        They are passed to every operation made from this one, and have no derivatives.
        """
        return 0

    @abstractmethod
    def kinds(self, params: dict[str, Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the kinds of the operands that the program reads, and of the results."""

    @abstractmethod
    def made(
        self,
        params: dict[str, Any],
        program: Program,
        kinds: tuple[Any, ...],
        outs: tuple[Any, ...],
    ) -> dict[str, Any]:
        """Return the parameters of this operation with another program and these kinds."""

    @abstractmethod
    def each(self, aval: Aval, params: dict[str, Any]) -> Any:
        """Return the kind of an operand or result that has a value of this type for each row."""

    def apart(self, equation: object, params: dict[str, Any]) -> bool:
        """Return whether an equation on shared operands may be moved out of the program."""
        return True


def rowwise(prim: Primitive, how: Rowwise) -> None:
    """Register rules of division and reversal for an operation with a program on rows.

    Args:
      prim: a primitive with many results and one program, `params["program"]`.
      how: the description of the operation.

    Raises DuplicateRule, when it is used, if it has such rules already.
    """

    @split_rules.rule(prim)
    def _(split: Split, args: list[Value], params: dict[str, Any]):
        return _divided(prim, how, split, args, params)

    @transpose_rules.rule(prim)
    def _(cts: list[Any], /, *args: Value | Linear, **params: object):
        return _reversed(prim, how, cts, args, params)


def _divided(prim: Primitive, how: Rowwise, split: Split, args: Any, params: dict) -> list:
    kinds, outs = how.kinds(params)
    k = how.lead(params)
    lead, args = list(args[:k]), args[k:]
    unknown = divide(split, args)
    h = split_program(params["program"], unknown)
    m = len(h.known.outputs) - h.residuals
    place = {v: i for i, v in enumerate(h.known.inputs)}
    at = [place.get(v) for v in h.known.outputs[m:]]  # of a residual that is an operand
    known, known_kinds = part(args, unknown, False), part(kinds, unknown, False)
    once = _made_once(how, h.known, known_kinds, params)
    shared = [i is None and v in once for v, i in zip(h.known.outputs[m:], at)]
    own = [i is None and not s for s, i in zip(shared, at)]
    first = choose(h.known, (*(True,) * m, *own))
    fresh = [how.each(v.aval, params) for v, f in zip(h.known.outputs[m:], own) if f]
    got: list = []
    if first.outputs:
        results = (*part(outs, h.out_unknown, False), *fresh)
        new = how.made(params, first, tuple(known_kinds), results)
        got = prim.bind(*lead, *known, **new)
    for_all = iter(())
    if any(shared):  # the results of this program are the same for all rows
        for_all = iter(evaluate(_of_all(h.known, (*(False,) * m, *shared), once), known))
    values, new_kinds = iter(got[m:]), iter(fresh)
    residuals, kept = [], []
    for i, s in zip(at, shared, strict=True):
        if i is not None:
            residuals.append(known[i])
            kept.append(known_kinds[i])
        else:
            residuals.append(next(for_all if s else values))
            kept.append(how.shared if s else next(new_kinds))
    later: Sequence[Any] = []
    if h.unknown.outputs:
        results = tuple(part(outs, h.out_unknown))
        new = how.made(params, h.unknown, (*kept, *part(kinds, unknown)), results)
        later = split.stage.apply(prim, [*lead, *residuals, *part(args, unknown)], new)
    return merge(h.out_unknown, later, got[:m])


def _made_once(how: Rowwise, program: Program, kinds: Sequence[Any], params: dict) -> set:
    """Return the variables of a program that follow from shared operands alone."""
    once: set = {v for v, k in zip(program.inputs, kinds, strict=True) if k == how.shared}
    for e in program.eqns:
        given = [v for v in e.inputs if isinstance(v, Var)]
        pure = e.prim.higher is None and e.prim.ambient is None and not effects_of(e.prim, e.params)
        if given and pure and once.issuperset(given) and how.apart(e, params):
            once.update(e.outputs)
    return once


def _of_all(program: Program, keep: tuple[bool, ...], once: set) -> Program:
    """Return the program of results that are the same for all rows.

    It omits equations with effects: they run for each row, and must not run once more here.
    """
    outputs = part(program.outputs, keep)
    eqns = live_equations([e for e in program.eqns if not once.isdisjoint(e.outputs)], outputs)
    return Program(program.inputs, eqns, outputs, program.name, program.consts)


def _reversed(
    prim: Primitive, how: Rowwise, cts: list[Any], args: tuple[Any, ...], params: dict
) -> list:
    kinds, outs = how.kinds(params)
    k = how.lead(params)
    lead, args = args[:k], args[k:]
    linear, given = tuple(map(is_linear, args)), tuple([c is not None for c in cts])
    back, present = transpose_program(params["program"], linear, given)
    wanted = [q for q, there in zip(part(kinds, linear), present) if there]
    results = tuple([how.summed if q == how.shared else q for q in wanted])
    of_cts = [how.shared if q == how.summed else q for q in part(outs, given)]
    got: Any = iter(())
    if back.outputs:
        new = how.made(params, back, (*part(kinds, linear, False), *of_cts), results)
        got = iter(prim.bind(*lead, *part(args, linear, False), *part(cts, given), **new))
    there = iter(present)
    found = [(next(got) if next(there) else None) if f else None for f in linear]
    return [None] * k + found
