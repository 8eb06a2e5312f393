"""Rules of key reuse: which operations make random keys, use them up, or pass them on.

Invariant: splitting a key and drawing with it use it up; folding a number into it and reading its
words do not.  A key that may have been used up counts as used up.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.ext.ir import Eqn
from plait.ext.ops.control_flow import call, cond, map_axes, scan, while_
from plait.ext.ops.elementwise import select
from plait.ext.ops.indexing import dynamic_slice_, dynamic_update_slice_, gather_, scatter_
from plait.ext.ops.opaque import unwrap_, wrap_
from plait.ext.ops.random import (
    random_bits,
    random_clone,
    random_fold_in,
    random_seed,
    random_split,
)
from plait.ext.rules import reuse_rules
from plait.ext.types import INTEGER, OPAQUE

from .names import Known, Names, Same, fresh, mark, one_of, unknown
from .walk import Walk


@reuse_rules.rule(random_bits, random_split)
def _(walk: Walk, e: Eqn, xs: list[Any]) -> list[Any]:
    if xs[0].__class__ is Names:
        walk.spend(xs[0], e.where)
    return [None]


@reuse_rules.rule(random_clone, random_fold_in, random_seed)
def _(walk: Walk, e: object, xs: object) -> list[Any]:
    return [None]


@reuse_rules.rule(unwrap_)
def _(walk: Walk, e: object, xs: Any) -> list[Any]:
    return xs


@reuse_rules.rule(wrap_)
def _(walk: Walk, e: Eqn, xs: list[Any]) -> list[Any]:
    """Return the same names for words that are wrapped again, since they are one key."""
    shape = e.outputs[0].aval.shape
    if xs[0].__class__ is Names and xs[0].at.shape == shape:
        return xs
    if xs[0].__class__ is Same:
        return [walk.numbered(e, xs, lambda: fresh(shape))]
    names = walk.env[e.inputs[0]] = fresh(shape)
    return [names]


@reuse_rules.rule(select)
def _(walk: Walk, e: Eqn, xs: list[Any]) -> list[Any]:
    p, x, y = xs
    if x.__class__ is Known and y.__class__ is Known and p.__class__ is Known:
        return walk.moved(e, xs)
    if x.__class__ is not Names or y.__class__ is not Names:
        whole = e.outputs[0].aval.category <= INTEGER
        return [walk.numbered(e, xs, unknown) if whole else None]
    if p.__class__ is Known:
        return [Names(np.where(p.value, x.at, y.at))]
    return [one_of(x, y)]


@reuse_rules.rule(dynamic_slice_, gather_)
def _(walk: Walk, e: Eqn, xs: list[Any]) -> list[Any]:
    return walk.at_places(e, xs, lambda position: xs[0].at.flat)


@reuse_rules.rule(dynamic_update_slice_, scatter_)
def _(walk: Walk, e: Eqn, xs: list[Any]) -> list[Any]:
    """Name an element after the old one and all keys that may be written there."""
    new = next((x.at.flat for x in xs[1:] if x.__class__ is Names), ())
    return walk.at_places(e, xs, lambda position: [xs[0].at[position], *new])


@reuse_rules.rule(call)
def _(walk: Walk, e: Eqn, xs: list[Any]) -> list[Any]:
    return walk.call(e.params["program"], xs, e.where if walk.at is None else walk.at)


# ---- loops and branches ----------------------------------------------------------------------


_EXACT = 8
"""Loops of at most this many turns are walked in full if known values enter them."""


def _lasting(xs: Sequence[None | Same]) -> list[Any]:
    """Drop the known values of a carry, which hold for one turn only."""
    return [None if x.__class__ is Known else x for x in xs]


def _turns(n: int) -> int:
    return min(n, 2) if n.__class__ is int else 2


def _rest(walk: Walk, rows: Sequence[Any], axes: Sequence[int | None]) -> None:
    """Spend in all rows that were not walked the keys that were spent in the first row."""
    for x, a in zip(rows, axes, strict=True):
        if x.__class__ is not Names or a is None or x.at.shape[a] < 3:
            continue
        at = np.moveaxis(x.at, a, 0)
        for position, name in np.ndenumerate(at[0]):
            where = walk.is_spent(name)
            if where is not None:
                walk.spend(Names(at[(slice(2, None), *position)]), where)


def _row(x: Any, a: int | None, t: int, exact: bool = False) -> Any:
    if a is None:
        return x
    if x.__class__ is Names or x.__class__ is Known and exact:
        return x.__class__(np.take(x[0], t, a))
    return None


def _stacked(walk: Walk, e: Eqn, last: list[Any], first: int, axes: list[Any]) -> list[Any]:
    """Return new names for stacked results, spent where those of a row are."""
    out: list[Any] = []
    for v, y, a in zip(e.outputs[first:], last, axes, strict=True):
        if v.aval.category != OPAQUE:
            out.append(None)
            continue
        names = fresh(v.aval.shape)
        at = np.moveaxis(names.at, a, 0)
        for position, name in np.ndenumerate(y.at) if y.__class__ is Names else ():
            where = walk.is_spent(name)
            if where is not None:
                walk.spend(Names(at[(slice(None), *position)]), where)
        out.append(names)
    return out


@reuse_rules.rule(scan)
def _(walk: Walk, e: Eqn, xs: list[Any]) -> list[Any]:
    p = e.params
    k, c, length = p["consts"], p["consts"] + p["carry"], p["length"]
    consts, carry, rows, last = xs[:k], xs[k:c], xs[c:], []
    exact = length.__class__ is int and length <= _EXACT
    exact = exact and any(x.__class__ is Known for x in xs[k:])
    turns = range(length if exact else _turns(length))
    for t in reversed(turns) if p["reverse"] else turns:
        carry = carry if exact else _lasting(carry)
        got = walk.program(p["body"], [*consts, *carry, *[_row(x, 0, t, exact) for x in rows]])
        carry, last = got[: p["carry"]], got[p["carry"] :]
    axes, ys = [0] * len(rows), len(e.outputs) - p["carry"]
    if not exact:
        _rest(walk, rows, axes)
        carry = [x if x.__class__ is Names else None for x in carry]
    last = last or [None] * ys
    return [*carry, *_stacked(walk, e, last, p["carry"], [0] * ys)]


@reuse_rules.rule(map_axes)
def _(walk: Walk, e: Eqn, xs: list[Any]) -> list[Any]:
    """Walk the rows; a key that they share may be spent in each, since that work is done once."""
    p = e.params
    last: list[Any] = [None] * len(e.outputs)
    held, before = walk.again, set(walk.spent)
    mapped = [x.at for x, a in zip(xs, p["in_axes"]) if x.__class__ is Names and a is not None]
    own = {int(n) for at in mapped for n in at.flat}
    for t in range(_turns(p["size"])):
        rows = [_row(x, a, t) for x, a in zip(xs, p["in_axes"], strict=True)]
        last = walk.program(p["program"], rows)
        walk.again = held | (walk.spent.keys() - before - own)
    walk.again = held
    _rest(walk, xs, p["in_axes"])
    return _stacked(walk, e, last, 0, p["out_axes"])


@reuse_rules.rule(while_)
def _(walk: Walk, e: Eqn, xs: list[Any]) -> list[Any]:
    p = e.params
    n, m = p["cond_consts"], p["cond_consts"] + p["body_consts"]
    given, carry = xs[:m], _lasting(xs[m:])
    for _ in range(2):
        walk.program(p["cond"], [*given[:n], *carry])
        carry = _lasting(walk.program(p["body"], [*given[n:], *carry]))
    return [x if x.__class__ is Names else None for x in carry]


@reuse_rules.rule(cond)
def _(walk: Walk, e: Eqn, xs: list[Any]) -> list[Any]:
    index, *args = xs
    branches = e.params["branches"]
    if index.__class__ is Known:
        branches = [branches[int(index.value)]]
    before, spent, results = dict(walk.spent), dict(walk.spent), []
    for b in branches:
        one = Walk(dict(before), walk.at)
        one.inner, one.again, one.repeats = walk.inner, set(walk.again), walk.repeats
        one.numbers = walk.numbers
        results.append(one.program(b, args))
        spent.update(one.spent)
    walk.spent.update(spent)
    return [functools.reduce(_merged, each) for each in zip(*results)]


def _merged(x: Any, y: Any) -> Any:
    """Merge the names of a value that is one of two."""
    if x.__class__ is Names and y.__class__ is Names:
        return one_of(x, y)
    return x if mark(x) == mark(y) else None
