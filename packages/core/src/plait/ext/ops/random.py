"""Keys, random bits, samples.

Invariant: no operation is defined here, and importing this imports no special function.
"""

from typing import Any

from ..._base.lazy import later
from ..._core.primitive import Primitive
from ..._ops.keys import random_bits, random_clone, random_fold_in, random_seed, random_split
from ..._ops.rng import DYNAMIC_GENERATOR, rng_bit_generator, threefry2x32

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


random_gamma: Primitive


def __getattr__(name: str) -> Any:
    if name == "random_gamma":  # its home is `special`, which keys and bits need not load
        return later("ext.ops.special").random_gamma
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
