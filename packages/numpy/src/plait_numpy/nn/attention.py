"""Attention.

Invariant: products are computed in single precision at least; a query without keys gives zeros.
"""

import functools
import math
from typing import Any

import numpy as np

from plait.errors import ArgumentError
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.contraction import contracted, normal_precision
from plait.ext.sizes import is_symbolic
from plait.ext.surface import fused
from plait.ext.surface import value as value_of
from plait.ext.trace import Value
from plait.ext.types import BOOL, INTEGER
from plait.typing import Array, ArrayLike

from ..primitives.nn.attention import attention_, places
from .exponentials import logsumexp, softmax


def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None,
    mask: ArrayLike | None = None, *, scale: float | None = None, is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None, key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None, implementation: str | None = None,
    return_residual: bool = False,
) -> Array:  # fmt: skip
    """Multiply the softmax of the products of queries and keys by the values.

    Args:
      query: of shape (batch, queries, heads, depth), or without batch.
      key, value: of shape (batch, keys, groups, depth), where groups divides heads.
      bias: added to the products, broadcasts with (batch, heads, queries, keys).
      mask: booleans: False excludes a product; broadcasts likewise.
      scale: factor of the products; 1 / sqrt(depth) if not given.
      is_causal: whether query i uses only the keys up to i.
      query_seq_lengths, key_value_seq_lengths: integers of shape (batch,): the numbers of queries
        and keys; later ones are left out.
      local_window_size: (left, right) or one number for both: query i uses the keys from i - left
        to i + right.
      implementation: None or "xla".
      return_residual: whether to return (result, logarithms of the sums of exponentials), the
        latter of shape (batch, queries, heads) in single precision at least.

    Returns an array of the shape of `query`.  Queries without keys get zeros, and the residual
    -inf.  Raises TypeRule for shapes and dtypes that do not fit.

    >>> import numpy as np, plait
    >>> x = np.ones((5, 2, 3), np.float32)
    >>> plait.nn.dot_product_attention(x, x, x, local_window_size=(1, 0)).shape
    (5, 2, 3)
    """
    if implementation not in (None, "xla"):
        raise ArgumentError(
            f"dot_product_attention has no implementation {implementation!r}",
            fix='use "xla", or leave it out',
        )
    window = _window(local_window_size)
    extra = (bias, mask, query_seq_lengths, key_value_seq_lengths)
    plain = not return_residual and all(x is None for x in extra)
    if plain and _is_one_operation(query, key, scale):
        return _as_one(query, key, value, scale=scale, causal=bool(is_causal), window=window)
    return _attention(
        query, key, value, bias, mask, query_seq_lengths, key_value_seq_lengths,
        scale=scale, causal=bool(is_causal), window=window, residual=bool(return_residual),
    )  # fmt: skip


def _is_one_operation(query: object, key: object, scale: object) -> bool:
    """Return whether sizes and scale are known, but for the rows of one sequence.

    The operation has no precision of its own: with another default, products are written out.
    """
    q, k = value_of(query).aval, value_of(key).aval
    if scale is None:
        known = q.ndim > 0 and q.shape[-1].__class__ is int
    else:
        known = isinstance(scale, int | float | np.number)
    if q.ndim == k.ndim == 3 and (is_symbolic(q.shape[:1]) or is_symbolic(k.shape[:1])):
        return known
    symbolic = is_symbolic(q.shape) or is_symbolic(k.shape)
    return known and not symbolic and normal_precision(None) == "default"


@fused
def _as_one(
    q: ArrayLike, k: object, v: object, *, scale: float | None, causal: bool,
    window: tuple[int, int] | None,
) -> Any:  # fmt: skip
    """Compute attention as one operation, which a platform may implement in its own way."""
    q, k, v = sh.convert_together([el.floating((x,))[0] for x in (q, k, v)])
    _fit_attention(*[sh.expand_dims(x, 0) if x.aval.ndim == 3 else x for x in (q, k, v)])
    scale = 1 / math.sqrt(q.aval.shape[-1]) if scale is None else float(scale)
    return attention_.bind(q, k, v, scale=scale, causal=causal, window=window)


def _window(size: Any) -> tuple[int, int] | None:
    if size is None:
        return None
    ends = tuple(size) if isinstance(size, tuple | list) else (size, size)
    if len(ends) != 2 or not all(hasattr(n, "__index__") and n >= 0 for n in ends):
        raise ArgumentError(
            f"local_window_size={size!r}", fix="give a whole number, or (left, right)"
        )
    return ends[0].__index__(), ends[1].__index__()


