"""Transposition: reverse a linear program, mapping cotangents of outputs to those of inputs.

In a program that runs on several devices, a type lists the mesh axes along which a value may
differ (`Aval.vma`).  A value that is the same on all devices may be an operand of an operation
whose result differs.  It then has a cotangent on each device, and its own cotangent is their sum.
This module makes the sum, so no rule has to.  Conversely, a cotangent that is the same everywhere
is made to vary as its value does.

The same holds for the division of values over explicit mesh axes (`Aval.sharding`): rules run on
values whose types carry no sharding, and their results are moved to the sharding of the value.

Invariant: every equation of a linear program is linear in its linear operands together.  None is
the zero cotangent.  A cotangent has the type of its value, which is checked when a rule returns
it.  Equations without linear operands are evaluated on the way.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from plait.ext.errors import MissingRule, OperandTypeError, PlaitError, TypeRule
from plait.ext.ir import Eqn, Program, Var, derived, evaluate
from plait.ext.ops.collective import psum_, varied
from plait.ext.ops.elementwise import add
from plait.ext.rules import RuleTable, expand_rules
from plait.ext.trace import apart_from, as_list, current, lie_as, staged, with_lines
from plait.ext.types import Aval, is_narrow
from plait.ext.values import Literal

from .split import part, split_program
from .sums import rounded, widened

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


def is_linear(x: Any) -> bool:
    """Return whether a rule's operand is one whose cotangent is wanted."""
    return x.__class__ is Linear


def solid_ct(ct: Any, aval: Aval) -> Any:
    """Return a cotangent as a value; None becomes zero."""
    return Literal(0, aval) if ct is None else ct


def sum_over_devices(ct: Any, axes: Collection[str]) -> Any:
    """Return the sum of a cotangent over the devices along these axes of a mesh.

    Raises PlaitError if some device along them does not take part.
    """
    if not axes:
        return ct
    alone = sorted(apart_from(None) & frozenset(axes))
    if alone:
        raise PlaitError(
            f"a derivative, by a value that all devices along {alone} share, is taken in a branch "
            "or loop that not all of them are in: the sum over them would wait for ever",
            fix="pass the value to cond as an operand, or carry it in the loop; or let it vary "
            f"before: plait.lax.pcast(x, {alone[0] if len(alone) == 1 else tuple(alone)!r}, "
            "to='varying')",
        )
    return psum_.bind(ct, axes=tuple(sorted(axes)))


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


