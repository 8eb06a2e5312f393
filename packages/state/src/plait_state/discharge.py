"""Programs that read and write references, rewritten as programs of arrays.

A reference among the inputs becomes the array that it holds; each written array becomes one more
result, in front of the others.  An operation with programs is applied in this form, by a rule for
the operation, and its first results are then written into the references.  So no operation that is
recorded, lifted or run has a reference among its operands.

Invariant: the results equal those of reads and writes in the order of the equations.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from plait.ext.errors import ArgumentError, MissingRule, OperandTypeError, user_line
from plait.ext.ir import Eqn, Primitive, Program, Var, derived
from plait.ext.rules import RuleTable
from plait.ext.trace import Wiring, as_list, staged, with_lines

from .primitives import get_, set_
from .types import content_type, is_ref

__all__ = [
    "Discharged", "applied", "discharge_rules", "discharged", "expect_distinct", "finished",
    "held", "reading",
]  # fmt: skip

discharge_rules = RuleTable(
    "discharge",
    doc="the results of an operation some of whose operands are references; its programs are "
    "discharged, and what they write is written.",
    signature="(args, params)",
    programs="(args, params)",
)


class Discharged(NamedTuple):
    """A program of arrays that returns the written arrays, then the results.

    Attributes:
      program: takes the contents of references where the original program took references.
      written: the numbers of the inputs that are written, in the order of the results for them.
    """

    program: Program
    written: tuple[int, ...]


def discharged(program: Program) -> Discharged:
    """Return the program of arrays with the effects of a program on references."""
    return derived(program, "discharged", lambda: _made(program))


def _made(program: Program) -> Discharged:
    writes = {e.inputs[0] for e in program.eqns if e.prim is set_}
    written = tuple([i for i, v in enumerate(program.inputs) if v in writes])
    if not any(is_ref(v.aval) for v in program.inputs):
        return Discharged(program, ())

    def run(*xs: Any) -> list[Any]:
        env: dict[Any, Any] = dict(zip(program.inputs, xs, strict=True))
        env.update(program.consts)
        with with_lines() as recorders:
            for e in program.eqns:
                for p in recorders:
                    p.where = e.where
                _applied(e, env)
        outs = [env[a] if a.__class__ is Var else a for a in program.outputs]
        return [*(env[program.inputs[i]] for i in written), *outs]

    avals = [content_type(a) if is_ref(a) else a for a in program.in_avals]
    return Discharged(staged(run, avals, program.name), written)


def _applied(e: Eqn, env: dict[Any, Any]) -> None:
    """Apply one equation; `env` has the contents of each reference."""
    if e.prim is get_:
        env[e.outputs[0]] = env[e.inputs[0]]
    elif e.prim is set_:
        env[e.inputs[0]] = env[e.inputs[1]] if e.inputs[1].__class__ is Var else e.inputs[1]
    elif any(is_ref(a.aval) for a in e.inputs):
        raise OperandTypeError(
            f"{e.prim} takes no reference",
            where=e.where,
            fix="give the array that it holds, ref[...]",
        )
    else:
        ins = [env[a] if a.__class__ is Var else a for a in e.inputs]
        env.update(zip(e.outputs, as_list(e.prim.bind(*ins, **e.params)), strict=True))


# ---- operations with programs --------------------------------------------------------------------


def applied(prim: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Apply an operation with programs that has references among its operands."""
    higher = prim.higher
    if higher.pending(params):
        args, params = higher.settle(params, args)
    rule = discharge_rules.find(prim)
    if rule is not None:
        return rule(args, params)
    if type(higher) is Wiring:
        d = discharged(params["program"])
        outs = prim.bind(*held(args), **{**params, "program": d.program})
        return finished(args, d.written, outs)
    operands, params = reading(prim, args, params)
    return as_list(prim.bind(*operands, **params))


def reading(
    prim: Any, args: Sequence[Any], params: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return (operands, parameters) of an operation whose programs only read references.

    Raises MissingRule if they write, or if rules of the operation would take references."""
    if prim.higher.custom or prim.higher.slots(params).rules:
        raise _unknown(prim, args, "has a rule of its own, and uses a reference of outside")
    return held(args), {k: _read_only(prim, args, v) for k, v in params.items()}


def held(args: Sequence[Any]) -> list[Any]:
    """Return operands, with references replaced by their present contents."""
    return [a.read() if is_ref(a.aval) else a for a in args]


def finished(args: Sequence[Any], written: Sequence[int], outs: Sequence[Any]) -> list[Any]:
    """Write the first results into the references at these places; return the other results."""
    expect_distinct(args, written)
    for i, new in zip(written, outs):
        args[i].write(new)
    return list(outs[len(written) :])


def expect_distinct(args: Sequence[Any], written: Sequence[int]) -> None:
    """Raise ArgumentError if a written reference is among the operands twice."""
    for i in written:
        if sum(a is args[i] for a in args) > 1:
            raise ArgumentError(
                f"a reference, {args[i]!r}, is given twice, or as an argument and by being closed "
                f"over, and is written; it was made at {user_line(args[i].where)}",
                fix="pass it once, and use the one argument",
            )


def _read_only(prim: Primitive, args: Sequence[Any], param: Any) -> Any:
    """Return a parameter with programs that only read their references discharged."""
    if param.__class__ is tuple:
        return tuple([_read_only(prim, args, p) for p in param])
    if param.__class__ is not Program:
        return param
    d = discharged(param)
    if d.written:
        raise _unknown(prim, args, "writes a reference of outside")
    return d.program


def _unknown(prim: Primitive, args: Sequence[Any], what: str) -> MissingRule:
    ref = next(a for a in args if is_ref(a.aval))
    return MissingRule(
        f"a function under {prim} {what}: {ref!r}, made at {user_line(ref.where)}",
        fix="give it the array, ref[...], return what is to be written, and write it outside; or "
        "write a rule in the table 'discharge'",
    )
