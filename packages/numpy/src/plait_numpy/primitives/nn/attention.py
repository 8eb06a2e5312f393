"""Attention as one operation, so that a platform or transformation can run it in its own way.

`nn.dot_product_attention` without a mask or bias is this operation, until it is known how it runs.
It expands to products and a softmax.  CPUs compute it by tiles (`attention_forms`), and piles by
the tiles of their examples (`plait_batching.piles`).

Invariant: it is a function of its operands row by row.  The result of a query depends on that query
and on all keys and values that it sees.
"""

from functools import reduce
from typing import Any

import numpy as np

from plait.errors import ShapeError
from plait.ext import Aval, expand_rules, primitive
from plait.ext.ops import elementwise as el
from plait.ext.ops.contraction import contracted
from plait.ext.ops.control_flow import expect
from plait.ext.ops.elementwise import FLOAT, agreed
from plait.ext.ops.reduction import max_, sum_
from plait.ext.ops.shape import broadcast_to, convert, expand_dims, iota, reshape, transpose
from plait.ext.trace import Value
from plait.typing import Array, ArrayLike

__all__ = [
    "attention_", "attention_cotangent", "attention_tangent", "cotangents_of", "places",
    "result_of", "tangent_of",
]  # fmt: skip


@primitive("nn.attention", formerly=("core.attention",))
def attention_(
    q: Aval,
    k: Aval,
    v: Aval,
    *,
    scale: float,
    causal: bool,
    window: tuple[int, int] | None,
) -> Aval:
    """Apply the softmax of the products of queries (..., queries, heads, depth) and keys (...,
    keys, groups, depth) to the values (..., keys, groups, columns); groups divides heads.

    If `causal`, query i sees the keys up to i.  With a window (left, right), it sees those from
    i - left to i + right.  Queries that see no key get zeros.
    """
    return _fitting(q, k, v)


@primitive("nn.attention_tangent", formerly=("core.attention_tangent",))
def attention_tangent(
    q: Aval,
    k: Aval,
    v: Aval,
    dq: Aval,
    dk: Aval,
    dv: Aval,
    *,
    scale: float,
    causal: bool,
    window: tuple[int, int] | None,
) -> Aval:
    """Return the tangent of attention for tangents of its operands, in which it is linear."""
    expect("attention", (q, k, v), (dq, dk, dv))
    return _fitting(q, k, v)


@primitive("nn.attention_cotangent", formerly=("core.attention_cotangent",), many=True)
def attention_cotangent(
    q: Aval,
    k: Aval,
    v: Aval,
    ct: Aval,
    *,
    scale: float,
    causal: bool,
    window: tuple[int, int] | None,
) -> list:
    """Return the cotangents of the operands of attention for a cotangent of its result."""
    expect("attention", (_fitting(q, k, v),), (ct,))
    return [x.strong() for x in (q, k, v)]


def _fitting(q: Aval, k: Aval, v: Aval) -> Aval:
    agreed("attention", FLOAT, *[Aval((), x.dtype) for x in (q, k, v)])
    fits = (
        q.ndim == k.ndim == v.ndim >= 3
        and q.shape[:-3] == k.shape[:-3] == v.shape[:-3]
        and q.shape[-1] == k.shape[-1]
        and k.shape[-3:-1] == v.shape[-3:-1]
        and q.shape[-2] % k.shape[-2] == 0
    )
    if not fits:
        raise ShapeError(
            f"attention of {q!r}, {k!r} and {v!r}",
            fix="queries: (..., queries, heads, depth); keys: (..., keys, groups, depth); values: "
            "(..., keys, groups, columns), where groups divides heads",
        )
    return Aval((*q.shape[:-1], v.shape[-1]), v.dtype)


# ---- expansion as products and a softmax -----------------------------------------------------


