"""One head-split attention block with a causal mask, layer norm and a residual."""

import jax
import jax.numpy as jnp
from jax import random
from jax.nn import softmax


def layer_norm(x, scale, eps=1e-6):
    mean = x.mean(axis=-1, keepdims=True)
    var = jnp.var(x, axis=-1, keepdims=True)
    return scale * (x - mean) / jnp.sqrt(var + eps)


def attend(params, x, heads):
    q, k, v = jnp.split(x @ params["qkv"], 3, axis=-1)
    q, k, v = (t.reshape(*t.shape[:-1], heads, -1) for t in (q, k, v))
    scores = jnp.einsum("...qhd,...khd->...hqk", q, k) / q.shape[-1] ** 0.5
    mask = jnp.tril(jnp.ones(scores.shape[-2:], dtype=bool))
    weights = softmax(jnp.where(mask, scores, jnp.finfo(scores.dtype).min))
    mixed = jnp.einsum("...hqk,...khd->...qhd", weights, v)
    return mixed.reshape(x.shape) @ params["out"]


def block(params, x):
    x = x + attend(params, layer_norm(x, params["scale"]), 2)
    return jnp.sum(jnp.tanh(x) ** 2)


@jax.jit
def main():
    keys = random.split(random.PRNGKey(3), 3)
    params = {
        "qkv": 0.3 * random.normal(keys[0], (8, 24)),
        "out": 0.3 * random.normal(keys[1], (8, 8)),
        "scale": jnp.full((8,), 1.5),
    }
    x = random.normal(keys[2], (2, 5, 8))
    value, grads = jax.jit(jax.value_and_grad(block))(params, x)
    q = x.reshape(2, 5, 2, 4)
    return value, grads, jax.nn.dot_product_attention(q, q, q, is_causal=True)
