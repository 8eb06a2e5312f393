"""Derivatives of operations on random keys: they are zero.

Invariant: keys and bits have no derivatives.  Values computed from bits and parameters do, by the
rules of the operations that compute them.
"""

from plait.ext.ir import Primitive
from plait.ext.ops import random as keys
from plait.ext.trace import Value

from ..forward import ZERO, jvp_rules


def _constant(prim: Primitive) -> None:
    @jvp_rules.rule(prim)
    def _(xs: list[Value], ts: object, **params: object):
        return prim.bind(*xs, **params), ZERO


for _prim in (
    keys.random_seed,
    keys.random_split,
    keys.random_fold_in,
    keys.random_bits,
    keys.random_clone,
):
    _constant(_prim)


@jvp_rules.rule(keys.rng_bit_generator)
def _(xs: list[Value], ts: object, **params: object):
    return keys.rng_bit_generator.bind(*xs, **params), [ZERO, ZERO]


@jvp_rules.rule(keys.threefry2x32)
def _(xs: list[Value], ts: object):
    return keys.threefry2x32.bind(*xs), [ZERO, ZERO]
