"""Programs of distreqx.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
from distreqx import bijectors, distributions

KEY = jax.random.PRNGKey(0)


def readme():
    n = distributions.Normal(jnp.array(0.5), jnp.array(2.0))
    return n.sample(KEY), n.log_prob(jnp.array(0.3)), n.entropy(), n.cdf(jnp.array(1.0))


def discrete():
    c = distributions.Categorical(logits=jnp.array([0.1, 0.2, 0.7]))
    b = distributions.Bernoulli(probs=jnp.array(0.3))
    return (
        c.log_prob(jnp.array(1)),
        c.entropy(),
        c.sample(KEY),
        b.entropy(),
        b.log_prob(jnp.array(1)),
    )


def multivariate():
    d = distributions.MultivariateNormalDiag(jnp.zeros(3), jnp.array([1.0, 2.0, 0.5]))
    x, lp = d.sample_and_log_prob(KEY)
    return x, lp, jax.vmap(d.log_prob)(jnp.eye(3))


def transformed():
    d = distributions.Transformed(
        distributions.Normal(jnp.array(0.0), jnp.array(1.0)), bijectors.Tanh()
    )
    return d.sample(KEY), d.log_prob(jnp.array(0.4))


def divergences():
    p = distributions.Normal(jnp.array(0.0), jnp.array(1.0))
    q = distributions.Normal(jnp.array(1.0), jnp.array(2.0))
    f = lambda m: distributions.Normal(m, jnp.array(1.0)).kl_divergence(q)
    return p.kl_divergence(q), jax.grad(f)(0.0)
