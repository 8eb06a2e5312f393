"""Batching of with_sharding_constraint: whether the mapped axis is divided is left to the compiler.

shard_map needs no rule: its wiring says all.

Invariant: only the table of plait_batching loads this.
"""

from plait_batching.ext import (
    batching_rules,
)

from .placement import constraint


@batching_rules.rule(constraint)
def _(batch, xs, dims, *, sharding):
    (x,), (d,) = xs, dims
    if d is None:
        return constraint.bind(x, sharding=sharding), None
    return constraint.bind(x, sharding=sharding.open_at(d, x.aval.ndim - 1)), d
