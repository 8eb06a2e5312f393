"""Index tables of the rows and tiles of each example: computed from lengths, with static shapes.

Invariant: rows, tiles and pairs of tiles beyond the last one belong to example number `size`, which
does not exist.
"""

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

import plait.numpy as pnp
from plait import lax
from plait.ext.ops.control_flow import call
from plait.ext.sizes import is_symbolic, max_dim
from plait.ext.trace import Interpreter, Value, staged, use
from plait.ext.values import as_value
from plait.typing import Array, ArrayLike

from .capacities import TILE
from .row_access import chosen, put, rows_at, rows_or

__all__ = ["I32", "Pairs", "Rows"]

I32 = np.dtype(np.int32)


def table(make: Callable[[Any], Any]) -> Any:
    """Return a property that is computed once, under the interpreter `by`.

    The step of a loop is staged: a table computed there would belong to the step, and other code
    could not use it.
    """

    def made(self: Any) -> Any:
        with use(self.by):
            return make(self)

    made.__doc__ = make.__doc__
    return cached_property(made)


KEPT = 256
"""Number of programs kept for each table, one for each set of capacities; batches of one data set
have about a dozen."""


def shared(make: Callable) -> Any:
    """Return a function that is staged once, and lowered once per module, for each capacities
    tuple.

    Its last argument is the tuple of capacities; the most recent programs are kept.  `of` is the
    function itself, for use inside of other shared functions."""

    @lru_cache(maxsize=KEPT)
    def program(avals: tuple, capacities: tuple) -> Any:
        return staged(lambda *vs: list(_several(make(*vs, capacities))), avals, make.__name__)

    def made(*args: Any) -> Any:
        *given, capacities = args
        xs = [as_value(x) for x in given]
        avals = tuple([x.aval for x in xs])
        if is_symbolic(capacities) or any(is_symbolic(a.shape) for a in avals):
            return make(*args)  # symbolic sizes belong to the enclosing program
        got = call.bind(*xs, program=program(avals, capacities))
        return got if len(got) > 1 else got[0]

    made.__doc__, made.of = make.__doc__, make  # type: ignore[attr-defined]
    return made


def _several(x: Value | tuple[Value, ...]) -> tuple:
    return x if isinstance(x, tuple) else (x,)


def divided(n: Array, by: ArrayLike) -> tuple[Any, Any]:
    """Return (quotient, remainder) of numbers that are not negative."""
    by = pnp.broadcast_to(pnp.asarray(by, I32), n.shape)
    return lax.div(n, by), lax.rem(n, by)


@shared
def owners(counts: Value, capacities: tuple[int]) -> tuple[Any, Any]:
    """Return ([size + 1]: number of the first item of each example, then the end; [capacity]:
    example of each item)."""
    (capacity,) = capacities
    zero = pnp.zeros(1, I32)
    first = pnp.concatenate([zero, pnp.cumsum(counts, dtype=I32)])
    marks = put(pnp.zeros(capacity, I32), first[1:], pnp.ones_like(counts, I32), "add")
    return first, pnp.cumsum(marks, dtype=I32)


def _and_none(lengths: Value, value: int = 0) -> Any:
    """Append an entry for the example that does not exist."""
    return pnp.concatenate([lengths, pnp.full(1, value, I32)])


