"""Batches from a stream of examples, and a batch divided into parts with about as many rows.

Invariant: no example is lost, repeated, or cut.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from plait.ext.errors import ArgumentError, ConcretizationError, border
from plait.ext.tree import aligned, flatten, map_tree
from plait.ext.values import as_value

from .capacities import examples_in
from .choosing import known
from .conversion import PileConversions
from .elements import piles_in, shown
from .layouts import fit
from .operation import FLAT, TILES, place
from .policy import in_force

if TYPE_CHECKING:
    from .pile import Pile

__all__ = ["PilePacking"]


class PilePacking(PileConversions):
    """Methods of piles that make several batches."""

    __slots__ = ()

    @classmethod
    @border
    def pack(
        cls, elements: Iterable[Any], capacity: Any, axis: int | tuple[int, ...] = 0
    ) -> Iterator[Any]:
        """Yield piles of as many elements, in order, as a capacity has room for.

        All have one type, so that a jitted function of them is compiled once.

        Args:
          elements: arrays, or trees of arrays, as of `from_list`; they may be a generator.
          capacity: `plait.Capacities`, or (rows, longest).  With a count, batches of fewer elements
            get empty ones at the end; without one, their number of elements differs.
          axis: the axis, or axes, along which sizes differ.

        Raises ShapeError for an element that does not fit alone.

        >>> import plait
        >>> sizes = plait.Capacities(rows=4, longest=3, count=2)
        >>> for p in plait.Pile.pack([[1.0, 2.0], [3.0], [4.0, 5.0, 6.0], [7.0]], sizes):
        ...     print(p)
        Pile([[1. 2.], [3.]])
        Pile([[4. 5. 6.], [7.]])
        """
        policy = in_force(capacity)
        if policy is None:
            raise ArgumentError(
                "pack got no capacity",
                fix="write capacity=plait.Capacities(rows=4096, longest=512)",
            )
        return _packed(cls, policy, elements, axis)

    @border
    def divided(self, parts: int) -> tuple[Any, np.ndarray]:
        """Return the elements in several batches with about as many rows each.

        Args:
          parts: their number, such as that of the devices of a mesh.

        Returns:
          A stack of the batches, whose leaves have an axis of `parts` in front: a batch for each
          step of `lax.scan`, or for each device of `shard_map` (`in_specs=P("devices")`, where
          `p[0]` is the device's own).  Parts that have fewer elements than others get empty ones at
          the end, which are not examples.
          int[parts, elements of each]: the numbers of the elements; -1 for empty ones.

        Raises ConcretizationError if lengths are traced.

        >>> import plait
        >>> p = plait.Pile.from_list([[1.0] * 4, [2.0], [3.0] * 2, [4.0] * 3])
        >>> stack, numbers = p.divided(2)
        >>> stack.lengths.sum(axis=1).tolist(), numbers.tolist()
        ([5, 5], [[0, 1], [2, 3]])
        """
        return _divided(self, parts)


def _packed(kind: Any, policy: Any, elements: Iterable[Any], axis: Any) -> Iterator[Any]:
    """Yield piles, of class `kind`, of as many elements in order as the policy has room for."""
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    batch: list[Any] = []
    room: list[int] = []
    for e in elements:
        own = [n for x in flatten(e, _is_numbers)[0] for n in _sizes(x, axes)]
        full = [r + n > policy.rows for r, n in zip(room, own)] + [len(batch) == policy.count]
        if batch and any(full):
            yield kind.from_list(batch, axis, policy)
            batch, room = [], []
        batch.append(e)
        room = [r + n for r, n in zip(room or [0] * len(own), own, strict=True)]
    if batch:
        yield kind.from_list(batch, axis, policy)


def _is_numbers(x: Any) -> bool:
    return isinstance(x, list) and not any(hasattr(v, "shape") for v in x)


def _sizes(x: Any, axes: Iterable[int]) -> list[int]:
    shape = np.shape(x)
    return [shape[a] for a in axes if -len(shape) <= a < len(shape)]


def _divided(p: Any, parts: int) -> tuple[Any, np.ndarray]:
    """Return (a stack of `parts` batches, the numbers of their elements) of known lengths.

    The longest elements are dealt first, each to the part with the fewest rows that has room (the
    rule of longest processing time, Graham 1969)."""
    if parts.__class__ is not int or parts < 1:
        raise ArgumentError(f"a pile is divided into {parts!r} parts", fix="give a number: 4")
    if not known(*p._lengths):
        raise ConcretizationError(
            f"{shown(p)} has traced lengths, which decide how it is divided",
            fix="divide batches outside of jit, where they are made",
        )
    if piles_in(p._tree) or not p._lengths:
        raise ArgumentError(
            f"{shown(p)} is divided by the rows of its elements",
            fix="give a pile of arrays, or of trees of arrays, whose sizes differ",
        )
    vectors = {s.name: np.asarray(n) for s, n in zip(p._sizes, p._lengths, strict=True)}
    there = examples_in(p._sizes, vectors)
    rows = np.sum([v.astype(np.int64) for v in vectors.values()], axis=0)[:there]
    count = -(-len(rows) // parts)
    members: list[list[int]] = [[] for _ in range(parts)]
    total = [0] * parts
    for i in np.argsort(-rows, kind="stable").tolist():
        k = min((k for k in range(parts) if len(members[k]) < count), key=total.__getitem__)
        members[k].append(i)
        total[k] += int(rows[i])
    numbers = [np.sort(np.asarray(m, np.int64)) for m in members]
    each = [_with_empty(p[n], count) for n in numbers]
    is_whole = all(len(n) == count for n in numbers) and there is None
    if not is_whole:  # no part counts empty elements as examples
        each = [_spare(q) for q in each]
    stack = map_tree(lambda *xs: as_value(np.stack(xs)), *(aligned(each) or each))
    places = [np.pad(n, (0, count - len(n)), constant_values=-1) for n in numbers]
    return stack, np.stack(places)


def _spare(p: "Pile") -> Any:
    sizes = [s._replace(spare=True) for s in p._sizes]
    return p._of(p._leaves, p._lengths, p._types, sizes, p._tree, p._count)


def _with_empty(p: "Pile", count: int) -> Any:
    """Return a pile with empty elements at the end."""
    more = count - p._count
    if not more:
        return p
    caps = p._caps()
    leaves = [
        x if place(t, caps, False) in (FLAT, TILES) and caps.axes(t) else fit(as_value(x), 0, count)
        for x, t in p._columns()
    ]
    lengths = [as_value(np.pad(np.asarray(n), (0, more))) for n in p._lengths]
    return p._of(leaves, lengths, p._types, p._sizes, p._tree, count)
