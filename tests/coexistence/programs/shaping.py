"""Making, joining, splitting, padding and turning arrays."""

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def main():
    x = jnp.arange(6).reshape(2, 3)
    return (
        (jnp.eye(2, 3, k=1), jnp.tri(2), jnp.diag(jnp.arange(2)), jnp.identity(2)),
        (jnp.linspace(0, 1, 3), jnp.logspace(0, 2, 3), jnp.geomspace(1, 8, 4), jnp.full((2,), 7)),
        jnp.meshgrid(jnp.arange(2), jnp.arange(3), indexing="ij"),
        (jnp.concatenate([x, x]), jnp.stack([x, x], -1), jnp.vstack([x, x]), jnp.hstack([x, x])),
        (jnp.split(x, 3, axis=1), jnp.array_split(x, 2, axis=1)),
        (jnp.pad(x, 1), jnp.pad(x, ((0, 1), (1, 0)), mode="edge")),
        (jnp.pad(x, 1, mode="reflect"), lax.pad(x, 0, ((0, 0, 1), (1, -1, 0)))),
        (jnp.tile(x, (2, 1)), jnp.roll(x, 1, axis=1), jnp.flip(x, 0), jnp.rot90(x)),
        (jnp.expand_dims(x, 1), jnp.moveaxis(x, 0, 1), jnp.broadcast_to(x[0], (2, 3))),
        (jnp.atleast_3d(x).shape, jnp.squeeze(x[:1]), jnp.append(x, 9), jnp.diff(x)),
        (lax.broadcast_in_dim(x, (2, 2, 3), (0, 2)), lax.rev(x, (1,)), lax.iota(jnp.int32, 3)),
        (lax.reshape(x, (3, 2)), lax.transpose(x, (1, 0)), lax.concatenate([x, x], 0)),
        (jnp.triu_indices(3, 1), jnp.unravel_index(4, (2, 3)), jnp.apply_along_axis(sum, 1, x)),
        (jnp.insert(x[0], 1, 9), jnp.delete(x[0], 1)),
        (jnp.block([[x, x], [x, x]]), jnp.r_[1:3, 7], jnp.c_[x[0], x[1]]),
        jax.tree.map(jnp.shape, jnp.broadcast_arrays(x, 1)),
        lax.expand_dims(x, (0,)),
    )
