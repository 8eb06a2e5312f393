"""Reading branches, loops and calls.

A loop that counts, from a number known before it up to another, is a scan, as its derivative in
reverse mode needs; any other is a `while_loop`.

Invariant: a loop is taken for one that counts only if its condition is that the counter is below a
number which no turn changes, and each turn adds a known number to the counter.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import plait
from plait.ext.ops import (
    elementwise as el,
)
from plait.ext.ops import (
    shape as shapes,
)
from plait.ext.sizes import (
    Dim,
    max_dim,
)
from plait.ext.types import (
    INT32,
    Aval,
)
from plait.ext.values import (
    Literal,
)

from ..errors import NotReadable
from .module import Block, Op
from .sizes import Known
from .table import enum, reads
from .walking import Walk, takes_known


def returned(walk: Walk, block: Block, args: Sequence[Any]) -> list:
    """What a block returns, as values."""
    return [walk.value(v) for v in walk.block(block, args)]


# ---- calls ---------------------------------------------------------------------------------


@reads("func.call")
@takes_known
def _(walk, op, xs):
    return walk.call(op.attributes["callee"], xs)


@reads("stablehlo.composite")
@takes_known
def _(walk, op, xs):
    return walk.call(op.attributes["decomposition"], xs)


# ---- branches ------------------------------------------------------------------------------


@reads("stablehlo.case")
@takes_known
def _(walk, op, xs):
    """A number that no branch has is for the last one."""
    (index,), last = xs, len(op.regions) - 1
    if index.__class__ is Known and index.items[0].__class__ is int:
        k = index.items[0]
        return walk.block(op.regions[k if 0 <= k <= last else last], [])
    index = walk.value(index)
    fill = lambda n: Literal(n, Aval((), INT32))  # noqa: E731
    inside = el.and_.bind(el.ge.bind(index, fill(0)), el.le.bind(index, fill(last)))
    index = el.select.bind(inside, index, fill(last))
    branches = [lambda b=b: returned(walk, b, []) for b in op.regions]
    return list(plait.lax.switch(index, branches))


@reads("stablehlo.if")
@takes_known
def _(walk, op, xs):
    (flag,) = xs
    then, other = op.regions
    if flag.__class__ is Known:
        return walk.block(then if flag.items[0] else other, [])
    branches = [lambda b=b: returned(walk, b, []) for b in (then, other)]
    return list(plait.lax.cond(flag, *branches))


# ---- loops ---------------------------------------------------------------------------------


@reads("stablehlo.while")
@takes_known
def _(walk, op, xs):
    test, body = op.regions
    kept = [i for i, (n, y) in enumerate(zip(body.arguments, body.returned)) if n == y]
    counts = _counter(walk, op, xs, kept)
    given = [x if i in kept else walk.value(x) for i, x in enumerate(xs)]
    if counts is not None:
        return _counted(walk, body, given, kept, counts)
    moving = [i for i in range(len(xs)) if i not in kept]

    def whole(state: Sequence[Any]) -> list:
        found = list(given)
        for i, x in zip(moving, state, strict=True):
            found[i] = x
        return found

    def turn(state: Sequence[Any]) -> list:
        new = returned(walk, body, whole(state))
        return [new[i] for i in moving]

    going = lambda state: returned(walk, test, whole(state))[0]  # noqa: E731
    found = plait.lax.while_loop(going, turn, [walk.value(given[i]) for i in moving])
    return whole(found)


class Counter(NamedTuple):
    """Of a loop: which value it is, from where, by how much each turn, how many turns."""

    number: int
    start: Any
    step: int
    turns: Any


def _counter(walk: Walk, op: Op, xs: Sequence[Any], kept: Sequence[int]) -> Counter | None:
    """The counter of a loop that counts; None of any other."""
    test, body = op.regions
    last = made_by(test, test.returned[0])
    if last is None or last.name != "stablehlo.compare":
        return None
    if enum(last.attributes["comparison_direction"]) != "LT":
        return None
    left, right = last.operands
    if left not in test.arguments:
        return None
    k = test.arguments.index(left)
    start, top = xs[k], _settled(walk, test, right, xs, kept)
    step = _step(walk, body, k)
    if start.__class__ is not Known or top is None or step is None:
        return None
    first, count = start.items[0], top - start.items[0]
    if count.__class__ is not Dim:
        return Counter(k, first, step, max(0, -(-count // step)))
    return Counter(k, first, step, max_dim(0, -(-count // step)))


def made_by(block: Block, number: int) -> Op | None:
    """The operation of a block that makes a value."""
    return next((op for op in block.ops if number in op.results), None)


def _settled(
    walk: Walk, test: Block, number: int, xs: Sequence[Any], kept: Sequence[int]
) -> Any | None:
    """The number with which a counter is compared, if it is known before the loop."""
    if number in test.arguments:
        i = test.arguments.index(number)
        found = xs[i] if i in kept else None
    else:
        made = made_by(test, number)
        if made is None:
            found = walk.of(number)
        else:  # computed in the condition, of what is known outside
            args = [x if i in kept else None for i, x in enumerate(xs)]
            found = walk.known_in(test, number, args)
    return found.items[0] if found.__class__ is Known else None


def _step(walk: Walk, body: Block, k: int) -> int | None:
    """How much a turn adds to its argument k; None if it does something else to it."""
    at, total = body.returned[k], 0
    while at != body.arguments[k]:
        op = made_by(body, at)
        if op is None or op.name != "stablehlo.add":
            return None
        pair = [(n, _written(walk, body, m)) for n, m in (op.operands, op.operands[::-1])]
        found = next(((n, m) for n, m in pair if m is not None), None)
        if found is None:
            return None
        at, total = found[0], total + found[1]
    return total if total > 0 else None


def _written(walk: Walk, body: Block, number: int) -> int | None:
    """The number that a constant is, inside of a block or outside."""
    if number in body.arguments:
        return None
    op = made_by(body, number)
    if op is None:
        found = walk.of(number)
        plain = found.__class__ is Known and not found.shape and found.items[0].__class__ is int
        return found.items[0] if plain else None
    if op.name != "stablehlo.constant" or op.types[0].shape:
        return None
    return int(op.attributes["value"])


def _counted(
    walk: Walk, body: Block, given: list, kept: Sequence[int], counter: Counter
) -> list:
    """The results of a loop that counts; what no turn changes stays outside."""
    k, start, step, turns = counter
    kind = body.types[k].dtype
    moving = [i for i in range(len(given)) if i not in kept and i != k]

    def turn(state: Sequence[Any], i: Any) -> Any:
        args = list(given)
        for j, x in zip(moving, state, strict=True):
            args[j] = x
        args[k] = i
        new = returned(walk, body, args)
        return [new[j] for j in moving], None

    number = shapes.iota(kind, (turns,))
    if step != 1:
        number = number * np.asarray(step, kind)
    if start != 0:
        number = number + Known([start], (), kind).value()
    state, _ = plait.lax.scan(turn, [given[j] for j in moving], number)
    found = list(given)
    for j, x in zip(moving, state, strict=True):
        found[j] = x
    found[k] = Known([start + step * turns], (), kind)
    return found


# ---- what only compilers look at -----------------------------------------------------------


@reads("stablehlo.return", "func.return")
def _(walk, op, xs):
    raise NotReadable(f"{op.name} in the middle of a block")
