"""Programs of jaxlie.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import jaxlie

V = jnp.array([0.1, -0.2, 0.3])
W = jnp.array([0.5, 1.0, -1.5, 0.1, -0.2, 0.3])


def readme():
    T = jaxlie.SE3.exp(W)
    p = jnp.array([1.0, 2.0, 3.0])
    return T.as_matrix(), T @ p, T.inverse() @ (T @ p), T.log()


def rotations():
    R = jaxlie.SO3.exp(V)
    S = jaxlie.SO3.from_rpy_radians(0.1, 0.2, 0.3)
    return (R @ S).wxyz, R.as_matrix(), S.as_rpy_radians().yaw, R.adjoint(), R.jlog()


def planar():
    T = jaxlie.SE2.from_xy_theta(1.0, 2.0, 0.5)
    return T.as_matrix(), T.log(), (T @ T.inverse()).log(), jaxlie.SO2(jnp.array([1.0, 0.0])).log()


def derivatives():
    R = jaxlie.SO3.exp(V)
    f = lambda R: jnp.sum((R @ jnp.arange(3.0)) ** 2 * jnp.arange(3.0))
    g = jaxlie.manifold.grad(f)(R)
    return (
        g,
        jaxlie.manifold.rplus(R, -0.1 * g).log(),
        jax.jacrev(lambda v: jaxlie.SO3.exp(v).log())(V),
    )


def many_at_once():
    Ts = jax.vmap(jaxlie.SE3.exp)(jnp.stack([W, 2 * W, -W]))
    return Ts.log(), jax.jit(lambda T: (T @ T).as_matrix())(Ts)


def random_ones():
    return jaxlie.SO3.sample_uniform(jax.random.PRNGKey(0)).wxyz


def interpolation():
    return jaxlie.SE3.exp(W).translation(), jaxlie.manifold.rminus(
        jaxlie.SE3.exp(W), jaxlie.SE3.identity()
    )