def _freed(prim: Any, ct: Any, ins: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """Return cotangents and operands without shardings, which the rule may choose freely."""
    cts = [c if c is None else lie_as(c, None) for c in as_list(ct)]
    free = [Linear(x.aval.with_sharding(None)) if is_linear(x) else lie_as(x, None) for x in ins]
    return cts if prim.many else cts[0], free


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
    total: dict[Any, Any] = {}
    shares: dict[Any, dict[frozenset, Any]] = {}
    """By value, then by the mesh axes along which only the cotangent varies: partial sums that
    are still to be summed over the devices along these axes."""
    often: set[Any] = set()
    """Values of narrow floats with two cotangents or more; their sums may be in float32."""

    def give(a: Any, ct: Any, by: Any) -> None:
        # Only `linear_transpose` makes cotangents of integers, and these are integers too.
        if not ct.aval.same_type(a.aval) and not ct.aval.same_type(a.aval.tangent_type):
            raise OperandTypeError(
                f"a cotangent of type {ct.aval!r} was given for a value of type {a.aval!r}, by "
                f"{by}",
                fix="a cotangent has the shape and dtype of the value it belongs to",
            )
        if ct.aval.sharding is not a.aval.sharding:
            ct = lie_as(ct, a.aval.sharding)
        kept, key = total, a
        if ct.aval.vma is not a.aval.vma and (over := ct.aval.vma - a.aval.vma):
            kept, key = shares.setdefault(a, {}), over
        have = kept.get(key)
        if have is not None:
            if a in often:
                have, ct = widened(have), widened(ct)
            elif is_narrow(ct.aval):
                often.add(a)
            ct = add.bind(have, ct)
        kept[key] = ct

    def settled(a: Any, ct: Any) -> Any:
        """Return a sum of cotangents of `a`, in its dtype."""
        return ct if ct is None or a not in often else rounded([ct], [a.aval.tangent_type])[0]

    def taken(a: Any) -> Any:
        """Remove and return the cotangent of `a`, made to vary as `a` does."""
        ct = settled(a, total.pop(a, None))
        if shares:
            for over, share in shares.pop(a, {}).items():
                whole = sum_over_devices(settled(a, share), over)
                ct = whole if ct is None else add.bind(ct, whole)
        return ct if ct is None or ct.aval.vma is a.aval.vma else varied(ct, a.aval.vma)

    for a, ct in zip(outputs, cts, strict=True):
        if ct is not None and a.__class__ is Var:
            give(a, ct, "the caller")
    with with_lines() as recorders:
        for e, ins, rule in reversed(steps):
            given: Sequence[Any]
            if e.prim.many:
                # The common case, one device and wide floats, needs no settling by `taken`.
                plain = not shares and not often
                ct = [
                    total.pop(o, None) if plain and not o.aval.vma else taken(o) for o in e.outputs
                ]
                for c in ct:
                    if c is not None:
                        break
                else:
                    continue
                given = (ct,)
            else:
                o = e.outputs[0]
                if o in shares and _is_summed_after(e, ins, o not in total and len(shares[o]) == 1):
                    found = (*shares.pop(o).values(), total.pop(o, None))
                    given = [settled(o, c) for c in found]
                else:
                    ct = taken(o) if shares or often or o.aval.vma else total.pop(o, None)
                    if ct is None:
                        continue
                    given = (ct,)
            for p in recorders:
                p.where = e.where
            try:
                for ct in given:
                    if ct is None:
                        continue
                    # Rules of operations with programs depend on the shardings in these types.
                    if e.prim.higher is None:
                        for v in (*e.outputs, *ins):
                            if v.aval.sharding is not None:
                                ct, ins = _freed(e.prim, ct, ins)
                                break
                    got = rule(ct, *ins, **e.params)
                    for a, x, c in zip(e.inputs, ins, got, strict=True):
                        if c is not None and x.__class__ is Linear:
                            give(a, c, e.prim)
            except (MissingRule, TypeRule) as error:
                raise error.about(e.where) from None
    for a, by_axes in [*shares.items()]:
        if a in later and len(by_axes) == 1 and a not in total:
            (total[a],) = shares.pop(a).values()
        else:
            total[a] = taken(a)
    for a in often & total.keys():
        total[a] = settled(a, total[a])
    return total


def backward(
    program: Program, args: Sequence[Any], cts: Sequence[Any], later: Sequence[int] = ()
) -> list:
    """Return the cotangents of the inputs, or None, given those of the outputs.

    Args:
      program: linear in some inputs together.
      args: known values, or Linear.
      cts: of the outputs; None is zero.
      later: inputs whose cotangents may be returned before they are summed over devices; their
        types show it.
    """
    waiting = {program.inputs[i] for i in later}
    total = pull_back(program.outputs, cts, _linear_equations(program, args), waiting)
    return [total.get(v) if a.__class__ is Linear else None for v, a in zip(program.inputs, args)]


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
        found.append((e, ins, find(e.prim) or partial(_said_otherwise, e)))
        for o in e.outputs:
            x = of_type.get(o.aval)
            if x is None:
                x = of_type[o.aval] = Linear(o.aval)
            env[o] = x
    return found


def _said_otherwise(e: Eqn, ct: Any, *ins: Any, **params: Any) -> list:
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

        def body(*xs: Any) -> list:
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
) -> list:
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

    def back(*xs: Any) -> list:
        it = iter(xs[len(known) :])
        cts = [next(it) if g else None for g in given]
        got = divided_backward(program, linear, xs[: len(known)], cts)
        return [solid_ct(c, a) for c, a in zip(got, wanted)]

    def make() -> Program:
        types = [*known, *part(program.out_avals, given)]
        return staged(back, types, program.name + "_t", prune=True)

    return derived(program, ("transpose divided", linear, given), make)
