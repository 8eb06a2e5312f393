"""Taking an operation with programs to lifted values, by its wiring alone.

One algorithm serves calls, branches, loops, custom rules and a stranger's operation: forms are
solved for every slot to a fixpoint, the programs are lifted to these forms, the operands coerced,
and the operation rebuilt.

Invariant: forms are solved per slot; a lifted program is kept on the program it came from; what a
transformation needs besides the operands (its ambient values) goes in front of the inputs of
every program.
"""

from collections.abc import Sequence
from typing import Any

from .._base.errors import MissingRule, PlaitError
from .higher_order import Ends, Slots
from .interpreter import use
from .ir import Program, Thunk, derived, evaluate
from .staging import Stage, collector_paused

Form = Any
Forms = tuple[Form, ...]


def rewired(carrier: Any, prim: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Lifted results of the operation; to be called under the carrier's parent."""
    return rebuilt(carrier, prim, args, params, solve(carrier, prim, args, params))


# ---- forms ---------------------------------------------------------------------------------


def solve(carrier: Any, prim: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Form]:
    """The least forms of all slots, as programs see them."""
    w: Slots = prim.higher.slots(params)
    inside = _inside(w, args, prim.infer(tuple([a.aval for a in args]), params))
    forms: list[Form] = [None] * w.count
    for s, x in zip(w.operands, args, strict=True):
        f = carrier.form_of(x)
        for axis in sorted(w.mapped.get(s, ()), reverse=True):
            f = carrier.drop(f, axis) if f is not None else None
        _meet(carrier, forms, s, inside[s], f)
    if w.rules:
        if any(f is not None for f in forms):
            forms = [carrier.whole(inside[s]) if f is None else f for s, f in enumerate(forms)]
        return forms
    rounds = 0
    inner = carrier.hidden_by(prim.higher.binds(params))
    while _round(inner, w, inside, forms, widen=rounds > 3):
        rounds += 1
        if rounds > 8 + 4 * w.count:
            raise _unsettled(carrier, prim, forms)
    return forms


def _inside(w: Slots, args: Sequence[Any], results: Sequence[Any]) -> dict[int, Any]:
    """The type that programs see at each slot."""
    inside = {s: x.aval for s, x in zip(w.operands, args, strict=True)}
    inside.update(zip(w.outputs, results, strict=True))
    for program, ins, outs in w.bodies:
        inside.update(zip(ins, program.in_avals, strict=True))
        inside.update(zip(outs, program.out_avals, strict=True))
    return inside


def _meet(carrier: Any, forms: list[Form], s: int, aval: Any, f: Form, widen: bool = False) -> bool:
    if f is None or f == forms[s]:
        return False
    new = f if forms[s] is None else carrier.join(aval, forms[s], f)
    if new == forms[s]:
        return False
    forms[s] = carrier.widen(aval, forms[s], new) if widen and forms[s] is not None else new
    return True


def _round(carrier: Any, w: Slots, inside: dict[int, Any], forms: list[Form], widen: bool) -> bool:
    """Let every program say what its outputs are; whether that changed anything."""
    changed = False
    for program, ins, outs in w.bodies:
        given = tuple([forms[s] for s in ins])
        got = lift_program(carrier, program, given)[1]
        for s, f in zip(outs, got, strict=True):
            changed |= _meet(carrier, forms, s, inside[s], f, widen)
    return changed


def _unsettled(carrier: Any, prim: Any, forms: list[Form]) -> PlaitError:
    return PlaitError(
        f"{type(carrier).__name__}: the forms of {prim} do not settle: "
        + ", ".join(f"slot {s}: {f!r}" for s, f in enumerate(forms) if f is not None),
        fix=f"{type(carrier).__name__}.join must have finite height, or `widen` must end it",
    )


# ---- the operation over lifted programs ----------------------------------------------------


def rebuilt(
    carrier: Any, prim: Any, args: Sequence[Any], params: dict[str, Any], forms: list[Form]
) -> list[Any]:
    """The same operation with all slots in `forms`; results are lifted values."""
    w: Slots = prim.higher.slots(params)
    for s in w.plain:
        if forms[s] is not None:
            raise MissingRule(
                f"{carrier.does}: the predicate of {prim} depends on a lifted value, and "
                f"{carrier.rules.name!r} has no rule for that",
                fix=f"add one:  @{carrier.rules.name}_rules.rule({prim.name.rpartition('.')[2]})",
            )
    outer = [_outside(carrier, f, w.mapped.get(s, ())) for s, f in enumerate(forms)]
    results = prim.infer(tuple([a.aval for a in args]), params)
    parts = _parts(carrier, w, args, results, forms, outer)
    programs: list[Any] = []
    inner = carrier.hidden_by(prim.higher.binds(params))
    for p, ins, outs in w.bodies:
        given, wanted = tuple([forms[s] for s in ins]), tuple([forms[s] for s in outs])
        programs.append(lift_program(inner, p, given, wanted)[0])
    programs += [lift_rule(inner, ends, forms) for ends in w.rules]
    operands: list[Any] = []
    for s, x in zip(w.operands, args, strict=True):
        operands += carrier.to_form(x, outer[s])
    ambient = list(carrier.ambient)
    operands, params = prim.higher.rebuild(params, programs, parts, operands, ambient)
    values = carrier.parent.apply(prim, operands, params)
    lifted: list[Any] = []
    k = 0
    for s, t in zip(w.outputs, results, strict=True):
        n = len(parts[s])
        lifted.append(carrier.lift(t, outer[s], tuple(values[k : k + n])))
        k += n
    return lifted


def _outside(carrier: Any, f: Form, axes: Sequence[int]) -> Form:
    for axis in sorted(axes):
        f = carrier.grow(f, axis) if f is not None else None
    return f


def _parts(
    carrier: Any,
    w: Slots,
    args: Sequence[Any],
    results: Sequence[Any],
    forms: list[Form],
    outer: list[Form],
) -> list[Any]:
    parts: list[Any] = [()] * w.count
    for program, ins, outs in w.bodies:
        ends = zip((*ins, *outs), (*program.in_avals, *program.out_avals), strict=True)
        for s, aval in ends:
            parts[s] = carrier.parts_of(aval, forms[s])
    for s, x in zip(w.operands, args, strict=True):
        parts[s] = carrier.parts_of(x.aval, outer[s])
    for s, aval in zip(w.outputs, results, strict=True):
        parts[s] = carrier.parts_of(aval, outer[s])
    return parts


# ---- programs ------------------------------------------------------------------------------


def _key(carrier: Any) -> Any:
    return carrier.key(), tuple([v.aval for v in carrier.ambient])


def lift_program(
    carrier: Any, program: Program, forms: Forms, out_forms: Forms | None = None
) -> tuple[Program, Forms]:
    """(the program on components, forms of its outputs).

    Without `out_forms` the outputs have the least forms they come in.  Inputs are the carrier's
    ambient values, then the components of each input.
    """

    def make() -> tuple[Program, Forms]:
        stage = Stage(None, carrier.does, carrier.of)
        inner: Any = None
        try:
            with collector_paused():
                ambient = tuple([stage.input(v.aval) for v in carrier.ambient])
                inner = carrier.under(stage, ambient)
                args = [
                    _lifted_input(inner, stage, v, f)
                    for v, f in zip(program.inputs, forms, strict=True)
                ]
                stage.where = None
                with use(inner):
                    outs = evaluate(program, args)
                got = tuple([inner.form_of(o) for o in outs])
                with use(stage):
                    wanted = zip(outs, out_forms or got, strict=True)
                    parts = [p for o, f in wanted for p in inner.to_form(o, f)]
                made, _ = stage.close(parts, program.name, prune=True)
                return made, out_forms or got
        finally:
            stage.abandon()
            if inner is not None:
                inner.closed = True

    return derived(program, (_key(carrier), forms, out_forms), make)


def _lifted_input(carrier: Any, stage: Stage, v: Any, form: Form) -> Any:
    """An input of the new program for input `v` of the old one."""
    stage.where = v.where
    if form is None:
        return stage.input(v.aval)
    parts = tuple([stage.input(p.aval) for p in carrier.parts_of(v.aval, form)])
    return carrier.lift(v.aval, form, parts)


def lift_rule(carrier: Any, ends: Ends, forms: list[Form]) -> Any:
    """A custom rule on components, made when it is asked for."""
    if ends.rule.__class__ is not Thunk:
        return ends.rule.lift(carrier, ends, forms)
    given = tuple([s if s is ... else forms[s] for s in ends.inputs])
    wanted = tuple([s if s is ... else forms[s] for s in ends.outputs])
    key = _key(carrier), given, wanted
    rule: Thunk = ends.rule
    hit = rule.lifted.get(key)
    if hit is None:
        hollow = carrier.under(None, carrier.ambient)

        def make() -> Program:
            p = rule.get()
            ins = _fill(hollow, given, p.in_avals)
            outs = _fill(hollow, wanted, p.out_avals)
            return lift_program(hollow, p, ins, outs)[0]

        hit = rule.lifted[key] = Thunk(make)
    return hit


def _fill(carrier: Any, forms: Forms, avals: list[Any]) -> Forms:
    """The Ellipsis spelled out: whole forms for as many as there are."""
    if ... not in forms:
        return forms
    i = forms.index(...)
    n = len(avals) - len(forms) + 1
    rest = tuple([carrier.whole(a) for a in avals[i : i + n]])
    return (*forms[:i], *rest, *forms[i + 1 :])
