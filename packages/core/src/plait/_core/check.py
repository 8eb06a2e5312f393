"""Checking Programs without running anything.

Invariant: types only; no array is read and nothing is executed.
"""

from typing import Any

from .._base.errors import ProgramError
from .._base.source import user_line
from .array import Literal
from .ir import Program, Var, programs_in


def check(program: Program) -> Program:
    """Return the program itself if it and every sub-program is well formed and well typed.

    Raises ProgramError, naming the equation and the line it was staged from.
    """
    known = {*program.inputs, *(v for v, _ in program.consts)}
    if len(known) != len(program.inputs) + len(program.consts):
        raise ProgramError(f"{program!r}: an input or constant is there twice")
    for v, x in program.consts:
        if not v.aval.same_type(x.aval):
            raise ProgramError(f"{program!r}: constant {x.aval!r} stands for {v.aval!r}")
    for e in program.eqns:
        _equation(program, e, known)
        known.update(e.outputs)
    for a in program.outputs:
        _known(program, a, known, "the result")
    return program


def _equation(program: Program, e: Any, known: set[Any]) -> None:
    said = f"{e.prim} at {user_line(e.where)}"
    for a in e.inputs:
        _known(program, a, known, said)
    for p in programs_in(e.params):
        check(p)
    t = e.prim.infer(tuple([a.aval for a in e.inputs]), e.params)
    types = list(t) if e.prim.many else [t]
    outs = [o.aval for o in e.outputs]
    if len(types) != len(outs) or not all(a.same_type(b) for a, b in zip(types, outs)):
        raise ProgramError(
            f"{program!r}: {said} was recorded as {outs} and its type rule says {types}"
        )


def _known(program: Program, a: Any, known: set[Any], said: str) -> None:
    if a.__class__ is Var:
        if a not in known:
            raise ProgramError(f"{program!r}: {said} reads {a!r}, which nothing defines")
    elif a.__class__ is not Literal:
        raise ProgramError(f"{program!r}: {said} reads {a!r}, which is no atom of a Program")
