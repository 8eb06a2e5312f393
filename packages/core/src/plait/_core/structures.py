"""The structure of equations as a key: recordings of equal functions have equal keys.

Invariant: equations with equal keys do the same with operands of the same types, in the same order.
Arrays that programs hold are compared by identity.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._base.freezing import number_key
from .array import Literal
from .ir import Eqn, Program, Var, derived

if TYPE_CHECKING:
    from .primitive import Primitive


class Unkeyed(Exception):
    """Raised for values whose equality cannot be decided."""


def structure(
    eqns: Sequence[Eqn], variables: Sequence[Any], outputs: Sequence[Any]
) -> tuple[Any, ...] | None:
    """Return a key that exactly the equations of the same structure have; None if none can be made.

    `variables` are those that the equations begin with, in order.
    """
    try:
        key = _structure(eqns, {v: i for i, v in enumerate(variables)}, outputs)
        hash(key)
    except (Unkeyed, TypeError, KeyError):
        return None
    return key


def program_key(program: Program) -> tuple[Any, ...] | None:
    """Return a key that exactly the programs of the same types and structure have; None if none can
    be made."""
    try:
        key = _of_program(program)
        hash(key)
    except (Unkeyed, TypeError, KeyError):
        return None
    return key


def _structure(
    eqns: Sequence[Eqn], number: dict[Any, Any], outputs: Sequence[Any]
) -> tuple[Any, ...]:
    n = len(number)
    key: list[Any] = []
    for e in eqns:
        prim = e.prim
        key += prim, len(e.inputs)  # the length separates operands from results
        if e.params:
            key.append(parameters(prim, e.params))
        for a in e.inputs:
            key.append(number[a] if a.__class__ is Var else literal(a))
        for o in e.outputs:
            number[o] = n
            n += 1
    for a in outputs:
        key.append(number[a] if a.__class__ is Var else literal(a))
    return tuple(key)


def literal(x: Literal) -> tuple[Any, ...]:
    """Return a key of a literal."""
    return number_key(x.value), x.aval


def parameters(prim: "Primitive", params: dict[str, Any]) -> tuple[Any, ...]:
    """Return the parameters of an equation as a key, with the structure of their programs.

    Raises Unkeyed where they hold Python functions, as custom rules.
    """
    if prim.higher is None:
        return prim.frozen(params)
    plain: dict[str, Any] = {}
    key: list[Any] = []
    for name, x in params.items():
        if x.__class__ is Program:
            key.append((name, _of_program(x)))
        elif x.__class__ is tuple and any(p.__class__ is Program for p in x):
            key.append((name, *[_of_program(p) if p.__class__ is Program else p for p in x]))
        elif callable(x) and not isinstance(x, type):
            raise Unkeyed
        else:
            plain[name] = x
    return (*key, prim.frozen(plain))


def _of_program(program: Program) -> tuple[Any, ...]:
    """Return the structure of a program; constants are keyed by their ids, and the key holds
    them."""

    def make() -> tuple[Any, ...]:
        number: dict[Any, Any] = {v: i for i, v in enumerate(program.inputs)}
        for v, x in program.consts:
            number[v] = "constant", id(x)
        held = _Held([x for _, x in program.consts])
        types = tuple(program.in_avals)
        return types, held, _structure(program.eqns, number, program.outputs)

    return derived(program, "structure", make)


class _Held:
    """Objects that a key keeps alive, since it contains their ids; it equals every other one."""

    def __init__(self, objects: list[Any]):
        self.objects = objects

    def __eq__(self, other: object) -> bool:
        return other.__class__ is _Held

    def __hash__(self) -> int:
        return 0
