"""What operations do to keys: who makes them, who uses them up, and how loops and branches do.

Invariant: splitting a key and drawing with it use it up; folding a number into it does not, nor
does looking at its words.  What may have been used up counts as used up.
"""

import functools
from typing import Any

import numpy as np

from ..reuse import Known, Names, Walk, fresh, one_of, reuse_rules
from ..types import OPAQUE
from .elementwise import select
from .higher import call, cond, scan, while_
from .indexing import dynamic_slice_, dynamic_update_slice_, gather_, scatter_
from .keys import random_bits, random_clone, random_fold_in, random_seed, random_split
from .mapping import map_axes
from .opaque import unwrap_, wrap_


@reuse_rules.rule(random_bits, random_split)
def _(walk: Walk, e: Any, xs: Any) -> list[Any]:
    if xs[0].__class__ is Names:
        walk.spend(xs[0], e.where)
    return [None]


@reuse_rules.rule(random_clone, random_fold_in, random_seed)
def _(walk: Walk, e: Any, xs: Any) -> list[Any]:
    return [None]


@reuse_rules.rule(unwrap_)
def _(walk: Walk, e: Any, xs: Any) -> list[Any]:
    return xs


@reuse_rules.rule(wrap_)
def _(walk: Walk, e: Any, xs: Any) -> list[Any]:
    """Words that are wrapped twice are one key."""
    shape = e.outputs[0].aval.shape
    if xs[0].__class__ is Names and xs[0].at.shape == shape:
        return xs
    names = walk.env[e.inputs[0]] = fresh(shape)
    return [names]


@reuse_rules.rule(select)
def _(walk: Walk, e: Any, xs: Any) -> list[Any]:
    p, x, y = xs
    if x.__class__ is Known and y.__class__ is Known and p.__class__ is Known:
        return walk.moved(e, xs)
    if x.__class__ is not Names or y.__class__ is not Names:
        return [None]
    if p.__class__ is Known:
        return [Names(np.where(p.value, x.at, y.at))]
    return [one_of(x, y)]


@reuse_rules.rule(dynamic_slice_, dynamic_update_slice_, gather_, scatter_)
def _(walk: Walk, e: Any, xs: Any) -> list[Any]:
    return walk.moved(e, xs)


@reuse_rules.rule(call)
def _(walk: Walk, e: Any, xs: Any) -> list[Any]:
    return walk.call(e.params["program"], xs, e.where if walk.at is None else walk.at)


# ---- loops and branches ----------------------------------------------------------------------


def _lasting(xs: Any) -> list[Any]:
    """What is known of a carry in later turns: names, and no values."""
    return [x if x.__class__ is Names else None for x in xs]


def _turns(n: Any) -> int:
    return min(n, 2) if n.__class__ is int else 2


def _rest(walk: Walk, rows: Any, axes: Any) -> None:
    """What was spent of the first row is spent of all that were not walked."""
    for x, a in zip(rows, axes, strict=True):
        if x.__class__ is not Names or a is None or x.at.shape[a] < 3:
            continue
        at = np.moveaxis(x.at, a, 0)
        for place, name in np.ndenumerate(at[0]):
            where = walk.is_spent(name)
            if where is not None:
                walk.spend(Names(at[(slice(2, None), *place)]), where)


def _row(x: Any, a: int | None, t: int) -> Any:
    if a is None:
        return x
    return Names(np.take(x.at, t, a)) if x.__class__ is Names else None


def _stacked(walk: Walk, e: Any, last: Any, first: int, axes: Any) -> list[Any]:
    """Names of stacked results: new ones, spent where those of a row are."""
    out: list[Any] = []
    for v, y, a in zip(e.outputs[first:], last, axes, strict=True):
        if v.aval.category != OPAQUE:
            out.append(None)
            continue
        names = fresh(v.aval.shape)
        at = np.moveaxis(names.at, a, 0)
        for place, name in np.ndenumerate(y.at) if y.__class__ is Names else ():
            where = walk.is_spent(name)
            if where is not None:
                walk.spend(Names(at[(slice(None), *place)]), where)
        out.append(names)
    return out


@reuse_rules.rule(scan)
def _(walk: Walk, e: Any, xs: Any) -> list[Any]:
    p = e.params
    k, c = p["consts"], p["consts"] + p["carry"]
    consts, carry, rows = _lasting(xs[:k]), _lasting(xs[k:c]), xs[c:]
    axes, last = [0] * len(rows), []
    for t in range(_turns(p["length"])):
        got = walk.program(p["body"], [*consts, *carry, *[_row(x, 0, t) for x in rows]])
        carry, last = _lasting(got[: p["carry"]]), got[p["carry"] :]
    _rest(walk, rows, axes)
    ys = len(e.outputs) - p["carry"]
    last = last or [None] * ys
    return [*carry, *_stacked(walk, e, last, p["carry"], [0] * ys)]


@reuse_rules.rule(map_axes)
def _(walk: Walk, e: Any, xs: Any) -> list[Any]:
    p = e.params
    last: list[Any] = [None] * len(e.outputs)
    for t in range(_turns(p["size"])):
        rows = [_row(x, a, t) for x, a in zip(xs, p["in_axes"], strict=True)]
        last = walk.program(p["program"], rows)
    _rest(walk, xs, p["in_axes"])
    return _stacked(walk, e, last, 0, p["out_axes"])


@reuse_rules.rule(while_)
def _(walk: Walk, e: Any, xs: Any) -> list[Any]:
    p = e.params
    n, m = p["cond_consts"], p["cond_consts"] + p["body_consts"]
    given, carry = _lasting(xs[:m]), _lasting(xs[m:])
    for _ in range(2):
        walk.program(p["cond"], [*given[:n], *carry])
        carry = _lasting(walk.program(p["body"], [*given[n:], *carry]))
    return carry


@reuse_rules.rule(cond)
def _(walk: Walk, e: Any, xs: Any) -> list[Any]:
    index, *args = xs
    branches = e.params["branches"]
    if index.__class__ is Known:
        branches = [branches[int(index.value)]]
    before, spent, results = dict(walk.spent), dict(walk.spent), []
    for b in branches:
        one = Walk(dict(before), walk.at)
        one.inner, one.again, one.repeats = walk.inner, set(walk.again), walk.repeats
        results.append(one.program(b, args))
        spent.update(one.spent)
    walk.spent.update(spent)
    return [functools.reduce(_merged, each) for each in zip(*results)]


def _merged(x: Any, y: Any) -> Any:
    """What is known of a value that is one of two."""
    return one_of(x, y) if x.__class__ is Names and y.__class__ is Names else None
