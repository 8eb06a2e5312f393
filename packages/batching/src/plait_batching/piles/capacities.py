"""Capacities: upper bounds of the memory for sizes that differ from example to example.

Three numbers are known of each named size when a program is compiled: the rows of all examples
together, the rows of the longest, and the number of pairs of tiles.  Bounds of all other sizes
(n + m, n // 2, n * m) follow from these.

Invariant: a capacity is never less than lengths may require, and is at least 1.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from plait.ext.sizes import Dim, max_dim, min_dim
from plait.ext.types import Aval

from .names import named

__all__ = [
    "COUNTS", "PRESENCE", "TILE", "Capacities", "Size", "capacities_of", "in_rows_alone",
    "presence", "ragged_axes", "rounded", "size_of_lengths", "sums_of",
]  # fmt: skip

TILE = 32
"""Rows of a tile: values with two ragged axes are stored in tiles of TILE x TILE."""


COUNTS = ("rows", "longest", "squares")
"""Attributes of `Size` that hold its bounds."""


class Size(NamedTuple):
    """Bounds of a named size, known when a program is compiled."""

    name: str
    rows: int
    """Upper bound of the rows of all examples together."""
    longest: int
    """Upper bound of the rows of one example."""
    squares: int
    """Upper bound of the sum of the squares of the numbers of tiles."""
    label: str = ""
    """The name that the user of `mask` gave it; empty elsewhere."""
    least: int = 0
    """Lower bound of the rows of one example, a multiple of `multiple`."""
    multiple: int = 1
    """A number that divides the rows of every example."""
    spare: bool = False
    """True if empty elements at the end fill up a capacity.  They are not examples: facts do not
    hold for them, and they are never refused."""

    @property
    def whole(self) -> Dim:
        """The number of rows of an example, in terms of the name.

        The name alone stands for any number, so the expression contains the facts, wherever it
        is used."""
        return self.multiple * named(self.name) + self.least

    def part(self, n: Any) -> Any:
        """Return the value of the name where an example has `n` rows."""
        return n if (self.least, self.multiple) == (0, 1) else (n - self.least) // self.multiple

    @property
    def counts(self) -> tuple[Any, ...]:
        """Return its bounds, without names."""
        return tuple([getattr(self, k) for k in COUNTS])


def in_rows_alone(sizes: Sequence[Size]) -> tuple[Size, ...]:
    """Return sizes whose names stand for the rows, as the types of a pile are written."""
    return tuple([s._replace(least=0, multiple=1) for s in sizes])


def rounded(n: int, per_octave: int, least: int) -> Any:
    """Round up to the next capacity; there are `per_octave` between a power of two and the next.

    A symbolic size is its own capacity.  Few capacities mean few compiled programs; eight per
    octave waste 6 % on average.
    """
    return n if n.__class__ is Dim else _rounded(n, per_octave, least)


@lru_cache(maxsize=1 << 14)
def _rounded(n: int, per_octave: int, least: int) -> int:
    """Do as `rounded`, for an int; a stream of batches asks for few different ones."""
    if n <= least:
        return least
    unit = max(1, (1 << (int(n - 1).bit_length() - 1)) // per_octave)
    return -(-n // unit) * unit


_FEW = 64
"""The most lengths that Python sums faster than numpy, whose functions take a microsecond each."""


def sums_of(lengths: np.ndarray) -> tuple[int, int]:
    """Return the rows of all examples together, and those of the longest."""
    if lengths.ndim == 1 and len(lengths) <= _FEW:
        own = lengths.tolist()
        return sum(own), max(own, default=0)
    # The functions themselves: methods of arrays call them through Python.
    return int(np.add.reduce(lengths, None, np.int64)), int(
        np.maximum.reduce(lengths, None, initial=0)
    )


def size_of_lengths(name: str, lengths: np.ndarray, sums: tuple[int, int] | None = None) -> Size:
    """Return the capacities for these lengths, whose `sums_of` may be known already."""
    if len(lengths) <= _FEW:
        own = lengths.tolist()
        total, most = sums or (sum(own), max(own, default=0))
        squares = sum([(-(-n // TILE)) ** 2 for n in own])
    else:
        total, most = sums or sums_of(lengths)
        # A sum of products of int64, since a product may not fit in 32 bits.
        tiles = (lengths.astype(np.int64) + (TILE - 1)) // TILE
        squares = int(np.dot(tiles, tiles))
    return Size(name, _rounded(total, 8, 64), _rounded(most, 1, 8), _rounded(squares, 1, 4))


PRESENCE = "there"
"""The name of an entry of a table whose lengths are 1 for examples and 0 for missing elements.  No
type contains it, and a table without it has no missing elements."""


def presence() -> Size:
    """Return the entry of a table that marks the examples."""
    return Size(PRESENCE, 1, 1, 1)


def examples_in(sizes: Sequence[Size], lengths: Mapping[str, Any]) -> int | None:
    """Return how many elements are examples, given known lengths by name; None if all are."""
    spare = [np.asarray(lengths[s.name]) for s in sizes if s.spare]
    if not spare:
        return None
    return max([int(np.max(np.flatnonzero(n), initial=-1)) for n in spare]) + 1


class _Bound(NamedTuple):
    """Bounds of a size: of one example (least, most), and of its positive part summed over all."""

    least: Any
    most: Any
    total: Any


def ragged_axes(shape: Sequence[Any], names: object) -> tuple[int, ...]:
    """Return the axes whose sizes contain one of the names."""
    return tuple(
        [i for i, d in enumerate(shape) if d.__class__ is Dim and not d.variables.isdisjoint(names)]
    )


class Capacities:
    """Capacities of all sizes that are computed from named ones.

    Args:
      table: the named sizes.
      size: the number of examples.
    """

    def __init__(self, table: tuple[Size, ...], size: int):
        self.table, self.size = table, size
        self.named = {s.name: s for s in table}
        self.whole = {str(s.whole): s for s in table}
        """The named sizes, by their expressions."""
        self._found: dict[str, _Bound] = {}
        self._axes: dict[Aval, tuple[int, ...]] = {}
        self.laid_out: dict[tuple[Aval, str], Aval] = {}
        """Types on the device, by (type of an example, layout); see `operation.layout`."""
        self.on_host: dict[Aval, tuple[str, tuple[int, ...], tuple[int, ...]]] = {}
        """Where numpy writes rows, by the type of an example; see `on_host.laid_out`."""

    def axes(self, aval: Aval) -> tuple[int, ...]:
        """Return the ragged axes of a type."""
        found = self._axes.get(aval)
        if found is None:
            found = self._axes[aval] = ragged_axes(aval.shape, self.named)
        return found

    def mine(self, d: Any) -> bool:
        """Return whether a size contains one of the named sizes."""
        return d.__class__ is Dim and not d.variables.isdisjoint(self.named)

    def rows(self, d: Any) -> int:
        """Bound the rows of all examples together, along an axis of size `d`."""
        return _at_least_one(self._of(d).total)

    def longest(self, d: Any) -> int:
        """Bound the rows of one example."""
        return _at_least_one(self._of(d).most)

    def fills(self, d: Any) -> bool:
        """Return whether examples of the longest rows have as many along `d` as its capacities."""
        n = d.substitute({s.name: s.part(s.longest) for s in self.table})
        return n == self.longest(d) and n * self.size == self.rows(d)

    def tiles(self, d: Dim) -> int:
        """Bound the tiles of all examples together; at most one of each example is not full."""
        return self.rows(d) // TILE + self.size

    def pairs(self, a: Dim, b: Dim) -> int:
        """Bound the pairs of tiles of all examples: at most the geometric mean of the squares
        (Cauchy and Schwarz)."""
        m, n = self._squares(a), self._squares(b)
        if _symbolic(m, n):
            return m + n + 1
        return isqrt(m * n) + 1

    def _squares(self, d: Dim) -> int:
        if d.__class__ is Dim and str(d) in self.whole:
            return self.whole[str(d)].squares
        return self.tiles(d) * -(-self.longest(d) // TILE)

    def _of(self, d: Dim) -> _Bound:
        key = str(d)
        found = self._found.get(key)
        if found is None:
            s = self.whole.get(key)
            made = self._bound(d) if s is None else _Bound(s.least, s.longest, s.rows)
            found = self._found[key] = made
        return found

    def _bound(self, d: Dim) -> _Bound:
        def variable(name: str) -> _Bound:
            s = self.named[name]
            if (s.least, s.multiple) == (0, 1):
                return _Bound(0, s.longest, s.rows)
            surely = 0 if s.spare else s.least * self.size
            rows = (s.rows - surely) // s.multiple
            return _Bound(0, _most(s.part(s.longest), 0), _most(rows, 0))

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

    def _made(self, least: int, most: int, total: int) -> _Bound:
        if _symbolic(most, total):
            return _Bound(least, most, most * self.size)
        return _Bound(least, most, max(0, min(total, self.size * max(0, most))))

    def _constant(self, c: int) -> _Bound:
        return _Bound(c, c, max(0, c) * self.size)

    def _add(self, a: _Bound, b: _Bound) -> _Bound:
        # The positive part of a sum is at most the sum of the positive parts.
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
def capacities_of(table: tuple[Size, ...], size: int) -> Capacities:
    """Return the capacities for these sizes and this number of examples, with cached bounds."""
    return Capacities(table, size)


# ---- capacities that are sizes of an enclosing program ---------------------------------------


def _symbolic(*sizes: int) -> bool:
    return any(s.__class__ is Dim for s in sizes)


def _most(*sizes: int) -> Any:
    return max_dim(*sizes)


def _least(*sizes: int) -> Any:
    return min_dim(*sizes)


def _at_least_one(n: int) -> Any:
    return n if n.__class__ is Dim else max(1, n)
