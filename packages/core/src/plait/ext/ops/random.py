"""Keys, random bits, samples.

Invariant: nothing is defined here.
"""

from ..._ops.keys import random_bits, random_clone, random_fold_in, random_seed, random_split
from ..._ops.rng import DYNAMIC_GENERATOR, rng_bit_generator, threefry2x32
from ..._ops.sampling import random_gamma

__all__ = [
    "DYNAMIC_GENERATOR",
    "random_bits",
    "random_clone",
    "random_fold_in",
    "random_gamma",
    "random_seed",
    "random_split",
    "rng_bit_generator",
    "threefry2x32",
]
