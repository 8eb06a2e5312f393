"""Frames: what remains of a pile without its rows, for derivatives and optimisers.

Invariant: two frames are equal if their piles have the same lengths.
"""

from typing import Any

import numpy as np

from plait.ext.trace import Tracer
from plait.ext.tree import TreeDef
from plait.ext.values import Array

from .elements import piles_in

__all__ = ["Frame", "inner_lengths"]


class Frame:
    """A pile without its rows; two frames are equal if they have the same lengths."""

    __slots__ = ("about", "lengths")

    def __init__(self, lengths: tuple[Any, ...], about: tuple[Any, ...]):
        self.lengths, self.about = lengths, about

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frame) or self.about != other.about:
            return False
        return all(a is b or _same(a, b) for a, b in zip(self.lengths, other.lengths, strict=True))

    def __hash__(self) -> int:
        return hash(self.about)

    def __repr__(self) -> str:
        return f"a pile of lengths {', '.join(map(_told, self.lengths))}"


def _same(a: Any, b: Any) -> bool:
    known = isinstance(a, Array) and isinstance(b, Array)
    return known and np.array_equal(np.asarray(a), np.asarray(b))


def _told(lengths: Any) -> str:
    if isinstance(lengths, Tracer):
        return f"that are traced, {lengths!r}"
    with np.printoptions(threshold=8):
        return str(np.asarray(lengths))


def inner_lengths(tree: TreeDef) -> frozenset[int]:
    """Return the indices of element leaves that are lengths of inner piles, at all levels."""
    found: set[int] = set()
    for p in piles_in(tree):  # its leaves and lengths are numbers of leaves of the structure
        found.update(p._lengths, [p._leaves[i] for i in inner_lengths(p._tree)])
    return frozenset(found)
