"""The stages of a jitted function, for annotations and isinstance.

Invariant: nothing is defined here.
"""

from ._base.lazy import advise as _advise
from ._jit.communication import Collective
from ._jit.jitted import Jitted
from ._jit.stages import ArgInfo, Compiled, Format, Lowered, Staged

__all__ = ["ArgInfo", "Collective", "Compiled", "Format", "Jitted", "Lowered", "Staged"]

_advise("plait.stages", globals())
