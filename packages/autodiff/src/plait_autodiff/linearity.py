"""Linearity analysis: find out whether a program is linear in some of its inputs.

Transposition rejects everything but polynomials of degree one.  It cannot see a constant term,
because that does not depend on the operands being transposed.

Invariant: programs are inspected, never run.  ZERO is below LINEAR and KNOWN, OTHER above both.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.ir import Eqn, Program, Var, derived
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.elementwise import div, mul, select
from plait.ext.ops.shape import barrier
from plait.ext.rules import Indexing, Linear, Structural, expand_rules
from plait.ext.trace import Value, as_list, staged
from plait.ext.values import is_literal_zero

from .transpose import transpose_rules

ZERO, KNOWN, LINEAR, OTHER = 0, 1, 2, 3
Kinds = tuple[int, ...]

_TERMS = (Linear, Structural, Indexing)
"""Traits of operations whose result is a sum with one term per inexact operand."""


def is_linear_in(program: Program, known: int) -> bool:
    """Return whether the results are linear in all inputs after the first `known`, together."""
    n = len(program.inputs) - known
    kinds = (*(KNOWN,) * known, *(LINEAR,) * n)
    return all(k in (ZERO, LINEAR) for k in kinds_of(program, kinds))


def kinds_of(program: Program, kinds: Kinds) -> Kinds:
    """Return the kinds of a program's outputs."""
    return derived(program, ("kinds", kinds), lambda: _kinds_of(program, kinds))


def _kinds_of(program: Program, kinds: Kinds) -> Kinds:
    env: dict[Any, int] = dict(zip(program.inputs, kinds, strict=True))
    env.update((v, KNOWN) for v, _ in program.consts)
    for e in program.eqns:
        env.update(zip(e.outputs, _result_kinds(e, [_kind(a, env) for a in e.inputs])))
    return tuple([_kind(a, env) for a in program.outputs])


def _kind(a: Value, env: dict) -> int:
    if a.__class__ is Var:
        return env[a]
    return ZERO if is_literal_zero(a) and a.aval.inexact else KNOWN


def join(a: int, b: int) -> int:
    """Return the least kind above both."""
    return max(a, b) if a == b or ZERO in (a, b) else OTHER


def _result_kinds(e: Eqn, kinds: Sequence[int]) -> Sequence[int]:
    outs = e.outputs
    if e.prim.higher is not None and any(k != KNOWN for k in kinds):
        return _through(e, kinds)
    if e.prim is barrier:
        return kinds
    exact = [k for k, a in zip(kinds, e.inputs) if not a.aval.inexact]
    if OTHER in kinds or LINEAR in exact:
        return (OTHER,) * len(outs)
    terms = [k for k, a in zip(kinds, e.inputs) if a.aval.inexact]
    if ZERO in terms and (e.prim in (mul, dot_general) or (e.prim is div and not terms[0])):
        return (ZERO,) * len(outs)
    adds = e.prim is select or any(t in e.prim.traits for t in _TERMS)
    if LINEAR not in terms:
        zero = adds and bool(terms) and not any(terms)
        return (ZERO if zero else KNOWN,) * len(outs)
    if e.prim in (mul, dot_general):
        kind = LINEAR if KNOWN in terms else OTHER
    elif e.prim is div:
        kind = LINEAR if terms[1] == KNOWN else OTHER
    elif adds:
        kind = OTHER if KNOWN in terms else LINEAR
    elif transpose_rules.find(e.prim) is None:
        return _said_otherwise(e, kinds)
    else:
        kind = LINEAR
    return [kind if v.aval.inexact else OTHER for v in outs]


def _said_otherwise(e: Eqn, kinds: Sequence[int]) -> Sequence[int]:
    say = expand_rules.find(e.prim)
    if say is None:
        return (OTHER,) * len(e.outputs)
    avals = [a.aval for a in e.inputs]
    return kinds_of(staged(lambda *xs: as_list(say(*xs, **e.params)), avals), tuple(kinds))


def _through(e: Eqn, kinds: Sequence[int]) -> Sequence[int]:
    """Return the kinds of the results of an operation with programs: iterate its wiring to a
    fixpoint."""
    w = e.prim.higher.slots(e.params)
    if not w.bodies:
        return (max(KNOWN, *kinds),) * len(e.outputs)
    slots = [ZERO] * w.count
    for s, k in zip(w.operands, kinds, strict=True):
        slots[s] = join(slots[s], k)
    before: list[int] = []
    while before != slots:
        before = list(slots)
        for program, ins, outs in w.bodies:
            got = kinds_of(program, tuple([slots[s] for s in ins]))
            for s, k in zip(outs, got, strict=True):
                slots[s] = join(slots[s], k)
    if any(slots[s] > KNOWN for s in w.plain):
        return (OTHER,) * len(e.outputs)
    return [slots[s] for s in w.outputs]
