"""Convolution, pooling, batch statistics and a step of Adam written as a tree."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jax.nn import initializers


def convolve(x, w, stride=1):
    return lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def forward(params, x):
    x = convolve(x, params["conv"])
    mean, var = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
    x = params["scale"] * (x - mean) * lax.rsqrt(var + 1e-5)
    x = pool(jax.nn.gelu(x))
    return jnp.reshape(x, (x.shape[0], -1)) @ params["dense"]


def loss(params, batch):
    logits = forward(params, batch["image"])
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), batch["label"][:, None], axis=1)
    return -picked.mean(), {"logits": logits}


@jax.jit
def adam(params, grads, state, count):
    m = jax.tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, state[0], grads)
    v = jax.tree_util.tree_map(lambda v, g: 0.99 * v + 0.01 * g**2, state[1], grads)

    def update(p, m, v):
        return p - 1e-2 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.99**count)) + 1e-3)

    return jax.tree_util.tree_map(update, params, m, v), (m, v)


def main():
    k1, k2, k3 = random.split(random.key(1), 3)
    params = {
        "conv": initializers.he_normal()(k1, (3, 3, 2, 4)),
        "scale": jnp.ones(4),
        "dense": initializers.glorot_uniform()(k2, (4 * 4 * 4, 5), jnp.float32),
    }
    batch = {
        "image": random.normal(k3, (3, 8, 8, 2)),
        "label": np.array([0, 4, 2]),
    }
    state = (jax.tree.map(jnp.zeros_like, params),) * 2
    values = []
    for count in range(1, 4):
        (value, aux), grads = jax.value_and_grad(loss, has_aux=True)(params, batch)
        params, state = adam(params, grads, state, count)
        values.append(value)
    return values, params["scale"], aux["logits"]
