"""Topologies: devices that programs are compiled for, and none of which need be here.

A place of several devices says of which topology they are by its attribute `topology`; places
without it, or with None, are of the devices of this process and of those it computes with.

Invariant: nothing is ever put on devices of a topology, and nothing runs on them: what would do so
asks `expect_here`.  A topology that is asked for again is the same object, also in copies of what
speaks of it.
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
      platform: what programs are lowered for: "cuda", "rocm", "tpu", or the name of a plugin.
      name, options: which devices these are, in the words of the library.
      devices: the runtime's own objects.
    """

    __slots__ = ("platform", "name", "options", "devices", "__weakref__")

    def __init__(self, platform: str, name: str, options: tuple[tuple[str, Any], ...]):
        self.platform, self.name, self.options = platform, name, options
        self.devices = _devices(platform, name, dict(options))

    def __repr__(self) -> str:
        return f"{len(self.devices)} devices {self.devices[0].device_kind!r}"

    def __reduce__(self):
        return _topology, (self.platform, self.name, self.options)


def find_topology(platform: str, name: str, **options: Any) -> Topology:
    """Return the topology that the library of a platform knows by this name and these options.

    Raises MissingPlatform where no such library is installed, or it can not be loaded;
    ArgumentError for what it does not know.
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


def topology_of(place: Any) -> Topology | None:
    """Return the topology that the devices of a place are of; None for those of this process."""
    return getattr(place, "topology", None)  # places of other distributions need not have one


def same_devices(a: Any, b: Any) -> bool:
    """Whether two places have the same devices, in the same order."""
    return a.devices == b.devices and topology_of(a) is topology_of(b)


def expect_here(place: Any) -> None:
    """PlacementError if the devices of a place are those of a topology."""
    topology = topology_of(place)
    if topology is not None:
        raise PlacementError(
            f"{place} are devices of a topology ({topology!r}), which are not here: programs are "
            "compiled for them, and run elsewhere",
            fix="give ShapeDtypeStructs: jit(f, in_shardings=...).lower(...).compile(); to run the "
            "program, make a mesh of plait.devices()",
        )
