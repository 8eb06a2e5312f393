"""A perceptron of two layers trained by gradient descent with momentum."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import grad, jit, random


def init(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [
        {"w": random.normal(k, (m, n)) / jnp.sqrt(m), "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def predict(params, x):
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return jax.nn.log_softmax(x @ last["w"] + last["b"])


def loss(params, x, labels):
    return -jnp.mean(jnp.sum(predict(params, x) * jax.nn.one_hot(labels, 3), axis=-1))


@partial(jit, static_argnames=("rate",), donate_argnums=(1,))
def step(params, velocity, x, labels, *, rate=0.1):
    grads = grad(loss)(params, x, labels)
    velocity = jax.tree.map(lambda v, g: 0.9 * v - rate * g, velocity, grads)
    return jax.tree.map(jnp.add, params, velocity), velocity


def main():
    key, sub = random.split(random.PRNGKey(0))
    params = init(key, (4, 8, 3))
    velocity = jax.tree.map(jnp.zeros_like, params)
    x = random.uniform(sub, (16, 4), minval=-1.0, maxval=1.0)
    labels = jnp.argmax(x[:, :3], axis=1)
    for _ in range(5):
        params, velocity = step(params, velocity, x, labels, rate=0.2)
    return params, loss(params, x, labels), jnp.mean(predict(params, x).argmax(-1) == labels)
