"""Smaller programs that do the same: dead code, common subexpressions, identities, inlining.

    simplify(program)        everything that is exact, here and in sub-programs
    dce(program, keep)       only what some of the outputs need
    inline_calls(program)    calls replaced by what they call

Invariant: a program computes the same bits before and after.  Types, names, inputs, the order of
effects, and how often each of them happens stay; an identity that IEEE arithmetic lacks (x + 0.0
for x = -0.0, x * 0.0 for x = nan) is not used.  What is made of a program is kept on it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .door import limits
from .ir import Eqn, Program, Var, derived, effects_of, fewer, programs_in
from .ops.elementwise import (
    add,
    and_,
    conj,
    div,
    integer_pow,
    maximum,
    minimum,
    mul,
    neg,
    not_,
    or_,
    select,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    stop,
    sub,
    xor,
)
from .ops.higher import call
from .ops.shape import (
    barrier,
    broadcast_in_dim,
    concatenate_,
    convert_,
    pad_,
    reshape_,
    rev,
    slice_,
    squeeze_,
    transpose_,
)
from .primitive import Primitive
from .rules import RuleTable
from .traits import Structural
from .types import BOOLEAN, COMPLEX, FLOATING, INTEGER, Aval
from .values import Literal
from .wiring import Part, Slots

__all__ = ["Instead", "dce", "inline_calls", "simplify", "simplify_rules"]

simplify_rules = RuleTable(
    "simplify",
    owns=("core",),
    doc="rule(ins, params, out, made) -> an atom that is the result, bit for bit; or Instead, the "
    "same primitive said otherwise; or None.  `out` is the type of the result, `made` maps "
    "variables to the equations that define them.",
)
rule = simplify_rules.rule
Made = dict[Any, Eqn]


class Instead(NamedTuple):
    """The same primitive on other operands, with other parameters, that gives the same result."""

    inputs: list[Any]
    params: dict[str, Any]


# ---- everything ----------------------------------------------------------------------------


def simplify(program: Program) -> Program:
    """The program without what is dead, done twice or has no effect; itself if there is nothing.

    Inputs stay, also those that nothing reads; so do types, names and effects.  Sub-programs are
    simplified too, and lose the inputs and outputs that nobody needs.

    >>> import weft as wf
    >>> from weft.simplify import simplify
    >>> p = wf.make_program(lambda x: (wf.lax.sin(x) * 1 + wf.lax.sin(x), x / 2)[0])(1.0)
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
    outputs = _replaced(program.outputs, env) if env else program.outputs
    eqns, live = _swept(eqns, outputs)
    before = program.eqns
    if not env and len(eqns) == len(before) and all(a is b for a, b in zip(eqns, before)):
        return program
    made = _program(program, program.inputs, eqns, outputs, live)
    made.derivations[_SIMPLE] = made  # nothing is left to do
    return made


def _program(
    old: Program, inputs: Iterable[Var], eqns: list[Eqn], outputs: list[Any], live: set[Any]
) -> Program:
    return Program(inputs, eqns, outputs, old.name, [c for c in old.consts if c[0] in live])


def _replaced(atoms: Sequence[Any], env: dict[Any, Any]) -> list[Any]:
    return [env.get(a, a) if a.__class__ is Var else a for a in atoms]


def _rewritten(eqns: Sequence[Eqn], env: dict[Any, Any]) -> list[Eqn]:
    """The equations from first to last, after identities and without repetitions; `env` gets the
    variables that are no more, and what they are now."""
    find = simplify_rules.find
    rules: dict[Primitive, Any] = {}
    seen: dict[Any, Any] = {}
    made: Made = {}
    out: list[Eqn] = []
    for e in eqns:
        prim, ins, params = e.prim, e.inputs, e.params
        for a in ins:
            if a.__class__ is Var and a in env:
                ins = _replaced(ins, env)
                break
        try:
            shorten = rules[prim]
        except KeyError:
            shorten = rules[prim] = _apart if _is_apart(prim) else None if prim.many else find(prim)
        if shorten is not None:
            if shorten is _apart:
                params = _inner(params)
                if prim is barrier or effects_of(prim, params):
                    out.append(_equation(e, ins, params))
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
            key.append(id(a) if a.__class__ is Var else _literal(a))
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
    """Whether equations may hold programs, act on the world, or stand where they must."""
    return prim.higher is not None or prim.effect is not None or prim is barrier


