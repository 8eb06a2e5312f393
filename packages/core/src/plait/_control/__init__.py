"""Control flow for users: cond, switch, while_loop, fori_loop, scan, map.

Invariant: user functions are staged on the types of their arguments, and their traces are kept as
long as they live; the values that they close over become operands.
"""

from .branches import cond, switch
from .loops import fori_loop, map_, map_axes, scan, while_loop

__all__ = ["cond", "fori_loop", "map_", "map_axes", "scan", "switch", "while_loop"]