def places(
    t: int, s: int, causal: bool, window: tuple[int, int] | None, first: ArrayLike | None = None
) -> list:
    """Return masks (queries, keys) that together select the keys each query sees by position.

    `first` is the position of the first query, counted from the first key.
    """
    i, j = iota(np.int32, (t, s), 0), iota(np.int32, (t, s), 1)
    i = i if first is None else el.add(i, broadcast_to(first, (t, s)))
    seen = [el.ge(i, j)] if causal else []
    if window is not None:
        left, right = window
        seen += [el.ge(j, el.sub(i, left)), el.le(j, el.add(i, right))]
    return seen


def result_of(q: Value, k: Value, v: Value, *, first: ArrayLike | None = None, **how: Any) -> Any:
    """Return the result of attention; `first` is the position of the first query."""
    w = _Weights(q, k, first, **how)
    return w.result(el.true_divide(w.applied(w.terms, v), w.total), v.aval.dtype)


def tangent_of(
    q: Value,
    k: Value,
    v: Value,
    dq: Value,
    dk: Value,
    dv: Value,
    *,
    first: ArrayLike | None = None,
    **how: Any,
) -> Any:
    """Return the tangent of attention; `first` is the position of the first query."""
    w = _Weights(q, k, first, **how)
    step = el.add(w.products(dq, k), w.products(q, dk))
    step = el.mul(w.values, el.sub(step, w.summed(el.mul(w.values, step))))
    return w.result(el.add(w.applied(step, v), w.applied(w.values, dv)), v.aval.dtype)


def cotangents_of(
    q: Value, k: Value, v: Value, ct: Value, *, first: ArrayLike | None = None, **how: Any
) -> list:
    """Return the cotangents of queries, keys and values; `first` is as in `result_of`."""
    w = _Weights(q, k, first, **how)
    ct = w.grouped(ct)
    back = w.pairs(ct, v)
    # Weights are `terms` times `share`.  Rows have fewer elements than pairs, so they are scaled.
    share = el.true_divide(1, w.total)
    step = el.mul(w.terms, el.sub(back, el.mul(w.summed(el.mul(w.terms, back)), share)))
    factor = el.mul(share, w.scale)
    return [
        w.result(el.mul(w.applied(step, k), factor), q.aval.dtype),
        convert(w.to_keys(step, el.mul(w.grouped(q), w.ungrouped(factor))), k.aval.dtype),
        convert(w.to_keys(w.terms, el.mul(ct, w.ungrouped(share))), v.aval.dtype),
    ]


@expand_rules.rule(attention_)
def _(q: Value, k: Value, v: Value, **how):
    return result_of(q, k, v, **how)


@expand_rules.rule(attention_tangent)
def _(q: Value, k: Value, v: Value, dq: Value, dk: Value, dv: Value, **how):
    return tangent_of(q, k, v, dq, dk, dv, **how)


@expand_rules.rule(attention_cotangent)
def _(q: Value, k: Value, v: Value, ct: Value, **how):
    return cotangents_of(q, k, v, ct, **how)


