"""Calls replaced by the equations of the called programs.

Invariant: every variable of the result is defined once.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .._core.interpreter import Value
from .._core.ir import Eqn, Program, Var, derived
from .._ops.control_flow import call
from .._ops.shape import convert_
from .pieces import equation, replaced, with_programs


def inline_calls(program: Program) -> Program:
    """Return the program with calls replaced by the equations of the called programs, here and in
    sub-programs; custom rules, loops and branches stay."""
    return derived(program, "inlined", lambda: _inlined(program))


def _inlined(program: Program) -> Program:
    env: dict[Any, Any] = {}
    eqns: list[Eqn] = []
    consts = {id(x): (v, x) for v, x in program.consts}
    changed = False
    for e in program.eqns:
        ins = replaced(e.inputs, env) if env else e.inputs
        if e.prim is call:
            results = copied(inline_calls(e.params["program"]), ins, eqns, consts)
            env.update(zip(e.outputs, map(typed(eqns, e.where), results, e.outputs)))
            changed = True
        else:
            params = e.params
            if e.prim.higher is not None:
                params = with_programs(params, inline_calls)
            changed = changed or params is not e.params
            eqns.append(equation(e, ins, params))
    if not changed:
        return program
    outputs = replaced(program.outputs, env)
    return Program(program.inputs, eqns, outputs, program.name, consts.values())


def copied(
    p: Program, args: Sequence[Any], eqns: list[Eqn], consts: dict[int, tuple[Var, Any]]
) -> list[Any]:
    """Append copies of the equations of `p`; return its outputs in terms of the copies."""
    env: dict[Any, Any] = dict(zip(p.inputs, args, strict=True))
    for v, x in p.consts:
        env[v] = consts.setdefault(id(x), (_again(v), x))[0]
    for e in p.eqns:
        outputs = [_again(v) for v in e.outputs]
        env.update(zip(e.outputs, outputs))
        outs: Any = outputs if e.prim.many else tuple(outputs)
        eqns.append(Eqn(e.prim, replaced(e.inputs, env), outs, e.params, e.where))
    return replaced(p.outputs, env)


def _again(v: Var) -> Var:
    new = Var()
    new.by, new.aval, new.where = v.by, v.aval, v.where
    return new


def typed(eqns: list[Eqn], where: object) -> Callable[[Any, Var], Any]:
    """Return a function that converts results to the types of the variables they replace: a program
    may be called with weaker types than its own."""

    def typed(a: Value, v: Var) -> Any:
        if a.aval is v.aval:
            return a
        new, params = _again(v), {"dtype": v.aval.dtype, "weak": v.aval.weak_type}
        eqns.append(Eqn(convert_, [a], (new,), params, where))
        return new

    return typed
