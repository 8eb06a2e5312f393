"""Functional updates by `.at`, gathers by many kinds of indices, dynamic slices."""

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def main():
    x = jnp.arange(12.0).reshape(3, 4)
    i = jnp.array([0, 2, 0])
    return (
        x.at[1].set(-1.0),
        x.at[:, 1:3].add(10),
        x.at[i, i].add(jnp.ones(3)),
        x.at[0].multiply(2).at[1].divide(2),
        x.at[i].min(1.5),
        x.at[i, 1].max(5),
        x.at[1, 2].power(2),
        x.at[1].apply(jnp.sqrt),
        x.at[jnp.array([0, 7])].get(mode="fill", fill_value=-3.0),
        x.at[jnp.array([1, 9])].add(1.0, mode="drop"),
        x[i],
        x[..., None, ::-2],
        x[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 3]))],
        jax.jit(lambda x, k: x[k])(x, 2),
        lax.dynamic_slice(x, (1, 1), (2, 2)),
        lax.dynamic_update_slice(x, jnp.zeros((2, 2)), (0, 2)),
        lax.dynamic_index_in_dim(x, 1, keepdims=False),
        jnp.take(x, i, axis=1),
        jnp.take_along_axis(x, jnp.argsort(-x, axis=1), axis=1),
        jax.grad(lambda v: x.at[i, 0].set(v).sum())(jnp.ones(3)),
        jax.grad(lambda x: (x[i] ** 2).sum())(x),
    )
