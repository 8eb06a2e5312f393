"""Batching of calls of exported functions: one call for each element, in order.

What was exported is compiled code for arguments of its types; nothing else can be made of it.

Invariant: only the table of plait_batching loads this.
"""

from plait_batching.ext import (
    batching_rules,
)

from .calling import call_exported


@batching_rules.rule(call_exported)
def _(batch, xs, dims, **params):
    return batch.each(call_exported, xs, dims, params)
