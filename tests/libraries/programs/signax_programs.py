"""Programs of signax.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import numpy as np
import signax

PATH = jnp.asarray(np.random.default_rng(0).normal(size=(6, 2)).astype("float32"))


def readme():
    return signax.signature(PATH, depth=3)


def streams():
    return signax.signature(PATH, 2, stream=True)


def combinations():
    a, b = signax.signature(PATH[:4], 2), signax.signature(PATH[3:], 2)
    return signax.signature_combine(a, b)


def derivatives():
    f = lambda x: sum(jnp.sum(s) for s in signax.signature(x, 3, flatten=False))
    return jax.grad(f)(PATH), jax.jit(jax.vmap(jax.grad(f)))(jnp.stack([PATH, -PATH]))
