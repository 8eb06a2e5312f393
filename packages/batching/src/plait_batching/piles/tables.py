"""Where the rows and tiles of each example are: computed from lengths, static in shape.

Invariant: rows, tiles and pairs of tiles beyond the last one belong to example number `size`, which
is none.
"""

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

import plait.numpy as pnp
from plait import lax
from plait.ext.ops.control_flow import call
from plait.ext.sizes import is_symbolic, max_dim
from plait.ext.trace import Interpreter, staged, use
from plait.ext.values import as_value

from .capacities import TILE
from .row_access import chosen, put, rows_at, rows_or

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


KEPT = 256
"""How many programs of a table are kept: for as many capacities, which batches of one origin have a
dozen of."""


def shared(make: Callable) -> Any:
    """A function whose last argument is a tuple of capacities: one program for each of them, staged
    once, and lowered once in each module, however many sizes and operations ask for it.

    Of many capacities the latest are kept.  `of` is the function itself, for others that are
    shared."""

    @lru_cache(maxsize=KEPT)
    def program(avals: tuple, capacities: tuple) -> Any:
        return staged(lambda *vs: list(_several(make(*vs, capacities))), avals, make.__name__)

    def made(*args: Any) -> Any:
        *given, capacities = args
        xs = [as_value(x) for x in given]
        avals = tuple([x.aval for x in xs])
        if is_symbolic(capacities) or any(is_symbolic(a.shape) for a in avals):
            return make(*args)  # sizes known by name belong to the program around
        got = call.bind(*xs, program=program(avals, capacities))
        return got if len(got) > 1 else got[0]

    made.__doc__, made.of = make.__doc__, make  # type: ignore[attr-defined]
    return made


def _several(x: Any) -> tuple:
    return x if isinstance(x, tuple) else (x,)


def divided(n: Any, by: Any) -> tuple[Any, Any]:
    """(quotient, remainder) of numbers that are not negative."""
    by = pnp.broadcast_to(pnp.asarray(by, I32), n.shape)
    return lax.div(n, by), lax.rem(n, by)


@shared
def owners(counts: Any, capacities: tuple[int]) -> tuple[Any, Any]:
    """(number of the first item of each example, and of the end [size + 1]; example of each of
    `capacity` items)."""
    (capacity,) = capacities
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
        return owners(self.lengths, (self.rows,))

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
        return pnp.minimum(self.example, max_dim(self.size - 1, 0))

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
    def _tiled(self) -> "TilesOf":
        capacities = self.size, self.rows, self.tiles
        return TilesOf(*_tiles_of(self.lengths, self.first, capacities))

    @property
    def counts(self) -> Any:
        """The number of tiles of each example: [size]."""
        return self._tiled.counts

    @property
    def tile_first(self) -> Any:
        """The first tile of each example, then the end: [size + 1]."""
        return self._tiled.first

    @property
    def tile_example(self) -> Any:
        """The example of each tile: [tiles]."""
        return self._tiled.example

    @table
    def tile_owner(self) -> Any:
        """The example of each tile, in range also where there is none."""
        return pnp.minimum(self.tile_example, max_dim(self.size - 1, 0))

    @property
    def tile_position(self) -> Any:
        """The positions of a tile's rows in their example: [tiles, TILE]."""
        return self._tiled.position

    @property
    def tile_there(self) -> Any:
        """Which of a tile's rows there are: [tiles, TILE]."""
        return self._tiled.there

    @property
    def tile_rows(self) -> Any:
        """The row of each place of a tile; `rows`, which is outside, where there is none."""
        return self._tiled.rows

    @table
    def row_tiles(self) -> Any:
        """The place among the tiles of each row: [rows]."""
        return _tiles_of_rows(self.first, self.example, self.tile_first, (self.rows, self.tiles))


class TilesOf(NamedTuple):
    """What `Rows` says of tiles."""

    counts: Any
    first: Any
    example: Any
    position: Any
    there: Any
    rows: Any


@shared
def _tiles_of(lengths: Any, first_row: Any, capacities: tuple[int, int, int]) -> tuple:
    size, rows, tiles = capacities
    counts, _ = divided(lengths + (TILE - 1), TILE)
    first, example = owners.of(counts, (tiles,))
    k = pnp.arange(tiles, dtype=I32) - rows_at(first, example)
    position = k[:, None] * TILE + pnp.arange(TILE, dtype=I32)
    there = position < rows_at(_and_none(lengths), example)[:, None]
    at = rows_at(first_row, example)[:, None] + position
    return counts, first, example, position, there, chosen(there, (0, 1), at, rows)


@shared
def _tiles_of_rows(
    first_row: Any, example: Any, first_tile: Any, capacities: tuple[int, int]
) -> Any:
    rows, tiles = capacities
    tile, place = divided(pnp.arange(rows, dtype=I32) - rows_at(first_row, example), TILE)
    at = (rows_at(first_tile, example) + tile) * TILE + place
    return pnp.clip(at, 0, tiles * TILE - 1)


class Pairs:
    """The tables of pairs of tiles, one of each of two sizes of one example.

    Attributes:
      first, example, owner: the first pair of each example, then the end; the example of each
        pair; the same, in range also where there is none.
      place: which of its example's tiles the left and the right one are.
      left, right: their numbers among all tiles, beyond the last where there is no pair.
    """

    def __init__(self, a: Rows, b: Rows, capacity: int):
        self.by = a.by
        self.a, self.b, self.capacity = a, b, capacity
        capacities = a.size, a.tiles, b.tiles, capacity
        firsts = a.tile_first, b.tile_first
        found = _pairs_of(a.counts, b.counts, *firsts, capacities)
        self.first, self.example, self.owner, *place, self.left, self.right = found
        self.place = tuple(place)
        self._rows: dict[tuple[int, bool], Any] = {}

    def rows_of(self, t: Rows, left: bool) -> Any:
        """The row of each place of the left tiles, or of the right ones, among the rows of `t`, of
        which they are tiles: [capacity, TILE]; `t.rows` where there is none."""
        found = self._rows.get((id(t), left))
        if found is None:
            with use(self.by):
                tiles = self.left if left else self.right
                found = self._rows[id(t), left] = _rows_at(t.tile_rows, tiles, (t.rows,))
        return found

    @table
    def left_there(self) -> Any:
        """Which rows of the pair's left tile there are: [capacity, TILE]."""
        return _there_at(self.a.tile_there, self.left, ())

    @table
    def right_there(self) -> Any:
        """The same of its right tile."""
        return _there_at(self.b.tile_there, self.right, ())


@shared
def _pairs_of(
    m: Any, n: Any, first_left: Any, first_right: Any, capacities: tuple[int, int, int, int]
) -> tuple:
    size, lefts, rights, capacity = capacities
    first, example = owners.of(m * n, (capacity,))
    k = pnp.arange(capacity, dtype=I32) - rows_at(first, example)
    # an example without tiles on the right has no pairs, and none is divided by 0
    i, j = divided(k, pnp.maximum(rows_at(_and_none(n), example), 1))
    inside = example < size
    left = chosen(inside, (0,), rows_at(first_left, example) + i, lefts)
    right = chosen(inside, (0,), rows_at(first_right, example) + j, rights)
    return first, example, pnp.minimum(example, max_dim(size - 1, 0)), i, j, left, right


@shared
def _rows_at(tile_rows: Any, tiles: Any, capacities: tuple[int]) -> Any:
    return rows_or(capacities[0], tile_rows, tiles)


@shared
def _there_at(there: Any, tiles: Any, capacities: tuple) -> Any:
    return rows_or(False, there, tiles)