class Rows:
    """Tables of one size, computed by the interpreter `by`: for flat rows, and for rows in
    tiles."""

    def __init__(self, by: Interpreter, lengths: Array, size: int, rows: int, longest: int):
        self.by = by
        self.lengths, self.size, self.rows, self.longest = lengths, size, rows, longest
        self.tiles = rows // TILE + size

    # ---- flat

    @table
    def _flat(self) -> tuple[Any, Any]:
        return owners(self.lengths, (self.rows,))

    @property
    def first(self) -> Any:
        """[size + 1]: the first row of each example, then the end."""
        return self._flat[0]

    @property
    def example(self) -> Any:
        """[rows]: the example of each row."""
        return self._flat[1]

    @table
    def owner(self) -> Any:
        """[rows]: the example of each row, clipped into range beyond the last one."""
        return pnp.minimum(self.example, max_dim(self.size - 1, 0))

    @table
    def position(self) -> Any:
        """[rows]: the position of each row in its example."""
        return pnp.arange(self.rows, dtype=I32) - rows_at(self.first, self.example)

    @table
    def there(self) -> Any:
        """[rows]: whether each row belongs to an example."""
        return self.example < self.size

    # ---- padded

    @table
    def inside(self) -> Any:
        """[size, longest]: whether each padded place holds a row."""
        return pnp.arange(self.longest, dtype=I32) < self.lengths[:, None]

    @table
    def padded_rows(self) -> Any:
        """[size, longest]: the row of each padded place."""
        at = self.first[:-1, None] + pnp.arange(self.longest, dtype=I32)
        return pnp.minimum(at, self.rows - 1)

    @table
    def row_places(self) -> Any:
        """[rows]: the padded place of each row, among size * longest."""
        p = pnp.clip(self.position, 0, self.longest - 1)
        return self.owner * self.longest + p

    # ---- tiles

    @table
    def _tiled(self) -> "TilesOf":
        capacities = self.size, self.rows, self.tiles
        return TilesOf(*_tiles_of(self.lengths, self.first, capacities))

    @property
    def counts(self) -> Any:
        """[size]: the number of tiles of each example."""
        return self._tiled.counts

    @property
    def tile_first(self) -> Any:
        """[size + 1]: the first tile of each example, then the end."""
        return self._tiled.first

    @property
    def tile_example(self) -> Any:
        """[tiles]: the example of each tile."""
        return self._tiled.example

    @table
    def tile_owner(self) -> Any:
        """[tiles]: the example of each tile, clipped into range beyond the last one."""
        return pnp.minimum(self.tile_example, max_dim(self.size - 1, 0))

    @property
    def tile_position(self) -> Any:
        """[tiles, TILE]: the positions of a tile's rows in their example."""
        return self._tiled.position

    @property
    def tile_there(self) -> Any:
        """[tiles, TILE]: whether each place of a tile holds a row."""
        return self._tiled.there

    @property
    def tile_rows(self) -> Any:
        """[tiles, TILE]: the row of each place of a tile; `rows`, which is outside, if empty."""
        return self._tiled.rows

    @table
    def row_tiles(self) -> Any:
        """[rows]: the place of each row, among tiles * TILE."""
        return _tiles_of_rows(self.first, self.example, self.tile_first, (self.rows, self.tiles))


class TilesOf(NamedTuple):
    """The tables of `Rows` for tiles."""

    counts: Any
    first: Any
    example: Any
    position: Any
    there: Any
    rows: Any


@shared
def _tiles_of(lengths: Value, first_row: Value, capacities: tuple[int, int, int]) -> tuple:
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
    first_row: Value, example: Value, first_tile: Value, capacities: tuple[int, int]
) -> Any:
    rows, tiles = capacities
    tile, place = divided(pnp.arange(rows, dtype=I32) - rows_at(first_row, example), TILE)
    at = (rows_at(first_tile, example) + tile) * TILE + place
    return pnp.clip(at, 0, tiles * TILE - 1)


class Pairs:
    """Tables of pairs of tiles, one tile of each of two sizes of the same example.

    Attributes:
      first, example, owner: the first pair of each example, then the end; the example of each
        pair; the same, clipped into range beyond the last pair.
      place: the numbers of the left and of the right tile among those of their example.
      left, right: their numbers among all tiles; out of range beyond the last pair.
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
        """Return the row of each place of the pairs' left or right tiles: [capacity, TILE].

        `t` are the rows that the tiles are made of; empty places have `t.rows`."""
        found = self._rows.get((id(t), left))
        if found is None:
            with use(self.by):
                tiles = self.left if left else self.right
                found = self._rows[id(t), left] = _rows_at(t.tile_rows, tiles, (t.rows,))
        return found

    @table
    def left_there(self) -> Any:
        """[capacity, TILE]: whether each place of the pair's left tile holds a row."""
        return _there_at(self.a.tile_there, self.left, ())

    @table
    def right_there(self) -> Any:
        """[capacity, TILE]: whether each place of the pair's right tile holds a row."""
        return _there_at(self.b.tile_there, self.right, ())


@shared
def _pairs_of(
    m: Value, n: Value, first_left: Value, first_right: Value, capacities: tuple[int, int, int, int]
) -> tuple:
    size, lefts, rights, capacity = capacities
    first, example = owners.of(m * n, (capacity,))
    k = pnp.arange(capacity, dtype=I32) - rows_at(first, example)
    # An example without tiles on the right has no pairs; the maximum avoids a division by 0.
    i, j = divided(k, pnp.maximum(rows_at(_and_none(n), example), 1))
    inside = example < size
    left = chosen(inside, (0,), rows_at(first_left, example) + i, lefts)
    right = chosen(inside, (0,), rows_at(first_right, example) + j, rights)
    return first, example, pnp.minimum(example, max_dim(size - 1, 0)), i, j, left, right


@shared
def _rows_at(tile_rows: Value, tiles: Value, capacities: tuple[int]) -> Any:
    return rows_or(capacities[0], tile_rows, tiles)


@shared
def _there_at(there: Value, tiles: Value, capacities: tuple) -> Any:
    return rows_or(False, there, tiles)
