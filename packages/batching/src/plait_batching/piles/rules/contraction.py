"""Contractions: a ragged axis may be free, shared, or contracted, on either side.

Invariant: contracted places without rows are zero on both sides.
"""

from typing import Any, NamedTuple

from plait.ext.ops.contraction import dot_general
from plait.ext.ops.elementwise import add
from plait.ext.ops.shape import transpose_
from plait.ext.trace import Value
from plait.ext.types import Aval

from ...interpreter import batching_rules, with_axis_at
from ..carrier import PARTIAL, Ragged, lazily, partial_rules, pile_rules, undone
from ..layouts import from_tiles, to_tiles
from ..operation import FLAT, PADDED, TILES
from ..row_access import chosen, rows_at
from .reduction import combined, tile_mask
from .shape import to_pairs


def _stacked(r: Ragged, x: Value, y: Value, d: int | None, e: int | None, params: dict) -> Any:
    """Apply the batching rule along the axes `d` and `e`, with the stack in front."""
    rule: Any = batching_rules.find(dot_general)
    out, at = rule(r, (x, y), (d, e), **params)
    return with_axis_at(out, at, 0)


@pile_rules.rule(dot_general)
def _(r: Any, args, out, /, **params):
    x, y = args
    ax, ay = r.axes(x.aval), r.axes(y.aval)
    (cx, _), (bx, _) = params["contract"], params["shared"]
    hows = {r.how(a) for a in args} - {None}
    if r.padded or PADDED in hows or len(ax) > 2 or len(ay) > 2 or len(r.axes(out)) > 2:
        return r.by_padding(dot_general, args, out, params)
    if len(ax) == len(ay) == 1 and ax[0] in bx:  # the ragged axis is shared
        got = dot_general.bind(r.data(x, FLAT), r.data(y, FLAT), **params)
        return r.result(out, got, FLAT)
    if len(ax) == len(ay) == 1 and ax[0] in cx:
        return _undone(r, x, y, out, params)
    if len(ax) + len(ay) == 1:
        return _with_dense(r, x, y, out, params)
    if len(ax) + len(ay) > 3 or set(ax) & set(bx):
        return r.by_padding(dot_general, args, out, params)
    return _of_pairs(r, x, y, out, params)


def _with_dense(r: Ragged, x: Value, y: Value, out: Aval, params: dict) -> Any:
    """Contract a ragged operand with another one, which is shared, or differs per example."""
    ragged, other = (x, y) if r.axes(x.aval) else (y, x)
    value, d = r.dense(other)
    if d is None:
        xy = (r.data(x, FLAT), value) if ragged is x else (value, r.data(y, FLAT))
        return r.result(out, dot_general.bind(*xy, **params), FLAT)
    (a,) = r.axes(ragged.aval)
    n = ragged.aval.shape[a]
    tiles = to_tiles(r, r.data(ragged, FLAT), a, n)
    each = rows_at(r.front(value, d), r.rows(n).tile_owner)
    pair = (tiles, each) if ragged is x else (each, tiles)
    got = _stacked(r, *pair, 0, 0, params)
    (k,) = r.axes(out)
    return r.result(out, from_tiles(r, got, k, out.shape[k]), FLAT)


