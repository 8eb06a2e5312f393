"""Devices and placements: where arrays are, and how they get there.

Invariant: nothing is defined here.
"""

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
    Placed,
)

__all__ = [
    "Device",
    "Placed",
    "boxes",
    "devices",
    "handler",
    "layout_of",
    "move",
    "platform",
    "put",
]
