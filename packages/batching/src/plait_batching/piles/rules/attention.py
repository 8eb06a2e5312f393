"""Attention of piles, in memory proportional to the rows instead of the pairs of rows.

Tiles of queries meet tiles of keys, several at a time.  For each query three running values are
kept: the greatest product, the sum of exponentials, and the values weighted by them (Milakov and
Gimelshein, "Online normalizer calculation for softmax", 2018; Rabe and Staats, "Self-attention Does
Not Need O(n^2) Memory", 2021).

Invariant: the running values of a query do not depend on the order of the keys, except for
rounding.
"""

from typing import Any

import numpy as np

import plait
import plait.numpy as pnp
from plait.ext.ops.shape import convert
from plait.ext.trace import Value
from plait_numpy.ext.attention import attention_, attention_cotangent

from ..carrier import pile_rules
from ..layouts import from_tiles, to_tiles
from ..operation import FLAT
from ..row_access import put, rows_at, rows_or
from ..tables import Pairs


@pile_rules.rule(attention_)
def _(r, args, out, **how):
    run = _Run.of(r, args, how)
    if run is None:
        return None  # expand it to products and a softmax
    _, total, values = run.forward()
    return run.flat(values / _or_one(total)[..., None], args[0].aval.shape[0], out)


@pile_rules.rule(attention_cotangent)
def _(r, args, out, **how):
    run = _Run.of(r, args, how)
    if run is None:
        return None
    cts = run.backward()
    sizes = [x.aval.shape[0] for x in args[:3]]
    return [run.flat(c, d, a) for c, d, a in zip(cts, sizes, out, strict=True)]


def _or_one(total: Value) -> Any:
    return pnp.where(total == 0, 1, total)


