"""Transposition: reverse a linear program, mapping cotangents of outputs to those of inputs.

Cotangents vary along the mesh axes of their values, and have their shardings (`cotangents`): rules
run on values whose types carry no sharding.

Invariant: every equation of a linear program is linear in its linear operands together.  None is
the zero cotangent.  Equations without linear operands are evaluated on the way.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from plait.ext.errors import MissingRule, NotAnArrayError, TypeRule
from plait.ext.ir import Eqn, Primitive, Program, Var, derived, effects_of, evaluate
from plait.ext.rules import RuleTable, expand_rules
from plait.ext.trace import Value, as_list, current, lie_as, staged, with_lines
from plait.ext.types import Aval
from plait.ext.values import Literal

from .cotangents import Cotangents
from .split import part, split_program

transpose_rules = RuleTable(
    "transpose",
    signature="(ct, *args, **params)",
    doc="a cotangent or None per operand; linear operands are "
    "`Linear`.  `ct` is a list if the primitive has many results, with None for zeros.",
)


class Linear:
    """A linear operand of a transpose rule: only its type is known."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval):
        self.aval = aval

    def __repr__(self) -> str:
        return f"<linear {self.aval!r}>"


def is_linear(x: "Value | Linear") -> bool:
    """Return whether a rule's operand is one whose cotangent is wanted."""
    return x.__class__ is Linear


def solid_ct(ct: Value | None, aval: Aval) -> Any:
    """Return a cotangent as a value; None becomes zero."""
    return Literal(0, aval) if ct is None else ct


Step = tuple[Eqn, Sequence[Any], Callable[..., Sequence[Any]]]
"""An equation, its operands (`Linear` where a cotangent is wanted), and its transpose rule."""


def pull_back(
    outputs: Sequence[Any],
    cts: Sequence[Any],
    steps: Sequence[Step],
    later: Collection[Any] = (),
) -> dict[Var, Any]:
    """Walk equations from the last to the first; return cotangents of values that none computes.

    A rule is called if a result of its equation has a cotangent.  Every reverse pass uses this
    walk: that of linear programs with transpose rules, that of other programs (`inversion`) with
    rules that recover the operands they need.

    Args:
      outputs, cts: the values to start from and their cotangents; None is zero.
      steps: in the order of evaluation.
      later: values whose cotangents may be returned before they are summed over devices.
    """
    total = Cotangents()
    for a, ct in zip(outputs, cts, strict=True):
        if ct is not None and a.__class__ is Var:
            total.add(a, ct, "the caller")
    with with_lines() as recorders:
        for e, ins, rule in reversed(steps):
            for ct in total.take_results(e, ins, _is_summed_after):
                for p in recorders:
                    p.where = e.where
                try:
                    for a, x, c in zip(e.inputs, ins, rule(ct, *ins, **e.params), strict=True):
                        if c is not None and x.__class__ is Linear:
                            if c.__class__ is Linear:
                                raise not_linear(e.prim, *ins)
                            total.add(a, c, e.prim)
                except (MissingRule, TypeRule) as error:
                    took = isinstance(error, NotAnArrayError) and "<linear " in error.what
                    raise (not_linear(e.prim, *ins) if took else error).about(e.where) from None
    return total.take_all(later)


def not_linear(prim: Primitive, *operands: "Value | Linear") -> MissingRule:
    """Return the error for an operation that is not linear in its linear operands together."""
    types = ", ".join([repr(x.aval) for x in operands if x.__class__ is Linear])
    return MissingRule(
        f"{prim} is not linear in its operands of types {types}",
        fix="linear_transpose is for linear functions; plait.vjp(f, *args)[1] transposes the "
        "derivative of any",
    )


def _is_summed_after(e: Eqn, ins: Sequence[Any], is_one: bool) -> bool:
    """Return whether to sum cotangents over devices after the transpose of an operation.

    This is correct if the transpose is one linear map on all devices.  It pays if there is one
    cotangent (`is_one`) that the transpose does not enlarge: the transpose of a broadcast makes it
    smaller before the sum.  With symbolic sizes the sum always comes after, because the sizes may
    differ between devices.
    """
    if e.prim.higher is not None or e.prim.ambient is not None:
        return False
    given, b = [x.aval for x in ins if x.__class__ is Linear], e.outputs[0].aval
    if not _is_known(b):
        return True
    if not is_one or len(given) != 1:
        return False
    return _is_known(given[0]) and given[0].size <= b.size


def _is_known(a: Aval) -> bool:
    """Return whether all sizes of a type are numbers."""
    return all(n.__class__ is int for n in a.shape)


