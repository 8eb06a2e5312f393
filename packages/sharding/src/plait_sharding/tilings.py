"""Shardings without names: tiles, and the device of each, in the runtime's notation.

A `GSPMDSharding` describes results that the compiler divided in a way that no PartitionSpec does.

Invariant: two of them are equal if each device has the same piece of every array, in whatever
notation they were given.  The module describes each over a mesh that is made for it.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from plait.ext.devices import Device, parse_tiling, same_devices
from plait.ext.errors import AxisError
from plait.ext.lower import Emitter, IrValue, attr, bindings
from plait.ext.types import Aval

from .mesh import in_words
from .placement import Sharding, inside_shard_map

__all__ = ["DeviceOrder", "GSPMDSharding", "quoted", "spec_text", "told_by_one", "whole_along"]


def quoted(name: str) -> str:
    """Return the name of an axis as MLIR spells it."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def spec_text(symbol: str, parts: tuple[Any, ...], open_: bool = False) -> str:
    """Return the entries of a full spec in Shardy's notation.

    Axes whose entry is None are open to further mesh axes; `open_` opens all of them.
    """
    each = [[*map(quoted, p or ()), *(["?"] if open_ or p is None else [])] for p in parts]
    return f"<@{symbol}, [{', '.join(['{' + ', '.join(names) + '}' for names in each])}]>"


def whole_along(e: Emitter, symbol: str, x: IrValue, aval: Aval, axes: Collection[int]) -> Any:
    """Constrain a value in a module to be whole along these axes, with the others open.

    `symbol` is the mesh in the module that the constraint refers to.
    """
    parts = tuple([() if i in axes else None for i in range(aval.physical.ndim)])
    how = attr("#sdy.sharding" + spec_text(symbol, parts))
    return e.op("sdy.sharding_constraint", [x], aval, sharding=how)


def told_by_one(unit: Any, operation: Any, symbol: str) -> None:
    """Let the first device run an operation of a module, and send the results to the others.

    `symbol` is a mesh of all devices in the module.
    """
    one = unit.declare("one", "one", "sdy.mesh @{} = <[], device_ids=[0]>")
    results = list(operation.results)
    each = ", ".join([f"<@{one}, []>"] * max(1, len(results)))  # one entry even without results
    operation.attributes["sdy.sharding"] = attr(f"#sdy.sharding_per_value<[{each}]>")
    m = bindings()
    for r in results:
        if r.type == m.token:
            continue
        how = {"sharding": attr("#sdy.sharding" + spec_text(symbol, ((),) * r.type.rank))}
        at = {"loc": m.unknown, "ip": m.ir.InsertionPoint(operation)}
        told = m.create("sdy.sharding_constraint", [r.type], [r], how, **at)
        told.move_after(operation)
        r.replace_all_uses_except(told.result, told)


class DeviceOrder(NamedTuple):
    """Devices in an order, as a place where a computation runs."""

    devices: tuple[int, ...]
    topology: Any = None
    """The topology of the devices; None for devices that processes drive."""

    def __str__(self) -> str:
        return f"the devices {in_words(self.devices)}"

    def everywhere(self) -> "GSPMDSharding":
        """Return the sharding with a whole copy on each device."""
        return _rebuilt(self.devices, None, (), (), self.topology)

    def placement(self, tiles: tuple[tuple[Any, ...], ...] | None, ndim: int) -> None:
        """Return None: devices in an order have no axis names to express a tiling by."""

    def tiled(self, tiles: tuple[tuple[Any, ...], ...] | None, ndim: int) -> "GSPMDSharding":
        """Return the sharding of a result with this tiling."""
        if tiles is None or math.prod(tiles[0][:ndim]) == 1:
            return self.everywhere()
        return _rebuilt(self.devices, tuple(tiles[0][:ndim]), tiles[1], (), self.topology)

    def once(self, unit: object, operation: object) -> None:
        """Let the first device run an operation, and send the results to the others."""
        told_by_one(unit, operation, self.everywhere().symbol(unit))

    def is_left(self, bound: Mapping[str, Any]) -> bool:
        """Return whether the module is outside of `shard_map`, where values are global."""
        return not bound

    def whole_along(self, e: Emitter, x: IrValue, aval: Aval, axes: Collection[int]) -> Any:
        """Constrain a value to be whole along these axes; leave the others open."""
        return whole_along(e, self.everywhere().symbol(e.unit), x, aval, axes)