def _apart(*_: Any) -> None:
    """Stands for the rule of those that are apart."""


def _equation(e: Eqn, ins: Sequence[Any], params: dict[str, Any]) -> Eqn:
    """`e` itself if it reads and says the same."""
    if ins is e.inputs and params is e.params:
        return e
    return Eqn(e.prim, ins, e.outputs, params, e.where)


def _literal(a: Literal) -> Any:
    """A key of a literal; values that Python takes for equal may differ (0.0 and -0.0)."""
    v = a.value
    return v.__class__, v if v and v == v and v.__class__ is not complex else repr(v), a.aval


def _inner(params: dict[str, Any], change: Callable[[Program], Program] = simplify) -> dict:
    """Parameters with their programs changed; the same object if nothing is."""
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


# ---- dead code -----------------------------------------------------------------------------


def dce(program: Program, keep: Sequence[bool] | None = None) -> tuple[Program, tuple[bool, ...]]:
    """What some outputs need, and no more: (the program, which inputs are left).

    Args:
      keep: for each output whether it is wanted; by default all are.

    Equations that act on the world stay.  Sub-programs lose what nobody needs: unused operands,
    unwanted results, and what loops carry along for nothing.
    """
    wanted = (True,) * len(program.outputs) if keep is None else tuple(map(bool, keep))
    return derived(program, ("dce", wanted), lambda: _needed(program, wanted))


def _needed(program: Program, wanted: tuple[bool, ...]) -> tuple[Program, tuple[bool, ...]]:
    outputs = [a for a, k in zip(program.outputs, wanted, strict=True) if k]
    eqns, live = _swept(program.eqns, outputs)
    used = tuple([v in live for v in program.inputs])
    if all(wanted) and all(used) and all(a is b for a, b in zip(eqns, program.eqns)):
        if len(eqns) == len(program.eqns):
            return program, used
    inputs = [v for v, u in zip(program.inputs, used) if u]
    return _program(program, inputs, eqns, outputs, live), used


def _swept(eqns: Sequence[Eqn], outputs: Iterable[Any]) -> tuple[list[Eqn], set[Any]]:
    """(the equations that matter to `outputs` or to the world, the variables that they read)."""
    live = {a for a in outputs if a.__class__ is Var}
    kept: list[Eqn] = []
    for e in reversed(eqns):
        for o in e.outputs:
            if o in live:
                break
        else:
            p = e.prim
            if (p.effect is None and p.higher is None) or not effects_of(p, e.params):
                continue
        if e.prim.higher is not None:
            e = _narrowed(fewer(e, live), live)
        kept.append(e)
        live.update([a for a in e.inputs if a.__class__ is Var])
    kept.reverse()
    return kept, live


def _narrowed(e: Eqn, live: set[Any]) -> Eqn:
    """An operation with programs without the slots that nobody needs.

    Which these are follows from the wiring: one that no wanted result depends on, through any
    program and any turn of a loop.  Operations with custom rules stay as they are, since a rule
    may need what the function itself does not.
    """
    higher = e.prim.higher
    if higher.pending(e.params):
        return e
    w: Slots = higher.slots(e.params)
    if w.rules:
        return e
    needed = _needed_slots(w, [o in live for o in e.outputs])
    if len(needed) == w.count:
        return e
    programs = [
        _narrow(p, [s in needed for s in ins], [s in needed for s in outs])
        for p, ins, outs in w.bodies
    ]
    avals = _outside(w, e)
    parts = [
        (Part(avals[s], tuple(range(avals[s].ndim))),) if s in needed else ()
        for s in range(w.count)
    ]
    operands = [a for s, a in zip(w.operands, e.inputs, strict=True) if s in needed]
    outputs = [v for s, v in zip(w.outputs, e.outputs, strict=True) if s in needed]
    operands, params = higher.rebuild(e.params, programs, parts, operands, [])
    return Eqn(e.prim, operands, outputs, params, e.where)


