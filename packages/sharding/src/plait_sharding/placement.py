"""Shardings, which say where arrays are, and the operation that moves an array to one.

Invariant: a sharding is a value.  It is a Placement of the core, so it is part of the dispatch key
of its arrays.  A Program does not fix where its operands are.  It may fix where a value goes
(`constraint`), which moves data and changes none.
"""

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from plait import config, events
from plait.errors import PlacementError
from plait.ext.devices import (
    Device,
    Placed,
    boxes,
    devices,
    first,
    layout_of,
    local,
    put,
    same_devices,
    topology_devices,
    topology_of,
)
from plait.ext.errors import PlaitError
from plait.ext.ir import primitive
from plait.ext.lower import IrValue
from plait.ext.rules import Linear, Structural, lower_rules, physical_rules
from plait.ext.trace import GROUND, current
from plait.ext.transfers import crossing
from plait.ext.types import Aval
from plait.ext.values import Array, as_value, canonical, wrap

if TYPE_CHECKING:
    from plait.ext.lower import Emitter

__all__ = ["Sharding", "SingleDeviceSharding", "constraint", "release"]


class Sharding:
    """The devices of an array, and the piece that each of them has.

    `plait.jit` moves arguments by `accept`, and lays out results by `constrain`.
    """

    __slots__ = ()
    _html: ClassVar[Callable[["Sharding"], str | None]]
    place: Any
    explicit: Any = None
    """The part of the sharding that is in the types of its arrays; None if there is none."""

    @classmethod
    def draw_by(cls, html: Callable[["Sharding"], str | None]) -> None:
        """Register `html(sharding)`, which draws shardings in notebooks."""
        cls._html = staticmethod(html)

    def _repr_html_(self) -> str | None:
        return Sharding._html(self)

    def tiling(self, ndim: int) -> str:
        """Return the HloSharding of arrays of `ndim` axes, as text."""
        return "{replicated}"

    def attributes(self, unit: object, ndim: int) -> dict[Any, Any]:
        """Return the attributes of an argument or result of `main` with this sharding."""
        return {}

    def closed(self) -> "Sharding":
        """Return the sharding with nothing left to the compiler."""
        return self

    def open_at(self, axis: int, ndim: int) -> "Sharding":
        """Return the sharding of arrays with a further axis, at `axis`, left to the compiler."""
        return self

    def divided_at(self, axis: int, ndim: int, names: tuple[str, ...]) -> "Sharding":
        """Return the sharding of arrays with a further axis, at `axis`, divided over `names`.

        Raises AxisError if these mesh axes divide another axis, or do not exist.
        """
        return self

    def check(self, aval: Aval, said: str = "") -> None:
        """Raise AxisError if arrays of this type, which messages call `said`, do not fit."""

    def check_axes(self, aval: Aval) -> None:
        """Raise AxisError if it has entries for axes that arrays of this type lack."""

    def lowered(self, e: object, x: object, aval: Aval) -> Any:
        """Return `x`, in a module, with this sharding."""
        raise PlaitError(f"{type(self).__name__} has no method `lowered`", fix="define it")

    def here(self) -> "Sharding | None":
        """Return the sharding itself; None for one that a type has and that says nothing."""
        return self

    # -- for jit ---------------------------------------------------------------------------

    def accept(self, x: object) -> Any:
        """Return `x` with this sharding; the same array if it has it already.

        Raises PlacementError for an array that the caller placed elsewhere explicitly.
        """
        if current() is GROUND and isinstance(x, np.ndarray):
            return from_host(x, self)
        value = as_value(x)
        have = value.key.placement if value.__class__ is Array else None
        if have is not None and not self.admits(have, value.ndim):
            raise PlacementError(
                f"an argument of type {value.aval!r} was placed by {have!r}, and in_shardings say "
                f"{self!r}",
                fix="bring it there first, by plait.device_put, or leave the choice open: "
                "in_shardings=None",
            )
        self.check(value.aval)
        return constraint.bind(value, sharding=self)

    def admits(self, other: "Sharding", ndim: int) -> bool:
        """Return whether an array of `ndim` axes with the sharding `other` has this one, too."""
        return self == other or self.is_equivalent_to(other, ndim)

    def constrain(self, x: object) -> Any:
        """Return `x`, a traced value, constrained to this sharding."""
        value = as_value(x)
        self.check(value.aval)
        return constraint.bind(value, sharding=self)

    # -- queries ---------------------------------------------------------------------------

    @property
    def topology(self) -> Any:
        """The topology of its devices; None for devices that processes drive."""
        return topology_of(self.place)

    def _devices(self) -> list[Device]:
        """Return the devices that have a piece, in order."""
        every = devices() if self.topology is None else topology_devices(self.topology)
        return [every[i] for i in self.place.devices]

    def _local(self) -> tuple[int, ...]:
        """Return the numbers of the devices that this process drives; none for a topology."""
        return local() if self.topology is None else ()

    @property
    def device_set(self) -> set[Device]:
        """The devices that have a piece."""
        return set(self._devices())

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices with a piece that belong to this process."""
        return {d for d in self._devices() if d.id in self._local()}

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        """The addressable devices in order, under the name that checkpoint libraries use."""
        return tuple([d for d in self._devices() if d.id in self._local()])

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        """The devices in order, under the name that JAX's libraries use."""
        return tuple(self._devices())

    @property
    def has_addressable_devices(self) -> bool:
        """True if some of its devices belong to this process."""
        return bool(self.addressable_devices)

    @property
    def num_devices(self) -> int:
        """The number of devices with a piece."""
        return len(self.place.devices)

    @property
    def is_fully_addressable(self) -> bool:
        """True if all of its devices belong to this process."""
        return set(self.place.devices) <= set(self._local())

    @property
    def memory_kind(self) -> str:
        """The kind of memory that holds arrays: the default one of the devices."""
        there = devices()[first()] if self.topology is None else self._devices()[0]
        return there.default_memory().kind

    def with_memory_kind(self, kind: str | None) -> "Sharding":
        """Return the sharding with this kind of memory; None is the default one.

        Arrays are in the default memory only, so other kinds raise PlacementError.
        """
        if kind is not None and kind != self.memory_kind:
            raise PlacementError(
                f"arrays lie in the memory {self.memory_kind!r} of their devices, and {kind!r} is "
                "asked for",
                fix="leave the kind out, or give None",
            )
        return self

    @property
    def is_fully_replicated(self) -> bool:
        """True if every device has the whole array."""
        return self.tiling(0) == "{replicated}"

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        """Raise AxisError if an array of this shape cannot have this sharding."""
        shape = tuple(aval_shape)
        self.check(Aval(shape, np.int8), f"an array of shape {shape}")

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, tuple[Any, ...]]:
        """Return the slice of an array of this shape that each device has."""
        key = Placed(Aval(global_shape, np.int8), self)
        self.check(key.aval, f"an array of shape {tuple(global_shape)}")
        cut = boxes(layout_of(key), key.aval.shape)
        return dict(zip(self._devices(), cut, strict=True))

    def addressable_devices_indices_map(
        self, global_shape: tuple[int, ...]
    ) -> dict[Device, tuple[Any, ...]]:
        """Return the slices of the devices of this process only."""
        found, mine = self.devices_indices_map(global_shape), set(self._local())
        return {d: box for d, box in found.items() if d.id in mine}

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the pieces of an array of this shape."""
        box = next(iter(self.devices_indices_map(global_shape).values()))
        return tuple([s.stop - s.start for s in box])

    def is_equivalent_to(self, other: "Sharding", ndim: int) -> bool:
        """Return whether each device has the same piece of every array of `ndim` axes."""
        if not same_devices(self.place, other.place):
            return False
        # Every division over these devices divides an axis of this size evenly.
        shape = (len(self.place.devices),) * ndim
        return self.devices_indices_map(shape) == other.devices_indices_map(shape)


# ---- on one device -------------------------------------------------------------------------


class SingleDeviceSharding(Sharding):
    """A whole array on one device.  It is a place of its own.

    Args:
      device: one of `plait.devices()`, or its number; or a device of a topology.
      memory_kind: None, or the kind of the device's default memory, which holds all arrays.

    Raises PlacementError for another kind of memory.

    >>> import plait
    >>> plait.SingleDeviceSharding(plait.devices()[0])
    SingleDeviceSharding(device=0)
    """

    __slots__ = ("devices", "topology")
    devices: tuple[int, ...]
    topology: Any

    def __init__(self, device: Device | int, *, memory_kind: str | None = None):
        self.devices = (device.id if isinstance(device, Device) else int(device),)
        self.topology = getattr(device, "topology", None)
        self.with_memory_kind(memory_kind)

    @property
    def place(self) -> "SingleDeviceSharding":
        return self

    def __hash__(self) -> int:
        return hash(self.devices)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and same_devices(self, other)

    def __repr__(self) -> str:
        there = self.devices[0] if self.topology is None else self._devices()[0]
        return f"SingleDeviceSharding(device={there})"

    def lowered(self, e: Any, x: object, aval: Aval) -> Any:
        if e.bound:
            raise inside_shard_map(self)
        e.unit.run_at(self)
        return x

    # -- Place -----------------------------------------------------------------------------

    def is_left(self, bound: Mapping[str, Any]) -> bool:
        """Return False: one device has every value whole."""
        return False

    def whole_along(self, e: object, x: object, aval: Aval, axes: Collection[int]) -> Any:
        """Return the value itself, which is whole."""
        return x

    def everywhere(self) -> "SingleDeviceSharding":
        """Return the sharding that arrays of the default place are moved to."""
        return self

    def from_anywhere(self) -> "SingleDeviceSharding":
        """Return the destination of `jit(device=)`."""
        return _FromAnywhere(self.devices[0] if self.topology is None else self._devices()[0])

    def placement(self, tiles: object, ndim: int) -> "SingleDeviceSharding":
        """Return the sharding of results."""
        return self

    def tiled(self, tiles: object, ndim: int) -> "SingleDeviceSharding":
        """Return the sharding of results."""
        return self

    def once(self, unit: object, operation: object) -> None:
        """Do nothing: a single device runs every operation once."""


class _FromAnywhere(SingleDeviceSharding):
    """A device to which arguments are moved, also those that the caller placed elsewhere."""

    __slots__ = ()

    def admits(self, other: Sharding, ndim: int) -> bool:
        return True


class InsideShardMap(PlaitError, ValueError):
    """A sharding was requested inside shard_map that its pieces cannot have."""


def inside_shard_map(sharding: Sharding) -> InsideShardMap:
    """Return the error for a sharding inside shard_map, over axes that it divides or other ones."""
    return InsideShardMap(
        f"{sharding!r} is asked for inside shard_map, where each device has its own piece",
        fix="constrain the operands or results of shard_map instead; inside, only axes that "
        "axis_names leaves out, of the same mesh",
    )


# ---- moving arrays -------------------------------------------------------------------------


@primitive("sharding.constraint", traits=(Linear, Structural))
def constraint(x: Aval, *, sharding: Sharding) -> Aval:
    """Return `x` with this sharding; the compiler also handles axes that do not divide evenly."""
    sharding.check_axes(x)
    return x.with_sharding(sharding.explicit)


@lower_rules.rule(constraint)
def _(
    e: "Emitter", xs: list[IrValue], ins: list[Aval], outs: list[Aval], sharding: Sharding
) -> Any:
    return sharding.lowered(e, xs[0], outs[0])


@physical_rules.rule(constraint)
def _(tail: tuple, xs: Any, sharding: Sharding) -> Any:
    # The sharding has no entries for the axes of an element.
    return constraint.bind(*xs, sharding=sharding)


@primitive("sharding.transfer", traits=(Linear, Structural))
def transfer(x: Aval, *, sharding: Sharding, source: Sharding) -> Aval:
    """Move a tangent from the sharding `source` to one on other devices.

    The cotangent moves the other way, so that it meets the values that `x` was made of.
    """
    sharding.check_axes(x)
    return x.with_sharding(sharding.explicit)


@lower_rules.rule(transfer)
def _(
    e: "Emitter",
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    sharding: Sharding,
    source: Sharding,
) -> Any:
    return sharding.lowered(e, xs[0], outs[0])


@physical_rules.rule(transfer)
def _(tail: tuple, xs: Any, sharding: Sharding, source: Sharding) -> Any:
    return transfer.bind(*xs, sharding=sharding, source=source)


@primitive("sharding.release", traits=(Linear, Structural))
def release(x: Aval) -> Aval:
    """Return `x`, in its place, with a type without explicit axes."""
    return x


@lower_rules.rule(release)
def _(e: "Emitter", xs: list[IrValue], ins: list[Aval], outs: list[Aval]) -> Any:
    """Return a new value of the module with the untyped sharding.

    A module records one sharding per value, types of axes included, so the old value cannot serve.
    """
    told = e.unit.placements.get(xs[0])
    if told is None or told.explicit is None:
        return xs[0]
    return told.untyped().lowered(e, xs[0], outs[0])


@physical_rules.rule(release)
def _(tail: tuple, xs: Any) -> Any:
    return release.bind(*xs)


def from_host(x: Any, sharding: Sharding, aval: Aval | None = None) -> Array:
    """Return an array with a copy of a numpy array, or of an object that gives slices.

    It is copied piece by piece, and does not pass through the default device.  `aval` is the type
    of elements for which the numbers of `x` stand.
    """
    dtype = canonical(x.dtype)
    key = _key(sharding, *((tuple(x.shape), dtype) if aval is None else (aval.shape, aval.dtype)))
    events.happened("transfer", key)
    if config.guarded:
        crossing("host_to_device", key.aval)
    return wrap(put(x if x.dtype == dtype else x.astype(dtype), key), key)


@lru_cache(maxsize=4096)
def _key(sharding: Sharding, shape: tuple[int, ...], dtype: np.dtype) -> Placed:
    """Return the dispatch key of an array with this sharding; an error if it does not fit."""
    aval = Aval(shape, dtype)
    sharding.check(aval)
    return Placed(aval, sharding.closed())
