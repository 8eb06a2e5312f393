"""Devices, and the transfer of results to the host.

Invariant: no function here starts the devices before one is needed.
"""

import gc
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from platform import platform as system
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .._base import code_memory, jaxlib_api
from .._base.config import config
from .._base.errors import PlacementError
from .._base.lazy import later
from .._core import buffers
from .._core.array import Array
from .._core.buffers import expect_platform
from .._core.processes import member
from .._core.topologies import Topology
from .._plugins.metadata import core_version
from .._types.avals import OPAQUE
from ..tree import flatten, map_tree

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class Device:
    """One device; `id` is its number, which placements use and all processes share.

    `process_index` is the number of the process that drives it.  `topology` is the topology that it
    belongs to, in which case it is not here; None for devices of processes.
    """

    id: int
    platform: str
    device_kind: str
    process_index: int = 0
    topology: Topology | None = None

    def __repr__(self) -> str:
        there = buffers.platform() if self.topology is None else self.topology.platform
        return f"{there}:{self.id}"

    @property
    def local_hardware_id(self) -> int:
        """Its number among the hardware of this machine; virtual devices share one."""
        return self._runtime().local_hardware_id

    @property
    def client(self) -> Any:
        """The runtime's client, an object of jaxlib's, whose device it is."""
        return self._runtime().client

    @property
    def coords(self) -> list[int]:
        """The position of its chip among the others; AttributeError where the runtime has none."""
        return self._runtime().coords

    @property
    def core_on_chip(self) -> int:
        """Its number among the devices of its chip; AttributeError where the runtime has none."""
        return self._runtime().core_on_chip

    @property
    def slice_index(self) -> int:
        """The number of its slice, a group of devices with its own fast network; AttributeError
        where the runtime has none."""
        return self._runtime().slice_index

    def memory_stats(self) -> dict[str, int] | None:
        """Return its memory use, by the runtime's names; None where the runtime does not count it,
        as on the CPU."""
        return self._runtime().memory_stats()

    def addressable_memories(self) -> list["Memory"]:
        """Return the memories that programs on it can use.

        >>> import plait
        >>> plait.devices()[0].default_memory() in plait.devices()[0].addressable_memories()
        True
        """
        return [Memory(m.kind, self) for m in self._runtime().addressable_memories()]

    def default_memory(self) -> "Memory":
        """Return the memory of its arrays."""
        try:
            kind = self._runtime().default_memory().kind
        except jaxlib_api.RuntimeFailure:  # the runtime does not report it for GPUs of topologies
            kind = "device"
        return Memory(kind, self)

    def memory(self, kind: str) -> "Memory":
        """Return the memory of that kind on this device; raise PlacementError if it has none.

        >>> import plait
        >>> device = plait.devices()[0]
        >>> device.memory(device.default_memory().kind) == device.default_memory()
        True
        """
        found = {m.kind: m for m in self.addressable_memories()}
        if kind not in found:
            raise PlacementError(
                f"{self!r} has no memory of the kind {kind!r}", fix=f"it has {', '.join(found)}"
            )
        return found[kind]

    def _runtime(self) -> Any:
        """Return the runtime's device; raise PlacementError if this process has no such number."""
        every = buffers.devices() if self.topology is None else self.topology.devices
        if not 0 <= self.id < len(every):
            raise PlacementError(
                f"there is no device {self!r} here", fix="take one of plait.devices()"
            )
        return every[self.id]


class Memory(NamedTuple):
    """A memory that programs on a device can use; `kind` is the runtime's name for it."""

    kind: str
    device: Device


def devices(backend: str | None = None) -> list[Device]:
    """Return the devices of all processes, those of process 0 first; see `local_devices`.

    Args:
      backend: the platform; this process has one.

    Raises PlacementError for other platforms.

    >>> import plait
    >>> plait.devices()[0].platform
    'cpu'
    """
    found = buffers.devices()
    expect_platform(backend)
    return [Device(i, d.platform, d.device_kind, d.process_index) for i, d in enumerate(found)]


def topology_devices(topology: Topology) -> list[Device]:
    """Return the devices of a topology, by number."""
    return [
        Device(i, d.platform, d.device_kind, d.process_index, topology)
        for i, d in enumerate(topology.devices)
    ]


