"""Devices and placements: where arrays are, and how they get there.

Invariant: nothing is defined here.
"""

from .._api.hardware import Device, devices, topology_devices
from .._core.buffers import assemble, boxes, first, handler, layout_of, local, move, platform, put
from .._core.forks import expect_runtime
from .._core.tilings import parse_tiling
from .._core.topologies import Topology, expect_here, find_topology, same_devices, topology_of
from .._types.avals import Placed

__all__ = [
    "Device", "Placed", "Topology", "assemble", "boxes", "devices", "expect_here",
    "expect_runtime", "find_topology", "first", "handler", "layout_of", "local", "move",
    "parse_tiling", "platform", "put", "same_devices", "topology_devices", "topology_of",
]  # fmt: skip
