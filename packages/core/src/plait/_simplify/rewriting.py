"""Identities and common subexpressions, in one pass over the equations of a program.

Invariant: an identity is used only if it holds bit for bit.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._core.ir import Eqn, Program, Var, derived, effects_of, keep_itself, swept
from .._core.primitive import Primitive
from .._core.structures import literal
from .._ops.shape import barrier
from .._plugins.rules import RuleTable
from .deadcode import narrowed
from .pieces import equation, remade, replaced, with_programs

simplify_rules = RuleTable(
    "simplify",
    owns=("core",),
    signature="(ins, params, out, made)",
    doc="an atom that is the result, bit for bit; or Instead, the "
    "same primitive said otherwise; or None.  `out` is the type of the result, `made` maps "
    "variables to the equations that define them.",
)
rule = simplify_rules.rule
Made = dict[Any, Eqn]


class Instead(NamedTuple):
    """The same primitive on other operands, with other parameters, that gives the same result."""

    inputs: list[Any]
    params: dict[str, Any]


def simplify(program: Program) -> Program:
    """Return the program without dead, repeated and ineffective operations; itself if it has none.

    All inputs stay, even unused ones; so do types, names and effects.  Sub-programs are simplified
    too, and lose their unused inputs and outputs.

    >>> import plait
    >>> from plait._simplify import simplify
    >>> p = plait.make_program(lambda x: (plait.lax.sin(x) * 1 + plait.lax.sin(x), x / 2)[0])(1.0)
    >>> print(simplify(p))
    lambda(%0: f32[]*) {
      %1: f32[]* = core.sin(%0)
      %2: f32[]* = core.add(%1, %1)
      return %2
    }
    """
    return derived(program, _SIMPLE, lambda: _simplified(program))


_SIMPLE = "simplified"


def _simplified(program: Program) -> Program:
    env: dict[Any, Any] = {}
    eqns = _rewritten(program.eqns, env)
    outputs = replaced(program.outputs, env) if env else program.outputs
    eqns, live = swept(eqns, outputs, narrowed)
    before = program.eqns
    if not env and len(eqns) == len(before) and all(a is b for a, b in zip(eqns, before)):
        return program
    made = remade(program, program.inputs, eqns, outputs, live)
    keep_itself(made, _SIMPLE)  # simplifying twice changes nothing
    return made


def _rewritten(eqns: Sequence[Eqn], env: dict[Any, Any]) -> list[Eqn]:
    """Return the equations after identities and without repetitions.

    `env` gets the variables that were removed, with their replacements.
    """
    find = simplify_rules.find
    rules: dict[Primitive, Any] = {}
    seen: dict[Any, Any] = {}
    made: Made = {}
    out: list[Eqn] = []
    for e in eqns:
        prim, ins, params = e.prim, e.inputs, e.params
        for a in ins:
            if a.__class__ is Var and a in env:
                ins = replaced(ins, env)
                break
        try:
            shorten = rules[prim]
        except KeyError:
            shorten = rules[prim] = _apart if _is_apart(prim) else None if prim.many else find(prim)
        if shorten is not None:
            if shorten is _apart:
                params = with_programs(params, simplify)
                if prim is barrier or effects_of(prim, params):
                    out.append(equation(e, ins, params))
                    continue
            else:
                (v,) = e.outputs
                got = shorten(ins, params, v.aval, made)
                if got is not None:
                    if got.__class__ is Instead:
                        ins, params = got
                    elif got.aval is v.aval:
                        env[v] = got
                        continue
        key: Any = [prim]
        for a in ins:
            key.append(id(a) if a.__class__ is Var else literal(a))
        if params:
            key.append(prim.frozen(params))
        key = tuple(key)
        first = seen.get(key)
        if first is not None and all(v.aval is w.aval for v, w in zip(e.outputs, first.outputs)):
            env.update(zip(e.outputs, first.outputs))
            continue
        if ins is not e.inputs or params is not e.params:
            e = Eqn(prim, ins, e.outputs, params, e.where)
        out.append(e)
        seen[key] = e
        if shorten is not None and not prim.many:
            made[e.outputs[0]] = e
    return out


def _is_apart(prim: Primitive) -> bool:
    """Return whether equations may hold programs, have effects, or must stay in place."""
    return prim.higher is not None or prim.effect is not None or prim is barrier


def _apart(*_: object) -> None:
    """Mark primitives that `_is_apart` accepts in the table of rules; it is never called."""
