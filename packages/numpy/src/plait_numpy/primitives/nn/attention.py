"""Attention as one operation, so that a platform or transformation can run it in its own way.

`nn.dot_product_attention` is written with products and a softmax, which the compiler fuses where it
can.  With symbolic sizes, the memory that the products take is unknown.  The operation therefore
stays whole until it is known how it runs (`plait_batching.piles`).

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
from plait.ext.ops.reduction import max_, reduce_sum, sum_
from plait.ext.ops.shape import broadcast_to, convert, expand_dims, iota, reshape, transpose

__all__ = ["attention_", "attention_cotangent", "attention_tangent", "places"]


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
    """Apply the softmax of the products of queries (queries, heads, depth) and keys (keys, groups,
    depth) to the values (keys, groups, columns); groups divides heads.

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
        q.ndim == k.ndim == v.ndim == 3
        and q.shape[2] == k.shape[2]
        and k.shape[:2] == v.shape[:2]
        and q.shape[1] % k.shape[1] == 0
    )
    if not fits:
        raise ShapeError(
            f"attention of {q!r}, {k!r} and {v!r}",
            fix="queries: (queries, heads, depth); keys: (keys, groups, depth); values: (keys, "
            "groups, columns), where groups divides heads",
        )
    return Aval((q.shape[0], q.shape[1], v.shape[2]), v.dtype)


# ---- expansion as products and a softmax -----------------------------------------------------


def places(t: Any, s: Any, causal: bool, window: tuple[int, int] | None) -> list:
    """Return masks (queries, keys) that together select the keys each query sees by position."""
    i, j = iota(np.int32, (t, s), 0), iota(np.int32, (t, s), 1)
    seen = [el.ge(i, j)] if causal else []
    if window is not None:
        left, right = window
        seen += [el.ge(j, el.sub(i, left)), el.le(j, el.add(i, right))]
    return seen


@expand_rules.rule(attention_)
def _(q, k, v, *, scale, causal, window):
    w = _Weights(q, k, scale, causal, window)
    return w.result(w.applied(w.values, v), v.aval.dtype)


@expand_rules.rule(attention_tangent)
def _(q, k, v, dq, dk, dv, *, scale, causal, window):
    w = _Weights(q, k, scale, causal, window)
    step = el.add(w.products(dq, k), w.products(q, dk))
    step = el.mul(w.values, el.sub(step, w.mean(step)))
    return w.result(el.add(w.applied(step, v), w.applied(w.values, dv)), v.aval.dtype)


@expand_rules.rule(attention_cotangent)
def _(q, k, v, ct, *, scale, causal, window):
    w = _Weights(q, k, scale, causal, window)
    ct = w.grouped(ct)
    back = contracted(ct, w.wide(v), ((3,), (2,)), ((1,), (1,)))  # (groups, queries, heads, keys)
    step = el.mul(el.mul(w.values, el.sub(back, w.mean(back))), scale)
    to_keys = lambda x, y: transpose(contracted(x, y, ((1, 2), (0, 2)), ((0,), (1,))), (1, 0, 2))  # noqa: E731
    return [
        w.result(w.applied(step, k), q.aval.dtype),
        convert(to_keys(step, w.grouped(q)), k.aval.dtype),
        convert(to_keys(w.values, ct), v.aval.dtype),
    ]


class _Weights:
    """The softmax of the products of queries and keys: (groups, queries, heads of a group, keys),
    in at least single precision."""

    def __init__(
        self, q: Any, k: Any, scale: float, causal: bool, window: tuple[int, int] | None
    ) -> None:
        self.heads, self.groups, self.scale = q.aval.shape[1], k.aval.shape[1], scale
        self.dtype = np.dtype(np.float32) if q.aval.dtype.itemsize < 4 else q.aval.dtype
        products = self.products(q, k)
        t, s = q.aval.shape[0], k.aval.shape[0]
        seen = places(t, s, causal, window)
        mask = reshape(reduce(el.and_, seen), (1, t, 1, s)) if seen else None
        top = max_(products, (3,), keepdims=True, initial=-np.inf, where=mask)
        # The maximum enters by value only (`stop`), so that derivatives follow the formula.
        terms = el.exp(el.sub(products, el.stop(el.select(el.is_finite(top), top, 0))))
        terms = terms if mask is None else el.select(mask, terms, 0)
        total = sum_(terms, (3,), keepdims=True)
        self.values = el.true_divide(terms, el.select(el.eq(total, 0), 1, total))

    def wide(self, x: Any) -> Any:
        return convert(x, self.dtype)

    def grouped(self, x: Any) -> Any:
        """Reshape (rows, heads, columns) to (rows, groups, heads of a group, columns)."""
        n, _, columns = x.aval.shape
        return self.wide(reshape(x, (n, self.groups, self.heads // self.groups, columns)))

    def products(self, q: Any, k: Any) -> Any:
        pairs = contracted(self.grouped(q), self.wide(k), ((3,), (2,)), ((1,), (1,)))
        return el.mul(pairs, self.scale)

    def mean(self, x: Any) -> Any:
        """Return the mean over keys, weighted by these weights."""
        total = reduce_sum.bind(el.mul(self.values, x), axes=(3,))
        return broadcast_to(expand_dims(total, 3), x.aval.shape)

    def applied(self, weights: Any, v: Any) -> Any:
        """Sum the weighted values: (groups, queries, heads of a group, columns)."""
        return contracted(weights, self.wide(v), ((3,), (0,)), ((0,), (1,)))

    def result(self, x: Any, dtype: Any) -> Any:
        """Convert a result to (queries, heads, columns) of a dtype."""
        x = transpose(x, (1, 0, 2, 3))
        return convert(reshape(x, (x.aval.shape[0], self.heads, x.aval.shape[3])), dtype)
