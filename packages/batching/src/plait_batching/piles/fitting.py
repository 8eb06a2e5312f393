"""Capacities of piles where structures are compared: what fits in a larger capacity is taken.

jit serves batches of similar capacities by one program: that of an earlier call, if it plans for at
most `MOST` times what the batch needs, or else a new one with some room.  So the first batch of a
function runs without waste, and a stream of batches has few programs.  Results have the number of
elements in their types, so batches of other numbers share capacities, but not programs.

Invariant: rows and lengths of every element stay as they are, and no element is added.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from plait.ext.sizes import is_symbolic
from plait.ext.trace import Tracer, Value
from plait.ext.tree import register_capacities
from plait.ext.types import float0
from plait.ext.values import Array, as_value

from .capacities import COUNTS, Size, capacities_of, in_rows_alone, rounded, size_of_lengths
from .guarding import is_passive
from .layouts import fit
from .making import with_rows_on_host
from .on_host import is_on_host
from .operation import layout, place
from .operators import is_pile
from .pile import Pile, structure_of

__all__ = ["MOST", "MOST_ROWS"]

MOST = {"rows": 4, "longest": 4, "squares": 8}
"""Upper bounds of the capacity of a program, in multiples of that of a batch it serves."""

MOST_ROWS = 2
"""The same, of the rows of all piles of a call together."""

PATIENCE = 8
"""The number of programs of a function after which the bounds double: batches that differ this much
cost more in programs than in work for rows that are not there."""

_ROOM = {"rows": 1, "longest": 2, "squares": 4}
"""Room in a new program, beside the next power of two."""


def _alike(p: Pile, q: Pile) -> bool:
    """Return whether the static parts of two piles differ at most in capacities and facts."""
    return p._count == q._count and _of_like_elements(p, q)


def _of_like_elements(p: Pile, q: Pile) -> bool:
    """Return whether two piles are alike, but for the number of their elements."""
    return (
        (p._types, len(p._sizes)) == (q._types, len(q._sizes))
        and p._tree == q._tree
        and not is_symbolic([c for s in (*p._sizes, *q._sizes) for c in s.counts])
        and all(
            (s.name, s.label, s.spare) == (t.name, t.label, t.spare)
            for s, t in zip(p._sizes, q._sizes)
        )
    )


class _Change(NamedTuple):
    """The shape of the rows of a leaf, and (axis, size) of each change of a capacity."""

    shape: tuple[int, ...]
    sizes: tuple[tuple[int, int], ...]


class _Plan(NamedTuple):
    """The change that gives piles of one structure another one.

    Attributes:
      is_needed: whether the structures differ.
      is_certain: whether all such piles fit; otherwise it depends on their lengths.
      leaves: what changes in each leaf.
    """

    is_needed: bool
    is_certain: bool
    leaves: tuple[_Change, ...]


_MOST_PLANS = 4096
_plans: dict[tuple[Any, Any], _Plan | None] = {}
"""By both structures; None if they differ in more than capacities and facts."""


def _plan_of(p: Pile, model: Pile) -> _Plan | None:
    if not _alike(p, model):
        return None
    if p._sizes == model._sizes:
        return _Plan(False, True, ())
    caps = [capacities_of(in_rows_alone(q._sizes), p._count) for q in (p, model)]
    leaves = []
    for t in p._types:
        have, want = (layout(t, c, place(t, c, False)).shape for c in caps)
        sizes = [(a, n) for a, (m, n) in enumerate(zip(have, want)) if m != n]
        leaves.append(_Change(tuple(have), tuple(sizes)))
    return _Plan(True, all(map(_surely_fits, p._sizes, model._sizes)), tuple(leaves))


def _fitted(p: Pile, model: Pile) -> Pile | None:
    # Written out, since calls of jitted functions do this for each batch.
    key = p._about or structure_of(p), model._about or structure_of(model)
    try:
        plan = _plans[key]
    except KeyError:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        plan = _plans[key] = _plan_of(p, model)
    if plan is None or not plan.is_needed:
        return plan and p
    if not plan.is_certain and not all(map(_fits, p._sizes, model._sizes, p._lengths)):
        return None
    leaves = []
    for x, (have, sizes) in zip(p._leaves, plan.leaves, strict=True):
        if x.__class__ is Array:
            shape: tuple[Any, ...] = x.aval.shape
        elif is_pile(x):
            return None
        else:
            shape = tuple(getattr(x, "shape", ()))
        added = len(shape) - len(have)
        if shape[added:] != have:
            return None
        for a, n in sizes:
            x = _resized(x, added + a, n)
        leaves.append(x)
    return p._of(leaves, p._lengths, model._types, model._sizes, model._tree, model._count)


def _resized(x: Any, axis: int, n: int) -> Any:
    if (x.aval.dtype == float0) if x.__class__ is Array else is_passive(x):
        return np.zeros((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype)
    return with_rows_on_host(x, axis, n) if is_on_host(x) else fit(as_value(x), axis, n)


def _follow(own: Size, model: Size) -> bool:
    """Return whether the facts of one size follow from those of another."""
    return own.least >= model.least and own.multiple % model.multiple == 0


def _surely_fits(own: Size, model: Size) -> bool:
    """Return whether all lengths with these bounds fit in other ones."""
    return _follow(own, model) and all(getattr(own, k) <= getattr(model, k) for k in COUNTS)


def _fits(own: Size, model: Size, lengths: Value) -> bool:
    """Return whether lengths with these bounds fit in other ones."""
    follow = _follow(own, model)
    if _surely_fits(own, model):
        return True
    if isinstance(lengths, Tracer):
        return False
    n = np.asarray(lengths)
    if not follow and (n.min(initial=model.least) < model.least or (n % model.multiple).any()):
        return False
    for one in n.reshape(-1, n.shape[-1]):  # of each batch of a stack
        needs = int(one.sum()), int(one.max(initial=0)), size_of_lengths("", one).squares
        if any(need > getattr(model, k) for need, k in zip(needs, COUNTS)):
            return False
    return True


def _joined(models: Sequence[Pile]) -> Pile | None:
    first = models[0]
    if not all(_alike(first, m) for m in models):
        return None
    sizes = []
    for own in zip(*[m._sizes for m in models]):
        if len({(s.least, s.multiple) for s in own}) > 1:
            own = in_rows_alone(own)
        sizes.append(own[0]._replace(**{k: max(getattr(s, k) for s in own) for k in COUNTS}))
    return _with_sizes(first, sizes)


def _with_sizes(p: Pile, sizes: Sequence[Size]) -> Pile:
    return p._of(p._leaves, p._lengths, p._types, tuple(sizes), p._tree, p._count)


def _chosen(models: Sequence[Pile], known: Sequence[Sequence[Pile]]) -> Sequence[Pile]:
    if any(is_symbolic(s.counts) for m in models for s in m._sizes):
        return models
    kin = [o for o in known if all(map(_of_one_kind, models, o))]
    slack = 2 if len(kin) >= PATIENCE else 1
    serve = [o for o in kin if _serves(models, o, slack)]
    mine = [o for o in serve if all(p._count == q._count for p, q in zip(models, o))]
    if mine:
        return min(mine, key=_rows)
    if not kin or any(map(is_pile, [x for m in models for x in m._leaves])):
        return models
    if serve:  # of another number of elements, whose capacities many batches are likely to share
        return [_with_sizes(m, o._sizes) for m, o in zip(models, max(serve, key=_rows))]
    return [_with_sizes(m, [_with_room(s, slack) for s in m._sizes]) for m in models]


def _of_one_kind(p: Pile, q: Pile) -> bool:
    facts = [(s.least, s.multiple) for s in p._sizes] == [(s.least, s.multiple) for s in q._sizes]
    return facts and _of_like_elements(p, q)


def _rows(models: Sequence[Pile]) -> int:
    return sum(s.rows for m in models for s in m._sizes)


def _serves(models: Sequence[Pile], others: Sequence[Pile], slack: int) -> bool:
    """Return whether a program for other capacities may serve these without much waste."""
    pairs = [st for p, q in zip(models, others) for st in zip(p._sizes, q._sizes)]
    return _rows(others) <= slack * MOST_ROWS * _rows(models) and all(
        getattr(s, k) <= getattr(t, k) <= slack * most * getattr(s, k)
        for s, t in pairs
        for k, most in MOST.items()
    )


def _with_room(s: Size, slack: int) -> Size:
    if s.spare:  # the user chose it
        return s
    return s._replace(
        **{k: slack * room * rounded(getattr(s, k), 1, 1) for k, room in _ROOM.items()}
    )


register_capacities(Pile, _fitted, _joined, _chosen)
