"""Where the rows and tiles of each example are: computed from lengths, static in shape.

Invariant: rows, tiles and pairs of tiles beyond the last one belong to example number `size`, which
is none.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait.ext.trace import (
    Interpreter,
    use,
)

from .capacities import TILE
from .row_access import put, rows_at, rows_or

__all__ = ["I32", "Pairs", "Rows"]

I32 = np.dtype(np.int32)


def table(make: Callable[[Any], Any]) -> Any:
    """A property that is computed once, outside of loops that ask for it.

    A loop's step is staged; what is first asked for there would be the step's own, and not be there
    for anybody else.
    """

    def made(self: Any) -> Any:
        with use(self.by):
            return make(self)

    made.__doc__ = make.__doc__
    return cached_property(made)


def owners(counts: Any, capacity: int) -> tuple[Any, Any]:
    """(number of the first item of each example, and of the end [size + 1]; example of each of
    `capacity` items)."""
    zero = pnp.zeros(1, I32)
    first = pnp.concatenate([zero, pnp.cumsum(counts, dtype=I32)])
    marks = put(pnp.zeros(capacity, I32), first[1:], pnp.ones_like(counts, I32), "add")
    return first, pnp.cumsum(marks, dtype=I32)


def _and_none(lengths: Any, value: int = 0) -> Any:
    """With an entry for the example that is none."""
    return pnp.concatenate([lengths, pnp.full(1, value, I32)])


class Rows:
    """The tables of one size, made by the interpreter `by`: of its `lengths[size]`, of rows flat
    one after the other, of rows in tiles."""

    def __init__(self, by: Interpreter, lengths: Any, size: int, rows: int, longest: int):
        self.by = by
        self.lengths, self.size, self.rows, self.longest = lengths, size, rows, longest
        self.tiles = rows // TILE + size

    # ---- flat

    @table
    def _flat(self) -> tuple[Any, Any]:
        return owners(self.lengths, self.rows)

    @property
    def first(self) -> Any:
        """The first row of each example, then the end: [size + 1]."""
        return self._flat[0]

    @property
    def example(self) -> Any:
        """The example of each row: [rows]."""
        return self._flat[1]

    @table
    def owner(self) -> Any:
        """The example of each row, in range also where there is none."""
        return pnp.minimum(self.example, max(self.size - 1, 0))

    @table
    def position(self) -> Any:
        """The position of each row in its example: [rows]."""
        return pnp.arange(self.rows, dtype=I32) - rows_at(self.first, self.example)

    @table
    def there(self) -> Any:
        """Which rows there are: [rows]."""
        return self.example < self.size

    # ---- padded

    @table
    def inside(self) -> Any:
        """Which places of padded examples there are: [size, longest]."""
        return pnp.arange(self.longest, dtype=I32) < self.lengths[:, None]

    @table
    def padded_rows(self) -> Any:
        """The row of each place of padded examples: [size, longest]."""
        at = self.first[:-1, None] + pnp.arange(self.longest, dtype=I32)
        return pnp.minimum(at, self.rows - 1)

    @table
    def row_places(self) -> Any:
        """The place, among size * longest, of each row."""
        p = pnp.clip(self.position, 0, self.longest - 1)
        return self.owner * self.longest + p

    # ---- tiles

    @table
    def counts(self) -> Any:
        """The number of tiles of each example: [size]."""
        return (self.lengths + (TILE - 1)) // TILE

    @table
    def _tiled(self) -> tuple[Any, Any]:
        return owners(self.counts, self.tiles)

    @property
    def tile_first(self) -> Any:
        """The first tile of each example, then the end: [size + 1]."""
        return self._tiled[0]

    @property
    def tile_example(self) -> Any:
        """The example of each tile: [tiles]."""
        return self._tiled[1]

    @table
    def tile_owner(self) -> Any:
        """The example of each tile, in range also where there is none."""
        return pnp.minimum(self.tile_example, max(self.size - 1, 0))

    @table
    def tile_position(self) -> Any:
        """The positions of a tile's rows in their example: [tiles, TILE]."""
        k = pnp.arange(self.tiles, dtype=I32) - rows_at(self.tile_first, self.tile_example)
        return k[:, None] * TILE + pnp.arange(TILE, dtype=I32)

    @table
    def tile_there(self) -> Any:
        """Which of a tile's rows there are: [tiles, TILE]."""
        return self.tile_position < rows_at(_and_none(self.lengths), self.tile_example)[:, None]

    @table
    def tile_rows(self) -> Any:
        """The row of each place of a tile; `rows`, which is outside, where there is none."""
        at = rows_at(self.first, self.tile_example)[:, None] + self.tile_position
        return pnp.where(self.tile_there, at, self.rows)

    @table
    def row_tiles(self) -> Any:
        """The place among the tiles of each row: [rows]."""
        p = self.position
        at = (rows_at(self.tile_first, self.example) + p // TILE) * TILE + p % TILE
        return pnp.clip(at, 0, self.tiles * TILE - 1)


class Pairs:
    """The tables of pairs of tiles, one of each of two sizes of one example."""

    def __init__(self, a: Rows, b: Rows, capacity: int):
        self.by = a.by
        self.a, self.b, self.capacity = a, b, capacity
        self.first, self.example = owners(a.counts * b.counts, capacity)
        inside = self.example < a.size
        self.owner = pnp.minimum(self.example, max(a.size - 1, 0))
        k = pnp.arange(capacity, dtype=I32) - rows_at(self.first, self.example)
        across = pnp.maximum(rows_at(_and_none(b.counts, 1), self.example), 1)
        self.place = k // across, k % across
        self.left = pnp.where(inside, rows_at(a.tile_first, self.example) + self.place[0], a.tiles)
        self.right = pnp.where(inside, rows_at(b.tile_first, self.example) + self.place[1], b.tiles)

    @table
    def left_there(self) -> Any:
        """Which rows of the pair's left tile there are: [capacity, TILE]."""
        return rows_or(False, self.a.tile_there, self.left)

    @table
    def right_there(self) -> Any:
        """The same of its right tile."""
        return rows_or(False, self.b.tile_there, self.right)
