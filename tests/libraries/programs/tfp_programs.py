"""Programs of TensorFlow Probability's jax substrate.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import numpy as np
from tensorflow_probability.substrates import jax as tfp

tfd, tfb = tfp.distributions, tfp.bijectors
KEY = jax.random.PRNGKey(0)
X = np.linspace(-1, 2, 5).astype("float32")


def readme():
    normal = tfd.Normal(0.5, 2.0)
    return normal.sample(5, seed=KEY), normal.log_prob(X), jax.grad(normal.log_prob)(0.3)


def distributions():
    found = []
    for d in (
        tfd.Gamma(2.0, 1.5), tfd.Beta(2.0, 3.0), tfd.StudentT(4.0, 0.0, 1.0), tfd.Poisson(3.0),
        tfd.Laplace(0.0, 1.0), tfd.VonMises(0.0, 2.0), tfd.Weibull(1.5, 1.0),
    ):  # fmt: skip
        x = d.sample(3, seed=KEY)
        found.append((x, d.log_prob(x), d.mean()))
    return found


def multivariate():
    scale = jnp.linalg.cholesky(jnp.array([[2.0, 0.5], [0.5, 1.0]]))
    d = tfd.MultivariateNormalTriL(jnp.zeros(2), scale)
    mix = tfd.MixtureSameFamily(tfd.Categorical(probs=[0.3, 0.7]), tfd.Normal([-1.0, 1.0], 0.5))
    w = tfd.WishartTriL(4.0, scale)
    s = w.sample(seed=KEY)
    return d.sample(2, seed=KEY), d.entropy(), mix.log_prob(X), w.log_prob(s)


def bijectors():
    b = tfb.Chain([tfb.Softplus(), tfb.Shift(0.5), tfb.Scale(2.0)])
    chol = tfb.CholeskyOuterProduct()
    y = b.forward(X)
    return y, b.inverse(y), b.forward_log_det_jacobian(X), chol.forward(jnp.eye(2) * 2.0)


def joint_distributions():
    model = tfd.JointDistributionSequential(
        [tfd.Normal(0.0, 1.0), lambda m: tfd.Independent(tfd.Normal(m * jnp.ones(3), 1.0), 1)]
    )
    x = model.sample(seed=KEY)
    return x, model.log_prob(x)


def hamiltonian_sampling():
    kernel = tfp.mcmc.HamiltonianMonteCarlo(lambda x: -0.5 * x**2, 0.3, num_leapfrog_steps=3)
    run = jax.jit(
        lambda k: tfp.mcmc.sample_chain(8, current_state=1.0, kernel=kernel, trace_fn=None, seed=k)
    )
    return run(KEY)


def optimisers_and_mathematics():
    found = tfp.optimizer.lbfgs_minimize(
        jax.value_and_grad(lambda x: jnp.sum((x - 1) ** 2 * jnp.arange(1.0, 4))), jnp.zeros(3)
    )
    m = tfp.math
    return found.position, m.lbeta(1.5, 2.0), m.log_add_exp(X, 1.0), m.betainc(2.0, 3.0, 0.4)


def gaussian_processes():
    kernel = tfp.math.psd_kernels.ExponentiatedQuadratic(1.0, 0.5)
    gp = tfd.GaussianProcess(kernel, X[:, None], observation_noise_variance=0.1)
    return kernel.matrix(X[:, None], X[:, None]), gp.log_prob(jnp.sin(X))
