"""Lift an operation with programs, using only its wiring.

One algorithm serves calls, branches, loops, custom rules and operations of third parties.  It
solves the forms of all slots to a fixpoint, lifts the programs to these forms, coerces the operands
to them, and rebuilds the operation.

A custom rule is a program, too, between values in slots.  But it is staged only when it is first
needed, if ever, and often calls the very function it serves.  So forms follow from the operation's
programs.  A rule is lifted for its forms only where a result would stay plain: the derivative of a
constant may vary.

Invariant: forms are solved per slot.  A lifted program is kept on the program it came from.
Ambient values, which a transformation needs besides the operands, precede the inputs of every
program.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, cast

from .._base.errors import CarrierError, MissingRule
from .._base.lazy import later
from .._plugins.rules import RuleTable, variable
from .._types.avals import Aval
from .array import is_literal_zero
from .carrier_mistakes import check_lifted, check_parts, joined, unheld, unsettled
from .divided import with_axis, without_axis
from .higher_order import Ends, Part, Slots, Wiring
from .interpreter import Interpreter, Operation, Params, Value, current, use
from .ir import Program, Thunk, Var, derived, evaluate
from .staging import Stage, collector_paused, staged

Form = Any
"""The static shape of what a carrier adds to a value: hashable, and of a type that each carrier
chooses for itself; None for a plain value."""
Forms = tuple[Form, ...]


class _Forms(list[Form]):
    """The forms of all slots, and the slots that plain values reach."""

    def __init__(self, count: int):
        super().__init__([None] * count)
        self.plain: set[int] = set()


class Lifting(Protocol):
    """The part of a carrier that is used here; see `plait._core.carrier.Carrier`."""

    does: str
    of: Callable[..., Any] | None
    closed: bool
    ambient: tuple[Any, ...]
    parent: Interpreter | None
    rules: RuleTable

    @property
    def collects(self) -> bool: ...
    def key(self) -> Hashable: ...
    def under(self, parent: Interpreter | None, ambient: Sequence[Any] = ()) -> "Lifting": ...
    def hidden_by(self, axes: frozenset[Any]) -> "Lifting": ...
    def apply(self, prim: Any, args: Any, params: Params) -> Any: ...
    def form_of(self, x: Any) -> Form: ...
    def split(self, x: Any) -> tuple[Form, tuple[Any, ...]]: ...
    def to_form(self, x: Any, form: Form) -> tuple[Any, ...]: ...
    def collected(self, ct: Any, form: Form) -> tuple[Any, ...]: ...
    def spread(self, aval: Aval, parts: tuple[Any, ...], g: Form) -> tuple[Any, ...]: ...
    def lift(self, aval: Aval, form: Form, parts: tuple[Any, ...]) -> Any: ...
    def parts_of(self, aval: Aval, form: Form) -> tuple[Part, ...]: ...
    def join(self, aval: Aval, f: Form, g: Form) -> Form: ...
    def entering(self, aval: Aval, form: Form) -> Form: ...
    def least(self, aval: Aval) -> Form: ...
    def widen(self, aval: Aval, f: Form, g: Form) -> Form: ...
    def whole(self, aval: Aval) -> Form: ...
    def grow(self, form: Form, axis: int, aval: Aval) -> Form: ...
    def drop(self, form: Form, axis: int, aval: Aval) -> Form: ...
    def cut(self, form: Form, axis: int, aval: Aval) -> Form: ...


def rewired(
    carrier: Lifting, prim: Operation, args: Sequence[Value], params: Params
) -> list[Value]:
    """Return the lifted results of the operation; to be called under the carrier's parent."""
    return rebuilt(carrier, prim, args, params, solve(carrier, prim, args, params))


# ---- forms ---------------------------------------------------------------------------------


