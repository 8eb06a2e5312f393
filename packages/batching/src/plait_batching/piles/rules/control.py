"""Branches and loops whose predicate, length or operands differ between examples.

Invariant: an example that has finished its turns, or does not take a path, keeps its values; the
values computed for it meanwhile reach neither results nor derivatives.
"""

from collections.abc import Sequence
from typing import Any

import plait
import plait.numpy as pnp
from plait.ext.errors import MissingRule
from plait.ext.ir import Program, dims_of, effects_of, evaluate
from plait.ext.ops.control_flow import cond, map_axes, scan, while_
from plait.ext.ops.elementwise import stop
from plait.ext.rules import expand_rules
from plait.ext.sizes import Dim
from plait.ext.trace import Value, as_list, rebuilt, solve, use
from plait.ext.types import OPAQUE, Aval
from plait.ext.values import Literal
from plait.typing import Array

from ...interpreter import Batch
from ..carrier import Ragged, pile_rules
from ..layouts import along
from ..operation import FLAT, PADDED, TILES, layout
from ..row_access import put, rows_at
from ..tables import I32


def _of_examples(r: Ragged, flags: Any, aval: Aval, form: Any) -> Any:
    """Return flags of the examples, [size], for each element of a value in a form."""
    if form == FLAT:
        (a,) = r.axes(aval)
        t = r.rows(aval.shape[a])
        return along(rows_at(flags, t.owner), a, aval.ndim)
    if form.__class__ is tuple and form[0] == TILES:
        p = r.pairs(*[aval.shape[a] for a in r.axes(aval)])
        flags = rows_at(flags, p.owner)
    return along(flags, 0, aval.ndim + 1)


def _usual(r: Ragged, x: Value) -> Any:
    """Return the values of all examples, in the usual form of their type."""
    return r.to_form(x, r.usual(x.aval))[0]


def _kept(r: Ragged, flags: Any, new: Any, old: Any, avals: Any) -> list:
    """Return `new` for the examples that `flags` selects, and `old` for the others."""
    return [
        pnp.where(_of_examples(r, flags, a, r.usual(a)), n, o)
        for n, o, a in zip(new, old, avals, strict=True)
    ]


def _no_effects(r: Ragged, prim: Any, params: dict) -> None:
    if effects_of(prim, params):
        raise MissingRule(
            f"{r.does}: {prim} has effects, and what decides them differs between examples",
            fix="do it outside, for one example after the other",
        )


@pile_rules.rule(cond)
def _(r, args, params):
    args = [r.settled(a) for a in args]
    if r.form_of(args[0]) is None:
        return r.through(cond, args, params)
    _no_effects(r, cond, params)
    index = r.to_form(args[0], 0)[0]
    branches, rest = params["branches"], args[1:]
    outs = branches[0].out_avals
    forms = tuple([r.usual(a.aval) for a in rest])
    wanted = tuple([r.usual(a) for a in outs])
    operands = [_usual(r, a) for a in rest]
    total: Any = None
    for i, b in enumerate(branches):
        mine = index == i
        seen = [
            pnp.where(_of_examples(r, mine, a.aval, f), x, stop.bind(x))
            if a.aval.inexact and a.__class__ is not Literal
            else x
            for a, f, x in zip(rest, forms, operands)
        ]  # the select keeps nan (0 * inf) in a branch's derivative from examples that skip it
        program = r.lift_program(b, forms, wanted)[0]
        got = evaluate(program, [*r.ambient, *seen])
        total = got if total is None else _kept(r, mine, got, total, outs)
    return [r.lift(a, f, (x,)) for a, f, x in zip(outs, wanted, total)]


@pile_rules.rule(while_)
def _(r, args, params):
    args = [r.settled(a) for a in args]
    forms = solve(r, while_, args, params)
    if forms[-1] is None:
        return rebuilt(r, while_, args, params, forms)
    _no_effects(r, while_, params)
    c, b = params["cond_consts"], params["body_consts"]
    consts, init = args[: c + b], args[c + b :]
    fixed = tuple([r.form_of(x) for x in consts])
    avals = [x.aval for x in init]
    moving = tuple([r.usual(a) for a in avals])
    test = r.lift_program(params["cond"], (*fixed[:c], *moving), (0,))[0]
    step = r.lift_program(params["body"], (*fixed[c:], *moving), moving)[0]
    ks = [p for x, f in zip(consts, fixed) for p in r.to_form(x, f)]
    n = sum(len(r.parts_of(x.aval, f)) for x, f in zip(consts[:c], fixed[:c]))
    most = params.get("max_steps")

    def going(s: Any) -> Any:
        (flags,) = evaluate(test, [*r.ambient, *ks[:n], *s[1]])
        flags = r.of_examples(flags, 0, False)
        return flags if most is None else pnp.logical_and(flags, s[0] < most)

    def turn(s: Any) -> Any:
        new = evaluate(step, [*r.ambient, *ks[n:], *s[1]])
        return s[0] + 1, _kept(r, going(s), new, s[1], avals)

    first = pnp.zeros((), I32), [_usual(r, x) for x in init]
    _, ends = plait.lax.while_loop(lambda s: going(s).any(), turn, first)
    return [r.lift(a, f, (x,)) for a, f, x in zip(avals, moving, ends)]


