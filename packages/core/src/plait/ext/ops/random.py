"""Keys, random bits, samples.

Invariant: nothing is defined here.
"""

from ..._ops.keys import (
    random_bits as random_bits,
)
from ..._ops.keys import (
    random_clone as random_clone,
)
from ..._ops.keys import (
    random_fold_in as random_fold_in,
)
from ..._ops.keys import (
    random_seed as random_seed,
)
from ..._ops.keys import (
    random_split as random_split,
)
from ..._ops.rng import (
    rng_bit_generator as rng_bit_generator,
)
from ..._ops.rng import (
    threefry2x32 as threefry2x32,
)
from ..._ops.sampling import (
    random_gamma as random_gamma,
)

__all__ = [
    "random_bits",
    "random_clone",
    "random_fold_in",
    "random_gamma",
    "random_seed",
    "random_split",
    "rng_bit_generator",
    "threefry2x32",
]