def device_count(backend: str | None = None) -> int:
    """Return the number of devices; see `devices`.

    Raises MissingPlatform for a platform that this process does not run on.

    >>> import plait
    >>> plait.device_count() == len(plait.devices())
    True
    """
    return len(devices(backend))


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """Return the devices of this process, or of another one by its number; see `devices`.

    Raises PlacementError if no process has the number.

    >>> import plait
    >>> plait.local_devices() == plait.devices()
    True
    """
    asked = process_index if process_index is not None else host_id
    mine = buffers.client().process_index() if asked is None else asked
    found = [d for d in devices(backend) if d.process_index == mine]
    if not found:
        raise PlacementError(
            f"there is no process {asked!r}: there are {process_count()}, counted from 0",
            fix="leave it out, or take one of plait.process_indices()",
        )
    return found


def local_device_count(backend: str | None = None) -> int:
    """Return the number of devices of this process; see `local_devices`.

    Raises MissingPlatform for a platform that this process does not run on.
    """
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """Return the number of this process: 0 if it computes alone.

    Raises MissingPlatform for a platform that this process does not run on.
    """
    expect_platform(backend)
    return buffers.client().process_index()


def process_count(backend: str | None = None) -> int:
    """Return how many processes compute together.

    Raises MissingPlatform for a platform that this process does not run on.
    """
    expect_platform(backend)
    world = member()
    return 1 if world is None else world.count


def process_indices(backend: str | None = None) -> list[int]:
    """Return the numbers of all processes, from 0.

    Raises MissingPlatform for a platform that this process does not run on.
    """
    return list(range(process_count(backend)))


host_id, host_count, host_ids = process_index, process_count, process_indices


def default_backend() -> str:
    """Return the platform computations run on: `cpu`, `gpu` or `tpu`."""
    return buffers.client().platform


def block_until_ready(x: T) -> T:
    """Wait until every array of the tree is computed; return the tree.

    Raises the errors of the computations.
    """
    for leaf in flatten(x)[0]:
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x


def device_get(x: object) -> Any:
    """Return the tree with arrays replaced by numpy arrays; arrays of keys stay."""
    number = lambda v: isinstance(v, Array) and v.aval.category != OPAQUE  # noqa: E731
    with later("_core.transfers").explicit() if config.guarded else nullcontext():
        return map_tree(lambda v: v.numpy() if number(v) else v, x)


def copy_to_host_async(x: T) -> T:
    """Begin to copy the arrays of a tree to the host; return the tree.

    Where the device shares its memory with the host, as the CPU does, this does nothing.  Arrays of
    other libraries are leaves, too, if they have a method of this name.
    """
    for leaf in flatten(x)[0]:
        begin = getattr(leaf, "copy_to_host_async", None)
        if begin is not None:
            begin()
    return x


def live_arrays(platform: str | None = None) -> list[Array]:
    """Return all arrays of the process whose memory is not freed, in no particular order.

    Raises MissingPlatform for a platform that this process does not run on.

    >>> import plait
    >>> x = plait.numpy.ones(3)
    >>> any(y is x for y in plait.live_arrays())
    True
    """
    expect_platform(platform)
    return [x for x in gc.get_objects() if x.__class__ is Array and not x.is_deleted()]


def effects_barrier() -> None:
    """Wait until the side effects of programs are complete.

    A call of a program with effects returns only then, so this does nothing.
    """


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions, platform and devices for a bug report; or return the text."""
    lines = [
        f"plait:    {core_version()}",
        f"jaxlib:  {jaxlib_api.JAXLIB_VERSION}",
        f"numpy:   {np.__version__}",
        f"python:  {sys.version}",
        f"devices: {device_count()} of {default_backend()}",
        f"system:  {system()}",
    ]
    text = "\n".join(lines)
    return text if return_string else print(text)


def clear_caches() -> None:
    """Drop cached traces and executables, those of jitted functions and of operations outside of
    them.
    """
    code_memory.forget_all()
    calls: Any = later("_jit.calls")
    calls.forget_calls()
