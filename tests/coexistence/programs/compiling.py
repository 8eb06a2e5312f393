"""jit: static arguments, donation, keyword arguments, closures, nested jits, disable_jit."""

from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnames=("n", "mode"))
def shaped(x, n, mode="ones"):
    base = jnp.ones(n) if mode == "ones" else jnp.zeros(n)
    return base * x


@jax.jit(donate_argnums=0)
def consume(x):
    return x + 1


class Counter:
    def __init__(self):
        self.traces = 0

    @partial(jax.jit, static_argnums=0)
    def bump(self, x):
        self.traces += 1
        return x + 1


def main():
    counter = Counter()
    values = [counter.bump(i) for i in range(3)]
    scale = jnp.array([1.0, 2.0])
    outer = jax.jit(lambda x: jax.jit(lambda y: y * scale)(x) + 1)
    with jax.disable_jit():
        stepped = jax.jit(lambda x: x * 2 if x > 0 else x)(3.0)
    options = jax.jit(jnp.sin, compiler_options={"xla_cpu_enable_fast_math": False})
    return (
        shaped(2.0, 3),
        shaped(2.0, 3, mode="zeros"),
        shaped(2.0, n=2),
        consume(jnp.arange(3)),
        values,
        counter.traces,
        outer(jnp.ones(2)),
        stepped,
        options(1.0),
        jax.jit(lambda *args, **kw: sum(args) + kw["z"])(1, 2.0, z=jnp.ones(2)),
        jax.block_until_ready(jax.jit(lambda: jnp.arange(2))()),
    )