def solve(carrier: Lifting, prim: Operation, args: Sequence[Value], params: Params) -> list[Form]:
    """Return the least forms of all slots, as the programs see them.

    The forms of operands are given.  Those of results are found by lifting the programs, whose
    inputs may be their own outputs (a carry): hence rounds until nothing changes.  Every slot only
    ever moves up, by `join`, so the rounds end wherever the forms of a type have finite height.
    """
    higher = _wiring(prim)
    w = higher.slots(params)
    results = prim.infer(tuple([a.aval for a in args]), params)
    inside = _inside(w, args, results)
    forms = _Forms(w.count)
    for s, x in zip(w.operands, args, strict=True):
        check_lifted(carrier, x, x.aval)
        f = _within(carrier, w, s, carrier.form_of(x), inside[s], x.aval)
        _meet(carrier, forms, s, inside[s], f)
    for _, ins, _ in w.bodies:  # inputs of programs that are not operands (an unknown)
        for s in ins:
            if forms[s] is None:
                forms[s] = carrier.least(inside[s])
    reverse = not carrier.collects and any(ends.reverse for ends in w.rules)
    if w.whole or reverse:
        # Each slot has a form of its own: "mapped along axis 2", say, means nothing to an operand
        # of rank 1.
        if any(f is not None for f in forms):
            # A cotangent of a value that has less than the whole form could not be collected.
            return [
                carrier.whole(inside[s]) if f is None or reverse else f for s, f in enumerate(forms)
            ]
        return forms
    inner = carrier.hidden_by(higher.binds(params))
    _settle(carrier, inner, prim, w, inside, forms)
    while w.rules and _asked_of_rules(inner, w, inside, forms):
        _settle(carrier, inner, prim, w, inside, forms)
    for s, whole in zip(w.outputs, results, strict=True):
        if s in w.cut and forms[s] is not None:  # a form that pieces of one whole can have
            around = _around(carrier, w, s, forms[s], inside[s], whole)
            forms[s] = _within(carrier, w, s, around, inside[s], whole)
    return forms


def _settle(
    carrier: Lifting,
    inner: Lifting,
    prim: Operation,
    w: Slots,
    inside: dict[int, Aval],
    forms: _Forms,
) -> None:
    """Raise the forms by those of the programs' outputs, until none changes."""
    rounds = 0
    # Forms that a few joins settle stay exact.  A form that still grows after four rounds (the
    # capacity of a sparse carry under `c + x`) may grow for ever, and is widened from then on. The
    # bound on rounds turns a hang into an error for carriers whose `join` and `widen` do not end.
    while _round(inner, w, inside, forms, widen=rounds > 3):
        rounds += 1
        if rounds > 8 + 4 * w.count:
            raise unsettled(carrier, prim, forms)


def _wiring(prim: Operation) -> Wiring:
    assert prim.higher is not None, f"{prim.name} has no programs"
    return prim.higher


def _inside(w: Slots, args: Sequence[Value], results: Sequence[Aval]) -> dict[int, Aval]:
    """Return the type that programs see at each slot.

    The types inside programs replace those of operands and results, which may have additional axes
    (`mapped`).
    """
    inside = {s: x.aval for s, x in zip(w.operands, args, strict=True)}
    inside.update(zip(w.outputs, results, strict=True))
    for program, ins, outs in w.bodies:
        inside.update(zip(ins, program.in_avals, strict=True))
        inside.update(zip(outs, program.out_avals, strict=True))
    return inside


def _meet(
    carrier: Lifting, forms: _Forms, s: int, aval: Aval, f: Form, widen: bool = False
) -> bool:
    """Raise the form of slot `s` so that it takes `f` too; return whether it changed.

    None, a plain value, is below all forms unless the carrier has a `least` form for it, which is
    then joined with the others.  A join is never lower than the form before, so a result of a later
    round cannot undo an earlier one.
    """
    if f is None:
        forms.plain.add(s)
    if s in forms.plain and (forms[s] is not None or f is not None):
        least = carrier.least(aval)
        if least is not None:
            f = least if f is None or f == least else joined(carrier, aval, least, f)
    if f is None or f == forms[s]:
        return False
    new = f if forms[s] is None else joined(carrier, aval, forms[s], f)
    if new == forms[s]:
        return False
    forms[s] = carrier.widen(aval, forms[s], new) if widen and forms[s] is not None else new
    return True


