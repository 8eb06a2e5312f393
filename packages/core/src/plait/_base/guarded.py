"""Leaves of trees that functions of all leaves leave alone, because they describe the other leaves.

The lengths of rows are such leaves: they must reach jit, and a step of an optimiser must not change
them.

Invariant: only functions mapped over all leaves of a tree see a difference; structures, and the
order and number of leaves, stay the same.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .freezing import bare

__all__ = ["Guard", "guard", "guarded_map", "guarded_nodes"]


class Guard(NamedTuple):
    """A class of trees that has such leaves."""

    which: Callable[[Any, int], Iterable[int]]
    agree: Callable[[Sequence[Any]], None]
    passive: Callable[[Any], bool]


class GuardedNode(NamedTuple):
    """A node of a guarded class in a structure: the numbers of its leaves."""

    guard: Guard
    rows: tuple[int, ...]
    kept: tuple[int, ...]


_guards: dict[type, Guard] = {}


def guard(
    cls: type,
    which: Callable[[Any, int], Iterable[int]],
    agree: Callable[[Sequence[Any]], None],
    passive: Callable[[Any], bool],
) -> None:
    """Make `tree.map` leave some leaves of trees of a class alone.

    Where the function leaves the shapes of all other leaves of a node as they are, the result has
    these leaves of the first tree.  A function that changes shapes, such as one that stacks trees,
    is applied to all leaves.

    Args:
      cls: a class that is registered as a tree.
      which: `which(static, count)` returns the numbers of these leaves among the `count` children.
      agree: called with one such leaf of each of several trees; raises if they differ.
      passive: returns whether a leaf has no values to compute with; the leaf of the first tree is
        kept then.
    """
    _guards[cls] = Guard(which, agree, passive)
    _nodes.cache_clear()


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
        kept = tuple([at + i for i in own.which(bare(data[1]), len(kids))])
        rows = tuple([i for i in range(at, at + len(kids)) if i not in kept])
        found.append(GuardedNode(own, rows, kept))
        return
    for kid in kids:
        _collect(kid, at, found)
        at += kid.num_leaves


def guarded_map(
    f: Callable[[int], Any], operands: Sequence[tuple[Any, ...]], nodes: Sequence[GuardedNode]
) -> list[Any]:
    """Return `f(i)` for the number of each leaf, except for leaves that are left alone.

    `operands` are the corresponding leaves of all trees."""
    kept = {i for g in nodes for i in g.kept}
    passive = {i: g.guard.passive for g in nodes for i in g.rows}
    out: list[Any] = []
    firsts = [xs[0] for xs in operands]
    for i, xs in enumerate(operands):
        is_passive = i in passive and len(xs) > 1 and any(map(passive[i], xs))
        out.append(firsts[i] if i in kept or is_passive else f(i))
    for g in nodes:
        if all(_same_shape(firsts[i], out[i]) for i in g.rows):
            for i in g.kept:
                g.guard.agree(operands[i])
        else:
            for i in g.kept:
                out[i] = f(i)
    return out


def _same_shape(x: object, y: object) -> bool:
    shape = getattr(x, "shape", None)
    return shape is not None and shape == getattr(y, "shape", None)
