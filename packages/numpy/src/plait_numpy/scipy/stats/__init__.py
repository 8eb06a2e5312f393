"""Distributions and statistics, with the names of scipy.stats.

    plait.scipy.stats.norm.logpdf(x, loc, scale)
    plait.scipy.stats.poisson.logpmf(k, mu)

A family has only the functions with a formula here; all are differentiable in x and in the
parameters.

Invariant: operands broadcast together and become floats; results are those of SciPy up to
rounding.
"""

from plait.ext.surface import advise as _advise

from ...refusals import explain
from . import continuous
from .continuous import *
from .density import gaussian_kde
from .discrete import bernoulli, betabinom, binom, geom, nbinom, poisson
from .multivariate import dirichlet, multinomial, multivariate_normal
from .ranks import mode, rankdata, sem

__all__ = [
    "bernoulli", "betabinom", "binom", "dirichlet", "gaussian_kde", "geom", "mode", "multinomial",
    "multivariate_normal", "nbinom", "poisson", "rankdata", "sem",
]  # fmt: skip
__all__ += continuous.__all__

explain(globals())

_advise("plait.scipy.stats", globals())
