"""The stages of a jitted function, for annotations and isinstance.

Invariant: nothing is defined here.
"""

from ._jit.stages import Compiled, Lowered, Staged

__all__ = ["Compiled", "Lowered", "Staged"]
