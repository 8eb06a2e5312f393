"""Batching of random numbers: the primitives accept arrays of keys.

Invariant: an element's key produces the same numbers as that key alone.
"""

from plait.ext.ops.random import (
    random_bits,
    random_clone,
    random_fold_in,
    random_seed,
    random_split,
    rng_bit_generator,
)

from ..interpreter import batching_rules


@batching_rules.rule(random_seed)
def _(batch, xs, dims, *, dtype):
    return random_seed.bind(*xs, dtype=dtype), dims[0]


@batching_rules.rule(random_split)
def _(batch, xs, dims, *, shape):
    return random_split.bind(*xs, shape=shape), dims[0]


@batching_rules.rule(random_bits)
def _(batch, xs, dims, *, shape, dtype):
    return random_bits.bind(*xs, shape=shape, dtype=dtype), dims[0]


@batching_rules.rule(random_fold_in)
def _(batch, xs, dims):
    keys, numbers = (batch.front(x, d) for x, d in zip(xs, dims))
    return random_fold_in.bind(keys, numbers), 0


@batching_rules.rule(rng_bit_generator)
def _(batch, xs, dims, **params):
    return batch.each(rng_bit_generator, xs, dims, params)


@batching_rules.rule(random_clone)
def _(batch, xs, dims):
    return random_clone.bind(*xs), dims[0]
