"""Piles where the plugin that has their class is not installed: their rows and their lengths.

Invariant: rows that are taken fit in the capacity of the artifact, and rows beyond them are zero.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from plait.ext.errors import ShapeError
from plait.ext.tree import TreeDef, node_data, register, registry
from plait.ext.types import Aval
from plait.ext.values import is_tracer

__all__ = ["SHAPES", "Parts", "as_tuples", "laid_out", "parts_from"]

SHAPES = frozenset(("plait.Pile",))
"""Names of the classes whose parts may be passed in their place."""


class Parts:
    """The parts of a value whose class is not installed: of a pile, its rows and its lengths.

    Arguments of a call may be tuples in their place: rows of all elements, one after the other, for
    each array of an element, then the lengths.  Results have rows beyond the last, too.
    """

    __slots__ = ("about", "children")

    def __init__(self, about: tuple[str, str], children: Sequence[Any]):
        self.about, self.children = about, tuple(children)

    def __iter__(self) -> Any:
        return iter(self.children)

    def __repr__(self) -> str:
        return f"Parts of {self.about[0]}{self.children!r}"


register(Parts, lambda p: (p.children, p.about), Parts)


def parts_from(name: str, text: bytes) -> tuple[str, str]:
    """Return the static part of `Parts`; raise ValueError for other bytes."""
    about = text.decode()
    given = json.loads(about)
    if not isinstance(given, dict) or not {"types", "sizes"} <= {*given}:
        raise ValueError("not the structure of a pile")
    return name, about


def as_tuples(tree: TreeDef) -> TreeDef:
    """Return the structure with tuples in place of parts."""
    data = tree.node_data()
    if data is None:
        return tree
    data = (tuple, None) if data[0] is Parts else data
    make: Any = TreeDef.from_node_data_and_children  # type: ignore[attr-defined]
    return make(registry, data, list(map(as_tuples, tree.children())))


def _parts_in(tree: TreeDef, at: int = 0) -> Iterator[tuple[dict, range]]:
    """Yield (saved structure, numbers of the leaves) of each node of parts."""
    data = node_data(tree)
    if data is not None and data[0] is Parts:
        yield json.loads(data[1][1]), range(at, at + tree.num_leaves)
        return
    for child in tree.children():
        yield from _parts_in(child, at)
        at += child.num_leaves


def laid_out(leaves: Sequence[Any], tree: TreeDef, avals: Sequence[Aval]) -> list[Any]:
    """Return the leaves with the rows of parts at the capacity of an artifact.

    Raises ShapeError for lengths that do not fit."""
    out = list(leaves)
    for given, own in _parts_in(tree):
        if any(is_tracer(leaves[i]) for i in own):
            continue
        count = len(given["types"])
        for i, size in zip(own[count:], given["sizes"], strict=True):
            n = np.asarray(leaves[i])
            _expect_fit(n, avals[i], *size[1:3])
            out[i] = n.astype(avals[i].dtype)
        for i in own[:count]:
            out[i] = _padded(np.asarray(leaves[i]), avals[i])
    return out


def _expect_fit(n: np.ndarray, aval: Aval, rows: int, longest: int) -> None:
    fits = n.shape == aval.shape and n.dtype.kind in "iu"
    if not fits or n.min(initial=0) < 0 or n.sum() > rows or n.max(initial=0) > longest:
        raise ShapeError(
            f"lengths {n.tolist()} of a pile do not fit: the function was exported for "
            f"{aval.shape[0]} elements of {rows} rows in all, and {longest} in one at most",
            fix="divide the batch, or export the function for a larger capacity",
        )


def _padded(x: np.ndarray, aval: Aval) -> np.ndarray:
    if x.ndim != aval.ndim or any(m > n for m, n in zip(x.shape, aval.shape)):
        return x  # the check of types names it
    return np.pad(x, [(0, n - m) for m, n in zip(x.shape, aval.shape)])
