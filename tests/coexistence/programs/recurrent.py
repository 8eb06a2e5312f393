"""A gated recurrent cell scanned over time, differentiated with checkpointed steps."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def cell(params, h, x):
    z = jax.nn.sigmoid(x @ params["wz"] + h @ params["uz"])
    r = jax.nn.sigmoid(x @ params["wr"] + h @ params["ur"])
    new = jnp.tanh(x @ params["wh"] + (r * h) @ params["uh"])
    return (1 - z) * h + z * new


def run(params, xs):
    @jax.checkpoint
    def step(h, x):
        h = cell(params, h, x)
        return h, h

    last, hs = lax.scan(step, jnp.zeros((2, 3)), xs)
    return last, hs


def main():
    rng = np.random.RandomState(0)
    names = {"wz": 4, "wr": 4, "wh": 4, "uz": 3, "ur": 3, "uh": 3}
    params = {k: (rng.randn(n, 3) / 2).astype(np.float32) for k, n in names.items()}
    xs = rng.randn(6, 2, 4).astype(np.float32)
    target = jnp.ones((2, 3))
    loss = lambda p: ((run(p, xs)[0] - target) ** 2).sum()  # noqa: E731
    reverse = lax.scan(lambda c, x: (c * 0.5 + x, c), jnp.zeros((2, 4)), xs, reverse=True, unroll=2)
    return run(params, xs), jax.grad(loss)(params), reverse
