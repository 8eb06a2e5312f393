"""Leaves of trees that functions of all leaves leave alone, because they describe the other leaves.

The lengths of rows are such leaves: they must reach jit, and a step of an optimiser must not change
them.

Invariant: only functions mapped over all leaves of a tree, or combining them, see a difference;
structures, and the order and number of leaves, stay the same.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from .freezing import bare

__all__ = ["Guard", "guard", "guarded_map", "guarded_nodes", "visible_leaves"]


class Guard(NamedTuple):
    """A class of trees that has such leaves."""

    which: Callable[[Any, int], Iterable[int]]
    agree: Callable[[Sequence[Any]], None]
    passive: Callable[[Any], bool]
    seen: "Callable[[Any, Sequence[Sequence[Any]], Sequence[Any] | None], Seen | None]"


Seen = Callable[[Callable[..., Any], int], Any]
"""`seen(f, k)` is `f` of the visible part of leaf number `k` of each tree, not counting those that
describe others."""


class GuardedNode(NamedTuple):
    """A node of a guarded class in a structure: its static part, and the numbers of its leaves."""

    guard: Guard
    static: Any
    leaves: tuple[int, ...]
    rows: tuple[int, ...]
    kept: tuple[int, ...]


_guards: dict[type, Guard] = {}


def guard(
    cls: type,
    which: Callable[[Any, int], Iterable[int]],
    agree: Callable[[Sequence[Any]], None],
    passive: Callable[[Any], bool],
    seen: Callable[[Any, Sequence[Sequence[Any]], Sequence[Any] | None], Seen | None] | None = None,
) -> None:
    """Make `tree.map` leave some leaves of trees of a class alone.

    Where the function leaves the shapes of all other leaves of a node as they are, the result has
    these leaves of the first tree.  So it has where the function reduces other leaves, which are
    then given as they are visible.  A function that adds axes, such as one that stacks trees, is
    applied to all leaves.  `tree.reduce` combines the visible leaves.

    Args:
      cls: a class that is registered as a tree.
      which: `which(static, count)` returns the numbers of these leaves among the `count` children.
      agree: called with one such leaf of each of several trees; raises if they differ.
      passive: returns whether a leaf has no values to compute with; the leaf of the first tree is
        kept then.
      seen: `seen(static, trees, results)`, for the children of each tree, returns how a function
        meets the part of the other leaves that users see.  It returns None where that is not
        defined, or where `results` of a function of the leaves are such leaves themselves, maybe
        with further axes.  By default functions meet these leaves as they are.
    """
    _guards[cls] = Guard(which, agree, passive, seen or _as_they_are)
    _nodes.cache_clear()


def _as_they_are(static: Any, trees: Any, results: Any) -> None:
    return None


def guarded_nodes(kind: object) -> tuple[GuardedNode, ...]:
    """Return the nodes of guarded classes in a structure."""
    if not _guards:
        return ()
    try:
        return _nodes(kind)
    except (ValueError, TypeError):  # its static parts cannot be compared, or hashed
        return _nodes.__wrapped__(kind)


@lru_cache(maxsize=128)
def _nodes(kind: object) -> tuple[GuardedNode, ...]:
    found: list[GuardedNode] = []
    _collect(kind, 0, found)
    return tuple(found)


def _collect(kind: Any, at: int, found: list[GuardedNode]) -> None:
    data = kind.node_data()
    if data is None:
        return
    kids = kind.children()
    own = _guards.get(data[0])
    if own is not None and all(k.node_data() is None for k in kids):
        static, numbers = bare(data[1]), tuple(range(at, at + len(kids)))
        kept = tuple([at + i for i in own.which(static, len(kids))])
        rows = tuple([i for i in numbers if i not in kept])
        found.append(GuardedNode(own, static, numbers, rows, kept))
        return
    for kid in kids:
        _collect(kid, at, found)
        at += kid.num_leaves


def guarded_map(
    f: Callable[..., Any], operands: Sequence[tuple[Any, ...]], nodes: Sequence[GuardedNode]
) -> list[Any]:
    """Return `f(i, *values)` for the number of each leaf, except for leaves that are left alone.

    `operands` are the corresponding leaves of all trees."""
    kept = {i for g in nodes for i in g.kept}
    passive = {i: g.guard.passive for g in nodes for i in g.rows}
    out: list[Any] = []
    firsts = [xs[0] for xs in operands]
    for i, xs in enumerate(operands):
        is_passive = i in passive and len(xs) > 1 and any(map(passive[i], xs))
        out.append(firsts[i] if i in kept or is_passive else f(i, *xs))
    for g in nodes:
        if all(_same_shape(firsts[i], out[i]) for i in g.rows):
            for i in g.kept:
                g.guard.agree(operands[i])
            continue
        seen = _seen(g, operands, out)
        for i in g.kept if seen is None else ():
            out[i] = f(i, *operands[i])
        for k, i in enumerate(g.rows if seen is not None else ()):
            out[i] = seen(partial(f, i), k)  # type: ignore[misc]
    return out


def _seen(g: GuardedNode, operands: Sequence[tuple[Any, ...]], out: Sequence[Any]) -> "Seen | None":
    """Return how a function that reduces the leaves of a node meets them; None for another."""
    results = [out[i] for i in g.rows]
    if any(_shape(y) is None for y in results):
        return None
    trees = list(zip(*[operands[i] for i in g.leaves], strict=True))
    return g.guard.seen(g.static, trees, results)


def visible_leaves(leaves: Sequence[Any], kind: object) -> list[Callable[..., Any]]:
    """Return for each leaf how a function is applied to what users see of it.

    Leaves that describe others are left out."""
    nodes = guarded_nodes(kind)
    if not nodes:
        return [partial(_applied, x) for x in leaves]
    left = {i for g in nodes for i in g.kept}
    found: dict[int, Callable[..., Any]] = {
        i: partial(_applied, x) for i, x in enumerate(leaves) if i not in left
    }
    for g in nodes:
        seen = g.guard.seen(g.static, [[leaves[i] for i in g.leaves]], None)
        if seen is not None:
            found.update({i: partial(_applied_to_part, seen, k) for k, i in enumerate(g.rows)})
    return list(found.values())


def _applied(x: Any, f: Callable[[Any], Any]) -> Any:
    return f(x)


def _applied_to_part(seen: Seen, k: int, f: Callable[[Any], Any]) -> Any:
    return seen(f, k)


def _same_shape(x: object, y: object) -> bool:
    shape = _shape(x)
    return shape is not None and shape == _shape(y)


def _shape(x: object) -> Any:
    return getattr(x, "shape", None)
