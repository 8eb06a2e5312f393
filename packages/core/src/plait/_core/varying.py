"""The axes of a mesh along which the results of an operation vary.

In a program that several devices run, each on its pieces, types record along which axes of the mesh
a value may differ (`Aval.vma`).  A result varies along every axis that an operand varies along,
unless its primitive has another rule (`Primitive.vma`: a sum over devices is the same for all).

Operations with programs conform to their operands before they are recorded.  The reason is that a
transformation makes the programs of a loop separately.  The sum that a reversed loop carries begins
as a zero, the same on all devices, and ends as a sum of different values on each device.  A type
that still called it the same would mislead the next reverse pass.  So each slot varies along all
axes that one of its ends varies along.  Programs are staged again on such inputs, and operands that
vary less are made to vary.  If a predicate varies, so does everything inside: otherwise only some
of the devices would take part in a sum over devices.

Invariant: type rules see types that vary along no axis.  An operand that varies less than the
operation is used as if it varied as much.  Reverse mode undoes that by summing its cotangent over
the devices (`plait_autodiff.transpose`).  In a recorded operation with programs, all ends of a
slot, operands and results included, vary along the same axes: `check` verifies it by its `Slots`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .._types.avals import NOWHERE, Aval
from .higher_order import Part, Slots, Wiring, deciding
from .interpreter import Value, current
from .ir import Program, derived, evaluate
from .staging import Stage, staged

__all__ = [
    "Vma", "conformed", "of_programs", "of_result", "retyped", "union", "varying_inputs",
]  # fmt: skip

Vma = frozenset[str]


def union(avals: Sequence[Aval]) -> Vma:
    """Return the axes along which any of these vary."""
    found = NOWHERE
    for a in avals:
        if a.vma:
            found = found | a.vma if found else a.vma
    return found


def of_result(
    rule: Callable[..., Any],
    vma: Callable[[Vma, dict[str, Any]], Vma] | None,
    avals: tuple[Aval, ...],
    params: dict[str, Any],
) -> Any:
    """Return the types of the type rule, varying along the axes that follow from the operands'."""
    axes = union(avals)
    if vma is None and not axes:
        return rule(*avals, **params)
    out = rule(*[a.with_vma(NOWHERE) for a in avals], **params)
    return retyped(out, axes if vma is None else vma(axes, params))


def retyped(out: Aval | list[Any], axes: Vma) -> Any:
    """Return the type of a result, or the list of those of several, that varies along the axes."""
    if isinstance(out, tuple | list):
        return [t.with_vma(axes) for t in out]
    return out.with_vma(axes)


# ---- operations with programs --------------------------------------------------------------


def of_programs(
    higher: Wiring | None, avals: Sequence[Aval], params: dict[str, Any], outs: Aval | list[Aval]
) -> Any:
    """Return the types of the results of an operation with programs, or with an effect, varying as
    they do after the operation conforms to its operands."""
    if higher is None:
        axes = union(avals)
        return retyped(outs, axes) if axes else outs
    if not _concerned(avals, params):
        return outs
    w, bound = higher.slots(params), higher.binds(params)
    levels = _levels(w, avals, bound)
    many = isinstance(outs, tuple | list)
    given = outs if many else [outs]
    found = [t.with_vma(levels[s] - bound) for s, t in zip(w.outputs, given, strict=True)]
    return found if many else found[0]


