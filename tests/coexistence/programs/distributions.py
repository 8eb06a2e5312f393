"""Many distributions of jax.random, of one key each."""

import jax
import jax.numpy as jnp
from jax import random


@jax.jit
def main():
    keys = iter(random.split(random.key(7), 40))
    k = lambda: next(keys)  # noqa: E731
    a = jnp.array([0.5, 1.0, 3.0])
    return {
        "normal": random.normal(k(), (3,), dtype=jnp.float32),
        "bernoulli": random.bernoulli(k(), 0.3, (6,)),
        "categorical": random.categorical(k(), jnp.log(a), shape=(5,)),
        "gumbel": random.gumbel(k(), (3,)),
        "exponential": random.exponential(k(), (3,)),
        "laplace": random.laplace(k(), (3,)),
        "logistic": random.logistic(k(), (3,)),
        "cauchy": random.cauchy(k(), (3,)),
        "gamma": random.gamma(k(), a),
        "poisson": random.poisson(k(), 3.0, (5,)),
        "pareto": random.pareto(k(), 2.0, (3,)),
        "weibull": random.weibull_min(k(), 1.0, 2.0, (3,)),
        "rayleigh": random.rayleigh(k(), 1.5, (3,)),
        "rademacher": random.rademacher(k(), (5,)),
        "maxwell": random.maxwell(k(), (3,)),
        "geometric": random.geometric(k(), 0.4, (4,)),
        "triangular": random.triangular(k(), 0.0, 0.3, 1.0, (3,)),
        "lognormal": random.lognormal(k(), 0.5, (3,)),
        "reparametrised": jax.grad(lambda m: (m + random.normal(k(), (3,))).sum())(1.0),
    }