def _needed_slots(w: Slots, wanted: Sequence[bool]) -> set[int]:
    """Slots of wanted results, and all that these depend on.

    A slot at which the operation itself takes or gives something (a predicate, a counter) stays.
    """
    given, taken = set(w.operands), set(w.outputs)
    read = {s for _, ins, _ in w.bodies for s in ins}
    written = {s for _, _, outs in w.bodies for s in outs}
    needed = {*w.plain, *(given ^ read), *(taken ^ written)}
    needed.update([s for s, k in zip(w.outputs, wanted, strict=True) if k])
    before = -1
    while before != len(needed):
        before = len(needed)
        for p, ins, outs in w.bodies:
            used = dce(p, [s in needed for s in outs])[1]
            needed.update([s for s, u in zip(ins, used, strict=True) if u])
    return needed


def _narrow(p: Program, ins: Sequence[bool], outs: Sequence[bool]) -> Program:
    """The program with these inputs, some of which it may not read, and these outputs."""

    def make() -> Program:
        small, used = dce(p, outs)
        inputs = [v for v, k in zip(p.inputs, ins) if k]
        return small if tuple(ins) == used else small.with_inputs(inputs)

    return derived(p, ("narrow", tuple(ins), tuple(outs)), make)


def _outside(w: Slots, e: Eqn) -> dict[int, Aval]:
    """The type at each slot; for operands and results, as it is outside."""
    avals: dict[int, Aval] = {}
    for p, ins, outs in w.bodies:
        avals.update(zip((*ins, *outs), (*p.in_avals, *p.out_avals)))
    avals.update({s: a.aval for s, a in zip(w.operands, e.inputs)})
    avals.update({s: v.aval for s, v in zip(w.outputs, e.outputs)})
    return avals


# ---- inlining ------------------------------------------------------------------------------


def inline_calls(program: Program) -> Program:
    """The program with the equations of what it calls in place of the calls, here and in
    sub-programs; custom rules, loops and branches stay."""
    return derived(program, "inlined", lambda: _inlined(program))


def _inlined(program: Program) -> Program:
    env: dict[Any, Any] = {}
    eqns: list[Eqn] = []
    consts = {id(x): (v, x) for v, x in program.consts}
    changed = False
    for e in program.eqns:
        ins = _replaced(e.inputs, env) if env else e.inputs
        if e.prim is call:
            results = _copied(inline_calls(e.params["program"]), ins, eqns, consts)
            env.update(zip(e.outputs, map(_typed(e, eqns), results, e.outputs)))
            changed = True
        else:
            params = _inner(e.params, inline_calls) if e.prim.higher is not None else e.params
            changed = changed or params is not e.params
            eqns.append(_equation(e, ins, params))
    if not changed:
        return program
    outputs = _replaced(program.outputs, env)
    return Program(program.inputs, eqns, outputs, program.name, consts.values())


def _copied(
    p: Program, args: Sequence[Any], eqns: list[Eqn], consts: dict[int, tuple[Var, Any]]
) -> list[Any]:
    """Append copies of the equations of `p`; what its outputs are."""
    env: dict[Any, Any] = dict(zip(p.inputs, args, strict=True))
    for v, x in p.consts:
        env[v] = consts.setdefault(id(x), (_again(v), x))[0]
    for e in p.eqns:
        outputs = [_again(v) for v in e.outputs]
        env.update(zip(e.outputs, outputs))
        outs: Any = outputs if e.prim.many else tuple(outputs)
        eqns.append(Eqn(e.prim, _replaced(e.inputs, env), outs, e.params, e.where))
    return _replaced(p.outputs, env)


def _again(v: Var) -> Var:
    new = Var()
    new.by, new.aval, new.where = v.by, v.aval, v.where
    return new


def _typed(e: Eqn, eqns: list[Eqn]) -> Callable[[Any, Var], Any]:
    """Results as the call had them: a program may be called with weaker types than its own."""

    def typed(a: Any, v: Var) -> Any:
        if a.aval is v.aval:
            return a
        new, params = _again(v), {"dtype": v.aval.dtype, "weak": v.aval.weak_type}
        eqns.append(Eqn(convert_, [a], (new,), params, e.where))
        return new

    return typed


