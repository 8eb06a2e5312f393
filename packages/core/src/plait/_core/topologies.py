"""Topologies: devices that programs are compiled for, and that need not be here.

A place of several devices has its topology as its attribute `topology`.  The devices of a place
without one, or with None, are those of this process and of the processes it computes with.

Invariant: nothing is ever put on devices of a topology, and nothing runs on them: `expect_here`
guards both.  Looking a topology up again returns the same object, also in copies of objects that
refer to it.
"""

from functools import cache
from typing import Any

from .._base import jaxlib_api
from .._base.errors import ArgumentError, MissingPlatform, PlacementError
from .._base.pjrt_plugins import WHEELS, plugins

__all__ = ["Topology", "expect_here", "find_topology", "same_devices", "topology_of"]


class Topology:
    """Devices by number, as the library of their platform describes them.

    Attributes:
      platform: the platform that programs are lowered for: "cuda", "rocm", "tpu", or a plugin's.
      name, options: the library's own description of the devices.
      devices: the runtime's own objects.
    """

    __slots__ = ("platform", "name", "options", "devices", "__weakref__")
    platform: str
    name: str
    options: tuple[tuple[str, Any], ...]
    devices: tuple[Any, ...]

    def __init__(self, platform: str, name: str, options: tuple[tuple[str, Any], ...]):
        self.platform, self.name, self.options = platform, name, options
        self.devices = _devices(platform, name, dict(options))

    def __repr__(self) -> str:
        return f"{len(self.devices)} devices {self.devices[0].device_kind!r}"

    def __reduce__(self) -> tuple[object, ...]:
        return _topology, (self.platform, self.name, self.options)


def find_topology(platform: str, name: str, **options: object) -> Topology:
    """Return the topology that the library of a platform has by this name and these options.

    Raises MissingPlatform if no such library is installed, or it cannot be loaded; ArgumentError if
    the library does not have such a topology.
    """
    return _topology(platform, name, tuple(sorted(options.items())))


@cache
def _topology(platform: str, name: str, options: tuple[tuple[str, Any], ...]) -> Topology:
    return Topology(platform, name, options)


def _devices(platform: str, name: str, options: dict[str, Any]) -> tuple[Any, ...]:
    found = [p for p in plugins(asked=True) if p.platform == platform]
    if not found:
        wheel = WHEELS.get(platform)
        known = ", ".join(sorted(p.platform for p in plugins(asked=True))) or "none"
        raise MissingPlatform(
            f"to compile for {platform!r} its library is needed, and no plugin that brings it is "
            f"installed (installed: {known})",
            fix=f'install "{wheel}"; no device is needed'
            if wheel
            else f"write one of the platforms {', '.join(map(repr, WHEELS))}",
        )
    try:
        return jaxlib_api.devices_of_topology(found[0], name, options)
    except (jaxlib_api.RuntimeFailure, ImportError, OSError) as e:
        said = (str(e).splitlines() or [""])[0].removeprefix("INVALID_ARGUMENT: ")
        asked = ", ".join([repr(name), *[f"{k}=..." for k in options]])
        raise ArgumentError(
            f"the library of {platform} describes no devices for {asked}: {said}",
            fix='write the kind of the devices and how they stand, for instance "v5e:4x4"',
        ) from None


def topology_of(place: object) -> Topology | None:
    """Return the topology that the devices of a place are of; None for those of this process."""
    return getattr(place, "topology", None)  # places of other distributions need not have one


def same_devices(a: Any, b: Any) -> bool:
    """Return whether two places have the same devices, in the same order."""
    return a.devices == b.devices and topology_of(a) is topology_of(b)


def expect_here(place: object) -> None:
    """Raise PlacementError if the devices of a place are those of a topology."""
    topology = topology_of(place)
    if topology is not None:
        raise PlacementError(
            f"{place} are devices of a topology ({topology!r}), which are not here: programs are "
            "compiled for them, and run elsewhere",
            fix="give ShapeDtypeStructs: jit(f, in_shardings=...).lower(...).compile(); to run the "
            "program, make a mesh of plait.devices()",
        )
