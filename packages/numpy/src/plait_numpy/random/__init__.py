"""Random numbers from explicit keys.

    key = plait.random.key(0)
    x = plait.random.normal(key, (3, 4))
    key, other = plait.random.split(key)

The generator is Threefry-2x32; the bits are those of `jax.random` with its default settings.
`key(seed, impl="rbg")` makes keys of the device's own generator.

Invariant: a result depends on the key, the shape and the dtype only; the same key gives the same
numbers again.  A key is not a number: it can only be split, folded and spent.
"""

from plait.ext.surface import advise as _advise
from plait.ext.surface import found_by_name as _found_by_name
from plait.ext.surface import laid_out as _laid_out

from ..refusals import explain as _explain
from . import distributions, samples
from .choosing import categorical, choice, permutation
from .counts import binomial, geometric, multinomial, poisson
from .distributions import *
from .keys import PRNGKey, clone, fold_in, key, key_data, key_dtype, key_impl, split, wrap_key_data
from .numbers import bits, randint, uniform
from .samples import *
from .vectors import ball, dirichlet, multivariate_normal, orthogonal

__all__ = [
    "ball", "binomial", "bits", "categorical", "choice", "clone", "dirichlet", "fold_in",
    "geometric", "key", "key_data", "key_dtype", "key_impl", "multinomial", "multivariate_normal",
    "orthogonal", "permutation", "poisson", "PRNGKey", "randint", "split", "uniform",
    "wrap_key_data",
]  # fmt: skip
__all__ += distributions.__all__
__all__ += samples.__all__

_LAID_OUT = """
ball bernoulli beta bits categorical cauchy chisquare dirichlet exponential f gamma
generalized_normal geometric gumbel laplace loggamma logistic lognormal maxwell multivariate_normal
normal orthogonal pareto permutation poisson rademacher randint rayleigh t triangular
truncated_normal uniform wald
"""
for _name in _LAID_OUT.split():
    globals()[_name] = _laid_out(globals()[_name])
_found_by_name(globals())
_explain(globals())
_advise("plait.random", globals())
