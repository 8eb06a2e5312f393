"""jvp, vjp, linearize, Jacobians, Hessians, stop_gradient and auxiliary results."""

import jax
import jax.numpy as jnp
from jax import lax


def f(x):
    return jnp.stack([x[0] * x[1], jnp.sin(x[1]), x[0] ** 3])


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@jax.jit
def main():
    x, v = jnp.array([1.5, -0.5]), jnp.array([1.0, 2.0])
    out, pull = jax.vjp(f, x)
    value, push = jax.linearize(f, x)
    three = jnp.array([0.5, 1.0, -1.0])
    hvp = lambda v: jax.jvp(jax.grad(rosenbrock), (three,), (v,))[1]  # noqa: E731
    transposed = jax.linear_transpose(lambda x: 3 * x[::-1], jax.ShapeDtypeStruct((2,), "float32"))
    dicts = jax.jacobian(lambda p: {"y": p["x"] * 2 + p["z"]})({"x": v, "z": 1.0})
    return (
        jax.jvp(f, (x,), (v,)),
        (out, pull(jnp.ones(3))),
        (value, push(v)),
        jax.jacfwd(f)(x),
        jax.jacrev(f)(x),
        jax.hessian(rosenbrock)(three),
        hvp(jnp.ones(3)),
        jax.grad(lambda x: x * lax.stop_gradient(x))(3.0),
        jax.value_and_grad(lambda x: (x**2, {"x": x + 1}), has_aux=True)(2.0),
        jax.grad(lambda z: jnp.real(z * jnp.conj(z)) + jnp.imag(z))(1.0 + 2.0j),
        transposed(v),
        dicts,
        jax.vjp(lambda x: (x * 2, x.sum()), v, has_aux=True)[2],
    )