@pile_rules.rule(map_axes)
def _(r, args, params):
    args = [r.settled(a) for a in args]
    if not r.caps.mine(params["size"]):
        return r.through(map_axes, args, params)
    say: Any = expand_rules.find(map_axes)
    with use(r):  # the expansion (all rows at once, or one after the other) runs on ragged types
        return as_list(say(*args, **params))


# ---- scan --------------------------------------------------------------------------------------


@pile_rules.rule(scan)
def _(r: Ragged, args, params):
    args = [r.settled(a) for a in args]
    n = params["length"]
    if n.__class__ is not Dim or not r.caps.mine(n):
        return r.through(scan, args, params)
    plain = r.dims.isdisjoint(dims_of([params["body"]]))
    rows = args[params["consts"] + params["carry"] :]
    carried = args[: params["consts"] + params["carry"]]
    plain = plain and not any(r.axes(a.aval) for a in carried)
    if plain and not r.padded and all(r.how(a) in (FLAT, None, PADDED) for a in rows):
        return _in_phases(r, args, params)
    if r.fills(n) and not any(a.category == OPAQUE for a in params["body"].out_avals):
        return _side_by_side(r, args, params)
    return _to_the_longest(r, args, params)


def _side_by_side(r: Ragged, args: Any, params: dict) -> list:
    """Scan examples that all have as many turns; rows are read and written where they are."""
    k, c, body, n = params["consts"], params["carry"], params["body"], params["length"]
    carry, step, consts = _step(r, args, params)
    xs = [r.data(x, PADDED) for x in args[k + c :]]
    outs = [a.with_shape((n, *a.shape)) for a in body.out_avals[c:]]
    shapes = [layout(a, r.caps, PADDED).shape for a in outs]
    ys = [pnp.zeros(shape, a.dtype) for shape, a in zip(shapes, outs, strict=True)]
    row = plait.lax.dynamic_index_in_dim
    put_row = plait.lax.dynamic_update_index_in_dim

    def turn(s: Any, i: Array) -> Any:
        old, ys = s
        here = [row(x, i, 1, keepdims=False) for x in xs]
        got = evaluate(step, [*r.ambient, *consts, *old, *here])
        return (got[:c], [put_row(y, g, i, 1) for y, g in zip(ys, got[c:], strict=True)]), None

    turns = pnp.arange(r.caps.longest(n), dtype=I32)
    (ends, ys), _ = plait.lax.scan(turn, (carry, ys), turns, reverse=params["reverse"])
    avals = [x.aval for x in args[k : k + c]]
    results = [r.lift(a, r.usual(a), (x,)) for a, x in zip(avals, ends, strict=True)]
    return results + [r.result(a, y, PADDED) for a, y in zip(outs, ys, strict=True)]


def _step(r: Ragged, args: Any, params: dict) -> tuple[list, Program, list]:
    """Return the carry, the program of one turn of all examples, and its constants."""
    k, c, body = params["consts"], params["carry"], params["body"]
    fixed = tuple([r.form_of(x) for x in args[:k]])
    consts = [p for x, f in zip(args[:k], fixed) for p in r.to_form(x, f)]
    moving = tuple([r.usual(x.aval) for x in args[k : k + c]])
    rows, ys = [v.aval for v in body.inputs[k + c :]], body.out_avals[c:]
    forms = [tuple([(PADDED, 0) if r.axes(a) else 0 for a in avals]) for avals in (rows, ys)]
    step = r.lift_program(body, (*fixed, *moving, *forms[0]), (*moving, *forms[1]))[0]
    return [_usual(r, x) for x in args[k : k + c]], step, consts


