"""Segment sums, bincount, histograms, digitize."""

import jax
import jax.numpy as jnp


@jax.jit
def main():
    data = jnp.array([5.0, 1.0, 7.0, 2.0, 3.0])
    ids = jnp.array([0, 0, 1, 1, 2])
    mean = jax.ops.segment_sum(data, ids, 3) / jnp.bincount(ids, length=3)
    return (
        mean,
        jax.ops.segment_sum(data, ids, num_segments=4, indices_are_sorted=True),
        jax.ops.segment_max(data, ids, num_segments=3),
        jax.ops.segment_min(data, ids, num_segments=3),
        jax.ops.segment_prod(data, ids, num_segments=3),
        jax.grad(lambda d: (jax.ops.segment_sum(d, ids, 3) ** 2).sum())(data),
        jnp.bincount(ids, weights=data, length=4),
        jnp.histogram(data, bins=4),
        jnp.digitize(data, jnp.array([2.0, 4.0])),
        jnp.searchsorted(jnp.sort(data), 2.5),
    )