def _root_of(d: int) -> Any:
    """Return 1 / sqrt(d) for the size of heads."""
    if d.__class__ is int:
        return 1 / math.sqrt(d)
    return el.rsqrt(sh.size_value(d, np.dtype(np.float32)))


@fused
def _attention(
    q: ArrayLike, k: object, v: ArrayLike, bias: Any, mask: Any, queries: Any, keys: Any, *,
    scale: float | None, causal: bool, window: tuple[int, int] | None, residual: bool,
) -> Any:  # fmt: skip
    q, k, v = sh.convert_together([el.floating((x,))[0] for x in (q, k, v)])
    batched = q.aval.ndim == 4
    if not batched:
        q, k, v = (sh.expand_dims(x, 0) for x in (q, k, v))
    _fit_attention(q, k, v)
    b, t, h, d = q.aval.shape
    s, groups = k.aval.shape[1:3]
    q = sh.reshape(q, (b, t, groups, h // groups, d))
    scale = _root_of(d) if scale is None else scale
    # (batch, groups, queries, heads of a group, keys), in single precision at least
    wide = np.dtype(np.float32) if q.aval.dtype.itemsize < 4 else q.aval.dtype
    logits = contracted(q, k, ((4,), (3,)), ((0, 2), (0, 2)), preferred_element_type=wide)
    logits = sh.reshape(sh.transpose(el.mul(logits, scale), (0, 1, 3, 2, 4)), (b, h, t, s))
    logits = logits if bias is None else el.add(logits, sh.convert(bias, wide))
    seen = [] if mask is None else [_mask(mask)]
    seen += places(t, s, causal, window)
    seen += _there(queries, "query_seq_lengths", b, t, (b, 1, t, 1))
    seen += _there(keys, "key_value_seq_lengths", b, s, (b, 1, 1, s))
    mask = sh.broadcast_to(functools.reduce(el.and_, seen), logits.aval.shape) if seen else None
    weights = sh.convert(softmax(logits, where=mask), v.aval.dtype)
    weights = sh.reshape(weights, (b, groups, h // groups, t, s))
    out = contracted(weights, v, ((4,), (1,)), ((0, 1), (0, 2)))
    out = sh.reshape(sh.transpose(out, (0, 3, 1, 2, 4)), (b, t, h, v.aval.shape[-1]))
    results = [out]
    if residual:
        results.append(sh.transpose(logsumexp(logits, axis=-1, where=mask), (0, 2, 1)))
    if not batched:
        results = [sh.reshape(x, x.aval.shape[1:]) for x in results]
    return tuple(results) if residual else results[0]


def _mask(mask: Any) -> Any:
    m = value_of(mask)
    if m.aval.dtype != BOOL:
        raise ArgumentError(f"the mask is {m.aval!r}", fix="give booleans; numbers are a bias")
    return m


def _there(lengths: Any, name: str, batch: int, size: int, shape: tuple) -> list:
    """Return which positions precede the given lengths."""
    if lengths is None:
        return []
    n = value_of(lengths)
    if n.aval.category != INTEGER or n.aval.shape != (batch,):
        raise ArgumentError(f"{name} is {n.aval!r}", fix=f"give integers of shape ({batch},)")
    at = sh.broadcast_to(sh.reshape(sh.iota(np.int32, (size,)), (1, size)), (batch, size))
    inside = el.lt(at, sh.broadcast_to(sh.reshape(n, (batch, 1)), (batch, size)))
    return [sh.reshape(inside, shape)]


def _fit_attention(q: Value, k: Value, v: Value) -> None:
    ranks = {x.aval.ndim for x in (q, k, v)}
    fits = ranks == {4} and (
        q.aval.shape[0] == k.aval.shape[0] == v.aval.shape[0]
        and q.aval.shape[3] == k.aval.shape[3]
        and k.aval.shape[1:3] == v.aval.shape[1:3]
        and q.aval.shape[2] % k.aval.shape[2] == 0
    )
    if not fits:
        raise ArgumentError(
            f"dot_product_attention of {q.aval!r}, {k.aval!r} and {v.aval!r}",
            fix="queries: (batch, queries, heads, depth); keys and values: (batch, keys, groups, "
            "depth), where groups divides heads",
        )
