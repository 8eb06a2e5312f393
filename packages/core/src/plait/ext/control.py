"""Control flow as users write it, without the rest of `plait.lax`.

Invariant: nothing is defined here.
"""

from .._control import cond, fori_loop, scan, switch, while_loop
from .._control.inspectable_stage import InspectableStage

__all__ = ["InspectableStage", "cond", "fori_loop", "scan", "switch", "while_loop"]
