"""scipy.special, scipy.stats and scipy.linalg."""

import jax
import jax.numpy as jnp
import jax.scipy as jsp
from jax.scipy import linalg, special, stats
from jax.scipy.special import expit, logsumexp


@jax.jit
def main():
    x = jnp.array([0.3, 1.2, 2.5])
    a = jnp.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]])
    lu, piv = linalg.lu_factor(a)
    return (
        expit(x),
        logsumexp(x),
        [
            getattr(special, n)(x)
            for n in ["gammaln", "digamma", "erf", "erfc", "i0", "i1e", "entr", "log_ndtr"]
        ],
        special.betainc(1.5, x, 0.4),
        special.gammainc(x, 2.0),
        special.xlogy(x, x),
        special.polygamma(1, x),
        special.zeta(2.0, x),
        special.ndtri(jnp.array([0.1, 0.9])),
        stats.norm.logpdf(x, loc=1.0, scale=2.0),
        stats.gamma.cdf(x, 2.0),
        stats.beta.logpdf(x / 3, 2.0, 3.0),
        stats.poisson.pmf(jnp.arange(3), 2.0),
        stats.multivariate_normal.logpdf(x, jnp.zeros(3), a),
        jsp.stats.t.logpdf(x, 3.0),
        linalg.expm(a / 10),
        linalg.cho_solve(linalg.cho_factor(a), x),
        linalg.lu_solve((lu, piv), x),
        linalg.solve_triangular(a, x, lower=True),
        linalg.block_diag(a[:1, :1], a[1:, 1:]),
        linalg.sqrtm(a).real,
        linalg.toeplitz(x),
        jax.grad(lambda v: stats.norm.logcdf(v).sum())(x),
    )
