"""Reductions with axes, masks, starts and kinds of nan."""

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def main():
    x = jnp.array([[1.0, jnp.nan, 3.0], [4.0, -5.0, 0.5]])
    y = jnp.nan_to_num(x)
    return (
        (jnp.nansum(x, 0), jnp.nanmean(x), jnp.nanmax(x, 1), jnp.nanstd(x, axis=1, ddof=1)),
        (y.sum(where=y > 0), y.max(axis=1, initial=3.5, where=y < 4), jnp.ptp(y)),
        (jnp.average(y, weights=jnp.array([1.0, 2.0, 1.0]), axis=1), jnp.cov(y), jnp.corrcoef(y)),
        (jnp.prod(y, axis=(0, 1)), jnp.any(y > 3, axis=0), jnp.count_nonzero(y)),
        (jnp.allclose(y, y + 1e-9), jnp.array_equal(x, x, equal_nan=True)),
        lax.reduce(y, 0.0, lax.add, (1,)),
        lax.reduce((y, y), (1.0, 0.0), lambda a, b: (a[0] * b[0], a[1] + b[1]), (0,)),
        (lax.reduce_max(y, (0,)), lax.reduce_and(y > 0, (1,)), lax.reduce_precision(y, 5, 4)),
        (lax.reduce_window(y, 0.0, lax.add, (1, 2), (1, 1), "VALID"), jnp.nancumsum(x)),
        (jnp.logaddexp(y, 1.0), jnp.gradient(y[1]), jnp.ediff1d(y), jnp.polyval(y[0], 2.0)),
        (jnp.percentile(y, 30.0), jnp.var(y, correction=1), jnp.vander(y[0])),
    )