# ---- identities: arithmetic ----------------------------------------------------------------


def _is(a: Any, value: Any) -> bool:
    return a.__class__ is Literal and a.value == value


def _is_neutral(a: Any, negative: bool) -> bool:
    """A zero that adding (or, of the other sign, subtracting) it changes no number."""
    if a.__class__ is not Literal or a.value != 0:
        return False
    if a.aval.category != FLOATING:
        return a.aval.category != COMPLEX
    return (math.copysign(1, a.value) < 0) is negative


def _made_by(a: Any, prim: Primitive, made: Made) -> Eqn | None:
    """The equation that defines `a`, if it is of this primitive."""
    e = made.get(a) if a.__class__ is Var else None
    return e if e is not None and e.prim is prim else None


@rule(add)
def _(ins, params, out, made):
    x, y = ins
    return y if _is_neutral(x, True) else x if _is_neutral(y, True) else None


@rule(sub)
def _(ins, params, out, made):
    x, y = ins
    if x is y and out.category == INTEGER:
        return Literal(0, out)
    return x if _is_neutral(y, False) else None


@rule(mul)
def _(ins, params, out, made):
    if out.category == COMPLEX:  # (inf + 0i)(1 + 0i) has a nan
        return None
    for x, y in (ins, ins[::-1]):
        if _is(y, 1):
            return x
        if _is(y, 0) and out.category != FLOATING:
            return Literal(_zero(out), out)
    return None


def _zero(aval: Aval) -> Any:
    return False if aval.category == BOOLEAN else 0


@rule(div)
def _(ins, params, out, made):
    return ins[0] if _is(ins[1], 1) and out.category != COMPLEX else None


@rule(integer_pow)
def _(ins, params, out, made):
    n = params["exponent"]
    return ins[0] if n == 1 else Literal(1, out) if n == 0 else None


def _involution(prim: Primitive) -> None:
    @rule(prim)
    def _(ins, params, out, made):
        e = _made_by(ins[0], prim, made)
        return None if e is None else e.inputs[0]


for _prim in (neg, not_, conj):
    _involution(_prim)


@rule(maximum, minimum)
def _(ins, params, out, made):
    return ins[0] if ins[0] is ins[1] else None


def _logic(zero: Callable[[Any, Aval], Any], ones: Callable[[Any, Aval], Any]) -> Callable:
    """The rule of an operation that is idempotent, by what it does with all bits 0 or 1."""

    def logic(ins, params, out, made):
        if ins[0] is ins[1]:
            return ins[0]
        for x, y in (ins, ins[::-1]):
            if _is(y, 0):
                return zero(x, out)
            if y.__class__ is Literal and y.value == _ones(out):
                return ones(x, out)
        return None

    return logic


def _ones(aval: Aval) -> Any:
    if aval.category == BOOLEAN:
        return True
    low, high = map(int, limits(aval.dtype))
    return -1 if low < 0 else high


_same = lambda x, out: x  # noqa: E731
rule(and_)(_logic(lambda x, out: Literal(_zero(out), out), _same))
rule(or_)(_logic(_same, lambda x, out: Literal(_ones(out), out)))


@rule(xor)
def _(ins, params, out, made):
    x, y = ins
    if x is y:
        return Literal(_zero(out), out)
    return x if _is(y, 0) else y if _is(x, 0) else None


@rule(shift_left, shift_right_arithmetic, shift_right_logical)
def _(ins, params, out, made):
    return ins[0] if _is(ins[1], 0) else None


@rule(select)
def _(ins, params, out, made):
    p, x, y = ins
    if p.__class__ is Literal:
        return x if p.value else y
    return x if _equal(x, y) else None


def _equal(x: Any, y: Any) -> bool:
    if x is y:
        return True
    both = x.__class__ is Literal and y.__class__ is Literal
    return both and _literal(x) == _literal(y)


@rule(stop)
def _(ins, params, out, made):
    return ins[0] if ins[0].__class__ is Literal else None


# ---- identities: what moves elements -------------------------------------------------------