class GSPMDSharding(Sharding):
    """A division into tiles, without names of axes, in the runtime's notation.

    Args:
      devices: devices, or their numbers, in order.
      op_sharding: an HloSharding, as text or as an object of jaxlib.  "{devices=[2,4]<=[8]}" is two
        by four tiles on eight devices in order.  Copies may follow the tiles along each axis:
        "{devices=[2,4]<=[8] last_tile_dim_replicate}" is two tiles of a vector and four copies of
        each.  Numbers are positions in `devices`.

    Raises AxisError for a device that occurs twice, or if the number of tiles differs from that of
    devices; ArgumentError if `op_sharding` is not a tiling.

    >>> import plait
    >>> plait.sharding.GSPMDSharding(plait.devices()[:1], "{replicated}").is_fully_replicated
    True
    """

    __slots__ = ("devices", "dims", "order", "opened", "topology", "_hash")
    devices: tuple[int, ...]
    topology: Any
    dims: tuple[int, ...] | None
    """The number of tiles along each axis; None if each device has the whole array, of any rank."""
    order: tuple[int, ...]
    """The positions of the devices of each tile, the copies of the first tile first."""
    opened: tuple[int, ...]
    """The axes that are left to the compiler."""

    def __init__(self, devices: Sequence[Any], op_sharding: Any):
        ids = tuple([d.id if isinstance(d, Device) else int(d) for d in devices])
        if len(set(ids)) < len(ids) or not ids:
            raise AxisError(
                f"a sharding needs each of its devices once, and has {list(ids)}",
                fix="give plait.devices(), or some of them",
            )
        dims, order = parse_tiling(op_sharding)
        self._set(ids, dims, order, (), getattr(next(iter(devices)), "topology", None))
        if dims is not None and sorted(order) != list(range(len(ids))):
            raise AxisError(
                f"{op_sharding} speaks of {len(order)} devices with numbers up to {max(order)}, "
                f"and {len(ids)} are given, whose places are 0 to {len(ids) - 1}",
                fix="give as many devices as there are tiles and copies together",
            )

    def _set(
        self,
        devices: tuple[int, ...],
        dims: tuple[int, ...] | None,
        order: tuple[int, ...],
        opened: tuple[Any, ...],
        topology: Any,
    ) -> None:
        self.devices, self.dims, self.order, self.opened = devices, dims, tuple(order), opened
        self.topology = topology
        self._hash = hash(self._key)

    @classmethod
    def get_replicated(cls, device_assignment: Sequence[Any]) -> "GSPMDSharding":
        """Return the sharding with a whole copy on each of these devices.

        >>> import plait
        >>> plait.sharding.GSPMDSharding.get_replicated(plait.devices()[:1]).num_devices
        1
        """
        return cls(device_assignment, "{replicated}")

    @property
    def _key(self) -> tuple:
        return self.devices, self.dims, self.order, self.opened, self.topology

    @property
    def place(self) -> DeviceOrder:
        return DeviceOrder(self.devices, self.topology)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GSPMDSharding) and self._key == other._key

    def __repr__(self) -> str:
        left = f", open axes {list(self.opened)}" if self.opened else ""
        rank = len(self.dims or ())
        return f"GSPMDSharding({self.tiling(rank)} on {list(self.devices)}{left})"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, self._key

    # -- as jit uses it --------------------------------------------------------------------

    def check(self, aval: Aval, said: str = "") -> None:
        self.check_axes(aval)
        for i, (n, k) in enumerate(zip(aval.shape, self.dims or ())):
            if k != 1 and n % k != 0:
                raise AxisError(
                    f"axis {i} of {said or repr(aval)} cannot be divided in {k} equal pieces",
                    fix=f"give it a size that is a multiple of {k}, or divide another axis",
                )

    def check_axes(self, aval: Aval) -> None:
        if self.dims is not None and len(self.dims) != aval.ndim:
            raise AxisError(
                f"{self!r} is of arrays with {len(self.dims)} axes, and {aval!r} has {aval.ndim}",
                fix="give the tiles along each axis, 1 for those that are not divided",
            )

    def tiling(self, ndim: int) -> str:
        if self.dims is None:
            return "{replicated}"
        copies = len(self.order) // math.prod(self.dims)
        dims = [*self.dims, *[1] * (ndim - len(self.dims)), *([copies] if copies > 1 else [])]
        last = " last_tile_dim_replicate" if copies > 1 else ""
        tiles, order = ",".join(map(str, dims)), ",".join(map(str, self.order))
        return f"{{devices=[{tiles}]{order}{last}}}"

    def closed(self) -> "GSPMDSharding":
        if not self.opened:
            return self
        return _rebuilt(self.devices, self.dims, self.order, (), self.topology)

    def admits(self, other: Sharding, ndim: int) -> bool:
        if not self.opened:
            return super().admits(other, ndim)
        return same_devices(self, other.place)  # the compiler may divide an open axis in any way

    def open_at(self, axis: int, ndim: int) -> "GSPMDSharding":
        dims = list(self.dims or (1,) * ndim)
        dims.insert(axis, 1)
        opened = sorted([axis, *[i + (i >= axis) for i in self.opened]])
        order = self.order or tuple(range(len(self.devices)))
        return _rebuilt(self.devices, tuple(dims), order, tuple(opened), self.topology)

    def divided_at(self, axis: int, ndim: int, names: tuple[str, ...]) -> "GSPMDSharding":
        raise AxisError(
            f"the mapped axis is to be divided over {names} (spmd_axis_name), and {self!r} has no "
            "axes with names",
            fix="constrain by NamedSharding(mesh, P(...)), or leave spmd_axis_name out",
        )

    def symbol(self, unit: Any) -> str:
        """Return the name of its mesh in a module.

        The mesh has an axis for each divided axis of the array, and one for the copies.
        """
        n = len(self.devices)
        sizes = (1,) if self.dims is None else (*self.dims, n // math.prod(self.dims))
        axes = ", ".join([f'"a{i}"={k}' for i, k in enumerate(sizes) if k > 1])
        order = self.order if self.dims is not None else tuple(range(n))
        axes = axes or f'"a"={n}'
        ids = "" if order == tuple(range(n)) else f", device_ids={list(order)}"
        return unit.declare((axes, ids), "tiles", f"sdy.mesh @{{}} = <[{axes}]{ids}>")

    def _text(self, unit: object, ndim: int) -> str:
        dims = self.dims or ()
        parts = [
            None if i in self.opened else (f"a{i}",) if k > 1 else () for i, k in enumerate(dims)
        ]
        return spec_text(self.symbol(unit), (*parts, *((),) * (ndim - len(dims))))

    def attributes(self, unit: object, ndim: int) -> dict[Any, Any]:
        return {"sdy.sharding": attr("#sdy.sharding" + self._text(unit, ndim))}

    def lowered(self, e: Any, x: Any, aval: Aval) -> Any:
        if e.bound:
            raise inside_shard_map(self)
        e.unit.run_at(self.place)
        how = attr("#sdy.sharding" + self._text(e.unit, aval.ndim))
        y = e.op("sdy.sharding_constraint", [x], aval, sharding=how)
        if not self.opened:
            e.unit.placements[y] = self
        return y


def _rebuilt(
    devices: tuple[int, ...],
    dims: tuple[int, ...] | None,
    order: tuple[int, ...],
    opened: tuple[Any, ...],
    topology: Any = None,
) -> GSPMDSharding:
    made = object.__new__(GSPMDSharding)
    made._set(devices, dims, order, opened, topology)
    return made


def in_tiles(sharding: Sharding, ndim: int, devices: tuple[int, ...]) -> GSPMDSharding:
    """Return the tiling of arrays of `ndim` axes by a sharding, with its devices in this order."""
    dims, order = parse_tiling(sharding.tiling(ndim))
    if dims is None:
        return GSPMDSharding.get_replicated(devices)
    at = {d: i for i, d in enumerate(devices)}
    places = [at[sharding.place.devices[k]] for k in order]
    return _rebuilt(devices, dims, tuple(places), ())
