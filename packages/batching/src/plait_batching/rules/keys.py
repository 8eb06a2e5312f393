"""Batching of random numbers: the primitives accept arrays of keys.

Invariant: an element's key produces the same numbers as that key alone.
"""

from plait.ext.ops import random
from plait.ext.trace import Value
from plait.typing import Array

from ..interpreter import batching_rules


@batching_rules.rule(random.random_seed)
def _(batch: object, xs: list[Value], dims, *, dtype):
    return random.random_seed.bind(*xs, dtype=dtype), dims[0]


@batching_rules.rule(random.random_split)
def _(batch: object, xs: list[Value], dims: list[int], *, shape: tuple[int, ...]):
    return random.random_split.bind(*xs, shape=shape), dims[0]


@batching_rules.rule(random.random_bits)
def _(batch: object, xs: list[Value], dims: list[int], *, shape: tuple[int, ...], dtype: object):
    return random.random_bits.bind(*xs, shape=shape, dtype=dtype), dims[0]


@batching_rules.rule(random.random_fold_in)
def _(batch, xs: list[Array], dims):
    keys, numbers = (batch.front(x, d) for x, d in zip(xs, dims))
    return random.random_fold_in.bind(keys, numbers), 0


@batching_rules.rule(random.rng_bit_generator)
def _(batch, xs: list[Array], dims, /, **params: object):
    return batch.each(random.rng_bit_generator, xs, dims, params)


@batching_rules.rule(random.random_clone)
def _(batch: object, xs: list[Value], dims):
    return random.random_clone.bind(*xs), dims[0]
