"""Keys: old and new, splitting, folding in, permutations, choices."""

import jax
import jax.numpy as jnp
from jax import random


@jax.jit
def main():
    old, new = random.PRNGKey(42), random.key(42)
    a, b = random.split(new)
    grid = random.split(new, (2, 3))
    data = random.key_data(grid)
    wrapped = random.wrap_key_data(data)
    assert jnp.issubdtype(new.dtype, jax.dtypes.prng_key)
    assert grid.shape == (2, 3) and a.shape == ()
    assert str(random.key_impl(new)) == "threefry2x32"
    return (
        old,
        data,
        random.key_data(random.fold_in(b, 7)),
        random.uniform(wrapped[1, 2], (2,)),
        random.permutation(a, 6),
        random.permutation(a, jnp.arange(6.0).reshape(3, 2), axis=1, independent=True),
        random.choice(b, 5, (3,), replace=False),
        random.choice(b, jnp.array([1.0, 2.0, 4.0]), (4,), p=jnp.array([0.1, 0.2, 0.7])),
        jax.vmap(lambda k: random.normal(k, (2,)))(random.split(a, 3)),
        random.bits(a, (3,), "uint16"),
        random.randint(b, (4,), -3, 9),
    )
