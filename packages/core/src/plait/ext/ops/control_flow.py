"""Operations that carry programs.

Invariant: nothing is defined here.
"""

from ..._ops.composite import (
    composite as composite,
)
from ..._ops.control_flow import (
    call as call,
)
from ..._ops.control_flow import (
    cond as cond,
)
from ..._ops.control_flow import (
    expect as expect,
)
from ..._ops.control_flow import (
    scan as scan,
)
from ..._ops.control_flow import (
    while_ as while_,
)
from ..._ops.mapping import (
    map_axes as map_axes,
)
from ..._ops.mapping import (
    row as row,
)

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
