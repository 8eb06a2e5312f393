"""custom_jvp and custom_vjp: stable functions, clipped gradients, static arguments."""

from functools import partial

import jax
import jax.numpy as jnp


@jax.custom_jvp
def log1pexp(x):
    return jnp.log1p(jnp.exp(x))


@log1pexp.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return log1pexp(x), t * (1 - 1 / (1 + jnp.exp(x)))


@jax.custom_jvp
def product(x, y):
    return x * y


product.defjvps(lambda t, out, x, y: 2 * t * y, lambda t, out, x, y: t * x)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def clipped(x, limit):
    return x


def clipped_fwd(x, limit):
    return x, None


def clipped_bwd(limit, _, g):
    return (jnp.clip(g, -limit, limit),)


clipped.defvjp(clipped_fwd, clipped_bwd)


@jax.custom_vjp
def norm(tree):
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in jax.tree.leaves(tree)))


def norm_fwd(tree):
    out = norm(tree)
    return out, (tree, out)


def norm_bwd(res, g):
    tree, out = res
    return (jax.tree.map(lambda x: jnp.where(out == 0, 0.0, g * x / out), tree),)


norm.defvjp(norm_fwd, norm_bwd)


@jax.jit
def main():
    x = jnp.array([-50.0, 0.0, 3.0])
    tree = {"a": jnp.array([3.0]), "b": jnp.array([4.0])}
    return (
        jax.vmap(jax.grad(log1pexp))(x),
        jax.jvp(log1pexp, (0.5,), (2.0,)),
        jax.grad(product, argnums=(0, 1))(2.0, 3.0),
        jax.grad(lambda x: (5 * clipped(x, 1.5) ** 2).sum())(x),
        jax.jit(jax.value_and_grad(norm))(tree),
        jax.grad(norm)(jax.tree.map(jnp.zeros_like, tree)),
        jax.hessian(log1pexp)(1.0),
    )
