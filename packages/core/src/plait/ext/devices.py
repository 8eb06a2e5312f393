"""Devices and placements: where arrays are, and how they get there.

Invariant: nothing is defined here.
"""

from .. import events as events
from .._api.hardware import (
    Device as Device,
)
from .._api.hardware import (
    devices as devices,
)
from .._core.buffers import (
    boxes as boxes,
)
from .._core.buffers import (
    handler as handler,
)
from .._core.buffers import (
    layout_of as layout_of,
)
from .._core.buffers import (
    move as move,
)
from .._core.buffers import (
    platform as platform,
)
from .._core.buffers import (
    put as put,
)
from .._types.avals import (
    Place as Place,
)
from .._types.avals import (
    Placed as Placed,
)
from .._types.avals import (
    Placement as Placement,
)

__all__ = [
    "Device",
    "Place",
    "Placed",
    "Placement",
    "boxes",
    "devices",
    "events",
    "handler",
    "layout_of",
    "move",
    "platform",
    "put",
]
