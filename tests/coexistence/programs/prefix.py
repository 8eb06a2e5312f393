"""associative_scan of linear recurrences, and cumulative functions."""

import jax
import jax.numpy as jnp
from jax import lax


def combine(left, right):
    return left[0] * right[0], right[0] * left[1] + right[1]


def recurrence(a, b):
    return lax.associative_scan(combine, (a, b))[1]


@jax.jit
def main():
    a, b = jnp.linspace(0.5, 0.9, 7), jnp.arange(7.0)
    return (
        recurrence(a, b),
        jax.grad(lambda a: recurrence(a, b).sum())(a),
        lax.associative_scan(jnp.maximum, jnp.array([3, 1, 4, 1, 5]), reverse=True),
        lax.cumsum(b, reverse=True),
        lax.cumprod(a),
        lax.cummax(jnp.sin(b)),
        lax.cumlogsumexp(b),
        jnp.cumsum(jnp.ones((2, 3)), axis=1),
    )
