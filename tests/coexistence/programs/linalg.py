"""Decompositions and solvers of numpy.linalg, with derivatives."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def main():
    a = jnp.asarray(np.random.RandomState(1).randn(3, 3), dtype=jnp.float32) + 3 * jnp.eye(3)
    s = a @ a.T
    b = jnp.arange(6.0).reshape(3, 2)
    u, d, vt = jnp.linalg.svd(b, full_matrices=False)
    w, v = jnp.linalg.eigh(s)
    q, r = jnp.linalg.qr(a)
    least, residual, rank, _ = jnp.linalg.lstsq(b, jnp.ones(3))
    return {
        "solve": jnp.linalg.solve(a, b),
        "inv": jnp.linalg.inv(a),
        "det": jnp.linalg.det(a),
        "slogdet": jnp.linalg.slogdet(a),
        "cholesky": jnp.linalg.cholesky(s),
        "svd": (d, u * d @ vt),
        "eigh": (w, v * w @ v.T),
        "eigvals": jnp.sort(jnp.abs(jnp.linalg.eigvals(a))),
        "qr": q @ r,
        "lstsq": (least, residual, rank),
        "pinv": jnp.linalg.pinv(b),
        "norms": [jnp.linalg.norm(b, o) for o in (None, 1, 2, jnp.inf, "nuc")],
        "power": jnp.linalg.matrix_power(a, 3),
        "rank": jnp.linalg.matrix_rank(b),
        "multi": jnp.linalg.multi_dot([a, b, b.T]),
        "grad": jax.grad(lambda a: jnp.linalg.slogdet(a)[1] + jnp.linalg.solve(a, b).sum())(a),
        "eigenvalues": jax.jacrev(jnp.linalg.eigvalsh)(s),
        "batched": jax.vmap(jnp.linalg.solve)(jnp.stack([a, s]), jnp.stack([b, 2 * b])),
    }
