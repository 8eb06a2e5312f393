"""Programs of evosax.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
from evosax import algorithms

KEY = jax.random.PRNGKey(0)


def _run(name, generations=4):
    es = getattr(algorithms, name)(population_size=8, solution=jnp.zeros(3))
    params = es.default_params
    if name in ("PSO", "DifferentialEvolution"):
        start = jax.random.normal(KEY, (8, 3))
        state = es.init(KEY, start, jnp.sum((start - 1) ** 2, -1), params)
    else:
        state = es.init(KEY, jnp.zeros(3), params)
    for i in range(generations):
        x, state = es.ask(jax.random.fold_in(KEY, i), state, params)
        fitness = jnp.sum((x - 1.0) ** 2, -1)
        state, metrics = es.tell(jax.random.fold_in(KEY, 100 + i), x, fitness, state, params)
    return x, metrics["best_fitness"]


def readme():
    return _run("CMA_ES")


def gradient_estimators():
    return _run("Open_ES"), _run("PGPE")


def separable():
    return _run("Sep_CMA_ES"), _run("SNES")


def populations():
    return _run("PSO"), _run("DifferentialEvolution")
