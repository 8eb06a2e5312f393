"""Parts of trees whose identity matters: two parts that are one object are equal.

Several batches made with the same lengths object have equal sizes, without reading the lengths. A
class of trees declares which of its children are such parts.  Staging a function of trees then uses
one value for all parts that are one object, and adds to its key which ones are.

Invariant: the identity of objects alone decides which parts are one, never their values.  Trees
without such parts cost one look-up.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from ..tree import TreeDef, node_data

__all__ = ["alike", "as_one", "parts_that_may_be_one", "pattern_of", "tell_parts_apart"]

Pattern = tuple[int, ...]
"""For each of the parts, the number of the first leaf that is the same object."""

_which: dict[type, Callable[[Any, int], Iterable[int]]] = {}


def tell_parts_apart(cls: type, which: Callable[[Any, int], Iterable[int]]) -> None:
    """Make it matter whether parts of trees of this class are one object.

    Args:
      cls: a class that is registered as a tree.
      which: `which(static, count)` returns the numbers of those among the `count` children that are
        such parts; they are leaves.
    """
    _which[cls] = which
    _parts.cache_clear()


def parts_that_may_be_one(tree: TreeDef) -> tuple[int, ...]:
    """Return the numbers of the leaves whose identity matters."""
    try:
        return _parts(tree)
    except ValueError:  # the structure holds numpy arrays, whose == is not a bool
        return _parts.__wrapped__(tree)


@lru_cache(maxsize=128)
def _parts(tree: TreeDef) -> tuple[int, ...]:
    found: list[int] = []
    _collect(tree, 0, found)
    return tuple(found)


def _collect(tree: TreeDef, at: int, found: list[int]) -> None:
    data = node_data(tree)
    if data is None:
        return
    kids = tree.children()
    which = _which.get(data[0])
    mine = frozenset(which(data[1], len(kids))) if which is not None else ()
    for i, kid in enumerate(kids):
        if i in mine and kid.node_data() is None:
            found.append(at)
        else:
            _collect(kid, at, found)
        at += kid.num_leaves


def alike(tree: TreeDef, leaves: Sequence[Any]) -> Pattern:
    """Return which of the parts are one object, as a Pattern; empty if no two are."""
    return pattern_of(parts_that_may_be_one(tree), leaves)


def pattern_of(parts: Sequence[int], leaves: Sequence[Any]) -> Pattern:
    """Return which of the leaves with these numbers are one object; empty if no two are."""
    if len(parts) < 2:
        return ()
    first: dict[int, int] = {}
    found = tuple([first.setdefault(id(leaves[i]), i) for i in parts])
    return found if len(first) < len(parts) else ()


def as_one(tree: TreeDef, pattern: Pattern, leaves: Sequence[Any]) -> Sequence[Any]:
    """Return the leaves with one value for all that are one object."""
    if not pattern:
        return leaves
    out = list(leaves)
    for i, j in zip(parts_that_may_be_one(tree), pattern, strict=True):
        out[i] = out[j]
    return out
