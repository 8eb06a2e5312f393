"""Programs of tinygp.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import numpy as np
from tinygp import GaussianProcess, kernels, transforms

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 5, 12)).astype("float32")
Y = np.sin(X)
T = np.linspace(0, 5, 4).astype("float32")


def readme():
    def loss(theta):
        kernel = jnp.exp(theta[0]) * kernels.ExpSquared(jnp.exp(theta[1]))
        return -GaussianProcess(kernel, X, diag=0.1).log_probability(Y)

    return jax.value_and_grad(loss)(jnp.array([0.1, 0.2]))


def predictions():
    gp = GaussianProcess(kernels.Matern32(1.5), X, diag=0.1, mean=0.2)
    cond = gp.condition(Y, T)
    return cond.log_probability, cond.gp.loc, cond.gp.variance, gp.predict(Y, T)


def kernels_of_every_kind():
    return [
        k(X, T)
        for k in (
            kernels.Exp(1.0),
            kernels.Matern52(0.7),
            kernels.Cosine(2.0),
            kernels.RationalQuadratic(alpha=1.0),
            kernels.ExpSineSquared(gamma=0.5) + kernels.Constant(0.1),
            kernels.DotProduct() * 0.3,
        )
    ]


def quasiseparable():
    k = kernels.quasisep.Matern32(1.3) + kernels.quasisep.SHO(omega=2.0, quality=1.0)
    gp = GaussianProcess(k, X, diag=0.1)
    return (
        gp.log_probability(Y),
        gp.condition(Y, T).gp.loc,
        jax.grad(
            lambda s: GaussianProcess(kernels.quasisep.Exp(s), X, diag=0.1).log_probability(Y)
        )(1.0),
    )


def samples():
    gp = GaussianProcess(kernels.ExpSquared(1.0), X, diag=0.1)
    return gp.sample(jax.random.PRNGKey(0), (2,))


def transformed():
    k = transforms.Linear(0.5, kernels.Matern32())
    sub = transforms.Subspace(1, kernels.ExpSquared())
    both = np.stack([X, Y], 1)
    return k(X, X), sub(both, both)


def mapped():
    f = lambda s: GaussianProcess(kernels.Exp(s), X, diag=0.1).log_probability(Y)
    return jax.jit(jax.vmap(f))(jnp.array([0.5, 1.0, 2.0]))