def free_of_shardings(e: Eqn, rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a transpose rule for operands with shardings, from a rule that may choose them.

    Rules of operations with programs depend on the shardings in these types, and keep them.
    """
    if e.prim.higher is not None:
        return rule

    def free(ct: Value, /, *ins: "Value | Linear", **params: object) -> Any:
        cts = [c if c is None else lie_as(c, None) for c in as_list(ct)]
        without = [
            Linear(x.aval.with_sharding(None)) if is_linear(x) else lie_as(x, None) for x in ins
        ]
        return rule(cts if e.prim.many else cts[0], *without, **params)

    return free


def backward(
    program: Program,
    args: Sequence[Any],
    cts: Sequence[Any],
    later: Sequence[int] = (),
    wanted: Sequence[bool] | None = None,
) -> list[Any]:
    """Return the cotangents of the inputs, or None, given those of the outputs.

    Args:
      program: linear in some inputs together.
      args: known values, or Linear.
      cts: of the outputs; None is zero.
      later: inputs whose cotangents may be returned before they are summed over devices; their
        types show it.
      wanted: for each input, whether its cotangent is wanted; None for all.
    """
    waiting = {program.inputs[i] for i in later}
    steps = _linear_equations(program, args)
    if wanted is not None:
        steps = _towards([v for v, w in zip(program.inputs, wanted, strict=True) if w], steps)
    total = pull_back(program.outputs, cts, steps, waiting)
    return [total.get(v) if a.__class__ is Linear else None for v, a in zip(program.inputs, args)]


def _towards(wanted: Sequence[Var], steps: Sequence[Step]) -> list[Step]:
    """Return the steps whose results depend on the wanted values."""
    reached, out = set(wanted), []
    for step in steps:
        e = step[0]
        if any(a.__class__ is Var and a in reached for a in e.inputs):
            reached.update(e.outputs)
            out.append(step)
    return out


def _linear_equations(program: Program, args: Sequence[Any]) -> list[Step]:
    """Return the equations with linear operands and their rules; evaluate the others."""
    env: dict[Any, Any] = dict(zip(program.inputs, args, strict=True))
    env.update(program.consts)
    of_type: dict[Aval, Linear] = {}
    found: list[Step] = []
    apply, find = current().apply, transpose_rules.find
    for e in program.eqns:
        ins = [env[a] if a.__class__ is Var else a for a in e.inputs]
        for x in ins:
            if x.__class__ is Linear:
                break
        else:
            out = apply(e.prim, ins, e.params)
            if e.prim.many:
                env.update(zip(e.outputs, out, strict=True))
            else:
                env[e.outputs[0]] = out
            continue
        rule = find(e.prim) or partial(_said_otherwise, e)
        if not e.outputs:
            # It looks at values that are not computed here.  What must happen has a rule that says
            # so; what may happen again, such as printing, may be left out.
            if not all(effect.repeatable for effect in effects_of(e.prim, e.params)):
                rule([], *ins, **e.params)
            continue
        for v in (*e.outputs, *ins):
            if v.aval.division is not None:
                rule = free_of_shardings(e, rule)
                break
        found.append((e, ins, rule))
        for o in e.outputs:
            x = of_type.get(o.aval)
            if x is None:
                x = of_type[o.aval] = Linear(o.aval)
            env[o] = x
    return found


def _said_otherwise(e: Eqn, ct: Value | list[Any], /, *ins: "Linear", **params: object) -> list:
    """Transpose the expansion that the operation's `expand` rule gives."""
    say = expand_rules.find(e.prim)
    if say is None:
        raise transpose_rules.missing(e.prim, e.where)
    avals = [x.aval for x in ins]
    program = staged(lambda *xs: as_list(say(*xs, **params)), avals, e.prim.name, prune=True)
    return backward(program, ins, as_list(ct))


def transpose_program(
    program: Program, linear: tuple[bool, ...], given: tuple[bool, ...], full: bool = False
) -> tuple[Program, tuple[bool, ...]]:
    """Return the program (known inputs, given cotangents) -> cotangents of the linear inputs.

    Also return which cotangents it gives.  With `full` it gives all, as branches of a `cond` must
    agree.  Otherwise it gives those that are not zero, and the caller sums them over devices.
    """

    def make() -> tuple[Program, tuple[bool, ...]]:
        present: tuple[bool, ...] = ()

        def body(*xs: Value) -> list:
            nonlocal present
            it = iter(xs)
            args = [
                Linear(v.aval) if flag else next(it)
                for v, flag in zip(program.inputs, linear, strict=True)
            ]
            later = () if full else range(len(args))
            cts = backward(program, args, [next(it) if g else None for g in given], later)
            pairs = zip(cts, program.inputs, linear)
            cts = [solid_ct(c, v.aval) if full else c for c, v, flag in pairs if flag]
            present = tuple([c is not None for c in cts])
            return [c for c in cts if c is not None]

        avals = [v.aval for v, flag in zip(program.inputs, linear) if not flag]
        avals += [o.aval for o, g in zip(program.outputs, given) if g]
        return staged(body, avals, program.name + "_t", prune=True), present

    return derived(program, ("transpose", linear, given, full), make)


# ---- partly linear programs ------------------------------------------------------------------


def divided_backward(
    program: Program, linear: tuple[bool, ...], known: Sequence[Any], cts: Sequence[Any]
) -> list[Any]:
    """Return the cotangents of the linear inputs, or None.

    Operations with programs may take known and linear operands together.  So the program is
    divided: the known half is evaluated, the other half reversed.
    """
    h = split_program(program, linear, (True,) * len(program.outputs))
    residuals = evaluate(h.known, known)
    operands = [*residuals, *map(Linear, part(program.in_avals, linear))]
    return backward(h.unknown, operands, cts)[len(residuals) :]


def transpose_divided(
    program: Program, linear: tuple[bool, ...], given: tuple[bool, ...]
) -> Program:
    """Return the program (known inputs, given cotangents) -> cotangents of all linear inputs."""
    known, wanted = part(program.in_avals, linear, False), part(program.in_avals, linear)

    def back(*xs: Value) -> list:
        it = iter(xs[len(known) :])
        cts = [next(it) if g else None for g in given]
        got = divided_backward(program, linear, xs[: len(known)], cts)
        return [solid_ct(c, a) for c, a in zip(got, wanted)]

    def make() -> Program:
        types = [*known, *part(program.out_avals, given)]
        return staged(back, types, program.name + "_t", prune=True)

    return derived(program, ("transpose divided", linear, given), make)
