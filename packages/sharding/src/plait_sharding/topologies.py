"""Descriptions and meshes of devices that are not attached, for ahead-of-time compilation.

A function is compiled for the mesh of a topology as for any mesh, from the types of its arguments.
The result reports memory use, cost, and the communication between devices; it cannot be called.
This needs the library of the platform (`libtpu`, or the wheels of the plugin for GPUs), and no
device.

Invariant: the devices of a topology are numbered from 0 in the order of its description, whatever
their numbers in the runtime.
"""

import re
from collections.abc import Sequence
from typing import Any

from plait.ext.devices import Device, Topology, find_topology, topology_devices
from plait.ext.devices import devices as all_devices
from plait.ext.errors import ArgumentError, AxisError

from .device_meshes import create_device_mesh
from .gpu_models import GPU_MODELS
from .mesh import Mesh

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]

_PLATFORMS = {"gpu": "cuda"}
"""Other names of platforms."""


class TopologyDescription:
    """An ordered list of devices, which need not be attached or exist.

    Attributes:
      devices: in order; each has a `device_kind`, a `process_index`, and, if the runtime provides
        them, `coords` and `slice_index`.

    >>> import plait
    >>> plait.sharding.topologies.get_attached_topology().devices == plait.devices()
    True
    """

    devices: list[Device]

    def __init__(self, devices: Sequence[Device]):
        self.devices = list(devices)

    def __repr__(self) -> str:
        kinds = ", ".join(sorted({d.device_kind for d in self.devices}))
        n = len({d.process_index for d in self.devices})
        hosts = f"{n} process{'es' if n > 1 else ''}"
        return f"TopologyDescription({len(self.devices)} devices {kinds!r} of {hosts})"


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """Return a description of all devices of the computation, those of other processes included.

    Args:
      platform: the platform of the devices; None accepts any.

    Raises PlacementError for a platform that this process does not use.

    >>> import plait
    >>> len(plait.sharding.topologies.get_attached_topology("cpu").devices) >= 1
    True
    """
    return TopologyDescription(all_devices(platform))


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **kwargs: object
) -> TopologyDescription:
    """Return a description of devices to compile for; none of them need be attached.

    Args:
      topology_name: the kind and number of the devices.  For TPUs, the grid of chips: "v5e:8x8"
        or "v5p:4x4x4".  For GPUs, the number of hosts and of devices per host: "h100:8x8" (a100,
        h100, h200, b200), or "h100:8" for one host.
      platform: "tpu", "cuda" (or "gpu"), or the name of a plugin of the runtime; None takes the
        platform of the name.
      kwargs: further options of the platform's library.  For TPUs: `num_slices`,
        `chips_per_host_bounds`.  For GPUs: `target_config` (a `GpuTargetConfigProto` as text),
        with which the name may be any, and `topology` ("PARTITIONSxHOSTSxDEVICES").

    Returns:
      A `TopologyDescription`, for `make_mesh`.

    Raises MissingPlatform if the library is not installed; ArgumentError for unknown names, and for
    options that do not fit them.

    Devices have the same order as in the JAX function of this name.  Example, on any machine with
    the wheels `libtpu` or `jax-cuda12-pjrt`:

        topo = plait.sharding.topologies.get_topology_desc("h100:8x8")
        mesh = plait.sharding.topologies.make_mesh(topo, (8, 8), ("data", "model"))
        x = plait.ShapeDtypeStruct((512, 64), "float32", sharding=plait.NamedSharding(mesh, spec))
        plait.jit(f).lower(x).compile().collectives()
    """
    kind, _, grid = str(topology_name).partition(":")
    if platform is None:
        platform = "cuda" if kind.lower() in GPU_MODELS or "target_config" in kwargs else "tpu"
    platform = _PLATFORMS.get(platform, platform)
    if platform == "cpu":
        raise ArgumentError(
            "the compiler for the CPU compiles for the processor of this machine alone, and has no "
            "topologies",
            fix="set plait.config.cpu_devices, for as many virtual devices as are wanted",
        )
    if platform == "cuda":
        kwargs = _of_gpus(kind.lower(), grid, topology_name, kwargs)
    elif not topology_name and "topology" not in kwargs:
        raise ArgumentError(
            f"get_topology_desc was given no name of a topology of {platform!r}",
            fix='say which devices, for instance "v5e:4x4"',
        )
    made: Topology = find_topology(platform, str(topology_name), **_hashable(kwargs))
    return TopologyDescription(topology_devices(made))


def _of_gpus(kind: str, grid: str, said: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the GPU plugin, with the GPU model and the shape of the group."""
    options = dict(options)
    if "target_config" not in options:
        if kind not in GPU_MODELS:
            raise ArgumentError(
                f"there is no model of GPUs {kind!r} here, of which {said!r} speaks",
                fix=f"name one of {', '.join(GPU_MODELS)}, as in 'h100:8x8'; or describe another "
                "by target_config=, the text of a GpuTargetConfigProto",
            )
        options["target_config"] = GPU_MODELS[kind].described()
    if "topology" not in options:
        sizes = re.fullmatch(r"(?:([1-9]\d*)x)?([1-9]\d*)", grid)
        if sizes is None:
            raise ArgumentError(
                f"{said!r} does not say how many GPUs there are",
                fix='write how many hosts and how many GPUs each has, as in "h100:8x8", or '
                "topology='1x8x8'",
            )
        options["topology"] = f"1x{sizes[1] or 1}x{sizes[2]}"
    elif not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[1-9]\d*", str(options["topology"])):
        raise ArgumentError(
            f"topology={options['topology']!r} is not a shape of a group of GPUs",
            fix="write how many partitions, hosts of each and devices of each host: '1x8x8'",
        )
    return options


def _hashable(options: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: str | Sequence[str],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """Return a mesh of all devices of a topology.

    Args:
      topo: a result of `get_topology_desc`.
      mesh_shape: the size of each axis.
      axis_names: the name of each axis.
      contiguous_submeshes: as in `create_device_mesh`.

    Raises AxisError if the mesh and the topology have different numbers of devices; ArgumentError
    if `topo` is not a topology.

    >>> import plait
    >>> topo = plait.sharding.topologies.TopologyDescription(plait.devices()[:1])
    >>> plait.sharding.topologies.make_mesh(topo, (1, 1), ("x", "y"))
    Mesh('x': 1, 'y': 1)
    """
    if not isinstance(topo, TopologyDescription):
        raise ArgumentError(
            f"make_mesh of plait.sharding.topologies needs a topology, not {topo!r}",
            fix='write make_mesh(get_topology_desc("v5e:4x4"), sizes, names)',
        )
    sizes = tuple([int(n) for n in mesh_shape])
    need = 1
    for n in sizes:
        need *= n
    if need != len(topo.devices):
        raise AxisError(
            f"a mesh of shape {sizes} has {need} devices, and {topo!r} has {len(topo.devices)}",
            fix="give a shape of as many, or make a mesh of some: "
            "Mesh(create_device_mesh(shape, topo.devices[:n]), names)",
        )
    grid = create_device_mesh(mesh_shape, topo.devices, contiguous_submeshes=contiguous_submeshes)
    return Mesh(grid, axis_names)
