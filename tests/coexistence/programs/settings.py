"""Context managers over settings."""

import jax
import jax.numpy as jnp
import numpy as np


def refused(call):
    try:
        call()
    except (TypeError, ValueError, FloatingPointError):
        return True
    return False


def main():
    a, b = jnp.ones(3, jnp.int32), jnp.ones(3, jnp.float32)
    with jax.numpy_dtype_promotion("strict"):
        strict = refused(lambda: a + b)
    with jax.numpy_rank_promotion("raise"):
        ranked = refused(lambda: b + jnp.ones((2, 3)))
        equal = not refused(lambda: b + 1.0)
    with jax.debug_nans(True):
        nans = refused(lambda: jnp.log(jnp.asarray(-1.0)).block_until_ready())
    with jax.debug_infs(True):
        infs = refused(lambda: (1 / jnp.zeros(2)).block_until_ready())
    with jax.default_matmul_precision("float32"):
        product = jnp.ones((2, 3)) @ jnp.ones((3, 2))
    with jax.default_device(jax.devices()[0]):
        placed = jnp.zeros(2)
    with jax.checking_leaks():
        checked = jax.jit(lambda x: x + 1)(1)
    with jax.enable_x64(True):
        wide = jnp.asarray(np.float64(1.5)).dtype == np.float64
    with jax.ensure_compile_time_eval():
        known = jnp.ones(2).sum()
    with jax.log_compiles(False), jax.explain_cache_misses(False):
        moved = jnp.sin(np.float32(0.5))
    with jax.default_prng_impl("threefry2x32"):
        key = jax.random.key_data(jax.random.key(1))
    return (
        (strict, ranked, equal, nans, infs, wide),
        (product, placed, checked, known, moved, key),
    )


def inside():
    """What is known stays known inside a trace."""

    @jax.jit
    def f(x):
        with jax.ensure_compile_time_eval():
            n = int(jnp.arange(4).sum())
        return x * n

    return f(2.0)
