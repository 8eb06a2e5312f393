"""The stages of a jitted function, for annotations and isinstance.

Invariant: nothing is defined here.
"""

from ._jit.stages import Compiled as Compiled
from ._jit.stages import Lowered as Lowered
from ._jit.stages import Staged as Staged

__all__ = ["Compiled", "Lowered", "Staged"]