class _Weights:
    """The softmax of the products of queries and keys, in at least single precision.

    Pairs have the axes (..., groups, rows, keys), where a row is a query of a head of a group.
    No axis before the rows has one element: loops over pairs would take up to three times as long.

    Attributes:
      terms, total: exponentials, 0 for keys that are not seen, and their sums.
    """

    def __init__(
        self, q: Value, k: Value, first: ArrayLike | None, *, scale: float, causal: bool,
        window: tuple[int, int] | None,
    ) -> None:  # fmt: skip
        *self.lead, t, self.heads, _ = q.aval.shape
        self.groups, self.scale = k.aval.shape[-2], scale
        self.each = self.heads // self.groups
        self.dtype = np.dtype(np.float32) if q.aval.dtype.itemsize < 4 else q.aval.dtype
        # Symbolic sizes are not compared.
        self.stack = [n for n in (*self.lead, self.groups) if n.__class__ is not int or n != 1]
        products, axes = self.products(q, k), (len(self.stack) + 1,)
        s = k.aval.shape[-3]
        seen = places(t, s, causal, window, first)
        mask = self.by_row(reduce(el.and_, seen)) if seen else None
        top = max_(products, axes, keepdims=True, initial=-np.inf, where=mask)
        # The maximum enters by value only (`stop`), so that derivatives follow the formula.
        terms = el.exp(el.sub(products, el.stop(el.select(el.is_finite(top), top, 0))))
        self.terms = terms if mask is None else el.select(mask, terms, 0)
        total = self.summed(self.terms)
        self.total = el.select(el.eq(total, 0), 1, total)

    @property
    def values(self) -> Any:
        return el.true_divide(self.terms, self.total)

    def by_row(self, x: Any) -> Any:
        """Repeat (queries, keys) for the heads of a group: (rows, keys)."""
        if self.each == 1:
            return x
        t, s = x.aval.shape
        return reshape(broadcast_to(expand_dims(x, 1), (t, self.each, s)), (t * self.each, s))

    def wide(self, x: Any) -> Any:
        return convert(x, self.dtype)

    def grouped(self, x: Value) -> Any:
        """Reshape (..., rows, heads, columns) to (..., rows, groups, heads of a group, columns)."""
        *lead, _, columns = x.aval.shape
        return self.wide(reshape(x, (*lead, self.groups, self.each, columns)))

    def contracted(self, x: Value, y: Value, met: tuple, groups: tuple[int, int]) -> Any:
        """Contract axes, counted after the leading ones, for each of the groups."""
        n = len(self.lead)
        contract = [tuple([n + a for a in axes]) for axes in met]
        shared = [(*range(n), n + g) for g in groups]
        return contracted(x, y, contract, shared)

    def pairs(self, x: Value, y: Value) -> Any:
        """Return the products of rows of queries and of keys."""
        made = self.contracted(x, self.wide(y), ((3,), (2,)), (1, 1))
        *_, t, each, s = made.aval.shape
        return reshape(made, (*self.stack, t * each, s))

    def products(self, q: Value, k: Value) -> Any:
        return el.mul(self.pairs(self.grouped(q), k), self.scale)

    def summed(self, x: Any) -> Any:
        """Sum over keys: (..., groups, rows, 1)."""
        return sum_(x, (len(self.stack) + 1,), keepdims=True)

    def applied(self, weights: Any, v: Any) -> Any:
        """Sum the weighted values: (..., groups, rows, columns)."""
        rows = reshape(weights, (*self.lead, self.groups, *weights.aval.shape[-2:]))
        made = self.contracted(rows, self.wide(v), ((2,), (0,)), (0, 1))
        return reshape(made, (*self.stack, *made.aval.shape[-2:]))

    def to_keys(self, x: Value, y: Value) -> Any:
        """Sum over queries and heads of a group: (..., keys, groups, columns)."""
        *_, rows, s = x.aval.shape
        x = reshape(x, (*self.lead, self.groups, rows // self.each, self.each, s))
        out = self.contracted(y, x, ((0, 2), (1, 2)), (1, 0))  # the narrow matrix first
        n = len(self.lead)
        return transpose(out, (*range(n), n + 2, n, n + 1))

    def result(self, x: Array, dtype: np.dtype) -> Any:
        """Convert a result to (..., queries, heads, columns) of a dtype."""
        x = self.ungrouped(x)
        *lead, _, _, columns = x.aval.shape
        return convert(reshape(x, (*lead, self.heads, columns)), dtype)

    def ungrouped(self, x: Any) -> Any:
        """Arrange (..., groups, rows, columns) as `grouped` returns it."""
        n, (rows, columns) = len(self.lead), x.aval.shape[-2:]
        x = reshape(x, (*self.lead, self.groups, rows // self.each, self.each, columns))
        return transpose(x, (*range(n), n + 1, n, n + 2, n + 3))