def _round(carrier: Lifting, w: Slots, inside: dict[int, Aval], forms: _Forms, widen: bool) -> bool:
    """Lift every program with its inputs in the current forms, and raise the forms of its outputs;
    return whether a form changed."""
    changed = False
    entering = {s for _, ins, _ in w.bodies for s in ins}
    for program, ins, outs in w.bodies:
        given = tuple([forms[s] for s in ins])
        got = lift_program(carrier, program, given)[1]
        for s, f in zip(outs, got, strict=True):
            if f is not None and (s in entering or s in w.mapped):
                f = carrier.entering(inside[s], f)
            changed |= _meet(carrier, forms, s, inside[s], f, widen)
    return changed


# ---- the forms that custom rules require -----------------------------------------------------

_asking: ContextVar[bool] = ContextVar("asking custom rules for forms", default=False)


def _asked_of_rules(carrier: Lifting, w: Slots, inside: dict[int, Aval], forms: _Forms) -> bool:
    """Raise the forms of results that are plain although operands are lifted; return whether a form
    changed."""
    plain = [s for s in w.outputs if forms[s] is None]
    if not plain or all(forms[s] is None for s in w.operands):
        return False
    given = _given_by_rules(carrier, w, forms, plain)
    changed = False
    for s, f in given.items():
        changed |= _meet(carrier, forms, s, inside[s], carrier.whole(inside[s]) if f is ... else f)
    return changed


def _given_by_rules(
    carrier: Lifting, w: Slots, forms: list[Form], plain: list[int]
) -> dict[int, Form]:
    """Return {slot: form} of results by the rules.

    An Ellipsis stands for the form of any value.  It is the answer if the rules cannot be lifted
    now.  They may depend on patterns of zeros, or fail, which matters only when they are used.  Or
    they are already being lifted for their forms, which would never end for a rule that calls its
    function.
    """
    anything = dict.fromkeys(plain, ...)
    thunks = all(ends.rule.__class__ is Thunk for ends in w.rules)
    if not w.bodies or not thunks or _asking.get():
        return anything
    token = _asking.set(True)
    try:
        return _forms_by_rules(carrier, w, forms, plain)
    except Exception:
        return anything
    finally:
        _asking.reset(token)


def _forms_by_rules(
    carrier: Lifting, w: Slots, forms: list[Form], plain: list[int]
) -> dict[int, Form]:
    found: dict[int, Form] = {}
    rest: Forms = ()
    for ends in w.rules:
        program = ends.rule.get()
        inputs = _with_rest(ends.inputs, len(program.inputs), rest)
        given = tuple([forms[x] if isinstance(x, int) else x[0] for x in inputs])
        got = lift_program(carrier, program, given)[1]
        outputs = _with_rest(ends.outputs, len(program.outputs), got)
        if not ends.reverse:
            rest = tuple([f for f, s in zip(got, outputs) if not isinstance(s, int)])
            pairs = [(s, f) for s, f in zip(outputs, got) if s in plain and f is not None]
            found.update(pairs)
            continue
        for k, s in enumerate(inputs):
            if s in ends.reverse and s in plain:
                # The rule's cotangents are taken one by one: together they are lifted if any is.
                change = ends.along(program, k)  # type: ignore[misc]
                dots = lift_program(carrier, change, (*given, given[k]))[1]
                if any(
                    f is not None or (forms[o] is not None and not is_literal_zero(a))  # type: ignore[index]
                    for f, o, a in zip(dots, outputs, change.outputs, strict=True)
                ):
                    found[s] = ...
    return found


def _with_rest(slots: Sequence[Any], count: int, rest: Sequence[Form]) -> list[int | tuple[Form]]:
    """Return the slots, with (form,) for each value that an Ellipsis stands for."""
    if ... not in slots:
        return list(slots)
    i = list(slots).index(...)
    n = count - len(slots) + 1
    return [*slots[:i], *((f,) for f in (*rest, *(None,) * n)[:n]), *slots[i + 1 :]]


# ---- the operation over lifted programs ----------------------------------------------------


