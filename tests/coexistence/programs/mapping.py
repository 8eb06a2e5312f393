"""vmap with trees of axes, results on other axes, names, and nested maps."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax


def affine(params, x):
    return params["w"] @ x + params["b"]


@partial(jax.vmap, in_axes=(0, None), axis_name="rows")
def centred(x, scale):
    return scale * (x - lax.pmean(x, "rows")) + lax.axis_index("rows")


def main():
    params = {"w": jnp.arange(12.0).reshape(2, 3, 2), "b": jnp.ones(3)}
    xs = jnp.arange(4.0).reshape(2, 2)
    axes = ({"w": 0, "b": None}, 1)
    pair = jax.vmap(lambda x: (x, x.sum()), in_axes=1, out_axes=(1, 0))
    table = jax.vmap(jax.vmap(jnp.add, (0, None)), (None, 0))
    return (
        jax.vmap(affine, in_axes=axes)(params, xs),
        jax.vmap(affine, in_axes=axes, out_axes=-1)(params, xs),
        centred(xs, 2.0),
        pair(params["w"][0]),
        table(jnp.arange(3), jnp.arange(2)),
        jax.vmap(lambda x, *, y: x * y, axis_size=2)(xs, y=xs + 1),
        jax.vmap(jax.grad(lambda x: jnp.sum(jnp.exp(x))))(xs),
        jnp.vectorize(lambda a, b: a @ b, signature="(n),(n)->()")(xs, xs[0]),
    )