class _Run:
    """Evaluation of one attention: tiles of queries, keys, values, and of the cotangent if any.

    Tiles of queries are [tiles, groups, heads of a group, TILE, columns], of keys and values
    [tiles, groups, TILE, columns].
    """

    def __init__(self, r: Any, args: list[Value], p: Pairs, how: dict):
        self.r, self.p, self.how = r, p, how
        dtype = args[0].aval.dtype
        self.dtype = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
        self.groups = args[1].aval.shape[1]
        q, self.k, self.v = self.tiles(args[0], True), *[self.tiles(x, False) for x in args[1:3]]
        self.q = q * how["scale"]
        self.ct = self.tiles(args[3], True) if len(args) > 3 else None
        self.pairs = self._in_turns(p.capacity)

    @classmethod
    def of(cls, r: Any, args: Any, how: dict) -> "_Run | None":
        """Return the run; None if a layout or a symbolic capacity does not permit it."""
        if (
            r.padded
            or args[0].aval.ndim > 3
            or any(r.how(a) != FLAT or r.axes(a.aval) != (0,) for a in args)
        ):
            return None
        p = r.pairs(args[0].aval.shape[0], args[1].aval.shape[0])
        known = p.capacity.__class__ is int and p.a.tiles.__class__ is int
        return cls(r, args, p, how) if known else None

    def tiles(self, x: Any, queries: bool) -> Any:
        t = convert(to_tiles(self.r, self.r.data(x, FLAT), 0, x.aval.shape[0]), self.dtype)
        n, rows, heads, columns = t.shape
        if not queries:
            return pnp.moveaxis(t, 1, 2)
        t = t.reshape((n, rows, self.groups, heads // self.groups, columns))
        return pnp.moveaxis(t, 1, 3)

    def flat(self, t: Any, d: Any, aval: Any) -> Any:
        """Return the result of type `aval`, given its rows in tiles."""
        t = pnp.moveaxis(t, -2, 1)
        t = convert(t.reshape((*t.shape[:2], *aval.shape[1:])), aval.dtype)
        return self.r.result(aval, from_tiles(self.r, t, 0, d), FLAT)

    def _in_turns(self, capacity: int) -> tuple[Any, Any]:
        """Return the tiles of queries and of keys that meet in each turn.

        Each turn also updates the running values of all queries.  That costs little beside the
        products of half as many pairs as there are query tiles."""
        p = self.p
        at_once = min(capacity, max(p.a.tiles // 2, 16))
        turns = -(-capacity // at_once)
        pad = turns * at_once - capacity

        def divided(at: Value, none: int) -> Any:
            return pnp.pad(at, (0, pad), constant_values=none).reshape((turns, at_once))

        return divided(p.left, p.a.tiles), divided(p.right, p.b.tiles)

    def products(self, mine: Value, theirs: Value) -> Any:
        """Return [pairs, groups, heads of a group, TILE, TILE]: products, -inf where masked."""
        k = rows_or(0, self.k, theirs)
        x = pnp.einsum("pgjid,pgkd->pgjik", rows_at(self.q, mine), k)
        return pnp.where(_seen(self.p, mine, theirs, **self.how), x, -np.inf)

    def forward(self) -> Any:
        """Return for each query: the greatest product, or 0 if it sees no key; the sum of
        exponentials of differences from it; the sum of values weighted by these."""

        def turn(kept: Any, pairs: Any) -> tuple:
            most, total, values = kept
            mine, theirs = pairs
            products = self.products(mine, theirs)
            new = put(most, mine, products.max(-1), "max")
            base = _finite(new)
            weights = pnp.exp(products - rows_at(base, mine)[..., None])
            before = pnp.exp(most - base)
            total = put(total * before, mine, weights.sum(-1), "add")
            found = pnp.einsum("pgjik,pgke->pgjie", weights, rows_or(0, self.v, theirs))
            return (new, total, put(values * before[..., None], mine, found, "add")), None

        shape = self.q.shape[:-1]
        least, none = pnp.full(shape, -np.inf, self.dtype), pnp.zeros(shape, self.dtype)
        start = least, none, pnp.zeros((*shape, self.v.shape[-1]), self.dtype)
        (most, total, values), _ = plait.lax.scan(turn, start, self.pairs)
        return _finite(most), total, values

    def backward(self) -> Any:
        """Return the cotangents of queries, keys and values; the weights are computed again."""
        most, total, values = self.forward()
        total = _or_one(total)
        mean = (self.ct * values).sum(-1) / total

        def turn(kept: Any, pairs: Any) -> tuple:
            cq, ck, cv = kept
            mine, theirs = pairs
            k, v = rows_or(0, self.k, theirs), rows_or(0, self.v, theirs)
            q, ct = rows_or(0, self.q, mine), rows_or(0, self.ct, mine)
            weights = pnp.exp(self.products(mine, theirs) - rows_at(most, mine)[..., None])
            weights = weights / rows_at(total, mine)[..., None]
            back = pnp.einsum("pgjie,pgke->pgjik", ct, v)
            step = weights * (back - rows_at(mean, mine)[..., None])
            cq = put(cq, mine, pnp.einsum("pgjik,pgkd->pgjid", step, k), "add")
            ck = put(ck, theirs, pnp.einsum("pgjik,pgjid->pgkd", step, q), "add")
            cv = put(cv, theirs, pnp.einsum("pgjik,pgjie->pgke", weights, ct), "add")
            return (cq, ck, cv), None

        start = [pnp.zeros_like(x) for x in (self.q, self.k, self.v)]
        (cq, ck, cv), _ = plait.lax.scan(turn, tuple(start), self.pairs)
        return cq * self.how["scale"], ck, cv


def _finite(most: Any) -> Any:
    return pnp.where(pnp.isfinite(most), most, 0)


def _seen(p: Pairs, mine: Value, theirs: Value, causal: bool, window: Any, scale: float) -> Any:
    """Return which queries see which keys: [pairs, 1, 1, TILE or 1, TILE]."""
    seen = rows_or(False, p.b.tile_there, theirs)[:, None]
    if causal or window is not None:
        i = rows_at(p.a.tile_position, mine)[:, :, None]
        j = rows_at(p.b.tile_position, theirs)[:, None]
        if causal:
            seen = seen & (j <= i)
        if window is not None:
            seen = seen & (j >= i - window[0]) & (j <= i + window[1])
    return seen[:, None, None]
