"""shard_map with collectives over meshes of one and two axes, and its gradients."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P


def main():
    line = Mesh(np.array(jax.devices()[:4]), ("i",))
    grid = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))
    x = jnp.arange(8.0)

    @partial(jax.shard_map, mesh=line, in_specs=P("i"), out_specs=P())
    def total(x):
        return lax.psum(x.sum(keepdims=True), "i")

    @jax.jit
    @partial(jax.shard_map, mesh=line, in_specs=P("i"), out_specs=P("i"))
    def shifted(x):
        return lax.ppermute(x, "i", [(k, (k + 1) % 4) for k in range(4)]) + lax.axis_index("i")

    @partial(jax.shard_map, mesh=grid, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
    def matmul(a, b):
        return lax.psum(a @ b, "y")

    def gathered(x):
        whole = lax.all_gather(x, "i", tiled=True)
        return lax.psum_scatter(whole * 2, "i", tiled=True) + lax.pmax(x.max(), "i")

    a, b = jnp.arange(8.0).reshape(2, 4), jnp.arange(12.0).reshape(4, 3)
    body = jax.shard_map(gathered, mesh=line, in_specs=P("i"), out_specs=P("i"))
    return (
        total(x),
        shifted(x),
        matmul(a, b),
        jax.jit(body)(x),
        jax.grad(lambda x: (shifted(x) ** 2).sum())(x),
        jax.grad(lambda a: matmul(a, b).sum())(a),
        jax.vmap(shifted)(jnp.stack([x, 2 * x])),
    )
