"""Control flow as users say it: cond, switch, while_loop, fori_loop, scan, map.

Invariant: user functions are staged on the types of their arguments and kept as long as they
live; what they close over becomes operands.
"""

from .branches import cond, switch
from .loops import fori_loop, map_, map_axes, scan, while_loop
from .prefixes import associative_scan

__all__ = [
    "associative_scan",
    "cond",
    "fori_loop",
    "map_",
    "map_axes",
    "scan",
    "switch",
    "while_loop",
]
