"""einsum, tensordot, dot_general, kron and friends."""

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def main():
    a, b = jnp.arange(6.0).reshape(2, 3), jnp.arange(12.0).reshape(3, 4)
    c = jnp.arange(24.0).reshape(2, 3, 4)
    return (
        jnp.einsum("ij,jk->ik", a, b),
        jnp.einsum("ij,jk,ik->", a, b, jnp.ones((2, 4))),
        jnp.einsum("bij->bji", c),
        jnp.einsum(c, [0, 1, 2], b, [1, 2], [0]),
        jnp.einsum("ii->i", b[:, :3]),
        jnp.tensordot(c, b, axes=([1, 2], [0, 1])),
        lax.dot_general(c, c, (((2,), (2,)), ((0,), (0,)))),
        lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32),
        jnp.matmul(a, b, precision=lax.Precision.HIGHEST),
        jnp.kron(a, b[:2, :2]),
        jnp.outer(a[0], b[0]),
        jnp.inner(a, a),
        jnp.vdot(a, a),
        jnp.cross(a[0], b[:, 0]),
        jnp.trace(b[:, :3]),
        jax.grad(lambda a: jnp.einsum("ij,ij->", a @ b, a @ b))(a),
    )
