"""Functions that run on several devices, with arrays sharded over named axes of meshes.

An artifact holds the names and sizes of a mesh's axes, but no devices.  It can be called on any
equal number of devices, in their order.  Its module holds the shardings as Shardy attributes, which
jaxlib reads.  The manifest repeats those that are given by axis names alone.

Invariant: a function is called on as many devices as it was exported for, or an error names both
numbers; its arguments and results have the exported shardings there.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import plait
from plait.ext.devices import devices as devices_here
from plait.ext.errors import ArgumentError, PlaitError
from plait.ext.lower import Emitter, attr, mlir
from plait.ext.types import Aval
from plait.ext.values import Array

from .container import field, texts
from .errors import ArtifactError, NotExportable

Axes = tuple[tuple[str, int], ...]
"""(name, size) of each axis of a mesh."""

_MOST = 1 << 20
"""The greatest number of devices."""


class Lies(NamedTuple):
    """The layout of an array: the index of a mesh, and the axis names that shard each axis."""

    mesh: int
    spec: tuple[tuple[str, ...], ...]

    def text(self, symbol: str, ndim: int) -> str:
        """Return it in the syntax of Shardy, for an array of `ndim` axes on the mesh `symbol`."""
        parts = [*self.spec, *[()] * (ndim - len(self.spec))]
        each = ["{" + ", ".join(map(_quoted, names)) + "}" for names in parts]
        return f"#sdy.sharding<@{symbol}, [{', '.join(each)}]>"


def _quoted(name: str) -> str:
    escaped = "".join(c if c.isprintable() and c not in '"\\' else f"\\{ord(c):02X}" for c in name)
    return f'"{escaped}"'


class Division(NamedTuple):
    """The division of a function over several devices.

    Attributes:
      meshes: the axes of each mesh in its module; all meshes have the same number of devices.
      ins, outs: the layouts of the flat arguments and results; None where the compiler chooses.
    """

    meshes: tuple[Axes, ...]
    ins: tuple[Lies | None, ...]
    outs: tuple[Lies | None, ...]

    @property
    def devices(self) -> int:
        """The number of devices that it runs on."""
        return math.prod(size for _, size in self.meshes[0])

    def place_of(self, ids: Sequence[int], mesh: int = 0) -> Any:
        """Return one of its meshes, with these devices."""
        axes = self.meshes[mesh]
        grid = np.array(ids).reshape([size for _, size in axes])
        return plait.Mesh(grid, tuple([name for name, _ in axes]))

    def sharding(self, lies: Lies | None, ids: Sequence[int]) -> Any:
        """Return the NamedSharding of a layout over these devices; None for None."""
        if lies is None:
            return None
        spec = [names or None for names in lies.spec]
        return plait.NamedSharding(self.place_of(ids, lies.mesh), plait.P(*spec))

    def whole(self, ids: Sequence[int], mesh: int = 0) -> Any:
        """Return the sharding of an array that is replicated on these devices."""
        return plait.NamedSharding(self.place_of(ids, mesh), plait.P())

    def devices_of(self, args: Sequence[Any], name: str) -> tuple[int, ...]:
        """Return the ids of the arguments' devices; those of the first devices if none is placed.

        Raises PlacementError if their number is not the exported one.
        """
        places = [x.key.placement.place for x in args
                  if x.__class__ is Array and x.key.placement is not None]  # fmt: skip
        if not places:
            self.expect_here(name)  # before their numbers are listed, which a file may exaggerate
            return tuple(range(self.devices))
        ids = tuple(places[0].devices)
        self.expect(len(ids), name)
        return ids

    def expect(self, count: int, name: str) -> None:
        """Raise PlacementError if a call is on another number of devices."""
        if count != self.devices:
            raise plait.errors.PlacementError(
                f"{name} was exported for {self.devices} devices, and is called on {count}",
                fix=f"bring its arguments to a mesh of {self.devices} devices, by plait.device_put "
                "and Exported.in_shardings_jax(mesh)",
            )

    def expect_here(self, name: str) -> None:
        """Raise PlacementError if this process has fewer devices."""
        if len(devices_here()) < self.devices:
            raise plait.errors.PlacementError(
                f"{name} was exported for {self.devices} devices, and here are "
                f"{len(devices_here())}",
                fix="call it where they are; on a CPU they can be virtual: set "
                f"plait.config.cpu_devices = {self.devices} before the first array is made (or "
                f"PLAIT_CPU_DEVICES={self.devices})",
            )

    def over(self, mesh: Any, side: Sequence[Lies | None], name: str) -> tuple[Any, ...]:
        """Return the shardings of arguments or results on the devices of a mesh.

        Raises ArgumentError if `mesh` is not a mesh, and PlacementError if it has more or fewer
        devices.
        """
        if not hasattr(mesh, "axis_sizes"):
            raise ArgumentError(
                f"{mesh!r} is not a mesh", fix='write plait.make_mesh((4, 2), ("x", "y"))'
            )
        mesh = mesh if hasattr(mesh, "ids") else mesh.of_first_devices()
        self.expect(mesh.size, name)
        return tuple([self.sharding(lies, mesh.ids) for lies in side])


# ---- exported ------------------------------------------------------------------------------


def is_several(place: Any) -> bool:
    """Return whether a place is a mesh, even of one device, or otherwise has several devices."""
    return hasattr(place, "mesh") or len(place.devices) > 1


def division_of(module: Any, keys: Sequence[Any], name: str) -> Division | None:
    """Return the division of a module that was lowered for arguments with these dispatch keys.

    Returns None for a module on one device without a mesh.  Raises NotExportable for several
    devices without a mesh.
    """
    if not any(map(is_several, module.places)):
        return None
    without = [p for p in module.places if not hasattr(p, "mesh")]
    if without:
        raise NotExportable(
            f"{name} runs on {without[0]}, and an artifact says only how arrays are divided over "
            "named axes of a mesh",
            fix="place its arguments and results by NamedSharding(mesh, P(...)), or export it "
            "without placements, and place its arguments where it is called",
        )
    meshes = list(dict.fromkeys([tuple(p.mesh.shape_tuple) for p in module.places]))
    ins = [_lies(k.placement, meshes) for k in keys]
    return Division(tuple(meshes), tuple(ins), tuple([_lies(p, meshes) for p in module.results]))


def _lies(placement: Any, meshes: Sequence[Axes]) -> Lies | None:
    """Return the layout of an array with this placement; None if axis names do not describe it."""
    # Equal shardings give equal bytes, however many entries of None their specs end with.
    spec = getattr(placement, "spec", None)
    parts = None if spec is None else spec.trimmed.parts
    if parts is None or None in parts:
        return None
    return Lies(meshes.index(tuple(placement.mesh.shape_tuple)), parts)


# ---- in the manifest -----------------------------------------------------------------------


def described(division: Division) -> dict[str, Any]:
    """Return the manifest field for a division."""
    return {
        "count": division.devices,
        "meshes": [[list(axis) for axis in axes] for axes in division.meshes],
        "inputs": [_said(lies) for lies in division.ins],
        "outputs": [_said(lies) for lies in division.outs],
    }


def _said(lies: Lies | None) -> dict[str, Any] | None:
    return None if lies is None else {"mesh": lies.mesh, "spec": [list(p) for p in lies.spec]}


def read(said: dict[str, Any], ins: Sequence[Any], outs: Sequence[Any]) -> Division | None:
    """Read the division of a function with these argument and result types from a manifest.

    Raises ArtifactError if it does not fit these types.
    """
    if "devices" not in said:
        return None
    of = field(said, "devices", dict)
    meshes = tuple([_axes(each) for each in field(of, "meshes", list)])
    count = field(of, "count", int)
    if not 0 < count <= _MOST or not meshes or any(_size(axes) != count for axes in meshes):
        raise _damaged(f"its meshes are not of {count} devices")
    sides = [_side(field(of, side, list), avals, meshes)
             for side, avals in (("inputs", ins), ("outputs", outs))]  # fmt: skip
    return Division(meshes, *sides)


def _size(axes: Axes) -> int:
    """Return the number of devices of a mesh, or any number above `_MOST` if it is above."""
    found = 1
    for _, n in axes:
        found *= n
        if found > _MOST:
            break
    return found


def _axes(said: Any) -> Axes:
    """Read the axes of a mesh from a manifest, or raise ArtifactError."""
    good = isinstance(said, list) and all(
        isinstance(axis, list) and len(axis) == 2 and isinstance(axis[0], str)
        and axis[1].__class__ is int and 0 < axis[1] <= _MOST for axis in said
    )  # fmt: skip
    if not good or len({axis[0] for axis in said}) != len(said):
        raise _damaged("the axes of a mesh")
    return tuple([(name, size) for name, size in said])


def _side(said: list, avals: Sequence[Any], meshes: Sequence[Axes]) -> tuple[Lies | None, ...]:
    if len(said) != len(avals):
        raise _damaged(f"it says how {len(said)} arrays lie, of {len(avals)}")
    return tuple([None if s is None else _read(s, a, meshes) for s, a in zip(said, avals)])


def _read(said: object, aval: Aval, meshes: Sequence[Axes]) -> Lies:
    """Read the layout of an array of a type from a manifest, or raise ArtifactError."""
    mesh, spec = field(said, "mesh", int), field(said, "spec", list)
    if not 0 <= mesh < len(meshes):
        raise _damaged(f"an array lies on its mesh number {mesh}")
    parts = [texts({"spec": names}, "spec") for names in spec]
    used, known = [name for names in parts for name in names], dict(meshes[mesh])
    if len(spec) > aval.ndim or len({*used}) != len(used) or not {*used} <= known.keys():
        raise _damaged(f"an array of type {aval!r} is divided over {spec}")
    for size, names in zip(aval.shape, parts):
        pieces = math.prod(known[name] for name in names)
        if size.__class__ is int and size % pieces:
            raise _damaged(f"an array of type {aval!r} is divided in {pieces} pieces")
    return Lies(mesh, tuple(map(tuple, parts)))


def _damaged(what: str) -> ArtifactError:
    return ArtifactError(f"the artifact is damaged: its devices: {what}")


# ---- in modules ----------------------------------------------------------------------------


def meshes_in(module: Any) -> list[Axes]:
    """Return the meshes of a module, without repetition; the caller must hold the lock."""
    found: dict[Axes, None] = {}
    for op in module.body.operations:
        if op.operation.name == "sdy.mesh":
            axes = mlir.bindings().sdy.MeshAttr(op.operation.attributes["mesh"]).axes
            each = [mlir.bindings().sdy.MeshAxisAttr(a) for a in axes]
            found[tuple([(a.name, int(a.size)) for a in each])] = None
    return list(found)


def enter(e: Emitter, division: Division, name: str) -> tuple[int, ...]:
    """Place a module under construction on the devices of a divided function; return their ids.

    Raises PlacementError for another number of devices, and PlaitError inside shard_map.
    """
    if e.bound:
        raise PlaitError(
            f"{name} was exported for {division.devices} devices, and is called inside shard_map, "
            "where each device has a program of its own",
            fix="call it outside of shard_map, or export the function without a mesh",
        )
    if e.unit.place is None:
        division.expect_here(name)
        ids = tuple(range(division.devices))
    else:
        ids = tuple(e.unit.place.devices)
        division.expect(len(ids), name)
    for mesh in range(len(division.meshes)):
        place = division.whole(ids, mesh).place
        e.unit.run_at(place)
        place.symbol(e.unit)  # declared before the callee is added, which then uses this mesh
    return ids


def constrained(
    e: Emitter, division: Division, ids: Sequence[int], xs: Sequence[Any], avals: Sequence[Any],
    side: Sequence[Lies | None], told: bool,
) -> list[Any]:  # fmt: skip
    """Constrain values to the layouts of `side`; if `told`, also record their placements."""
    out = []
    for x, a, lies in zip(xs, avals, side, strict=True):
        if lies is not None:
            symbol = division.whole(ids, lies.mesh).place.symbol(e.unit)
            how = attr(lies.text(symbol, a.physical.ndim))
            x = e.op("sdy.sharding_constraint", [x], a.physical, sharding=how)
            if told:
                e.unit.placements[x] = division.sharding(lies, ids)
        out.append(x)
    return out
