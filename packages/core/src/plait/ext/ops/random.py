"""Keys, random bits, samples.

Invariant: no operation is defined here, and importing this imports no special function.
"""

from typing import Any

from ..._base.lazy import later
from ..._core.primitive import Primitive
from ..._ops import keys as _keys
from ..._ops import rng as _rng
from ..._ops.keys import *
from ..._ops.rng import *

__all__ = ["random_gamma"]
__all__ += _keys.__all__
__all__ += _rng.__all__

random_gamma: Primitive


def __getattr__(name: str) -> Any:
    if name == "random_gamma":  # its home is `special`, which keys and bits need not load
        return later("ext.ops.special").random_gamma
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
