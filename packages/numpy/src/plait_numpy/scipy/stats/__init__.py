"""Distributions and statistics, with the names of scipy.stats.

    plait.scipy.stats.norm.logpdf(x, loc, scale)
    plait.scipy.stats.poisson.logpmf(k, mu)

A family has only the functions with a formula here; all are differentiable in x and in the
parameters.

Invariant: operands broadcast together and become floats; results are those of SciPy up to
rounding.
"""

from .continuous import (
    beta,
    cauchy,
    chi2,
    expon,
    gamma,
    gennorm,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    lognorm,
    norm,
    pareto,
    t,
    truncnorm,
    uniform,
    vonmises,
    wrapcauchy,
)
from .density import gaussian_kde
from .discrete import bernoulli, betabinom, binom, geom, nbinom, poisson
from .multivariate import dirichlet, multinomial, multivariate_normal
from .ranks import mode, rankdata, sem

__all__ = [
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "gaussian_kde",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "laplace",
    "logistic",
    "lognorm",
    "mode",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rankdata",
    "sem",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "wrapcauchy",
]
