"""The stages of a jitted function, for annotations and isinstance.

Invariant: nothing is defined here.
"""

from ._jit.stages import Compiled, Jitted, Lowered, Staged

__all__ = ["Compiled", "Jitted", "Lowered", "Staged"]