def rebuilt(
    carrier: Lifting, prim: Operation, args: Sequence[Value], params: Params, forms: list[Form]
) -> list[Value]:
    """Apply the operation with all slots in `forms`; return its lifted results."""
    higher = _wiring(prim)
    w = higher.slots(params)
    for s in w.plain:
        if forms[s] is not None:
            raise MissingRule(
                f"{carrier.does}: the predicate of {prim} depends on a lifted value, and "
                f"{carrier.rules.name!r} has no rule for that",
                fix=f"add one:  @{carrier.rules.name}_rules.rule({variable(prim)})",
            )
    results = prim.infer(tuple([a.aval for a in args]), params)
    outer = _outside(carrier, w, forms, args, results)
    parts = _parts(carrier, w, args, results, forms, outer)
    stacks, pieces = _lack(w, parts, w.mapped), _lack(w, parts, w.cut)
    if stacks or pieces:
        carried = higher.carried(params)
        if carried is not None:
            with use(cast(Interpreter, carrier)):
                return list(carried(*args))
        if stacks:
            raise MissingRule(
                f"{carrier.does}: {prim} stacks results, and {type(carrier).__name__}.part_axes "
                "gives None for the axis of a component",
                fix=f"give the component that axis, or write a rule for {prim}",
            )
    programs: list[Any] = []
    # Inside an operation that binds an axis name, the carrier no longer owns that name.
    inner = carrier.hidden_by(higher.binds(params))
    for p, ins, outs in w.bodies:
        given, wanted = tuple([forms[s] for s in ins]), tuple([forms[s] for s in outs])
        programs.append(lift_program(inner, p, given, wanted)[0])
    rule: Any = None
    for ends in w.rules:
        rule = lift_rule(inner, ends, forms, rule)
        programs.append(rule)
    operands: list[Value] = []
    for s, x in zip(w.operands, args, strict=True):
        operands += _components(carrier, "coerce", carrier.to_form, x, outer[s])
    # Ambient values are operands of the new operation like any other; its programs take them first
    # (`lift_program`).  If they were captured instead, they would belong to one call only, and the
    # lifted program, which is kept, would be wrong in the next.
    ambient = list(carrier.ambient)
    old = params
    operands, params = higher.rebuild(params, programs, parts, operands, ambient)
    assert carrier.parent is not None
    values = higher.returned(old, parts, carrier.parent.apply(prim, operands, params))
    lifted: list[Value] = []
    k = 0
    for s, t in zip(w.outputs, results, strict=True):
        n = len(parts[s])
        lifted.append(carrier.lift(t, outer[s], tuple(values[k : k + n])))
        k += n
    return lifted


def _lack(w: Slots, parts: Sequence[Sequence[Part]], axes: Mapping[int, Sequence[int]]) -> bool:
    """Return whether a component of a result lacks one of these axes of its value."""
    return any(p.at[a] is None for s in w.outputs for a in axes.get(s, ()) for p in parts[s])


def _outside(
    carrier: Lifting, w: Slots, forms: list[Form], args: Sequence[Value], results: Sequence[Aval]
) -> list[Form]:
    """Return the form of each slot as seen from outside."""
    inside = _inside(w, args, results)
    outer = list(forms)
    for s, aval in [*zip(w.operands, [x.aval for x in args]), *zip(w.outputs, results)]:
        outer[s] = _around(carrier, w, s, forms[s], inside[s], aval)
    return outer


def _within(carrier: Lifting, w: Slots, s: int, f: Form, inside: Aval, outer: Aval) -> Form:
    """Return the form of slot `s` as programs see it, where it has form `f` outside."""
    if f is None or (s not in w.mapped and s not in w.cut):
        return f
    aval = outer
    for axis in sorted(w.mapped.get(s, ()), reverse=True):
        # from the last axis to the first, so that the remaining axis numbers stay valid
        aval = without_axis(aval, axis)
        f = carrier.drop(f, axis, aval)
    for axis in w.cut.get(s, ()):
        aval = _resized(aval, axis, inside.shape[axis])
        f = carrier.cut(f, axis, aval)
    return f


def _around(carrier: Lifting, w: Slots, s: int, f: Form, inside: Aval, outer: Aval) -> Form:
    """Return the form of slot `s` outside, where programs see it in form `f`."""
    if f is None or (s not in w.mapped and s not in w.cut):
        return f
    mapped = w.mapped.get(s, ())
    sizes = [n for axis, n in enumerate(outer.shape) if axis not in mapped]
    aval = inside
    for axis in w.cut.get(s, ()):
        aval = _resized(aval, axis, sizes[axis])
        f = carrier.cut(f, axis, aval)
    for axis in sorted(mapped):
        aval = with_axis(aval, axis, outer.shape[axis])
        f = carrier.grow(f, axis, aval)
    return f


