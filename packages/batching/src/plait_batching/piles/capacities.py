"""Capacities: how much memory a size that differs from example to example may need.

Of each size that has a name three numbers are known when a program is compiled: how many rows all
examples have together, how many the longest has, and how many pairs of tiles.  Bounds of any
other size (n + m, n // 2, n * m) follow from those.

Invariant: a capacity is never less than what lengths can ask for; it is at least 1.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from plait.ext.sizes import Dim, max_dim, min_dim
from plait.ext.types import Aval

__all__ = [
    "COUNTS", "TILE", "Capacities", "Size", "capacities_of", "ragged_axes", "rounded",
    "size_of_lengths",
]  # fmt: skip

TILE = 32
"""Rows of a tile: values with two ragged axes are kept in tiles of TILE x TILE."""


COUNTS = ("rows", "longest", "squares")
"""What is known of a size, by attributes of `Size`."""


class Size(NamedTuple):
    """What is known of a named size when a program is compiled."""

    name: str
    rows: int
    """At most so many rows have all examples together."""
    longest: int
    """At most so many has one."""
    squares: int
    """At most so large is the sum of the squares of the numbers of tiles."""
    label: str = ""
    """What the user of `mask` calls it; nobody else names sizes."""

    @property
    def counts(self) -> tuple[Any, ...]:
        """What is known of it, without its names."""
        return tuple([getattr(self, k) for k in COUNTS])


def rounded(n: Any, per_octave: int, least: int) -> Any:
    """The next capacity, of which there are `per_octave` between a power of two and the next.

    A size that is known by name is its own capacity.

    Few capacities make few programs; eight an octave waste 6 % on average.
    """
    if n.__class__ is Dim:
        return n
    if n <= least:
        return least
    unit = max(1, (1 << (int(n - 1).bit_length() - 1)) // per_octave)
    return -(-n // unit) * unit


def size_of_lengths(name: str, lengths: np.ndarray) -> Size:
    """The capacities that these lengths are given."""
    n = np.asarray(lengths, np.int64)
    tiles = -(-n // TILE)
    return Size(
        name,
        rounded(int(n.sum()), 8, 64),
        rounded(int(n.max(initial=0)), 1, 8),
        rounded(int((tiles * tiles).sum()), 1, 4),
    )


class _Bound(NamedTuple):
    """Bounds of a size: of one example (least, most), and of its positive part, summed over all."""

    least: Any
    most: Any
    total: Any


def ragged_axes(shape: Sequence[Any], names: Any) -> tuple[int, ...]:
    """The axes whose sizes speak of one of the names."""
    return tuple(
        [i for i, d in enumerate(shape) if d.__class__ is Dim and not d.variables.isdisjoint(names)]
    )


class Capacities:
    """The capacities of all sizes that are made of named ones.

    Args:
      table: the named sizes.
      size: the number of examples.
    """

    def __init__(self, table: tuple[Size, ...], size: int):
        self.table, self.size = table, size
        self.named = {s.name: s for s in table}
        self._found: dict[str, _Bound] = {}
        self._axes: dict[Aval, tuple[int, ...]] = {}
        self.laid_out: dict[tuple[Aval, str], Aval] = {}
        """Types on the device, by (type of an example, layout); see `operation.layout`."""

    def axes(self, aval: Aval) -> tuple[int, ...]:
        """The ragged axes of a type."""
        found = self._axes.get(aval)
        if found is None:
            found = self._axes[aval] = ragged_axes(aval.shape, self.named)
        return found

    def mine(self, d: Any) -> bool:
        """Whether a size speaks of a named one."""
        return d.__class__ is Dim and not d.variables.isdisjoint(self.named)

    def rows(self, d: Any) -> int:
        """The rows of all examples together, along an axis of size `d`."""
        return _at_least_one(self._of(d).total)

    def longest(self, d: Any) -> int:
        """The rows of one example."""
        return _at_least_one(self._of(d).most)

    def tiles(self, d: Any) -> int:
        """The tiles of all examples together."""
        return self.rows(d) // TILE + self.size

    def pairs(self, a: Any, b: Any) -> int:
        """Pairs of tiles of one example: at most the geometric mean of the squares (Cauchy and
        Schwarz)."""
        m, n = self._squares(a), self._squares(b)
        if _symbolic(m, n):
            return m + n + 1
        return isqrt(m * n) + 1

    def _squares(self, d: Any) -> int:
        if d.__class__ is Dim and str(d) in self.named:
            return self.named[str(d)].squares
        return self.tiles(d) * -(-self.longest(d) // TILE)

    def _of(self, d: Any) -> _Bound:
        key = str(d)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._bound(d)
        return found

    def _bound(self, d: Any) -> _Bound:
        def variable(name: str) -> _Bound:
            s = self.named[name]
            return _Bound(0, s.longest, s.rows)

        return d.fold(
            self._constant,
            variable,
            self._add,
            self._mul,
            self._floordiv,
            self._mod,
            self._extreme(_most),
            self._extreme(_least),
        )

    def _made(self, least: Any, most: Any, total: Any) -> _Bound:
        if _symbolic(most, total):
            return _Bound(least, most, most * self.size)
        return _Bound(least, most, max(0, min(total, self.size * max(0, most))))

    def _constant(self, c: int) -> _Bound:
        return _Bound(c, c, max(0, c) * self.size)

    def _add(self, a: _Bound, b: _Bound) -> _Bound:
        # the positive part of a sum is at most the sum of the positive parts
        return self._made(a.least + b.least, a.most + b.most, a.total + b.total)

    def _mul(self, a: _Bound, b: _Bound) -> _Bound:
        if _symbolic(a.most, b.most) and a.least == b.least == 0:
            return self._made(0, a.most * b.most, 0)
        ends = [x * y for x in a[:2] for y in b[:2]]
        least, most = _least(*ends), _most(*ends)
        if _symbolic(least, most) or a.least < 0 or b.least < 0:
            return self._made(least, most, self.size * _most(0, most))
        return self._made(least, most, min(a.total * max(0, b.most), b.total * max(0, a.most)))

    def _floordiv(self, a: _Bound, b: _Bound) -> _Bound:
        if b.least < 1:
            far = _most(-1 * a.least, a.most)
            return self._made(-1 * far, far, self.size * far)
        if _symbolic(a.most, b.most):
            return self._made(a.least // b.least, a.most // b.least, 0)
        ends = [x // y for x in a[:2] for y in b[:2]]
        return self._made(min(ends), max(ends), a.total // b.least)

    def _mod(self, a: _Bound, b: _Bound) -> _Bound:
        most = _most(b.most - 1, 0)
        if a.least >= 0:
            return self._made(0, _least(most, a.most), a.total)
        return self._made(0, most, self.size * most)

    def _extreme(self, which: Callable) -> Callable[[_Bound, _Bound], _Bound]:
        def of(a: _Bound, b: _Bound) -> _Bound:
            total = a.total + b.total if which is _most else _least(a.total, b.total)
            return self._made(which(a.least, b.least), which(a.most, b.most), total)

        return of


@lru_cache(maxsize=256)
def capacities_of(table: tuple[Size, ...], size: Any) -> Capacities:
    """The capacities for these sizes and this number of examples, with what is known of them."""
    return Capacities(table, size)


# ---- capacities that are sizes of an operation around ----------------------------------------


def _symbolic(*sizes: Any) -> bool:
    return any(s.__class__ is Dim for s in sizes)


def _most(*sizes: Any) -> Any:
    return max_dim(*sizes)


def _least(*sizes: Any) -> Any:
    return min_dim(*sizes)


def _at_least_one(n: Any) -> Any:
    return n if n.__class__ is Dim else max(1, n)
