"""Control flow (call, cond, while, scan): division into known and unknown halves, transposition.

Invariant: forward mode needs no rules here.  A divided operation becomes two of the same kind;
residuals pass from the first to the second.  A reversed one becomes one of the same kind over
transposed programs.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from plait.ext import ir
from plait.ext.errors import IrreversibleLoop, MissingRule
from plait.ext.ir import Program, derived, effects_of, evaluate
from plait.ext.ops.control_flow import call, cond, scan, while_
from plait.ext.trace import Value, staged
from plait.ext.values import Literal

from ..bounded_loops import bounded
from ..late_sums import late_products
from ..split import (
    Halves,
    Split,
    choose,
    divide,
    merge,
    part,
    pooled,
    split_program,
    split_rules,
    steady,
)
from ..sums import added, rounded, summed_in
from ..transpose import (
    Linear,
    backward,
    divided_backward,
    is_linear,
    solid_ct,
    transpose_program,
    transpose_rules,
)

# ---- division ------------------------------------------------------------------------------


@split_rules.rule(call)
def _call_halves(split: Split, args: list[Value], params: dict[str, Any]):
    unknown = divide(split, args)
    h = split_program(params["program"], unknown)
    outs = call.bind(*part(args, unknown, False), program=h.known) if h.known.outputs else []
    n = len(outs) - h.residuals
    operands = [*outs[n:], *part(args, unknown)]
    later = split.stage.apply(call, operands, {"program": h.unknown}) if h.unknown.outputs else []
    return merge(h.out_unknown, later, outs[:n])


@split_rules.rule(cond)
def _(split: Split, args: Sequence[Value], params):
    index, *args = args
    unknown, branches = divide(split, args), params["branches"]
    if split.unknown(index):  # no branch can run before the index is known
        return split.stage.apply(cond, [index, *args], params)
    alone = [split_program(b, unknown).out_unknown for b in branches]
    out_unknown = tuple([any(us) for us in zip(*alone)])
    halves = [split_program(b, unknown, out_unknown) for b in branches]
    n = out_unknown.count(False)

    each = [(h.known, h.unknown, h.residuals) for h in halves]
    key = "split cond", unknown
    firsts, seconds, again = derived(branches[0], key, lambda: pooled(each, n), branches[1:])
    known = part(args, unknown, False)
    outs = cond.bind(index, *known, branches=firsts) if firsts[0].outputs else []
    operands = [index, *outs[n:], *(known[i] for i in again), *part(args, unknown)]
    later = split.stage.apply(cond, operands, {"branches": seconds}) if seconds[0].outputs else []
    return merge(out_unknown, later, outs[:n])


@split_rules.rule(scan)
def _(split: Split, args: list[Value], params: dict[str, Any]):
    body, k, c = params["body"], params["consts"], params["carry"]
    unknown = list(divide(split, args))
    while True:  # a carry is unknown if it starts or becomes so
        force = tuple(unknown[k : k + c]) + (False,) * (len(body.outputs) - c)
        h = split_program(body, tuple(unknown), force)
        now = [a or b for a, b in zip(unknown[k : k + c], h.out_unknown)]
        if now == unknown[k : k + c]:
            break
        unknown[k : k + c] = now
    kk, kc = unknown[:k].count(False), unknown[k : k + c].count(False)
    n = h.out_unknown.count(False)
    plan = derived(h.known, ("scan", n, kk, kc), lambda: _scan_halves(h, n, kk, kc), [h.unknown])
    first, second, consts, rows, once, reads = plan
    rest = {key: params[key] for key in ("length", "reverse", "unroll")}
    known, mine = part(args, unknown, False), part(args, unknown)
    outs = scan.bind(*known, body=first, consts=kk, carry=kc, **rest) if first.outputs else []
    fixed = [*(known[i] for i in consts)]
    fixed += call.bind(*part(known, reads), program=once) if once.outputs else []
    operands = [*fixed, *mine, *(known[i] for i in rows), *outs[n:]]
    later_params = {
        "body": second,
        "consts": len(fixed) + unknown[:k].count(True),
        "carry": unknown[k : k + c].count(True),
        **rest,
    }
    later = split.stage.apply(scan, operands, later_params) if second.outputs else []
    return merge(h.out_unknown, later, outs[:n])


def _scan_halves(h: Halves, n: int, kk: int, kc: int) -> tuple:
    """Return (first, second, consts, rows, once, reads).

    consts, rows: the numbers of the known operands that are constant residuals and row residuals.
    once: a program of the residuals that are the same in every turn.
    reads: which known operands `once` reads.

    A residual that is a constant or a row of xs is not stacked: the operand is still available.
    """
    position = {v: i for i, v in enumerate(h.known.inputs)}
    outputs = h.known.outputs[n:]
    at = [position.get(a) if hasattr(a, "by") else None for a in outputs]
    same = steady(h.known, n, kk)
    kinds = [
        ("once" if s else "new") if i is None or kk <= i < kk + kc else "const" if i < kk else "row"
        for i, s in zip(at, same, strict=True)
    ]
    first = choose(h.known, (*(True,) * n, *(q == "new" for q in kinds)))
    once, reads = ir.dce(h.known, (*(False,) * n, *(q == "once" for q in kinds)))
    groups = [[j for j, q in enumerate(kinds) if q == g] for g in ("const", "once", "row", "new")]
    order = [j for g in groups for j in g]
    m = len(groups[0]) + len(groups[1])

    def body(*xs: Value) -> list:  # constant residuals, unknown operands, rows, stacked residuals
        cut = len(xs) - (h.residuals - m)
        given = dict(zip(order, (*xs[:m], *xs[cut:])))
        return evaluate(h.unknown, [*(given[j] for j in range(h.residuals)), *xs[m:cut]])

    a = h.unknown.in_avals
    types = [*(a[j] for j in order[:m]), *a[h.residuals :], *(a[j] for j in order[m:])]
    second = staged(body, types, h.unknown.name)
    consts, rows = ([at[j] for j in groups[g]] for g in (0, 2))
    return first, second, consts, rows, once, reads


@split_rules.rule(while_)
def _(split: Split, args, params):
    """Run the known part of the loop now, and the whole loop again in the stage, without residuals.

    A loop with a bound is divided as nested scans.
    """
    if params.get("max_steps") is not None:
        return _call_halves(split, args, {"program": bounded(**params)})
    test, body = params["cond"], params["body"]
    c, k = params["cond_consts"], params["cond_consts"] + params["body_consts"]
    unknown = list(divide(split, args))
    while True:  # a carry is unknown if it starts or becomes so
        h = split_program(body, tuple(unknown[c:]), tuple(unknown[k:]))
        if list(h.out_unknown) == unknown[k:]:
            break
        unknown[k:] = h.out_unknown
    first = split_program(test, (*unknown[:c], *unknown[k:]))
    if first.out_unknown[0]:  # no turn can run before the predicate is known
        return split.stage.apply(while_, args, params)
    if effects_of(while_, params):
        raise _irreversible()
    n = unknown[k:].count(False)
    turn = choose(h.known, (*(True,) * n, *(False,) * h.residuals))
    counts = {"cond_consts": unknown[:c].count(False), "body_consts": unknown[c:k].count(False)}
    known = part(args, unknown, False)
    outs = while_.bind(*known, cond=first.known, body=turn, **counts) if n else []
    later = split.stage.apply(while_, args, params)
    return merge(unknown[k:], part(later, unknown[k:]), outs)


def _irreversible() -> IrreversibleLoop:
    return IrreversibleLoop(
        "while_loop cannot be differentiated in reverse: how many values it would keep is not "
        "known beforehand",
        fix="say how often it turns at most, while_loop(..., max_steps=n); or use scan, fori_loop "
        "with Python integers as bounds, or forward mode (jvp, jacfwd)",
    )


# ---- transposition -------------------------------------------------------------------------


@transpose_rules.rule(call)
def _(cts: list[Any], *args: Value | Linear, program: Program):
    linear, given = tuple(map(is_linear, args)), tuple([c is not None for c in cts])
    p, present = transpose_program(program, linear, given)
    operands = [*part(args, linear, False), *part(cts, given)]
    outs = iter(call.bind(*operands, program=p) if p.outputs else [])
    there = iter(present)
    return [(next(outs) if next(there) else None) if flag else None for flag in linear]


@transpose_rules.rule(cond)
def _(cts: list[Any], index: Value, *args: Value | Linear, branches: tuple[Program, ...]):
    if is_linear(index):
        raise MissingRule(
            "which branch of cond is taken depends on what is differentiated",
            fix="decide by a value that does not vary",
        )
    linear = tuple(map(is_linear, args))
    given = tuple([c is not None for c in cts])
    programs = tuple([transpose_program(b, linear, given, full=True)[0] for b in branches])
    operands = [index, *part(args, linear, False), *part(cts, given)]
    outs = iter(cond.bind(*operands, branches=programs))
    return [None, *(next(outs) if flag else None for flag in linear)]


@transpose_rules.rule(while_)
def _(cts: list[Any], /, *args: Value | Linear, max_steps=None, **params):
    if max_steps is None:
        raise _irreversible()
    linear = tuple(map(is_linear, args))
    program = bounded(**params, max_steps=max_steps)
    got = iter(divided_backward(program, linear, part(args, linear, False), cts))
    return [next(got) if flag else None for flag in linear]


@transpose_rules.rule(scan)
def _(
    cts: list[Value],
    *args: Value | Linear,
    body: Program,
    consts: int,
    carry: int,
    length: int,
    reverse: bool,
    unroll: int,
):
    n = consts + carry
    mask = tuple(map(is_linear, args))
    cl, xl = mask[:consts], mask[n:]
    inner = (*cl, *(True,) * carry, *xl)
    program, late = derived(
        body,
        ("transpose scan", inner, consts, carry),
        lambda: _scan_back(body, inner, consts, carry),
    )
    ys = [a.with_shape((length, *a.shape)) for a in body.out_avals[carry:]]
    cts = [solid_ct(c, a) for c, a in zip(cts, [*body.out_avals[:carry], *ys], strict=True)]
    wanted = part(body.in_avals[:consts], cl)
    zeros = [Literal(0, summed_in(a)) for a, p in zip(wanted, late) if p is None]
    rows = [*cts[carry:], *part(args[n:], xl, False)]
    outs = scan.bind(
        *part(args[:consts], cl, False),
        *cts[:carry],
        *zeros,
        *rows,
        body=program,
        consts=consts - len(wanted),
        carry=carry + len(zeros),
        length=length,
        reverse=not reverse,
        unroll=unroll,
    )
    sums, rest = iter(outs[carry : carry + len(zeros)]), outs[carry + len(zeros) :]
    got_xs, stacks = iter(rest[: xl.count(True)]), [*rows, *rest[xl.count(True) :]]
    totals = [
        next(sums) if p is None else reduce(added, [q.sum(stacks, summed_in(a)) for q in p])
        for a, p in zip(wanted, late)
    ]
    got_consts = iter(rounded(totals, wanted))
    return [
        *(next(got_consts) if flag else None for flag in cl),
        *[c if is_linear(a) else None for c, a in zip(outs[:carry], args[consts:n])],
        *(next(got_xs) if flag else None for flag in xl),
    ]


def _scan_back(body: Program, inner: tuple[bool, ...], consts: int, carry: int) -> tuple:
    """Return one step backwards, and for each sum its products if they are computed after the loop.

    Its operands: known consts; cotangents of the carry, sums for consts; cotangents of ys, known
    xs.  Its results: cotangents of the carry, sums; cotangents of xs, factors of late products.
    """
    n, avals = consts + carry, body.in_avals
    cl, xl = inner[:consts], inner[n:]
    fixed, outs = part(avals[:consts], cl, False), body.out_avals
    rows = [*outs[carry:], *part(avals[n:], xl, False)]
    summed = list(map(summed_in, part(avals[:consts], cl)))
    m = len(fixed) + carry

    def back(*vs: Value) -> list:
        it = iter(vs)
        known = [None if flag else next(it) for flag in cl]
        ct_carry = [next(it) for _ in range(carry)]
        ct_ys = [next(it) for _ in range(len(body.outputs) - carry)]
        given = [None if flag else next(it) for flag in xl]
        values = [*known, *[None] * carry, *given]
        args = [Linear(a) if flag else v for flag, a, v in zip(inner, avals, values)]
        # Cotangents of consts and xs are summed over devices once, after all turns.
        later = [i for i in range(len(args)) if not consts <= i < n]
        got = backward(body, args, [*ct_carry, *ct_ys], later)
        cts = [solid_ct(g, a) for g, a in zip(got, avals)]
        return [*cts[consts:n], *part(cts[:consts], cl), *part(cts[n:], xl)]

    step = staged(back, [*fixed, *outs[:carry], *rows], body.name + "_t", prune=True)
    terms = step.outputs[carry : carry + len(summed)]
    constants = {*step.inputs[: len(fixed)], *(v for v, _ in step.consts)}
    late, factors = late_products(step, terms, step.inputs[m:], constants)
    kept = [x for x, p in zip(terms, late) if p is None]
    results = [*step.outputs[:carry], *kept, *step.outputs[carry + len(summed) :], *factors]
    turn = Program(step.inputs, step.eqns, results, step.name, step.consts)

    def with_sums(*vs: Value) -> list:
        sums = vs[m : m + len(kept)]
        got = evaluate(turn, [*vs[:m], *vs[m + len(kept) :]])
        totals = [added(s, g) for s, g in zip(sums, got[carry:])]
        return [*got[:carry], *totals, *got[carry + len(kept) :]]

    types = [*fixed, *outs[:carry]]
    types += [a for a, p in zip(summed, late) if p is None]
    return staged(with_sums, [*types, *rows], step.name, prune=True), late
