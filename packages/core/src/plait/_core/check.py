"""Checking Programs without running anything.

Invariant: types only; no array is read and nothing is executed.
"""

from typing import TYPE_CHECKING, Any

from .._base.errors import ProgramError
from .._base.source import user_line
from .._types.avals import NOWHERE, Aval
from .array import Literal
from .higher_order import Ends, deciding
from .ir import Eqn, Program, Thunk, Var, programs_in

if TYPE_CHECKING:
    from .interpreter import Value


def check(program: Program) -> Program:
    """Return the program itself if it and every sub-program is well formed and well typed.

    Types agree in shape, dtype, and the axes of a mesh along which values vary; weakness may
    differ.  A sub-program that passed is not checked again.

    Raises ProgramError, naming the equation and the line it was staged from.
    """
    known = {*program.inputs, *(v for v, _ in program.consts)}
    if len(known) != len(program.inputs) + len(program.consts):
        raise ProgramError(f"{program!r}: an input or constant is there twice")
    for v, x in program.consts:
        if not _same(v.aval, x.aval):
            raise ProgramError(f"{program!r}: constant {x.aval!r} stands for {v.aval!r}")
    for e in program.eqns:
        _equation(program, e, known)
        known.update(e.outputs)
    for a in program.outputs:
        _known(program, a, known, "the result")
    program.derivations["checked"] = True
    return program


def _same(a: Aval, b: Aval) -> bool:
    """Return whether shape, dtype, and the axes along which values vary are the same."""
    return a is b or (a.same_type(b) and a.vma == b.vma)


def _equation(program: Program, e: Eqn, known: set[Any]) -> None:
    said = f"{e.prim} at {user_line(e.where)}"
    for a in e.inputs:
        _known(program, a, known, said)
    for p in programs_in(e.params):
        if "checked" not in p.derivations:
            check(p)
    t = e.prim.infer(tuple([a.aval for a in e.inputs]), e.params)
    types = list(t) if e.prim.many else [t]
    outs = [o.aval for o in e.outputs]
    if len(types) != len(outs) or not all(map(_same, types, outs)):
        raise ProgramError(
            f"{program!r}: {said} was recorded as {outs} and its type rule says {types}"
        )
    if e.prim.higher is not None:
        _wired(f"{program!r}: {said}", e)


def _wired(said: str, e: Any) -> None:
    """Refuse an operation with programs if two ends of one slot have different types.

    Operands and results may have other shapes than programs see (rows, pieces).  The axes along
    which they vary differ only by those that the operation binds.
    """
    w, bound = e.prim.higher.slots(e.params), e.prim.higher.binds(e.params)
    inside: dict[int, Aval] = {}
    for p, ins, outs in w.bodies:
        for s, a in zip((*ins, *outs), (*p.in_avals, *p.out_avals), strict=True):
            if not _same(inside.setdefault(s, a), a):
                raise ProgramError(
                    f"{said}: slot {s} is {inside[s]!r} at one end and {a!r} at another"
                )
    levels = [inside[s].vma if s in inside else NOWHERE for s in range(w.count)]
    for s, a in zip(w.operands, [x.aval for x in e.inputs], strict=True):
        outside = a.vma | w.within.get(s, NOWHERE)
        if s not in w.seen:
            levels[s] = a.vma
        elif outside != levels[s]:
            raise ProgramError(f"{said}: operand {a!r} enters a program as {inside[s]!r}")
    decides = deciding(w, levels)
    low = [inside[s] for s in (*w.seen, *w.outputs) if s in inside and not decides <= inside[s].vma]
    if low:
        raise ProgramError(
            f"{said}: {low} is the same on all devices along {sorted(decides)}, and what decides "
            "is not"
        )

    for s, o in zip(w.outputs, e.outputs, strict=True):
        made = levels[s] if s in inside else w.declared.get(s, o.aval.vma)
        if o.aval.vma != made - bound:
            raise ProgramError(f"{said}: result {o.aval!r} is made along {sorted(made)}")
    types = dict(zip(w.operands, [x.aval for x in e.inputs]))
    types.update(zip(w.outputs, [o.aval for o in e.outputs]))
    for ends in w.rules:
        if ends.rule.__class__ is Thunk and ends.rule.made is not None:
            _ruled(said, ends, {**types, **inside})


def _ruled(said: str, ends: Ends, types: dict[int, Aval]) -> None:
    """Refuse a custom rule whose inputs or outputs have other types than their slots, or tangents
    of these.

    A rule that was staged for operands that vary along fewer axes is accepted: it is evaluated
    where it is used, and its types follow.  A cotangent may vary along axes that its value does
    not: it is then summed over the devices along them.
    """
    program = ends.rule.made
    for slots, avals in ((ends.inputs, program.in_avals), (ends.outputs, program.out_avals)):
        free = slots is ends.outputs and bool(ends.reverse)
        front = slots.index(...) if ... in slots else len(slots)
        back = len(slots) - front - 1
        pairs: list[Any] = [*zip(slots[:front], avals)]
        if back > 0:
            pairs += zip(slots[-back:], avals[-back:])
        for s, a in pairs:
            want = types[s]
            fits = a.same_type(want) or a.same_type(want.tangent_type)
            if not fits or not (free or a.vma <= want.vma):
                raise ProgramError(f"{said}: a rule has {a!r} where {want!r} is in slot {s}")


def _known(program: Program, a: "Value", known: set[Any], said: str) -> None:
    if a.__class__ is Var:
        if a not in known:
            raise ProgramError(f"{program!r}: {said} reads {a!r}, which nothing defines")
    elif a.__class__ is not Literal:
        raise ProgramError(f"{program!r}: {said} reads {a!r}, which is not an atom of a Program")
