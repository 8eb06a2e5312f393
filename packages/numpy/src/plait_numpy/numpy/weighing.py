"""Quantiles of weighted elements.

Invariant: an element whose weight is zero is never chosen.
"""

from typing import Any

import numpy as np

from plait.errors import ShapeError
from plait.ext.ops import elementwise as el
from plait.ext.ops import reduction
from plait.ext.ops.cumulative import cumsum
from plait.ext.ops.shape import broadcast_to, convert, expand_dims, moveaxis, reshape, transpose
from plait.ext.ops.sorting import sort_together
from plait.ext.ops.taking import take_along_axis
from plait.ext.surface import fused, value
from plait.ext.trace import Value
from plait.typing import ArrayLike

from .logic import isnan


def aligned(weights: Any, x: Value, axes: tuple) -> Any:
    """Return weights in the shape of `x`: they have it, or are a vector along the one axis."""
    w = value(weights)
    if w.aval.shape == x.aval.shape:
        return w
    if w.aval.ndim == 1 and len(axes) == 1 and w.aval.shape[0] == x.aval.shape[axes[0]]:
        row = [d if i == axes[0] else 1 for i, d in enumerate(x.aval.shape)]
        return broadcast_to(reshape(w, tuple(row)), x.aval.shape)
    raise ShapeError(
        f"weights {w.aval!r} for {x.aval!r}", fix="give the same shape, or a vector for one axis"
    )


@fused(numbers=("q",))
def weighted_quantile(
    a: Value, q: ArrayLike, weights: Any, *, axes: tuple, keepdims: bool, skip: bool
) -> Any:
    """Return the least elements such that the weight up to and including each is the fraction
    `q` of the total: the method "inverted_cdf" of `quantile`."""
    (x,) = el.floating((a,))
    w = convert(aligned(weights, x, axes), x.aval.dtype)
    rest = [i for i in range(x.aval.ndim) if i not in axes]
    rows = [x.aval.shape[i] for i in rest]
    x, w = (reshape(transpose(v, (*rest, *axes)), (*rows, -1)) for v in (x, w))
    lost = isnan(x)
    w = el.select(lost, 0, w)
    x, w = sort_together([x, w], axis=-1)
    total = reduction.sum_(w, -1, keepdims=True)
    share = el.div(cumsum(w, -1), total)
    # Elements before the first positive weight must lie below q = 0 too, or it would choose one of
    # weight zero.
    share = el.select(el.eq(share, 0), -1, share)
    q = convert(value(q), x.aval.dtype)
    wanted = reshape(q, (q.aval.size,) + (1,) * (len(rows) + 1))
    at = reduction.sum_(convert(el.lt(expand_dims(share, 0), wanted), np.int32), -1)
    out = take_along_axis(x, moveaxis(at, 0, -1), -1, mode="clip")
    bad = el.eq(total, 0) if skip else reduction.any_(lost, -1, keepdims=True)
    bad = el.or_(bad, isnan(reshape(q, (1,) * len(rows) + (q.aval.size,))))
    out = reshape(moveaxis(el.select(bad, np.nan, out), -1, 0), (*q.aval.shape, *rows))
    first = len(q.aval.shape)
    return expand_dims(out, tuple([first + i for i in axes])) if keepdims else out
