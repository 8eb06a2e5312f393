"""Programs of jaxkd.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jaxkd as jk

POINTS = jax.random.normal(jax.random.PRNGKey(0), (40, 3))
QUERIES = jax.random.normal(jax.random.PRNGKey(1), (5, 3))


def readme():
    tree = jk.build_tree(POINTS)
    return jk.query_neighbors(tree, QUERIES, k=3)


def counts():
    tree = jk.build_tree(POINTS)
    return jk.count_neighbors(tree, QUERIES, r=0.8)


def jitted():
    return jax.jit(lambda p, q: jk.query_neighbors(jk.build_tree(p), q, k=2))(POINTS, QUERIES)


def means():
    return jk.extras.k_means(jax.random.PRNGKey(2), POINTS, k=3, steps=4)
