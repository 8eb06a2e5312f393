"""Reading branches, loops and calls.

A counting loop becomes a scan, so that it can be differentiated in reverse mode (`counting`); any
other becomes a `while_loop`.

Invariant: if the taken branch is known, only that branch is read.
"""

from collections.abc import Sequence
from typing import Any

import plait
from plait.ext.ops import elementwise as el
from plait.ext.ops.sorting import top_k_
from plait.ext.trace import Value
from plait.ext.types import INT32, Aval
from plait.ext.values import Literal

from ..errors import NotReadable
from .counting import bound_of, counted, counter_of
from .module import Block, Op
from .sizes import Known
from .table import reads
from .walking import Walk, takes_known


def returned(walk: Walk, block: Block, args: Sequence[Any]) -> list[Any]:
    """Read a block and return its results as values."""
    return [walk.value(v) for v in walk.block(block, args)]


# ---- calls ---------------------------------------------------------------------------------


@reads("func.call")
@takes_known
def _(walk: Walk, op, xs: list[Any]):
    return walk.call(op.attributes["callee"], xs)


@reads("stablehlo.composite")
@takes_known
def _(walk: Walk, op, xs: list[Value]):
    """Read a composite operation; `chlo.top_k` of other exporters is restored as `top_k`."""
    said = op.attributes.get("composite_attributes", {})
    if op.attributes.get("name") == "chlo.top_k" and [*said] == ["k"]:
        return list(top_k_.bind(walk.value(xs[0]), k=said["k"]))
    return walk.call(op.attributes["decomposition"], xs)


# ---- branches ------------------------------------------------------------------------------


@reads("stablehlo.case")
@takes_known
def _(walk, op, xs):
    """Read a choice by index; an index out of range selects the last branch."""
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
def _(walk: Walk, op, xs):
    (flag,) = xs
    then, other = op.regions
    if flag.__class__ is Known:
        return walk.block(then if flag.items[0] else other, [])
    branches = [lambda b=b: returned(walk, b, []) for b in (then, other)]
    return list(plait.lax.cond(flag, *branches))


# ---- loops ---------------------------------------------------------------------------------


@reads("stablehlo.while")
@takes_known
def _(walk: Walk, op, xs: list[Any]):
    test, body = op.regions
    kept = [i for i, (n, y) in enumerate(zip(body.arguments, body.returned)) if n == y]
    counts = counter_of(walk, op, xs, kept)
    given = [x if i in kept else walk.value(x) for i, x in enumerate(xs)]
    if counts is not None:
        return counted(walk, body, given, kept, counts)
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
    most = bound_of(walk, op, xs)
    state = [walk.value(given[i]) for i in moving]
    found = plait.lax.while_loop(going, turn, state, max_steps=most)
    return whole(found)


# ---- for compilers only --------------------------------------------------------------------


@reads("sdy.sharding_constraint")
def _(walk: Walk, op: Op, xs: list[Value]):
    """Drop a sharding constraint, which has no effect on one device."""
    return xs[0]


@reads("stablehlo.return", "func.return")
def _(walk: Walk, op, xs: object):
    raise NotReadable(f"{op.name} in the middle of a block")
