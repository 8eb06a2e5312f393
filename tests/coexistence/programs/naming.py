"""Names that show in lowered programs: named_scope, named_call, jitted functions."""

import jax
import jax.numpy as jnp


@jax.named_scope("whole")
def f(x):
    with jax.named_scope("inner_part"):
        y = jnp.sin(x)
    return y * 2


@jax.named_call
def helper(x):
    return jnp.cos(x)


def main():
    text = jax.jit(lambda x: f(x) + helper(x)).lower(1.0).as_text(debug_info=True)
    assert "whole/inner_part" in text
    assert "helper" in text
    return f(1.0), jax.grad(f)(1.0), helper(0.5), jax.vmap(f)(jnp.arange(3.0))
