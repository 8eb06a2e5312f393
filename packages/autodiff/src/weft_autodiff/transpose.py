"""Reversing a linear program: cotangents of outputs in, cotangents of inputs out.

Invariant: every equation of a linear program is linear in its linear operands together.  None is
the zero cotangent, and a cotangent has the type of what it belongs to: that is checked where it
is given.  Equations without linear operands are evaluated on the way.
"""

from collections.abc import Sequence
from typing import Any

from weft.carrier import expand_rules
from weft.errors import MissingRule, TypeRule
from weft.interpreter import as_list, current
from weft.ir import Eqn, Program, Var, derived
from weft.ops.elementwise import add
from weft.rules import RuleTable
from weft.staging import staged
from weft.types import Aval
from weft.values import Literal

transpose_rules = RuleTable(
    "transpose",
    doc="rule(ct, *args, **params) -> a cotangent or None per operand; linear operands are "
    "`Linear`.  `ct` is a list if the primitive has many results, with None for zeros.",
)


class Linear:
    """An operand of which only the type is known, and that the result is linear in it."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval):
        self.aval = aval

    def __repr__(self) -> str:
        return f"<linear {self.aval!r}>"


def is_linear(x: Any) -> bool:
    """Whether a rule's operand is one whose cotangent is wanted."""
    return x.__class__ is Linear


def solid_ct(ct: Any, aval: Aval) -> Any:
    """A cotangent as a value."""
    return Literal(0, aval) if ct is None else ct


def backward(program: Program, args: Sequence[Any], cts: Sequence[Any]) -> list:
    """Cotangents of the inputs, or None, from those of the outputs.

    `args` are known values, or Linear.
    """
    env: dict[Any, Any] = dict(zip(program.inputs, args, strict=True))
    env.update(program.consts)
    eqns = _evaluated(program, env)
    total: dict[Any, Any] = {}
    by = recorder()

    def give(a: Any, ct: Any, prim: Any) -> None:
        if ct is None or a.__class__ is not Var:
            return
        if ct.aval is not a.aval and not ct.aval.same_type(a.aval):
            raise TypeRule(
                f"a cotangent of type {ct.aval!r} was given for a value of type {a.aval!r}, by "
                f"{prim}",
                fix="a cotangent has the shape and dtype of the value it belongs to",
            )
        have = total.get(a)
        total[a] = ct if have is None else add.bind(have, ct)

    for a, ct in zip(program.outputs, cts, strict=True):
        give(a, ct, "the caller")
    find = transpose_rules.find
    for e in reversed(eqns):
        ct: Any
        if e.prim.many:
            ct = [total.pop(o, None) for o in e.outputs]
            if all(c is None for c in ct):
                continue
        else:
            ct = total.pop(e.outputs[0], None)
            if ct is None:
                continue
        if by is not None:
            by.where = e.where
        ins = [_operand(a, env) for a in e.inputs]
        rule = find(e.prim)
        try:
            got = _said_otherwise(e, ins, ct) if rule is None else rule(ct, *ins, **e.params)
            for a, x, c in zip(e.inputs, ins, got, strict=True):
                if x.__class__ is Linear:
                    give(a, c, e.prim)
        except (MissingRule, TypeRule) as error:
            raise error.about(e.where) from None
    if by is not None:
        by.where = None
    return [
        total.get(v) if a.__class__ is Linear else None for v, a in zip(program.inputs, args)
    ]


def recorder() -> Any:
    """The interpreter that wants to be told locations: a stage, whose equations shall have ours."""
    by = current()
    while by is not None and not hasattr(by, "where"):
        by = by.parent  # type: ignore[assignment]
    return by


def _operand(a: Any, env: dict) -> Any:
    if a.__class__ is not Var:
        return a
    return env[a] if a in env else Linear(a.aval)


def _evaluated(program: Program, env: dict) -> list[Eqn]:
    """The linear equations; the others are evaluated, and their results put into `env`."""
    linear = {v for v, x in env.items() if x.__class__ is Linear}
    eqns: list[Eqn] = []
    apply = current().apply
    for e in program.eqns:
        for a in e.inputs:
            if a in linear if a.__class__ is Var else False:
                linear.update(e.outputs)
                eqns.append(e)
                break
        else:
            ins = [env[a] if a.__class__ is Var else a for a in e.inputs]
            out = apply(e.prim, ins, e.params)
            if e.prim.many:
                env.update(zip(e.outputs, out, strict=True))
            else:
                env[e.outputs[0]] = out
    return eqns


def _said_otherwise(e: Eqn, ins: Sequence[Any], ct: Any) -> list:
    """Transpose what the operation's `expand` rule says."""
    say = expand_rules.find(e.prim)
    if say is None:
        raise transpose_rules.missing(e.prim, e.where)
    avals = [x.aval for x in ins]
    program = staged(lambda *xs: as_list(say(*xs, **e.params)), avals, e.prim.name, prune=True)
    return backward(program, list(ins), as_list(ct))


def transpose_program(
    program: Program, linear: tuple[bool, ...], given: tuple[bool, ...], full: bool = False
) -> tuple[Program, tuple[bool, ...]]:
    """(known inputs, given cotangents) -> cotangents of the linear inputs.

    Also which of these there are: all, if `full`; else those that are not zero.
    """

    def make() -> tuple[Program, tuple[bool, ...]]:
        present: tuple[bool, ...] = ()

        def body(*xs: Any) -> list:
            nonlocal present
            it = iter(xs)
            args = [
                Linear(v.aval) if flag else next(it)
                for v, flag in zip(program.inputs, linear, strict=True)
            ]
            cts = backward(program, args, [next(it) if g else None for g in given])
            pairs = zip(cts, program.inputs, linear)
            cts = [solid_ct(c, v.aval) if full else c for c, v, flag in pairs if flag]
            present = tuple([c is not None for c in cts])
            return [c for c in cts if c is not None]

        avals = [v.aval for v, flag in zip(program.inputs, linear) if not flag]
        avals += [o.aval for o, g in zip(program.outputs, given) if g]
        return staged(body, avals, program.name + "_t", prune=True), present

    return derived(program, ("transpose", linear, given, full), make)
