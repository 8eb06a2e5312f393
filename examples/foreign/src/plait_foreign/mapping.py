"""Mapping of the recurrence, for plait-batching's table.

Invariant: the recurrence is along the last axis, so the mapped one goes in front.
"""

from plait_batching.ext import batching_rules

from . import recur


@batching_rules.rule(recur)
def _(batch, xs, dims, reverse=False):
    x, decay = (batch.front(x, d) for x, d in zip(xs, dims, strict=True))
    return recur.bind(x, decay, reverse=reverse), 0