def _resized(aval: Aval, axis: int, size: Any) -> Aval:
    return aval.with_shape((*aval.shape[:axis], size, *aval.shape[axis + 1 :]))


def _parts(
    carrier: Lifting,
    w: Slots,
    args: Sequence[Value],
    results: Sequence[Aval],
    forms: list[Form],
    outer: list[Form],
) -> list[tuple[Part, ...]]:
    """Return the components of each slot, as seen from outside where it has an outside."""
    parts: list[tuple[Part, ...]] = [()] * w.count
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


def _key(carrier: Lifting) -> Hashable:
    """Return the cache key of lifted programs: the carrier's key and the types of its ambient
    values."""
    return carrier.key(), tuple([v.aval for v in carrier.ambient])


def lift_program(
    carrier: Lifting,
    program: Program,
    forms: Forms,
    out_forms: Forms | None = None,
    cotangents: bool = False,
    of_rule: bool = False,
) -> tuple[Program, Forms]:
    """Return (the program on components, forms of its outputs).

    Without `out_forms`, or where they are an Ellipsis, the outputs keep the least forms that they
    come in.  With `cotangents` they are `collect`ed into `out_forms`.  The inputs are the carrier's
    ambient values, then the components of each input.  `of_rule`: whether it is a custom rule: its
    user, not the carrier's author, mends results that cannot be in the forms of its function.

    The new program is kept on the old one.  `solve` and `rebuilt` need it in turn, at every level
    of nested operations; without the cache that would be 2 ** depth liftings.
    """

    def make() -> tuple[Program, Forms]:
        # The stage has no parent: the new program depends on the carrier's key and the forms alone,
        # and must not capture a value of its first caller.
        stage = Stage(None, carrier.does, carrier.of)
        inner: Lifting | None = None
        try:
            with collector_paused():
                ambient = tuple([stage.input(v.aval) for v in carrier.ambient])
                inner = carrier.under(stage, ambient)
                args: list[Value] = [
                    _lifted_input(inner, stage, v, f)
                    for v, f in zip(program.inputs, forms, strict=True)
                ]
                stage.where = None  # lines come from the old program's equations from here on
                with use(cast(Interpreter, inner)):
                    outs = evaluate(program, args)
                got = tuple([inner.form_of(o) for o in outs])
                if out_forms is not None:
                    got = tuple([g if f is ... else f for f, g in zip(out_forms, got, strict=True)])
                for o, want in zip(outs, program.out_avals, strict=True):
                    check_lifted(inner, o, want)
                into = inner.collected if cotangents else inner.to_form
                by = "collect" if cotangents else "coerce"
                with use(stage):  # coercions are by primitives, which the stage must record
                    parts: list[Value] = []
                    for o, f in zip(outs, got, strict=True):
                        try:
                            parts += _components(inner, by, into, o, f)
                        except CarrierError as e:
                            if not of_rule:
                                raise
                            raise unheld(inner, program.name, o.aval, inner.form_of(o), f) from e
                made, _ = stage.close(parts, program.name, prune=True)
                return made, got
        finally:  # also if a rule fails: the values that it kept must not be used any more
            stage.abandon()
            if inner is not None:
                inner.closed = True

    return derived(program, (_key(carrier), forms, out_forms, cotangents), make)


def _components(
    carrier: Lifting, method: str, into: Callable[..., Any], x: Value, form: Form
) -> Sequence[Value]:
    """Return the components of `x` in `form`, by a method whose result is checked."""
    made = into(x, form)
    if made is not carrier.split(x)[1]:
        check_parts(carrier, method, x.aval, form, made)
    return made


def _lifted_input(carrier: Lifting, stage: Stage, v: Var, form: Form) -> Value:
    """Return the inputs of the new program for input `v` of the old one, as a lifted value."""
    stage.where = v.where
    if form is None:
        return stage.input(v.aval)
    parts = tuple([stage.input(p.aval) for p in carrier.parts_of(v.aval, form)])
    return carrier.lift(v.aval, form, parts)


