"""Arrays of devices for `Mesh`: of one network, or of several joined by a slower one.

Invariant: each given device occurs once; devices that are near each other are neighbours along
the axes of the fast network.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.ext.devices import devices as all_devices
from plait.ext.errors import ArgumentError, AxisError

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]


def create_device_mesh(
    mesh_shape: Any,
    devices: Any = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Return an array of devices of this shape, for `Mesh`.

    Args:
      mesh_shape: the size of each axis.
      devices: all of the devices, in order; by default the first of `plait.devices()`.
      contiguous_submeshes, allow_split_physical_axes: ignored: devices stay in the order in which
        the runtime numbers them, which follows the wires.

    Raises AxisError if the number of devices does not fit the shape.

    >>> import plait
    >>> plait.sharding.create_device_mesh((1, 1), plait.devices()[:1]).shape
    (1, 1)
    """
    del contiguous_submeshes, allow_split_physical_axes
    sizes = tuple([int(n) for n in mesh_shape])
    need = math.prod(sizes)
    given = all_devices() if devices is None else list(devices)
    if (len(given) < need or need < 1) if devices is None else len(given) != need:
        raise AxisError(
            f"a mesh of shape {sizes} has {need} devices, and {len(given)} are given",
            fix="give as many devices as it has places",
        )
    grid = np.empty(need, object)
    grid[:] = given[:need]
    return grid.reshape(sizes)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Return an array for `Mesh` of groups of devices that a slower network joins.

    Along each axis the positions of the slow network vary slowest, so an axis of size 1 in
    `dcn_mesh_shape` communicates by the fast network only.

    Args:
      mesh_shape: the size of each axis within one group.
      dcn_mesh_shape: the number of groups along each axis; as many axes as `mesh_shape`.
      devices: by default `plait.devices()`.
      process_is_granule: if true, each process is a group; if false, each `slice_index` is one.
        Devices without such an index are grouped by process.
      should_sort_granules_by_key: if true, groups are ordered by that number; if false, by their
        first devices.
      allow_split_physical_axes: as in `create_device_mesh`.

    Returns:
      An array of shape `mesh_shape * dcn_mesh_shape`.

    Raises AxisError if the number of groups differs from the product of `dcn_mesh_shape`, or if a
    group has the wrong number of devices; ArgumentError if the two shapes have different lengths.

    >>> import plait
    >>> plait.sharding.create_hybrid_device_mesh((1, 1), (1, 1), plait.devices()[:1]).shape
    (1, 1)
    """
    inner, outer = tuple(map(int, mesh_shape)), tuple(map(int, dcn_mesh_shape))
    if len(inner) != len(outer):
        raise ArgumentError(
            f"mesh_shape {inner} has {len(inner)} axes, and dcn_mesh_shape {outer} has "
            f"{len(outer)}",
            fix="give both a size for each axis of the mesh, 1 where there is nothing to divide",
        )
    groups = _groups(all_devices() if devices is None else devices, process_is_granule)
    numbers = sorted(groups) if should_sort_granules_by_key else list(groups)
    if len(numbers) != math.prod(outer):
        what = "processes" if process_is_granule else "slices"
        raise AxisError(
            f"dcn_mesh_shape {outer} has {math.prod(outer)} places, and the devices are of "
            f"{len(numbers)} {what} ({', '.join(map(str, numbers))})",
            fix="give as many places as there are groups of devices, or other devices",
        )
    out = np.empty([m * n for m, n in zip(inner, outer)], object)
    for number, at in zip(numbers, np.ndindex(*outer)):
        box = tuple([slice(i * m, (i + 1) * m) for i, m in zip(at, inner)])
        out[box] = create_device_mesh(
            inner, groups[number], allow_split_physical_axes=allow_split_physical_axes
        )
    return out


def _groups(devices: Sequence[Any], by_process: bool) -> dict[int, list[Any]]:
    """Return the devices of each group, by the number of the group."""
    found: dict[int, list[Any]] = {}
    for d in devices:
        number = None if by_process else getattr(d, "slice_index", None)
        found.setdefault(d.process_index if number is None else number, []).append(d)
    return found
