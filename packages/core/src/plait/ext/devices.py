"""Devices and placements: where arrays are, and how they get there.

Invariant: nothing is defined here.
"""

from .._api.hardware import (
    Device,
    devices,
)
from .._core.buffers import (
    assemble,
    boxes,
    first,
    handler,
    layout_of,
    local,
    move,
    platform,
    put,
)
from .._core.tilings import (
    parse_tiling,
)
from .._types.avals import (
    Placed,
)

__all__ = [
    "Device",
    "Placed",
    "assemble",
    "boxes",
    "devices",
    "first",
    "handler",
    "layout_of",
    "local",
    "move",
    "parse_tiling",
    "platform",
    "put",
]
