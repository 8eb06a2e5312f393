"""closure_convert, custom_gradient, custom_vmap, linear solves and roots of one's own."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import closure_convert


@jax.custom_gradient
def squashed(x):
    return jnp.clip(x, -1, 1), lambda g: g * 10


@custom_vmap
def shifted(x):
    return x + 1


@shifted.def_vmap
def _(axis_size, in_batched, x):
    return x + 100, in_batched[0]


def solve(a, b):
    return lax.custom_linear_solve(
        lambda v: a @ v,
        b,
        lambda _, b: jnp.linalg.solve(a, b),
        lambda _, b: jnp.linalg.solve(a.T, b),
    )


def root(a):
    def newton(f, x):
        return lax.fori_loop(0, 20, lambda _, x: x - f(x) / jax.grad(f)(x), x)

    return lax.custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))


def main():
    y = jnp.arange(3.0)
    f, consts = closure_convert(lambda x: x * y.sum() + 1, 2.0)
    a = jnp.array([[2.0, 1.0], [0.5, 3.0]])
    b = jnp.ones(2)
    return (
        f(2.0, *consts),
        jax.grad(lambda y: closure_convert(lambda x: x * y, 2.0)[0](3.0, y))(5.0)
        if closure_convert(lambda x: x * 1.0, 2.0)[1]
        else 0.0,
        jax.grad(squashed)(5.0),
        jax.vmap(shifted)(y),
        solve(a, b),
        jax.grad(lambda a: solve(a, b).sum())(a),
        jax.value_and_grad(root)(2.0),
    )
