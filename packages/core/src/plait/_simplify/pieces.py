"""Programs and equations rebuilt from others.

Invariant: parts that did not change are the same objects.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .._core.ir import Eqn, Program, Var, programs_in


def remade(
    old: Program, inputs: Iterable[Var], eqns: list[Eqn], outputs: list[Any], live: set[Any]
) -> Program:
    return Program(inputs, eqns, outputs, old.name, [c for c in old.consts if c[0] in live])


def replaced(atoms: Sequence[Any], env: dict[Any, Any]) -> list[Any]:
    return [env.get(a, a) if a.__class__ is Var else a for a in atoms]


def equation(e: Eqn, ins: Sequence[Any], params: dict[str, Any]) -> Eqn:
    """Return an equation with these inputs and parameters; `e` itself if they are its own."""
    if ins is e.inputs and params is e.params:
        return e
    return Eqn(e.prim, ins, e.outputs, params, e.where)


def with_programs(params: dict[str, Any], change: Callable[[Program], Program]) -> dict:
    """Return parameters with their programs changed; the same object if no program changes."""
    programs = programs_in(params)
    if all(change(p) is p for p in programs):
        return params
    return {k: _changed(v, change) for k, v in params.items()}


def _changed(v: Any, change: Callable[[Program], Program]) -> Any:
    if v.__class__ is Program:
        return change(v)
    if v.__class__ is tuple:
        return tuple([change(p) if p.__class__ is Program else p for p in v])
    return v
