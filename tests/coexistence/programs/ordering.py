"""Sorting, top_k, unique with sizes, partitions, and set functions."""

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def main():
    x = jnp.array([[3, 1, 2], [9, 7, 9]])
    y = x.ravel()
    return (
        jnp.sort(x, axis=1, descending=True),
        jnp.argsort(x, axis=0),
        jnp.lexsort((y, y % 2)),
        lax.top_k(x, 2),
        lax.sort((y % 3, y), num_keys=2),
        lax.sort_key_val(y, jnp.arange(6)),
        jnp.unique(y, size=4, fill_value=0),
        jnp.unique(y, return_inverse=True, return_counts=True, size=5),
        jax.jit(lambda y: jnp.nonzero(y > 2, size=5, fill_value=-1))(y),
        jnp.partition(y, 2)[2],
        jnp.median(x, axis=1),
        jnp.quantile(x.astype(float), jnp.array([0.25, 0.75])),
        jnp.argmax(x, axis=1, keepdims=True),
        lax.argmin(x, 1, jnp.int32),
        jnp.isin(y, jnp.array([1, 9])),
        jnp.union1d(y, jnp.array([4]), size=6, fill_value=-1),
        jax.grad(lambda x: (jnp.sort(x) * jnp.arange(3)).sum())(x[0].astype(float)),
    )
