"""Reading random bits of the generators that StableHLO has.

Invariant: bits are those of the same algorithm of the same state; a draw without a state has none
that could be the same twice, and is refused.
"""

from collections.abc import Sequence
from typing import Any

import plait

from .module import Op
from .table import enum, reads, refuses


@reads("stablehlo.rng_bit_generator")
def _(walk, op, xs):
    return drawn(op, xs[0], op.types[1].shape)


def drawn(op: Op, state: Any, shape: Sequence[Any]) -> list:
    """The next state, and random bits of this shape."""
    name = enum(op.attributes["rng_algorithm"])
    algorithm = getattr(plait.lax.RandomAlgorithm, f"RNG_{name}")
    return list(plait.lax.rng_bit_generator(state, tuple(shape), op.types[1].dtype, algorithm))


refuses("it draws from a state that nobody sees", "stablehlo.rng")
refuses(
    "it is for several devices, and an artifact runs on one",
    "stablehlo.partition_id", "stablehlo.replica_id", "stablehlo.all_reduce",
    "stablehlo.all_gather", "stablehlo.all_to_all", "stablehlo.collective_permute",
    "stablehlo.collective_broadcast", "stablehlo.reduce_scatter", "stablehlo.cross-replica-sum",
    "sdy.manual_computation", "sdy.mesh", "sdy.return",
)  # fmt: skip
refuses(
    "it acts on the world", "stablehlo.create_token", "stablehlo.after_all", "stablehlo.infeed",
    "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv",
)  # fmt: skip
