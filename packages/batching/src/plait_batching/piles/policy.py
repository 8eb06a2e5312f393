"""Capacities that the user chooses, so that all batches have one program.

Invariant: sizes depend on the policy alone, and not on the lengths of a batch; a batch that does
not fit is refused where it is made.
"""

from contextvars import ContextVar, Token
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from plait.ext.errors import ArgumentError, ShapeError
from plait.ext.trace import Tracer
from plait.typing import ArrayLike

from .capacities import TILE, Size, sums_of

__all__ = ["Capacities", "bounded", "in_force"]

_current: "ContextVar[Capacities | None]" = ContextVar("capacities", default=None)


class Capacities:
    """Capacities of batches: every batch made with them has one type, and one compiled program.

    Give it as `capacity=` to the constructors of `Pile`, or use it as a block, `with capacities:`,
    for all piles that are made inside.  `capacity=(rows, longest)` is the same as
    `capacity=Capacities(rows, longest)`.

    Args:
      rows: the most rows of all elements together.
      longest: the most rows of one element.
      count: the number of elements.  Batches of fewer elements get empty ones at the end; None
        leaves their number as it is.  Empty elements at the end are then not examples: they are
        never refused, their results are zero, and derivatives do not depend on them.

    Raises ArgumentError for capacities that are not positive integers.

    >>> import plait
    >>> sizes = plait.Capacities(rows=64, longest=16, count=4)
    >>> p = plait.Pile.from_list([[1.0, 2.0], [3.0]], capacity=sizes)
    >>> len(p), p.lengths
    (4, Array([2, 1, 0, 0], dtype=int32))
    """

    __slots__ = ("_tokens", "count", "longest", "rows")
    count: int | None
    longest: int
    rows: int

    def __init__(self, rows: int, longest: int, count: int | None = None):
        self.rows, self.longest = _positive("rows", rows), _positive("longest", longest)
        self.count = None if count is None else _positive("count", count)
        self._tokens: list[Token] = []

    def __repr__(self) -> str:
        more = "" if self.count is None else f", count={self.count}"
        return f"Capacities(rows={self.rows}, longest={self.longest}{more})"

    def __enter__(self) -> "Capacities":
        self._tokens.append(_current.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._tokens.pop())

    def size(self, name: str, count: int) -> Size:
        """Return the bounds of a named size of so many elements."""
        return _size(name, self.rows, self.longest, count, self.count is not None)

    def expect(self, lengths: ArrayLike, sums: tuple[int, int] | None = None) -> None:
        """Raise ShapeError if known lengths, whose `sums_of` may be known already, do not fit."""
        total, most = sums or sums_of(np.asarray(lengths))
        if total > self.rows:
            raise self._too_small(lengths, total, "rows in all", self.rows)
        if most > self.longest:
            raise self._too_small(lengths, most, "rows in one element", self.longest)

    def _too_small(self, lengths: Any, has: int, what: str, room: int) -> ShapeError:
        return ShapeError(
            f"a batch of {len(lengths)} elements has {has} {what}, and its capacity is {room}",
            fix=f"give a capacity of {has} or more, or make several batches of it",
        )

    def missing(self, count: int) -> int:
        """Return how many empty elements a batch needs; raise ShapeError if it has too many."""
        if self.count is None:
            return 0
        if count > self.count:
            raise ShapeError(
                f"a batch has {count} elements, and its capacity is {self.count}",
                fix=f"give count={count} or more, or make several batches of it",
            )
        return self.count - count


def _positive(name: str, n: int) -> int:
    try:
        found = 0 if isinstance(n, bool | Tracer) else index(n)
    except TypeError:
        found = 0
    if found < 1:
        raise ArgumentError(
            f"Capacities: {name} must be a positive integer, got {n!r}", fix="write rows=4096"
        )
    return found


def bounded(name: str, rows: int, longest: int, count: int) -> Size:
    """Return the bounds of a size whose lengths are traced."""
    return _size(name, rows, longest, count, False)


@lru_cache(maxsize=1024)
def _size(name: str, rows: int, longest: int, count: int, spare: bool) -> Size:
    # The squares of the numbers of tiles sum to at most the most of one, times their sum.
    most = -(-longest // TILE)
    squares = max(1, min(count * most, rows // TILE + count) * most)
    return Size(name, rows, longest, squares, spare=spare)


def in_force(given: "Capacities | tuple[int, ...] | None") -> Capacities | None:
    """Return the policy of an argument `capacity`, or that of the surrounding block."""
    if given is None:
        return _current.get()
    if isinstance(given, Capacities):
        return given
    if not isinstance(given, tuple) or len(given) not in (2, 3):
        raise ArgumentError(
            f"capacity must be (rows, longest) or plait.Capacities, got {given!r}",
            fix="write capacity=(4096, 512)",
        )
    return Capacities(*given)
