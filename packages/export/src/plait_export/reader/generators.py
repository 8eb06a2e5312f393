"""Reading StableHLO's random bit generators.

Invariant: the same algorithm draws the same bits from the same state.  A draw without a state is
refused, because it cannot be reproduced.
"""

from collections.abc import Sequence
from typing import Any

import plait

from .module import Op
from .table import ACTING, UNSEEN_STATE, enum, reads, refuses


@reads("stablehlo.rng_bit_generator")
def _(walk: object, op, xs):
    return drawn(op, xs[0], op.types[1].shape)


def drawn(op: Op, state: Any, shape: Sequence[Any]) -> list[Any]:
    """Return the next state, and random bits of this shape."""
    name = enum(op.attributes["rng_algorithm"])
    algorithm = getattr(plait.lax.RandomAlgorithm, f"RNG_{name}")
    return list(plait.lax.rng_bit_generator(state, tuple(shape), op.types[1].dtype, algorithm))


refuses("it draws from a state that nobody sees", UNSEEN_STATE)
refuses("it acts on the world", *ACTING)
