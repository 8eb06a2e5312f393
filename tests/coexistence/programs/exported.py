"""jax.export: exported functions called, with symbolic sizes too."""

import jax
import jax.numpy as jnp
from jax import export


def f(x, y):
    return jnp.tanh(x @ y), {"n": x.shape[0] * jnp.ones(())}


def main():
    a = jax.ShapeDtypeStruct((2, 3), jnp.float32)
    b = jax.ShapeDtypeStruct((3, 2), jnp.float32)
    again = export.export(jax.jit(f))(a, b)
    (rows,) = export.symbolic_shape("n")
    free = export.export(jax.jit(f))(jax.ShapeDtypeStruct((rows, 3), jnp.float32), b)
    x, y = jnp.arange(6.0).reshape(2, 3) / 10, jnp.ones((3, 2))
    wide = jnp.ones((5, 3)) / 4
    assert again.in_avals[0].shape == (2, 3) and again.platforms == ("cpu",)
    return again.call(x, y), free.call(wide, y), jax.jit(again.call)(x, y)
