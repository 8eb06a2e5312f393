"""Random numbers from explicit keys.

    key = wf.random.key(0)
    x = wf.random.normal(key, (3, 4))
    key, other = wf.random.split(key)

The generator is Threefry-2x32; the bits are those of `jax.random` with its default settings.

Invariant: a result depends on the key, the shape and the dtype only; the same key twice gives the
same numbers twice.  A key is no number: it is split, folded and spent, and nothing else.
"""

from .choosing import categorical, choice, permutation
from .distributions import (
    bernoulli,
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    normal,
    rademacher,
    truncated_normal,
)
from .keys import (
    Key,
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_impl,
    split,
    wrap_key_data,
)
from .numbers import bits, randint, uniform

__all__ = [
    "Key",
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "cauchy",
    "choice",
    "clone",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "key_data",
    "key_impl",
    "laplace",
    "logistic",
    "normal",
    "permutation",
    "rademacher",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
    "wrap_key_data",
]
