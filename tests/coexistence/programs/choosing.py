"""where, select, piecewise, clip, and the derivatives through them."""

import jax
import jax.numpy as jnp
from jax import lax


def safe_log(x):
    good = x > 0
    return jnp.where(good, jnp.log(jnp.where(good, x, 1.0)), 0.0)


@jax.jit
def main():
    x = jnp.linspace(-2.0, 2.0, 5)
    return (
        jnp.where(x > 0, x, -1),
        jnp.select([x < -1, x > 1], [x**2, jnp.sqrt(jnp.abs(x))], 7.0),
        jnp.piecewise(x, [x < 0, x > 1], [lambda v: -v, lambda v: v * 10, 0.5]),
        jnp.choose(jnp.array([0, 1, 0]), [jnp.arange(3), jnp.arange(3) * 10], mode="clip"),
        jnp.clip(x, -1, 1),
        lax.clamp(-0.5, x, 0.5),
        lax.select(x > 0, x, jnp.zeros_like(x)),
        lax.select_n(jnp.array([0, 2, 1]), *jnp.arange(9.0).reshape(3, 3)),
        jax.vmap(jax.grad(safe_log))(x),
        jnp.interp(1.3, jnp.arange(3.0), jnp.array([0.0, 10.0, 40.0])),
        jnp.nan_to_num(jnp.array([jnp.nan, jnp.inf, 1.0])),
        jnp.heaviside(x, 0.5),
        jnp.sign(x),
        jnp.select(condlist=[x > 0], choicelist=[x]),
    )
