"""Devices and placements: where arrays are, and how they get there.

Invariant: nothing is defined here.
"""

from .. import events
from .._api.hardware import (
    Device,
    devices,
)
from .._core.buffers import (
    boxes,
    handler,
    layout_of,
    move,
    platform,
    put,
)
from .._types.avals import (
    Place,
    Placed,
    Placement,
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
