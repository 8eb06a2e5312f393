"""Attention.

Invariant: products are computed in single precision at least; a query that sees nothing gets zeros.
"""

import math
from typing import Any

import numpy as np

from ..errors import TypeRule
from ..ops import elementwise as el
from ..ops.contraction import contracted
from ..ops.shape import (
    broadcast_to,
    convert,
    convert_together,
    expand_dims,
    iota,
    reshape,
    transpose,
)
from ..surface import fused
from .exponentials import softmax


def dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *,
    scale: float | None = None, is_causal: bool = False,
) -> Any:  # fmt: skip
    """Softmax of the products of queries and keys, times the values.

    Args:
      query: of shape (batch, queries, heads, depth), or without batch.
      key, value: of shape (batch, keys, groups, depth), where groups divides heads.
      bias: added to the products, broadcasts with (batch, heads, queries, keys).
      mask: booleans: which products count, broadcasts likewise.
      scale: of the products; 1 / sqrt(depth) if not given.
      is_causal: whether query i sees the keys up to i only.

    Returns an array of the shape of `query`.  Queries that see nothing get zeros.  Raises TypeRule
    for shapes that do not fit.
    """
    return _attention(query, key, value, bias, mask, scale=scale, causal=bool(is_causal))


@fused
def _attention(
    q: Any, k: Any, v: Any, bias: Any, mask: Any, *, scale: float | None, causal: bool
) -> Any:
    q, k, v = convert_together([el.floating((x,))[0] for x in (q, k, v)])
    batched = q.aval.ndim == 4
    if not batched:
        q, k, v = (expand_dims(x, 0) for x in (q, k, v))
    _fit_attention(q, k, v)
    b, t, h, d = q.aval.shape
    s, groups = k.aval.shape[1:3]
    q = reshape(q, (b, t, groups, h // groups, d))
    scale = 1 / math.sqrt(d) if scale is None else scale
    # (batch, groups, queries, heads of a group, keys), in single precision at least
    wide = np.dtype(np.float32) if q.aval.dtype.itemsize < 4 else q.aval.dtype
    logits = contracted(q, k, ((4,), (3,)), ((0, 2), (0, 2)), preferred_element_type=wide)
    logits = reshape(transpose(el.mul(logits, scale), (0, 1, 3, 2, 4)), (b, h, t, s))
    logits = logits if bias is None else el.add(logits, convert(bias, wide))
    if causal:
        seen = el.ge(iota(np.int32, (t, s), 0), iota(np.int32, (t, s), 1))
        mask = seen if mask is None else el.and_(mask, seen)
    if mask is not None:
        mask = broadcast_to(mask, logits.aval.shape)
    weights = convert(softmax(logits, where=mask), v.aval.dtype)
    weights = reshape(weights, (b, groups, h // groups, t, s))
    out = contracted(weights, v, ((4,), (1,)), ((0, 1), (0, 2)))
    out = reshape(transpose(out, (0, 3, 1, 2, 4)), (b, t, h, v.aval.shape[-1]))
    return out if batched else reshape(out, out.aval.shape[1:])


def _fit_attention(q: Any, k: Any, v: Any) -> None:
    ranks = {x.aval.ndim for x in (q, k, v)}
    fits = ranks == {4} and (
        q.aval.shape[0] == k.aval.shape[0] == v.aval.shape[0]
        and q.aval.shape[3] == k.aval.shape[3]
        and k.aval.shape[1:3] == v.aval.shape[1:3]
        and q.aval.shape[2] % k.aval.shape[2] == 0
    )
    if not fits:
        raise TypeRule(
            f"dot_product_attention of {q.aval!r}, {k.aval!r} and {v.aval!r}",
            fix="queries: (batch, queries, heads, depth); keys and values: (batch, keys, groups, "
            "depth), where groups divides heads",
        )
