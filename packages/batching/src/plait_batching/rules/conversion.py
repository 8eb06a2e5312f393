"""Batching of bitcasts.

Invariant: the last axis, which a bitcast may add or remove, is never the mapped one.
"""

from plait.ext.ops.elementwise import bitcast_

from ..interpreter import batching_rules


@batching_rules.rule(bitcast_)
def _(batch, xs, dims, *, dtype):
    return bitcast_.bind(batch.front(xs[0], dims[0]), dtype=dtype), 0