def lift_rule(carrier: Lifting, ends: Ends, forms: list[Form], before: Any = None) -> Any:
    """Return a custom rule on components.

    Like the rule itself it is a Thunk.  Staging a rule may stage the function that it serves, whose
    rule would then be lifted, and so on for ever.  The rule holds it by its key, since there is no
    program yet that could.

    Args:
      before: the lifted rule before it, whose residuals it takes.
    """
    if ends.rule.__class__ is not Thunk:
        return ends.rule.lift(carrier, ends, forms, before)
    given: Forms = tuple([s if s is ... else forms[s] for s in ends.inputs])
    wanted: Forms = tuple([s if s is ... else forms[s] for s in ends.outputs])
    key = _key(carrier), given, wanted, before if ... in given else None
    rule: Thunk = ends.rule
    hit = rule.lifted.get(key)
    if hit is None:
        # The thunk outlives this call and its carrier, which will be closed.  Lifting needs only
        # the carrier's key and the types of its ambient values: a copy without parent has these.
        hollow = carrier.under(None, carrier.ambient)

        def make() -> tuple[Program, Forms]:
            program = rule.get()
            ins, outs = given, wanted
            if ... in ins:
                before.get()  # settles the forms of its residuals
                ins = _filled(ins, before.rest)
            at = outs.index(...) if ... in outs else len(outs)
            rest = len(program.outputs) - len(outs) + 1 if ... in outs else 0
            outs = _filled(outs, (...,) * rest) if ... in outs else outs
            lifted, got = _lifted_rule(hollow, program, ends, ins, outs)
            types = [v.aval for v in hollow.ambient]
            own = [hollow.parts_of(a, f) for a, f in zip(program.in_avals, ins, strict=True)]
            made = [hollow.parts_of(a, f) for a, f in zip(program.out_avals, got, strict=True)]
            alone = later("_core.rule_components").with_derivatives_alone
            return alone(lifted, ends, types, own, made), got[at : at + rest]

        hit = rule.lifted[key] = Thunk(make)
    return hit


def _filled(forms: Forms, rest: Forms) -> Forms:
    """Return the forms with those of the residuals in place of the Ellipsis."""
    i = forms.index(...)
    return (*forms[:i], *rest, *forms[i + 1 :])


def _lifted_rule(
    carrier: Lifting, program: Program, ends: Ends, ins: Forms, outs: Forms
) -> tuple[Program, Forms]:
    """Return (the program of a rule on components, forms of its outputs).

    If some cotangents of a rule are lifted and others plain, the plain ones are spread.  Otherwise
    the sum of the rule's outputs over all parts (mapped examples, say) would count a plain one once
    for each part.
    """
    if not ends.reverse:
        return lift_program(carrier, program, ins, outs, of_rule=True)
    first = len(ins) - len([s for s in ends.inputs if s in ends.reverse])
    all_plain = all(f is None for f in ins[first:])
    late = [] if all_plain else [k for k in range(first, len(ins)) if ins[k] is None]
    avals = program.in_avals
    full = [carrier.whole(avals[k]) if k in late else f for k, f in enumerate(ins)]
    lifted, got = lift_program(carrier, program, tuple(full), outs, cotangents=True)
    if not late:
        return lifted, got

    def spread(*vs: Value) -> list[Value]:
        inner = carrier.under(current(), vs[: len(carrier.ambient)])
        given, parts = iter(vs[len(carrier.ambient) :]), list(vs[: len(carrier.ambient)])
        for k, (aval, f) in enumerate(zip(avals, ins, strict=True)):
            own = tuple([next(given) for _ in carrier.parts_of(aval, f)])
            parts += inner.spread(aval, own, full[k]) if k in late else own
        inner.closed = True
        return evaluate(lifted, parts)

    own = [p.aval for a, f in zip(avals, ins, strict=True) for p in carrier.parts_of(a, f)]
    return staged(spread, [*(v.aval for v in carrier.ambient), *own], program.name), got