def _to_the_longest(r: Ragged, args: Any, params: dict) -> list:
    """Scan as many turns as the longest example has; finished examples keep their carry."""
    k, c, body, n = params["consts"], params["carry"], params["body"], params["length"]
    reverse = params["reverse"]
    t = r.rows(n)
    avals = [x.aval for x in args[k : k + c]]
    carry, step, consts = _step(r, args, params)
    xs = [pnp.moveaxis(r.data(x, PADDED), 1, 0) for x in args[k + c :]]

    def turn(s: Any, x: Any) -> Any:
        i, old = s
        got = evaluate(step, [*r.ambient, *consts, *old, *x])
        new = _kept(r, i < t.lengths, got[:c], old, avals)
        return (i - 1 if reverse else i + 1, new), got[c:]

    start = pnp.asarray(t.longest - 1 if reverse else 0, I32)
    (_, ends), stacks = plait.lax.scan(turn, (start, carry), xs, length=t.longest, reverse=reverse)
    outs = [a.with_shape((n, *a.shape)) for a in body.out_avals[c:]]
    results = [r.lift(a, r.usual(a), (x,)) for a, x in zip(avals, ends, strict=True)]
    return results + [
        r.result(a, pnp.moveaxis(y, 0, 1), PADDED) for a, y in zip(outs, stacks, strict=True)
    ]


def _in_phases(r: Ragged, args: list[Value], params: dict) -> list:
    """Scan examples sorted by length, in phases of half the width each.

    At most twice as many rows are computed as there are, except for the last eight examples.  The
    rows of stacked results are written at their flat places.
    """
    k, c, body, n = params["consts"], params["carry"], params["body"], params["length"]
    t = r.rows(n)
    outs = scan.infer(tuple([a.aval for a in args]), params)
    forms = [r.form_of(a) for a in args[:k]]
    consts = [r.split(a)[1][0] for a in args[:k]]
    carry = [r.to_form(a, 0)[0] for a in args[k : k + c]]
    rows = [r.data(a, FLAT) for a in args[k + c :]]
    order = pnp.argsort(-t.lengths).astype(I32)
    lengths, first = rows_at(t.lengths, order), rows_at(t.first, order)
    carry = [rows_at(x, order) for x in carry]
    consts = [x if f is None else rows_at(r.front(x, f), order) for x, f in zip(consts, forms)]
    given = (*[None if f is None else 0 for f in forms], *(0,) * (c + len(rows)))
    ys = [pnp.zeros(r.part_avals(a, FLAT)[0].shape, a.dtype) for a in outs[c:]]
    i, width = pnp.zeros((), I32), r.size
    while width:
        half = width // 2
        last = width <= 8
        phase = _Phase(r, body, given, width, t.rows, params["reverse"], len(body.outputs))
        until = lengths[0] if last else lengths[half]
        ks = [x if f is None else x[:width] for x, f in zip(consts, forms)]
        part = [x[:width] for x in carry]
        i, part, ys = phase.run(i, until, lengths[:width], first[:width], ks, part, rows, ys)
        carry = [x.at[:width].set(p) if width < r.size else p for x, p in zip(carry, part)]
        if last:
            break
        width = half
    back = put(pnp.zeros(r.size, I32), order, pnp.arange(r.size, dtype=I32))
    ends = [r.lift(a, 0, (rows_at(x, back),)) for a, x in zip(outs, carry)]
    return ends + [r.lift(a, FLAT, (y,)) for a, y in zip(outs[c:], ys)]


class _Phase:
    """Turns of the `width` longest examples."""

    def __init__(
        self,
        r: Ragged,
        body: Program,
        forms: tuple,
        width: int,
        rows: int,
        reverse: bool,
        results: int,
    ):
        # The step contains no ragged sizes, so plain batching suffices.
        batch = Batch(None, width, None)
        self.step = batch.lift_program(body, forms, (0,) * results)[0]
        self.rows, self.reverse = rows, reverse

    def run(
        self,
        i: Array,
        until: Value,
        n: Value,
        first: Value,
        ks: list,
        carry: list,
        xs: list,
        ys: list,
    ) -> Any:
        def turn(s: Sequence[Any]) -> Any:
            i, old, ys = s
            on = i < n
            at = first + (n - 1 - i if self.reverse else i)
            here = [rows_at(x, pnp.maximum(at, 0)) for x in xs]
            got = evaluate(self.step, [*ks, *old, *here])
            c = len(old)
            new = [pnp.where(along(on, 0, o.ndim), g, o) for g, o in zip(got[:c], old)]
            to = pnp.where(on, at, self.rows)
            ys = [put(y, to, g) for y, g in zip(ys, got[c:])]
            return i + 1, new, ys

        return plait.lax.while_loop(lambda s: s[0] < until, turn, (i, carry, ys))