def _of_pairs(r: Ragged, x: Value, y: Value, out: Aval, params: dict) -> Any:
    """Contract on pairs of tiles: mask, apply the batching rule, combine by example."""
    ax, ay = r.axes(x.aval), r.axes(y.aval)
    (cx, cy), (bx, by) = params["contract"], params["shared"]
    both: Any = None
    own: tuple = ()
    if len(ax) == len(ay) == 1:
        p = r.pairs(x.aval.shape[ax[0]], y.aval.shape[ay[0]])
        sides = [True], [False]
        gone: tuple = ()
    else:
        both, own, mine, theirs, other = (
            (x, ax, (*cx, *bx), (*cy, *by), ay)
            if len(ax) == 2
            else (y, ay, (*cy, *by), (*cx, *bx), ax)
        )
        p = r.pairs(*[both.aval.shape[a] for a in own])
        # The result would have a third ragged size, so the other operand's is contracted here.
        side = bool(other) and mine[theirs.index(other[0])] == own[0]
        sides = [side], [side]
        gone = cx if both is x else cy
    xs, d = to_pairs(r, x, p, sides[0])
    ys, e = to_pairs(r, y, p, sides[1])
    if both is not None:
        for i in own:
            there = p.left_there if i == own[0] else p.right_there
            if i in gone and both is x:
                xs = tile_mask(xs, there, i + 1, 0)
            elif i in gone:
                ys = tile_mask(ys, there, i + 1, 0)
    got = _stacked(r, xs, ys, d, e, params)
    left = r.axes(out)
    if len(left) == 2:
        return r.result(out, got, TILES)
    if not left:
        return r.lift(out, 0, (combined(0, r.size, p.example, got, "add"),))
    (k,) = left
    t, at = (p.a, p.left) if own[0] not in gone else (p.b, p.right)
    got = combined(0, t.tiles, at, got, "add")
    return r.result(out, from_tiles(r, got, k, out.shape[k]), FLAT)


# ---- undone contractions ---------------------------------------------------------------------


class Term(NamedTuple):
    """One product of an undone sum of products; its two operands are parts of the value."""

    params: tuple[Any, ...]
    perm: tuple[int, ...]
    """The transposition that has been applied to its axes since."""
    x: Any
    y: Any


def _undone(r: Ragged, x: Value, y: Value, out: Aval, params: dict) -> Any:
    term = Term(tuple(sorted(params.items())), tuple(range(out.ndim)), x.aval, y.aval)
    return r.lift(out, (PARTIAL, (term,)), (r.data(x, FLAT), r.data(y, FLAT)))


def _summed(products: Any) -> Any:
    total = None
    for p in products:
        total = p if total is None else add.bind(total, p)
    return total


def _each(r: Ragged, form: tuple, parts: tuple) -> Any:
    """Evaluate for each example: [size, ...], by partial products of tiles."""
    return _summed(_of_examples(r, t, *parts[2 * i : 2 * i + 2]) for i, t in enumerate(form[1]))


def _of_examples(r: Ragged, t: Term, x: Value, y: Value) -> Any:
    (a,), (b,) = r.axes(t.x), r.axes(t.y)
    n = t.x.shape[a]
    got = _stacked(r, to_tiles(r, x, a, n), to_tiles(r, y, b, n), 0, 0, dict(t.params))
    got = combined(0, r.size, r.rows(n).tile_example, got, "add")
    return transpose_.bind(got, perm=(0, *[i + 1 for i in t.perm]))


def _all(r: Ragged, form: tuple, parts: tuple) -> Any:
    """Evaluate the sum over all examples: one product of all rows."""
    return _summed(_of_rows(r, t, *parts[2 * i : 2 * i + 2]) for i, t in enumerate(form[1]))


def _of_rows(r: Ragged, t: Term, *values: Value) -> Any:
    clean = []
    for value, aval in zip(values, (t.x, t.y), strict=True):
        (a,) = r.axes(aval)
        clean.append(chosen(r.rows(aval.shape[a]).there, (a,), value, 0))
    return transpose_.bind(dot_general.bind(*clean, **dict(t.params)), perm=t.perm)


partial_rules.update(each=_each, all=_all)


def _transposed(r: Ragged, args: Any, out: Aval, params: dict) -> Any:
    """Transpose an undone contraction without evaluating it."""
    (x,) = args
    perm = params["perm"]
    terms = [t._replace(perm=tuple([t.perm[i] for i in perm])) for t in x.form[1]]
    return r.lift(out, (PARTIAL, tuple(terms)), x.parts)


def _added(r: Ragged, args: Any, out: Aval, params: dict) -> Any:
    """Add two undone contractions without evaluating them."""
    if not all(undone(r, a) for a in args):
        return NotImplemented
    x, y = args
    return r.lift(out, (PARTIAL, (*x.form[1], *y.form[1])), (*x.parts, *y.parts))


lazily.update({transpose_: _transposed, add: _added})
