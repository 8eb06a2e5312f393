"""Batching of opaque elements: the mapped axis is never an axis of an element.

Invariant: the axes of an element stay the last ones.
"""

from plait.ext.ops.opaque import unwrap_, wrap_

from ..interpreter import batching_rules


@batching_rules.rule(wrap_)
def _(batch, xs, dims, *, dtype):
    return wrap_.bind(batch.front(xs[0], dims[0]), dtype=dtype), 0


@batching_rules.rule(unwrap_)
def _(batch, xs, dims):
    return unwrap_.bind(*xs), dims[0]
