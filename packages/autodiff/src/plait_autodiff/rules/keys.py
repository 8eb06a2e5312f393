"""Derivatives of operations on random keys: they are zero.

Invariant: keys and bits have no derivatives.  Values computed from bits and parameters do, by the
rules of the operations that compute them.
"""

from typing import Any

from plait.ext.ops.random import (
    random_bits,
    random_clone,
    random_fold_in,
    random_seed,
    random_split,
    rng_bit_generator,
    threefry2x32,
)

from ..forward import ZERO, jvp_rules


def _constant(prim: Any) -> None:
    @jvp_rules.rule(prim)
    def _(xs, ts, **params):
        return prim.bind(*xs, **params), ZERO


for _prim in (random_seed, random_split, random_fold_in, random_bits, random_clone):
    _constant(_prim)


@jvp_rules.rule(rng_bit_generator)
def _(xs, ts, **params):
    return rng_bit_generator.bind(*xs, **params), [ZERO, ZERO]


@jvp_rules.rule(threefry2x32)
def _(xs, ts):
    return threefry2x32.bind(*xs), [ZERO, ZERO]
