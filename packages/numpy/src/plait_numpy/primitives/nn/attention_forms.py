"""Attention as CPUs compute it fast: by tiles of queries that stay in the processor's cache.

The products of all queries and keys are too many for a cache, and each of the dozen passes over
them waits for memory.  Here a tile of queries meets the keys that it can see, for as many heads at
a time as fit.  Memory therefore grows with the number of keys, not with that of pairs, and keys
that no query of a tile sees cost nothing.  The derivative computes the weights of each tile again.

Keys from both ends are left out by slices, whose sizes are static.  So tiles in a loop see the keys
of all of them: with a mask by position, tiles are divided into a few loops.

Invariant: a tile is computed as the operation expands, with the position of its first query.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from plait.ext import Aval
from plait.ext.control import scan
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.rules import cpu_form_rules, cpu_limit
from plait.ext.trace import Value
from plait.typing import ArrayLike

from .attention import (
    attention_,
    attention_cotangent,
    attention_tangent,
    cotangents_of,
    result_of,
    tangent_of,
)

TILE = cpu_limit(
    "attention.tile",
    256,
    "Queries of a tile; more take more memory.",
    least=1,
)
SMALLEST_TILE = cpu_limit(
    "attention.smallest_tile",
    64,
    "Queries of a tile, at least, where smaller tiles leave out more keys.",
    least=1,
)
LOOPS = cpu_limit(
    "attention.loops",
    4,
    "The most loops over tiles that see different keys; each is compiled.",
    least=1,
)
AT_ONCE = cpu_limit(
    "attention.at_once",
    1 << 20,
    "The most products of queries and keys to hold at once, if one tile of one head has fewer.",
)
FEWEST = cpu_limit(
    "attention.fewest", 1 << 14, "The fewest products of a head that are worth tiles."
)
FEW_TURNS = cpu_limit(
    "attention.few_turns",
    4,
    "How many times `at_once` all heads may hold, to be taken without a loop, which copies them.",
)


class Segment(NamedTuple):
    """Tiles that see the same keys: `tiles` of `size` queries from `start` on; keys from `low` to
    `high`."""

    start: int
    size: int
    tiles: int
    low: int
    high: int


def segments(
    queries: int, keys: int, causal: bool, window: tuple[int, int] | None
) -> list[Segment]:
    """Divide the queries into segments of tiles."""
    uneven = causal or window is not None
    tile = tile_of(queries, uneven)
    tiles, rest = divmod(queries, tile)
    loops = min(LOOPS.value if uneven else 1, tiles)
    ends = [tiles * (i + 1) // loops for i in range(loops)]
    found = [(a * tile, tile, b - a) for a, b in zip([0, *ends], ends)]
    if rest:
        found.append((tiles * tile, rest, 1))
    made = []
    for start, size, count in found:
        low, high = 0, start + size * count if causal else keys
        if window is not None:
            low, high = start - window[0], min(high, start + size * count + window[1])
        low = min(max(low, 0), keys - 1)
        made.append(Segment(start, size, count, low, max(min(high, keys), low + 1)))
    return made


def tile_of(queries: int, uneven: bool) -> int:
    """Return the number of queries of a tile; `uneven`: they see different keys.

    Then it is small enough for several loops, because a tile meets all keys that one of its
    queries sees.
    """
    if not uneven:
        return TILE.value
    return min(TILE.value, max(SMALLEST_TILE.value, queries // LOOPS.value))


def _form(
    avals: Sequence[Aval], how: dict[str, Any], by_query: Sequence[int], function: Callable,
    sums: bool = False,
) -> Callable | None:  # fmt: skip
    """Return the form of attention or a derivative; None if it is small.

    Args:
      by_query: which operands have rows for queries; the others have rows for keys.
      function: the expansion, which returns the result for queries, then those for keys.
      sums: whether there are results for keys, to which each tile adds.
    """
    q, k = avals[:2]
    if not all(n.__class__ is int and n > 0 for a in avals for n in a.shape):
        return None
    if q.shape[-3] * k.shape[-3] < FEWEST.value:
        return None
    return lambda *xs: _Tiles(q, k, how, by_query, function, sums).results(xs)


@cpu_form_rules.rule(attention_)
def _(avals: Sequence[Aval], **how: object) -> Callable | None:
    def one(rows: list, columns: list, first: ArrayLike) -> list:
        return [result_of(rows[0], *columns, first=first, **how)]

    return _form(avals, how, (0,), one)


@cpu_form_rules.rule(attention_tangent)
def _(avals: Sequence[Aval], **how: object) -> Callable | None:
    def one(rows: list, columns: list, first: ArrayLike) -> list:
        (q, dq), (k, v, dk, dv) = rows, columns
        return [tangent_of(q, k, v, dq, dk, dv, first=first, **how)]

    return _form(avals, how, (0, 3), one)


@cpu_form_rules.rule(attention_cotangent)
def _(avals: Sequence[Aval], **how: object) -> Callable | None:
    def one(rows: list, columns: list, first: ArrayLike) -> list:
        (q, ct), (k, v) = rows, columns
        return cotangents_of(q, k, v, ct, first=first, **how)

    return _form(avals, how, (0, 3), one, sums=True)


class _Tiles:
    """One attention by tiles.

    Operands are arranged as (heads of keys, rows, heads of a group, columns): then tiles are
    stacks of matrices without a transposition.
    """

    def __init__(
        self, q: Aval, k: Aval, how: dict, by_query: Sequence[int], function: Callable, sums: bool
    ) -> None:
        self.lead, self.groups = q.shape[:-3], k.shape[-2]
        self.queries, self.keys = q.shape[-3], k.shape[-3]
        self.each = q.shape[-2] // self.groups
        self.wide = np.dtype(np.float32) if q.dtype.itemsize < 4 else q.dtype
        self.by_query, self.function, self.sums = by_query, function, sums
        self.segments = segments(self.queries, self.keys, how["causal"], how["window"])

    def results(self, xs: Sequence[Any]) -> Any:
        """Return the results of the operation: one array, or a list if there are several."""
        dtypes = [x.aval.dtype for x in xs]
        arranged = [self._arranged(x) for x in xs]
        heads = prod(self.lead) * self.groups
        pairs = [self.each * s.size * (s.high - s.low) for s in self.segments]
        # Derivatives hold the arrays of all segments.
        most = AT_ONCE.value // (sum(pairs) if self.sums else max(pairs))
        if heads * sum(pairs) <= FEW_TURNS.value * AT_ONCE.value:
            most = heads
        at_once = max(n for n in range(1, heads + 1) if heads % n == 0 and n <= max(1, most))
        turns = heads // at_once
        if turns == 1:
            outs = self._heads(arranged)
        else:
            xs = [sh.reshape(x, (turns, at_once, *x.aval.shape[1:])) for x in arranged]
            _, outs = scan(lambda none, some: (none, self._heads(some)), [], xs)
            outs = [sh.reshape(x, (heads, *x.aval.shape[2:])) for x in outs]
        if len(outs) == 1:
            return self._as_given(outs[0], dtypes[2])
        return [self._as_given(x, d) for x, d in zip(outs, dtypes, strict=False)]

    def _arranged(self, x: Value) -> Any:
        n, (rows, heads, columns) = len(self.lead), x.aval.shape[-3:]
        x = sh.reshape(x, (*self.lead, rows, self.groups, heads // self.groups, columns))
        x = sh.transpose(x, (*range(n), n + 1, n, n + 2, n + 3))
        return sh.convert(sh.reshape(x, (-1, *x.aval.shape[n + 1 :])), self.wide)

    def _as_given(self, x: Value, dtype: np.dtype) -> Any:
        n, (rows, each, columns) = len(self.lead), x.aval.shape[1:]
        x = sh.reshape(x, (*self.lead, self.groups, rows, each, columns))
        x = sh.transpose(x, (*range(n), n + 1, n, n + 2, n + 3))
        return sh.convert(sh.reshape(x, (*self.lead, rows, self.groups * each, columns)), dtype)

    def _heads(self, xs: Sequence[Any]) -> list:
        """Return the results for some heads."""
        rows = [x for i, x in enumerate(xs) if i in self.by_query]
        columns = [x for i, x in enumerate(xs) if i not in self.by_query]
        parts: list = []
        sums: list = []
        for s in self.segments:
            seen = [sh.slice_in_dim(x, s.low, s.high, axis=1) for x in columns]
            out, *by_key = self._segment(s, rows, seen)
            parts.append(out)
            ends = [(0, 0, 0), (s.low, self.keys - s.high, 0), (0, 0, 0), (0, 0, 0)]
            by_key = [sh.pad(x, 0, ends) for x in by_key]
            sums = [el.add(a, b) for a, b in zip(sums, by_key)] if sums else by_key
        return [sh.concatenate(parts, 1) if len(parts) > 1 else parts[0], *sums]

    def _segment(self, s: Segment, rows: list, columns: list) -> list:
        """Return the result for the queries of a segment, and the sums for its keys."""
        rows = [sh.slice_in_dim(x, s.start, s.start + s.size * s.tiles, axis=1) for x in rows]
        first = s.start - s.low
        if s.tiles == 1:
            return self.function(rows, columns, np.int32(first))

        def turn(sums: list, tile: tuple) -> tuple[list, Any]:
            at, mine = tile
            out, *by_key = self.function(mine, columns, el.add(el.mul(at, s.size), first))
            return [el.add(a, b) for a, b in zip(sums, by_key)], out

        tiles = [sh.reshape(x, (x.aval.shape[0], s.tiles, s.size, *x.aval.shape[2:])) for x in rows]
        tiles = [sh.transpose(x, (1, 0, 2, 3, 4)) for x in tiles]
        sums = [sh.fill(0, x.aval) for x in columns] if self.sums else []
        sums, out = scan(turn, sums, (sh.iota(np.int32, (s.tiles,)), tiles))
        out = sh.transpose(out, (1, 0, 2, 3, 4))
        n, _, _, each, width = out.aval.shape
        return [sh.reshape(out, (n, s.tiles * s.size, each, width)), *sums]
