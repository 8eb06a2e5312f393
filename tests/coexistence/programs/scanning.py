"""Trees carried through loops: an optimiser, a filter, a Markov chain."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax, random


class Adam(NamedTuple):
    step: jax.Array
    mean: dict
    square: dict


def init(params):
    zeros = jax.tree.map(jnp.zeros_like, params)
    return Adam(jnp.zeros((), jnp.int32), zeros, zeros)


def update(grads, state, rate=0.05):
    step = state.step + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, grads)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state.square, grads)
    change = jax.tree.map(
        lambda m, s: -rate * (m / (1 - 0.9**step)) / (jnp.sqrt(s / (1 - 0.99**step)) + 1e-6),
        mean,
        square,
    )
    return change, Adam(step, mean, square)


def train(x, y):
    params = {"w": jnp.zeros(2), "b": 0.0}

    def body(carry, _):
        params, state = carry
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"] + p["b"] - y) ** 2))(params)
        change, state = update(grads, state)
        return (jax.tree.map(jnp.add, params, change), state), loss

    return lax.scan(body, (params, init(params)), length=10)


def chain(key):
    def step(carry, key):
        here, accepted = carry
        k1, k2 = random.split(key)
        there = here + random.normal(k1)
        ok = jnp.log(random.uniform(k2)) < (here**2 - there**2) / 2
        return (jnp.where(ok, there, here), accepted + ok), here

    return lax.scan(step, (0.0, 0), random.split(key, 8))


def main():
    x = jnp.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])
    (params, state), losses = jax.jit(train)(x, jnp.array([1.0, 0.0, 2.0]))
    return params, state._asdict(), losses, chain(random.PRNGKey(5))