def _spread(ins: Sequence[Any], out: Aval) -> Literal | None:
    """A literal of type `out`, if all operands are one and the same scalar."""
    first: Any = ins[0] if ins else None
    if first.__class__ is not Literal or first.aval.dtype != out.dtype:
        return None
    if len(ins) > 1 and not all(_same_scalar(first, x) for x in ins[1:]):
        return None
    return Literal(first.value, out)


def _same_scalar(x: Any, y: Any) -> bool:
    return y.__class__ is Literal and _literal(x)[:2] == _literal(y)[:2]


@rule(Structural)
def _(prim, ins, params, out, made):
    return _spread(ins, out)


def _chain(prim: Primitive, whole: Callable[[Any, dict], bool], join: Callable | None) -> None:
    """The rule of a primitive that moves elements of its one operand: nothing is to be done if
    `whole`; after itself it is one of its kind with the parameters `join(first, second)`."""

    @rule(prim)
    def _(ins, params, out, made):
        (x,) = ins
        if x.__class__ is Literal:
            return _spread(ins, out)
        if whole(x.aval, params):
            return x
        e = _made_by(x, prim, made)
        if e is None or join is None:
            return None
        (x,), params = e.inputs, join(e.params, params)
        if x.aval is out and whole(x.aval, params):
            return x
        return Instead([x], params)


_chain(
    broadcast_in_dim,
    lambda x, p: p["shape"] == x.shape and p["dims"] == tuple(range(x.ndim)),
    lambda p, q: {**q, "dims": tuple([q["dims"][i] for i in p["dims"]])},
)
_chain(reshape_, lambda x, p: p["shape"] == x.shape, lambda p, q: q)
_chain(
    transpose_,
    lambda x, p: p["perm"] == tuple(range(x.ndim)),
    lambda p, q: {"perm": tuple([p["perm"][i] for i in q["perm"]])},
)
_chain(
    rev,
    lambda x, p: not p["axes"],
    lambda p, q: {"axes": tuple(sorted({*p["axes"]} ^ {*q["axes"]}))},
)
_chain(squeeze_, lambda x, p: not p["axes"], None)
_chain(
    slice_,
    lambda x, p: p["limits"] == x.shape and not any(_differ(p["starts"], 0))
    and not any(_differ(p["strides"], 1)),
    None,
)  # fmt: skip


def _differ(sizes: Sequence[Any], n: int) -> list[bool]:
    return [d != n for d in sizes]


@rule(pad_)
def _(ins, params, out, made):
    if ins[0].__class__ is Literal:
        return _spread(ins, out)
    around = (*params["low"], *params["high"], *params["interior"])
    return None if any(_differ(around, 0)) else ins[0]


@rule(concatenate_)
def _(ins, params, out, made):
    return ins[0] if len(ins) == 1 else _spread(ins, out)


# ---- identities: conversion ----------------------------------------------------------------


@rule(convert_)
def _(ins, params, out, made):
    (x,) = ins
    if x.aval is out:
        return x
    if x.__class__ is Literal:
        return _converted(x, out)
    e = _made_by(x, convert_, made)
    if e is not None and e.inputs[0].aval is out and _holds(x.aval, out):
        return e.inputs[0]
    return None


def _converted(x: Literal, out: Aval) -> Literal | None:
    """The literal in another dtype, where Python and the machine agree on what that is."""
    kinds = x.aval.category, out.category
    if COMPLEX in kinds or kinds == (FLOATING, INTEGER):
        return None
    with np.errstate(all="ignore"):
        cell = np.asarray(x.value).astype(x.aval.dtype).astype(out.dtype)
    if out.category == BOOLEAN:
        return Literal(bool(cell), out)
    return Literal(int(cell) if out.category == INTEGER else float(cell), out)


_WIDE = {"float64": 3, "float32": 2, "complex128": 2}


def _holds(wide: Aval, narrow: Aval) -> bool:
    """Whether every value of `narrow` becomes itself again after being a `wide`."""
    if narrow.category == BOOLEAN:
        return True
    if wide.category != narrow.category:
        return False
    if wide.category == INTEGER:
        (a, b), (c, d) = limits(wide.dtype), limits(narrow.dtype)
        return int(a) <= int(c) and int(d) <= int(b)
    return _WIDE.get(wide.dtype.name, 1) > _WIDE.get(narrow.dtype.name, 1)
