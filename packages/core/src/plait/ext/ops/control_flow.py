"""Operations that carry programs.

Invariant: nothing is defined here.
"""

from ..._ops.composite import composite
from ..._ops.control_flow import call, cond, expect, scan, while_
from ..._ops.mapping import map_axes, row

__all__ = [
    "call",
    "composite",
    "cond",
    "expect",
    "map_axes",
    "row",
    "scan",
    "while_",
]
