"""Keys, random bits, samples.

Invariant: nothing is defined here.
"""

from ..._ops import keys as _keys
from ..._ops import rng as _rng
from ..._ops.keys import *
from ..._ops.rng import *
from ..._ops.sampling import random_gamma

__all__: list[str] = []
__all__ += _keys.__all__
__all__ += _rng.__all__
__all__ += ["random_gamma"]
