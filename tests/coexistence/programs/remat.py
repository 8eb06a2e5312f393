"""checkpoint with policies and names; results do not depend on them."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name


def layer(w, x):
    return checkpoint_name(jnp.tanh(x @ w), "activation")


def net(ws, x, wrap):
    for w in ws:
        x = wrap(layer)(w, x)
    return jnp.sum(x**2)


def main():
    ws = [jnp.eye(3) * s + 0.1 for s in (1.0, 0.5, 2.0)]
    x = jnp.arange(6.0).reshape(2, 3)
    policies = jax.checkpoint_policies
    wraps = [
        lambda f: f,
        jax.checkpoint,
        jax.remat,
        partial(jax.checkpoint, policy=policies.dots_saveable),
        partial(jax.remat, policy=policies.save_only_these_names("activation"), prevent_cse=False),
        partial(jax.checkpoint, policy=policies.nothing_saveable),
    ]
    static = jax.checkpoint(lambda x, flag: jnp.sin(x) if flag else x, static_argnums=(1,))
    return [jax.grad(net)(ws, x, w) for w in wraps], jax.grad(static)(0.3, True)
