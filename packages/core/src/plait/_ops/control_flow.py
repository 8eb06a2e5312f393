"""Control flow primitives, which carry programs: call, cond, while, scan.

Invariant: each declares its wiring and how it is rebuilt over other programs.  Transformations,
checks and printers work from these declarations, so none of them lists these primitives.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.errors import ArgumentError, ShapeError
from .._base.jaxlib_api import IrValue
from .._core.array import Literal
from .._core.divided import with_axis
from .._core.higher_order import Slots, Wiring, width
from .._core.interpreter import Value
from .._core.ir import Program, evaluate, ordered
from .._core.primitive import Primitive
from .._core.staging import staged
from .._types.avals import BOOL, INT32, Aval
from .._types.dims import Dim, is_symbolic
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import constant_of, i64, i64s
from .dynamic_slicing import dynamic_update_slice_
from .elementwise import add, sub
from .empty_axes import make_room, take_back, with_room
from .platforms import answers
from .shape import broadcast_in_dim, moveaxis

__all__ = ["call", "cond", "expect", "scan", "while_"]

_I, _B = Aval((), INT32), Aval((), BOOL)


def expect(what: str, want: Sequence[Aval], got: Sequence[Aval]) -> None:
    """Require types that agree in shape and dtype; weakness may differ.  Raises TypeRule."""
    if len(want) != len(got):
        raise ArgumentError(f"{what}: {len(want)} values are expected and {len(got)} given")
    for a, b in zip(want, got):
        if a is not b and not a.same_type(b):
            raise ArgumentError(f"{what}: a value must be {a!r} and is {b!r}")


# ---- call ----------------------------------------------------------------------------------


def _call(*xs: Aval, program: Program) -> list[Aval]:
    """Apply a program: one function of the compiled module, however often it is called."""
    expect("call", program.in_avals, xs)
    return program.out_avals


call = Primitive("core.call", _call, many=True, higher=Wiring())


@lower_rules.rule(call)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], program: Program):
    return e.call(program, xs)


# ---- cond ----------------------------------------------------------------------------------


class Branches(Wiring):
    """The wiring of cond: an index, which is not lifted, then the operands of every branch."""

    def slots(self, params: dict[str, Any]) -> Slots:
        p = params["branches"][0]
        n, m = len(p.inputs) + 1, len(p.outputs)
        outs = range(n, n + m)
        bodies = [(b, range(1, n), outs) for b in params["branches"]]
        return Slots(range(n), outs, bodies, n + m, plain=[0])

    def rebuild(
        self,
        params: dict[str, Any],
        programs: list[Program],
        parts: list[tuple[Any, ...]],
        operands: list[Value],
        extra: list[Any],
    ):
        return [operands[0], *extra, *operands[1:]], {"branches": tuple(programs)}


def _cond(index: Aval, *xs: Aval, branches: tuple) -> list[Aval]:
    """Apply branch number `index`, an i32 in range."""
    expect("the index of cond", [_I], [index])
    first = branches[0]
    for b in branches:
        expect(f"operands of branch {b.name}", b.in_avals, xs)
        expect(f"results of branch {b.name}", first.out_avals, b.out_avals)
    weak = [all(t.weak_type for t in ts) for ts in zip(*[b.out_avals for b in branches])]
    return [t if w else t.strong() for t, w in zip(first.out_avals, weak)]


cond = Primitive("core.cond", _cond, many=True, higher=Branches())


@lower_rules.rule(cond)
def _(
    e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], branches: tuple[Program, ...]
):
    known = 0 if len(branches) == 1 else constant_of(xs[0])
    if known is not None:
        return e.program(branches[known], xs[1:])
    regions = [((), lambda b, _, p=p: b.program(p, xs[1:])) for p in branches]
    by_platform = answers(e, xs[0])
    if by_platform is not None:
        regions = [((), body) for body in _of_platforms(branches, by_platform, xs[1:])]
    r = e.op("stablehlo.case", [xs[0]], *outs, order=ordered(branches), regions=regions)
    return r if len(outs) != 1 else [r]


def _of_platforms(branches: Sequence[Program], platforms: Sequence[tuple], xs: list) -> list:
    """Return a body for each branch, lowered for the platforms that take it.

    A branch that no platform takes gets the body of another one.
    """

    def body(p: Program, names: tuple) -> Any:
        def lowered(b: Emitter, _: list[Any]) -> Any:
            before, b.unit.platforms = b.unit.platforms, names
            try:
                return b.program(p, xs)
            finally:
                b.unit.platforms = before

        return lowered

    pairs = list(zip(branches, platforms, strict=True))
    some = next(pair for pair in pairs if pair[1])
    return [body(*(pair if pair[1] else some)) for pair in pairs]


# ---- while ---------------------------------------------------------------------------------


class Until(Wiring):
    """The wiring of while: constants of the predicate, constants of the body, carry."""

    def slots(self, params: dict[str, Any]) -> Slots:
        c, b = params["cond_consts"], params["body_consts"]
        n = len(params["body"].inputs) + c
        carry = range(c + b, n)
        bodies = [
            (params["cond"], (*range(c), *carry), (n,)),
            (params["body"], range(c, n), carry),
        ]
        return Slots(range(n), carry, bodies, n + 1, plain=[n])

    def rebuild(
        self,
        params: dict[str, Any],
        programs: list[Program],
        parts: list[tuple[Any, ...]],
        operands: list[Value],
        extra: list[Any],
    ):
        c, b = params["cond_consts"], params["body_consts"]
        cc, bc = width(parts[:c]), width(parts[c : c + b])
        operands = [*extra, *operands[:cc], *extra, *operands[cc:]]
        return operands, {
            **params,
            "cond": programs[0],
            "body": programs[1],
            "cond_consts": cc + len(extra),
            "body_consts": bc + len(extra),
        }


def _while(
    *xs: Aval,
    cond: Program,
    body: Program,
    cond_consts: int,
    body_consts: int,
    max_steps: int | None = None,
) -> list[Aval]:
    """Apply `body` to the carry while `cond` holds for it, at most `max_steps` times.

    The bound is part of what the loop does, not a promise about it.  Transformations may therefore
    rely on it without a check.
    """
    if max_steps is not None and max_steps < 0:
        raise ArgumentError(f"while cannot turn {max_steps} times", fix="give a max_steps >= 0")
    carry = xs[cond_consts + body_consts :]
    expect("the predicate of while", cond.in_avals, (*xs[:cond_consts], *carry))
    expect("the result of the predicate of while", [_B], cond.out_avals)
    expect("the body of while", body.in_avals, xs[cond_consts:])
    expect("the carry of while", carry, body.out_avals)
    return [a if o.weak_type else a.strong() for a, o in zip(carry, body.out_avals)]


while_ = Primitive("core.while", _while, many=True, higher=Until())


@lower_rules.rule(while_)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    cond: Program,
    body: Program,
    cond_consts: int,
    body_consts: int,
    max_steps: int | None = None,
):
    k = cond_consts + body_consts
    cc, bc, init = xs[:cond_consts], xs[cond_consts:k], xs[k:]
    order = ordered([cond, body])
    if max_steps is not None:
        return _while_bounded(e, cc, bc, init, outs, cond, body, order, max_steps)
    if cond.effects:
        return _while_acting(e, cc, bc, init, outs, cond, body, order)
    regions = [
        (outs, lambda b, s: b.program(cond, [*cc, *s])),
        (outs, lambda b, s: b.program(body, [*bc, *s])),
    ]
    r = e.op("stablehlo.while", init, *outs, order=order, regions=regions)
    return r if len(outs) != 1 else [r]


def _while_acting(e: Emitter, cc, bc, init, outs: list[Aval], cond, body: Program, order):
    """Lower a loop whose predicate has effects.

    Tokens can leave the predicate only if it is computed before the loop and after each turn.
    """

    def turn(b: Emitter, s: list[IrValue]):
        new = b.program(body, [*bc, *s[1:]])
        return [*b.program(cond, [*cc, *new]), *new]

    types = (_B, *outs)
    first = e.program(cond, [*cc, *init])
    regions = [(types, lambda b, s: s[:1]), (types, turn)]
    r = e.op("stablehlo.while", [*first, *init], *types, order=order, regions=regions)
    return list(r)[1:] if outs else []


def _while_bounded(
    e: Emitter,
    cc: list[IrValue],
    bc: list[IrValue],
    init: list[IrValue],
    outs: list[Aval],
    cond: Program,
    body: Program,
    order: tuple[Any, ...],
    max_steps: int,
):
    """Lower a loop that also carries its number of turns; its predicate may have effects."""
    index = _counter(max_steps)

    def going(b: Emitter, i: IrValue, s: list[IrValue]):
        (more,) = b.program(cond, [*cc, *s])
        left = b.compare(i, b.constant(max_steps, index), "LT", _B)
        return b.op("stablehlo.and", [more, left], _B)

    def turn(b: Emitter, s: list[IrValue]):
        i = b.op("stablehlo.add", [s[1], b.constant(1, index)], index)
        new = b.program(body, [*bc, *s[2:]])
        return [going(b, i, new), i, *new]

    types, zero = (_B, index, *outs), e.constant(0, index)
    regions = [(types, lambda b, s: s[:1]), (types, turn)]
    first = [going(e, zero, init), zero, *init]
    return list(e.op("stablehlo.while", first, *types, order=order, regions=regions))[2:]


# ---- scan ----------------------------------------------------------------------------------


class Steps(Wiring):
    """The wiring of scan: constants, carry, rows of xs; then the carry and rows of ys.

    Rows lie along leading axes.  Components that have the axis of rows elsewhere are moved, and
    components without such an axis are the same in every row.
    """

    def slots(self, params: dict[str, Any]) -> Slots:
        k, c, p = params["consts"], params["carry"], params["body"]
        n, m = len(p.inputs), len(p.outputs)
        carry, ys = range(k, k + c), range(n, n + m - c)
        outs = (*carry, *ys)
        mapped: dict[int, tuple[int, ...]] = dict.fromkeys((*range(k + c, n), *ys), (0,))
        return Slots(range(n), outs, [(p, range(n), outs)], n + m - c, mapped)

    def rebuild(
        self,
        params: dict[str, Any],
        programs: list[Program],
        parts: list[tuple[Any, ...]],
        operands: list[Value],
        extra: list[Any],
    ):
        k, c, n = params["consts"], params["carry"], len(params["body"].inputs)
        fixed = width(parts[: k + c])
        rows = [p.at[0] for ps in parts[k + c : n] for p in ps]
        xs = [
            _in_front(x, a, params["length"]) for x, a in zip(operands[fixed:], rows, strict=True)
        ]
        return [*extra, *operands[:fixed], *xs], {
            **params,
            "body": programs[0],
            "consts": width(parts[:k]) + len(extra),
            "carry": width(parts[k : k + c]),
        }

    def carried(self, params: dict[str, Any]):
        return lambda *xs: _in_buffers(*xs, **params)

    def returned(self, params, parts: Sequence[tuple[Any, ...]], values: Sequence[Value]):
        k, c, n = params["consts"], params["carry"], len(params["body"].inputs)
        ends = width(parts[k : k + c])
        rows = [p.at[0] for ps in parts[n:] for p in ps]
        return [
            *values[:ends],
            *[moveaxis(y, 0, axis) if axis else y for y, axis in zip(values[ends:], rows)],
        ]


def _in_front(x: Value, axis: int | None, length: Dim | int) -> Any:
    """Move the rows along `axis` to a leading axis; None repeats a single row."""
    if axis is None:
        shape, dims = (length, *x.aval.shape), tuple(range(1, x.aval.ndim + 1))
        return broadcast_in_dim.bind(x, shape=shape, dims=dims)
    return moveaxis(x, axis, 0) if axis else x


def _scan(
    *xs: Aval, body: Program, consts: int, carry: int, length: int, reverse: bool, unroll: int
) -> list[Aval]:
    """Apply `body(consts, carry, x) -> (carry, y)` along the leading axis of xs; ys are stacked."""
    k = consts + carry
    for x in xs[k:]:
        if not x.ndim or x.shape[0] != length:
            raise ShapeError(
                f"scan of length {length} over {x!r}",
                fix="the leading axes of all xs must have the length of the scan",
            )
    rows = [x.with_shape(x.shape[1:]) for x in xs[k:]]
    expect("the step of scan", body.in_avals, (*xs[:k], *rows))
    expect("the carry of scan", xs[consts:k], body.out_avals[:carry])
    ys = [with_axis(y, 0, length) for y in body.out_avals[carry:]]
    ends = [a if o.weak_type else a.strong() for a, o in zip(xs[consts:k], body.out_avals[:carry])]
    return [*ends, *ys]


def _in_buffers(
    *xs: Any, body: Program, consts: int, carry: int, length: int, reverse: bool, unroll: int
) -> list[Any]:
    """Apply a scan that carries its stacked results, and writes a row of each in every turn."""
    k, m = consts, len(body.outputs) - carry
    ys = [with_axis(y, 0, length) for y in body.out_avals[carry:]]

    def step(*vs: Any) -> list[Any]:
        i, filled, rest = vs[k], vs[k + 1 : k + 1 + m], vs[k + 1 + m :]
        outs = evaluate(body, [*vs[:k], *rest])
        filled = [_written(y, r, i) for y, r in zip(filled, outs[carry:], strict=True)]
        following = sub.bind(i, Literal(1, _I)) if reverse else add.bind(i, Literal(1, _I))
        return [following, *filled, *outs[:carry]]

    types = body.in_avals
    made = staged(step, [*types[:k], _I, *ys, *types[k:]], body.name)
    first = Literal(length - 1 if reverse else 0, _I)
    empty = [Literal(0, y) for y in ys]
    outs = scan.bind(
        *xs[:k], first, *empty, *xs[k:],
        body=made, consts=k, carry=carry + m + 1, length=length, reverse=reverse, unroll=unroll,
    )  # fmt: skip
    return [*outs[m + 1 :], *outs[1 : m + 1]]


def _written(y: Any, row: Any, i: IrValue) -> Any:
    """Return `y` with `row` at position `i` of its leading axis."""
    shape = row.aval.shape
    box = broadcast_in_dim.bind(row, shape=(1, *shape), dims=tuple(range(1, len(shape) + 1)))
    return dynamic_update_slice_.bind(y, box, i, *[Literal(0, _I)] * len(shape))


scan = Primitive("core.scan", _scan, many=True, higher=Steps())


def _with_row_at_least(aval: Aval) -> Aval:
    """Return the type of a value that is read or written row by row, with room for one row."""
    return with_room(aval, (1, *aval.shape[1:]))


def _counter(most: Dim | int) -> Aval:
    """Return the type of a counter of up to `most` turns: i32, unless that is too narrow."""
    return _I if most.__class__ is Dim or most < 2**31 else Aval((), np.int64)


def _at(e: Emitter, i: IrValue, n: int, index: Aval) -> list:
    return [i, *(e.constant(0, index) for _ in range(n - 1))]


def _row(e: Emitter, x: IrValue, i: IrValue, aval: Aval, index: Aval) -> Any:
    """Read row `i`, a value of type `index`, of a value of this type."""
    slim, row = aval.with_shape((1, *aval.shape[1:])), aval.with_shape(aval.shape[1:])
    if is_symbolic(row.shape):
        one = e.op("stablehlo.reshape", [i], Aval((1,), INT32))
        vector = Aval((aval.ndim,), INT32)
        zeros = e.shape((0,) * row.ndim)
        start = e.op("stablehlo.concatenate", [one, zeros], vector, dimension=i64(0))
        # Shape refinement finds static sizes only if the limit has the form start + sizes.
        stop = e.op("stablehlo.add", [start, e.shape(slim.shape)], vector)
        strides = e.shape((1,) * aval.ndim)
        y = e.op("stablehlo.real_dynamic_slice", [x, start, stop, strides], slim)
        return e.op("stablehlo.dynamic_reshape", [y, e.shape(row.shape)], row)
    sizes = i64s(*slim.shape)
    y = e.op("stablehlo.dynamic_slice", [x, *_at(e, i, aval.ndim, index)], slim, slice_sizes=sizes)
    return e.op("stablehlo.reshape", [y], row)


def _with_row(e: Emitter, ys: IrValue, i: IrValue, y: IrValue, aval: Aval, index: Aval) -> Any:
    """Return `ys` with row `i` replaced."""
    slim = aval.with_shape((1, *aval.shape[1:]))
    if is_symbolic(slim.shape):
        y = e.op("stablehlo.dynamic_reshape", [y, e.shape(slim.shape)], slim)
    else:
        y = e.op("stablehlo.reshape", [y], slim)
    return e.op("stablehlo.dynamic_update_slice", [ys, y, *_at(e, i, aval.ndim, index)], aval)


@lower_rules.rule(scan)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    body: Program,
    consts: int,
    carry: int,
    length,
    reverse: bool,
    unroll,
):
    k = consts + carry
    ks, init, rows = xs[:consts], xs[consts:k], xs[k:]
    row_avals = [_with_row_at_least(a) for a in ins[k:]]
    y_avals = [_with_row_at_least(a) for a in outs[carry:]]
    rows = [make_room(e, x, a, b) for x, a, b in zip(rows, ins[k:], row_avals)]
    ys = [e.constant(np.zeros((), a.dtype), a) for a in y_avals]
    symbolic, index = length.__class__ is Dim, _counter(length)
    if not symbolic and length == 0:
        return [*init, *ys]

    def limit(b: Emitter, n: Dim | int) -> Any:
        return b.size(n) if symbolic else b.constant(n, index)

    def step(b: Emitter, i: IrValue, state: list[IrValue], ys: list[IrValue]):
        """Run turn number `i`, a value."""
        j = b.op("stablehlo.subtract", [limit(b, length - 1), i], index) if reverse else i
        given = [_row(b, x, j, a, index) for x, a in zip(rows, row_avals)]
        r = b.program(body, [*ks, *state, *given])
        ys = [_with_row(b, y, j, new, a, index) for y, new, a in zip(ys, r[carry:], y_avals)]
        return r[:carry], ys

    unroll = 1 if symbolic else max(1, min(unroll, length))
    turns = length if symbolic else length // unroll * unroll

    def turn(b: Emitter, s: list[IrValue]):
        i, state, ys = s[0], s[1 : 1 + carry], s[1 + carry :]
        for _ in range(unroll):
            state, ys = step(b, i, state, ys)
            i = b.op("stablehlo.add", [i, b.constant(1, index)], index)
        return [i, *state, *ys]

    def going(b: Emitter, s: list[IrValue]):
        return [b.compare(s[0], limit(b, turns), "LT", _B)]

    state = list(init)
    if symbolic or turns > unroll:
        types = (index, *outs[:carry], *y_avals)
        init = [e.constant(0, index), *state, *ys]
        regions = [(types, going), (types, turn)]
        r = e.op("stablehlo.while", init, *types, order=ordered([body]), regions=regions)
        r = list(r)[1:] if len(types) > 1 else []
        state, ys = r[:carry], r[carry:]
        done = turns
    else:
        done = 0
    for i in range(0) if symbolic else range(done, length):
        state, ys = step(e, e.constant(i, index), state, ys)
    return [*state, *(take_back(e, y, b, a) for y, a, b in zip(ys, outs[carry:], y_avals))]
