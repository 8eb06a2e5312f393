"""Batching of cond and while whose predicate varies along the mapped axis.

Invariant: the carrier lifts all other control flow; a rule here first checks whether the predicate
varies.  Values computed for elements that do not take a path reach neither their results nor their
derivatives.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext import ir
from plait.ext.ir import Program, derived, effects_of, evaluate
from plait.ext.ops.control_flow import call, cond, map_axes, while_
from plait.ext.ops.elementwise import and_, eq, select, stop
from plait.ext.ops.reduction import reduce_or
from plait.ext.ops.shape import broadcast_in_dim
from plait.ext.rules import parallel_rules
from plait.ext.trace import Value, rebuilt, solve, staged
from plait.ext.types import BOOL, Aval
from plait.ext.values import Literal

from ..interpreter import Batch, batching_rules
from ..selective import selecting


def _along(pred: Value, like: Value) -> Any:
    """Broadcast a [size] predicate to the shape of `like`, whose mapped axis is in front."""
    if like.aval.ndim == 1:
        return pred
    return broadcast_in_dim.bind(pred, shape=like.aval.shape, dims=(0,))


@batching_rules.rule(cond)
def _(batch: Batch, args, params):
    d, (index,) = batch.split(args[0])
    if d is None:
        forms = solve(batch, cond, args, params)
        return rebuilt(batch, cond, args, params, forms)
    branches, rest = params["branches"], args[1:]
    outs = branches[0].out_avals
    # Elements that do not take a branch enter it behind a stop.  A nan in the branch's derivative
    # (0 * inf) then ends at the select, and does not reach their operand.
    forms = tuple([0 if _guarded(batch, a) else batch.form_of(a) for a in rest])
    operands = [batch.to_form(a, f)[0] for a, f in zip(rest, forms)]
    results = []
    for i, b in enumerate(branches):
        mine = eq.bind(index, Literal(i, index.aval))
        seen = [
            select.bind(_along(mine, x), x, stop.bind(x)) if _guarded(batch, a) else x
            for a, x in zip(rest, operands)
        ]
        if batch.ambient:
            mine = and_.bind(mine, batch.ambient[0])
        inside, front = selecting(batch, mine, bool(b.effects))
        program = inside.lift_program(b, forms, (0,) * len(outs))[0]
        results.append(call.bind(*front, *seen, program=program))
    chosen = []
    for alternatives, same in zip(zip(*results), ir.forwarded(cond, params), strict=True):
        if same is not None:  # all branches return this operand, which may be one for all elements
            chosen.append(args[same])
            continue
        out = alternatives[0]
        for i, x in enumerate(alternatives[1:], 1):
            mine = eq.bind(index, Literal(i, index.aval))
            out = select.bind(_along(mine, x), x, out)
        chosen.append(batch.wrap(out, 0))
    return chosen


def _guarded(batch: Batch, a: Any) -> bool:
    return a.aval.inexact and a.__class__ is not Literal


@batching_rules.rule(while_)
def _(batch: Batch, args, params):
    forms = solve(batch, while_, args, params)
    if forms[-1] is None:
        return rebuilt(batch, while_, args, params, forms)
    if effects_of(while_, params):
        return _acting_while(batch, args, params, forms)
    c, b = params["cond_consts"], params["body_consts"]
    consts, init = args[: c + b], args[c + b :]
    fixed = tuple(forms[: c + b])
    moving = (0,) * len(init)  # a predicate that varies makes the whole carry vary
    inside, _ = selecting(batch, None, False)
    test = inside.lift_program(params["cond"], (*fixed[:c], *moving), (0,))[0]
    step = inside.lift_program(params["body"], (*fixed[c:], *moving), moving)[0]
    any_left, advance = derived(step, ("while", c, b), lambda: _turns(test, step, c, b), [test])
    ks = [p for x, f in zip(consts, fixed) for p in batch.to_form(x, f)]
    carry = [batch.to_form(x, 0)[0] for x in init]
    new = {"cond": any_left, "body": advance, "cond_consts": c, "body_consts": c + b}
    outs = while_.bind(*ks[:c], *ks, *carry, **{**params, **new})
    return _ends(batch, args, params, outs)


def _turns(test: Program, step: Program, c: int, b: int) -> tuple:
    """Return programs: whether any element is left, and one turn that leaves finished elements
    unchanged."""

    def any_left(*xs: Value) -> list:
        return [reduce_or.bind(evaluate(test, xs)[0], axes=(0,))]

    def advance(*xs: Value) -> list:  # constants of the test, of the step, carry
        carry = xs[c + b :]
        (going,) = evaluate(test, [*xs[:c], *carry])
        new = evaluate(step, [*xs[c : c + b], *carry])
        return [select.bind(_along(going, old), n, old) for n, old in zip(new, carry)]

    avals = [*test.in_avals[:c], *step.in_avals]
    return staged(any_left, test.in_avals, "any_left"), staged(advance, avals, "advance")


def _acting_while(batch: Batch, args: Any, params: dict, forms: list) -> list:
    """Lower a loop with side effects, whose predicate varies.

    The carry gets [size] bools in front: which elements are still going.  So the predicate, which
    may have effects itself, runs once per element and turn.
    """
    c, b = params["cond_consts"], params["body_consts"]
    consts, init = args[: c + b], args[c + b :]
    fixed, moving = tuple(forms[: c + b]), (0,) * len(init)
    ks = [p for x, f in zip(consts, fixed) for p in batch.to_form(x, f)]
    carry = [batch.to_form(x, 0)[0] for x in init]
    everybody = Literal(True, Aval((batch.size,), BOOL))

    def asked(going: Value, ks: Sequence[Value], carry: list[Value]) -> Any:
        """Evaluate the predicate for elements still going; return which of them go on."""
        inside, front = selecting(batch, going, bool(params["cond"].effects))
        test = inside.lift_program(params["cond"], (*fixed[:c], *moving), (0,))[0]
        return and_.bind(going, evaluate(test, [*front, *ks[:c], *carry])[0])

    def turn(*xs: Value) -> list:
        ks, going, carry = xs[: c + b], xs[c + b], xs[c + b + 1 :]
        inside, front = selecting(batch, going, bool(params["body"].effects))
        step = inside.lift_program(params["body"], (*fixed[c:], *moving), moving)[0]
        new = evaluate(step, [*front, *ks[c:], *carry])
        kept = [select.bind(_along(going, old), n, old) for n, old in zip(new, carry)]
        return [asked(going, ks, kept), *kept]

    start = batch.ambient[0] if batch.ambient else everybody
    going = asked(start, ks, carry)
    avals = [x.aval for x in (going, *carry)]
    new = {
        "cond": staged(lambda *xs: [reduce_or.bind(xs[0], axes=(0,))], avals, "any_left"),
        "body": staged(turn, [*(k.aval for k in ks), *avals], "advance"),
        "cond_consts": 0,
        "body_consts": c + b,
    }
    outs = while_.bind(*ks, going, *carry, **{**params, **new})
    return _ends(batch, args, params, outs[1:])


def _ends(batch: Batch, args: Any, params: dict, outs: list[Value]) -> list:
    """Return the carry at the end; a part that the body leaves alone is its operand."""
    same = ir.forwarded(while_, params)
    return [batch.wrap(o, 0) if k is None else args[k] for o, k in zip(outs, same, strict=True)]


@parallel_rules.rule(map_axes)
def _(
    *xs: Value,
    program: Program,
    in_axes: Sequence[None | int],
    out_axes: tuple[int, ...],
    size: int,
    parallel: bool,
):
    batch = Batch(None, size, None)
    p, _ = batch.lift_program(program, tuple(in_axes), tuple(out_axes))
    return evaluate(p, xs)
