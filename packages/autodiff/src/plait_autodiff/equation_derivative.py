"""The derivative of one equation: its residuals, and its linear program.

Invariant: the derivative needs as few values as its rule allows, and results rather than operands
where the rule uses results.
"""

import functools
from typing import Any, NamedTuple

from plait.ext.ir import Eqn, Primitive, Program, Var, freeze_params
from plait.ext.trace import as_list, staged

from .forward import DUAL, JVP
from .split import choose, part, split_program

__all__ = ["EquationDerivative", "differential"]

Mask = tuple[bool, ...]


class EquationDerivative(NamedTuple):
    """The derivative of one equation.

    needs: which operands it needs; `known` maps these to residuals.
    results: for each residual, the number of the result that it equals, or None if `known` gives
    it.
    varies: which results have a derivative.
    linear: residuals, tangents of active operands -> tangents of results that vary.
    """

    needs: tuple[bool, ...]
    results: tuple[int | None, ...]
    varies: tuple[bool, ...]
    known: Program
    linear: Program


def differential(e: Eqn, active: Mask) -> EquationDerivative:
    """Return the derivative of one equation with respect to its active operands."""
    avals = tuple([a.aval for a in e.inputs])
    if e.prim.higher is not None:
        return _derivative(e.prim, e.params, avals, active)
    d = _remembered(e.prim, _Params(e.params), avals, active)
    return d._replace(known=_written_at(d.known, e.where), linear=_written_at(d.linear, e.where))


def _written_at(program: Program, where: object) -> Program:
    """Return the program with all equations attributed to one source line."""
    eqns = [Eqn(e.prim, e.inputs, e.outputs, e.params, where) for e in program.eqns]
    return Program(program.inputs, eqns, program.outputs, program.name, program.consts)


class _Params:
    """Hashable parameters of an operation."""

    __slots__ = ("params", "key")

    def __init__(self, params: dict):
        self.params, self.key = params, freeze_params(params)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: Any) -> bool:
        return self.key == other.key


@functools.lru_cache(maxsize=1024)
def _remembered(
    prim: Primitive, params: _Params, avals: tuple, active: tuple[bool, ...]
) -> EquationDerivative:
    return _derivative(prim, params.params, avals, active)


def _derivative(
    prim: Primitive, params: dict, avals: tuple, active: tuple[bool, ...]
) -> EquationDerivative:
    one = staged(lambda *xs: as_list(prim.bind(*xs, **params)), avals)
    forms = tuple([DUAL if a else None for a in active])
    both, varies = JVP(None).lift_program(one, forms)
    dots = tuple([flag for f in varies for flag in ((False, True) if f else (False,))])
    unknown = tuple([flag for a in active for flag in ((False, True) if a else (False,))])
    h = split_program(both, unknown, dots)
    m = len(one.outputs)
    position = {v: i for i, v in enumerate(h.known.outputs[:m]) if v.__class__ is Var}
    results = tuple([position.get(a) for a in h.known.outputs[m:]])
    known = choose(h.known, (*(False,) * m, *(i is None for i in results)))
    atoms = [*known.outputs, *(a for q in known.eqns for a in q.inputs)]
    used = {a for a in atoms if a.__class__ is Var}
    needs = tuple([v in used for v in known.inputs])
    first, moves = known.with_inputs(part(known.inputs, needs)), tuple([f is DUAL for f in varies])
    return EquationDerivative(needs, results, moves, first, h.unknown)