def conformed(
    prim: Any, stage: Stage, args: Sequence[Any], params: dict[str, Any], outs: Sequence[Aval]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return (operands, parameters) of the operation after it conforms, for a stage to record;
    `outs` are the types of its results."""
    if not _concerned(args, params):
        return args, params
    avals = [a.aval for a in args]
    w, bound = prim.higher.slots(params), prim.higher.binds(params)
    levels = _levels(w, avals, bound)
    at = lambda slots: tuple([levels[s] for s in slots])  # noqa: E731
    programs = [_varying(p, at(ins), at(ends)) for p, ins, ends in w.bodies]
    wanted = [
        levels[s] - bound if s in w.seen else a.vma for s, a in zip(w.operands, avals, strict=True)
    ]
    if all(p is b[0] for p, b in zip(programs, w.bodies)) and all(
        a.vma == v for a, v in zip(avals, wanted)
    ):
        return args, params
    operands = [stage.varied(x, v) for x, v in zip(args, wanted)]
    parts: list[tuple[Part, ...]] = [()] * w.count
    for p, (_, ins, ends) in zip(programs, w.bodies):
        for s, a in zip((*ins, *ends), (*p.in_avals, *p.out_avals), strict=True):
            parts[s] = (_alone(a),)
    for s, x in zip((*w.operands, *w.outputs), (*operands, *outs), strict=True):
        parts[s] = (_alone(x.aval),)
    rules = [ends.rule for ends in w.rules]
    return prim.higher.rebuild(params, [*programs, *rules], parts, operands, [])


def _levels(w: Slots, avals: Sequence[Aval], bound: Vma) -> list[Vma]:
    """Return the axes along which the value in each slot varies inside programs, for operands of
    these types.

    Along axes that the operation binds, the operation itself determines which values vary
    (`Slots.within`), not the programs.
    """
    levels: list[Vma] = [NOWHERE] * w.count
    for s, a in zip(w.operands, avals, strict=True):
        levels[s] = levels[s] | a.vma | w.within.get(s, NOWHERE)
    for program, ins, ends in w.bodies:
        for s, v in zip(ins, program.inputs, strict=True):
            levels[s] |= v.aval.vma - bound
        for s, v in zip(ends, program.outputs, strict=True):
            levels[s] |= v.aval.vma
    for s, axes in w.declared.items():
        levels[s] |= axes
    # Results of a body may be inputs of its next turn, or of another body, so one pass is not
    # enough.  Levels only grow, and a mesh has few axes: the loop ends.
    before: list[Vma] = []
    while before != levels:
        before = list(levels)
        decides = deciding(w, levels)
        for s in (*w.seen, *w.outputs):
            levels[s] |= decides
        for program, ins, ends in w.bodies:
            got = _varying(program, tuple([levels[s] for s in ins]))
            for s, a in zip(ends, got.outputs, strict=True):
                levels[s] |= a.aval.vma
    return levels


def _concerned(args: Sequence[Any], params: dict[str, Any]) -> bool:
    """Return whether any operand (or operand type), or any end of a program, varies along an axis.

    It runs for every recorded operation with programs, so for speed it calls nothing.
    """
    for a in args:
        if a.aval.vma:
            return True
    for x in params.values():
        if x.__class__ is Program:
            x = (x,)
        elif x.__class__ is not tuple:
            continue
        for p in x:
            if p.__class__ is Program:
                for v in p.inputs:
                    if v.aval.vma:
                        return True
                for v in p.outputs:
                    if v.aval.vma:
                        return True
    return False


def _alone(aval: Aval) -> Part:
    return Part(aval, tuple(range(aval.ndim)))


def varying_inputs(program: Program, axes: Vma, which: Sequence[bool] | None = None) -> Program:
    """Return the program with its inputs, all or those in `which`, varying along these axes of a
    mesh too; types inside follow."""
    flags = [True] * len(program.inputs) if which is None else which
    pairs = zip(program.in_avals, flags, strict=True)
    return _varying(program, tuple([a.vma | axes if flag else a.vma for a, flag in pairs]))


def _varying(
    program: Program, ins: tuple[Vma, ...], ends: tuple[Vma, ...] | None = None
) -> Program:
    """Return the program with its inputs varying along these axes.

    Its outputs vary along the axes that follow, or along `ends`.  An input that is to vary less is
    made to vary inside.
    """
    if any(v.aval.vma != axes for v, axes in zip(program.inputs, ins, strict=True)):
        types = [a.with_vma(axes) for a, axes in zip(program.in_avals, ins)]
        given = program

        def run(*xs: Value) -> list[Any]:
            return evaluate(given, _raised(xs, [a.vma for a in given.in_avals]))

        program = derived(given, ("varying inputs", ins), lambda: staged(run, types, given.name))
    if ends is None or all(o.aval.vma == axes for o, axes in zip(program.outputs, ends)):
        return program

    give = lambda *xs: _raised(evaluate(program, xs), ends)  # noqa: E731
    return derived(
        program, ("varying outputs", ends), lambda: staged(give, program.in_avals, program.name)
    )


def _raised(xs: Sequence[Any], axes: Sequence[Vma]) -> list[Any]:
    """Return values of the stage that is current, each made to vary along these axes."""
    stage: Any = current()
    return [stage.varied(stage.atom(x), v) for x, v in zip(xs, axes, strict=True)]
