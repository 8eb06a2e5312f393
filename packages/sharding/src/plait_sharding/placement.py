"""Shardings, which say where arrays are, and the operation that brings an array to one.

Invariant: a sharding is a value: what the core calls a Placement, part of the dispatch key of the
arrays that lie so.  A Program says nothing of where its operands are; it may say where a value
shall be (`constraint`), which moves data and changes none.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from plait import events
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
from plait.ext.rules import Linear, Structural, lower_rules, physical_rules
from plait.ext.trace import GROUND, current
from plait.ext.types import Aval
from plait.ext.values import Array, as_value, canonical, wrap

__all__ = ["Sharding", "SingleDeviceSharding", "constraint", "release"]


class Sharding:
    """Where the pieces of an array are, and which device has which.

    `accept` and `constrain` are how `plait.jit` brings arguments and lays out results.
    """

    __slots__ = ()
    _html: ClassVar[Callable[["Sharding"], str | None]]
    place: Any
    explicit: Any = None
    """What types say of arrays that lie so; None is nothing."""

    @classmethod
    def draw_by(cls, html: Callable[["Sharding"], str | None]) -> None:
        """Show shardings in notebooks as `html(sharding)`."""
        cls._html = staticmethod(html)

    def _repr_html_(self) -> str | None:
        return Sharding._html(self)

    def tiling(self, ndim: int) -> str:
        """As the runtime spells it (HloSharding)."""
        return "{replicated}"

    def attributes(self, unit: Any, ndim: int) -> dict:
        """What an argument or result of `main` carries that lies so."""
        return {}

    def closed(self) -> "Sharding":
        """The same, with nothing left to the compiler."""
        return self

    def open_at(self, axis: int, ndim: int) -> "Sharding":
        """Of arrays with one more axis, at `axis`, which is left to the compiler."""
        return self

    def divided_at(self, axis: int, ndim: int, names: tuple[str, ...]) -> "Sharding":
        """Of arrays with one more axis, at `axis`, which is divided over axes of a mesh; AxisError
        if others are divided over them, or there are no such axes."""
        return self

    def check(self, aval: Aval, said: str = "") -> None:
        """AxisError if arrays of this type, `said` in words, can not lie so."""

    def check_axes(self, aval: Aval) -> None:
        """AxisError if it speaks of axes that arrays of this type do not have."""

    def lowered(self, e: Any, x: Any, aval: Aval) -> Any:
        """`x`, in a module, brought here."""
        raise PlaitError(f"{type(self).__name__} has no method `lowered`", fix="define it")

    # -- as jit uses it --------------------------------------------------------------------

    def accept(self, x: Any) -> Any:
        """`x` here; the same array if it is here already.

        Raises PlacementError for an array that was placed elsewhere on purpose.
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
        """Whether an array of `ndim` axes that lies as `other` says lies so."""
        return self == other or self.is_equivalent_to(other, ndim)

    def constrain(self, x: Any) -> Any:
        """`x`, a value of a function that is traced, to lie so."""
        value = as_value(x)
        self.check(value.aval)
        return constraint.bind(value, sharding=self)

    # -- questions -------------------------------------------------------------------------

    @property
    def topology(self) -> Any:
        """The topology that its devices are of; None for devices of processes."""
        return topology_of(self.place)

    def _devices(self) -> list[Device]:
        """The devices that have a piece, in order."""
        every = devices() if self.topology is None else topology_devices(self.topology)
        return [every[i] for i in self.place.devices]

    def _local(self) -> tuple[int, ...]:
        """Numbers of the devices that this process drives: none of those of a topology."""
        return local() if self.topology is None else ()

    @property
    def device_set(self) -> set[Device]:
        """The devices that have a piece."""
        return set(self._devices())

    @property
    def addressable_devices(self) -> set[Device]:
        """Those of them that belong to this process."""
        return {d for d in self._devices() if d.id in self._local()}

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        """The same in order, by the name that libraries for checkpoints read."""
        return tuple([d for d in self._devices() if d.id in self._local()])

    @property
    def has_addressable_devices(self) -> bool:
        """Whether some of them belong to this process."""
        return bool(self.addressable_devices)

    @property
    def num_devices(self) -> int:
        """How many devices have a piece."""
        return len(self.place.devices)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all of its devices belong to this process."""
        return set(self.place.devices) <= set(self._local())

    @property
    def memory_kind(self) -> str:
        """The kind of the memory that arrays lie in: the default one of the devices."""
        there = devices()[first()] if self.topology is None else self._devices()[0]
        return there.default_memory().kind

    def with_memory_kind(self, kind: str | None) -> "Sharding":
        """The same, in a memory of this kind; None is the default one, which is the only one that
        arrays lie in.

        Raises PlacementError for other kinds.
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
        """Whether every device has the whole array."""
        return self.tiling(0) == "{replicated}"

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        """AxisError if an array of this shape can not lie so."""
        shape = tuple(aval_shape)
        self.check(Aval(shape, np.int8), f"an array of shape {shape}")

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, tuple]:
        """The slice of an array of this shape that each device has."""
        key = Placed(Aval(global_shape, np.int8), self)
        self.check(key.aval, f"an array of shape {tuple(global_shape)}")
        cut = boxes(layout_of(key), key.aval.shape)
        return dict(zip(self._devices(), cut, strict=True))

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, tuple]:
        """The same, of the devices of this process."""
        found, mine = self.devices_indices_map(global_shape), set(self._local())
        return {d: box for d, box in found.items() if d.id in mine}

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the pieces of an array of this shape."""
        box = next(iter(self.devices_indices_map(global_shape).values()))
        return tuple([s.stop - s.start for s in box])

    def is_equivalent_to(self, other: "Sharding", ndim: int) -> bool:
        """Whether each device has the same piece of every array of `ndim` axes."""
        if not same_devices(self.place, other.place):
            return False
        shape = (len(self.place.devices),) * ndim  # which every division divides
        return self.devices_indices_map(shape) == other.devices_indices_map(shape)


# ---- on one device -------------------------------------------------------------------------


class SingleDeviceSharding(Sharding):
    """Whole, on one device.  It is a place of its own.

    Args:
      device: one of `plait.devices()`, or its number; or a device of a topology.
      memory_kind: None, or the kind of the device's default memory, where arrays lie.

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

    def lowered(self, e: Any, x: Any, aval: Aval) -> Any:
        if e.bound:
            raise inside_shard_map(self)
        e.unit.run_at(self)
        return x

    # -- Place -----------------------------------------------------------------------------

    def everywhere(self) -> "SingleDeviceSharding":
        """Where arrays of the default place are brought."""
        return self

    def placement(self, tiles: Any, ndim: int) -> "SingleDeviceSharding":
        """Where results are."""
        return self

    def tiled(self, tiles: Any, ndim: int) -> "SingleDeviceSharding":
        """Where results are."""
        return self

    def once(self, unit: Any, operation: Any) -> None:
        """One device does everything."""


def inside_shard_map(sharding: Sharding) -> PlaitError:
    """The error for a sharding that is asked for where each device has its own piece."""
    return PlaitError(
        f"{sharding!r} is asked for inside shard_map, where each device has its own piece",
        fix="constrain the operands or results of shard_map instead",
    )


# ---- bringing arrays there -----------------------------------------------------------------


@primitive("sharding.constraint", traits=(Linear, Structural))
def constraint(x: Aval, *, sharding: Sharding) -> Aval:
    """`x`, to lie as the sharding says; the compiler also divides what does not divide evenly."""
    sharding.check_axes(x)
    return x.with_sharding(sharding.explicit)


@lower_rules.rule(constraint)
def _(e: Any, xs: Any, ins: Any, outs: Any, sharding: Sharding) -> Any:
    return sharding.lowered(e, xs[0], outs[0])


@physical_rules.rule(constraint)
def _(tail: tuple, xs: Any, sharding: Sharding) -> Any:
    return constraint.bind(*xs, sharding=sharding)  # which says nothing of the axes of an element


@primitive("sharding.release", traits=(Linear, Structural))
def release(x: Aval) -> Aval:
    """`x`, where it is, in a type that says nothing of explicit axes."""
    return x


@lower_rules.rule(release)
def _(e: Any, xs: Any, ins: Any, outs: Any) -> Any:
    """A value of the module tells where it is, types of axes and all: hence another one."""
    told = e.unit.placements.get(xs[0])
    if told is None or told.explicit is None:
        return xs[0]
    return told.untyped().lowered(e, xs[0], outs[0])


@physical_rules.rule(release)
def _(tail: tuple, xs: Any) -> Any:
    return release.bind(*xs)


def from_host(x: Any, sharding: Sharding) -> Array:
    """A copy of a numpy array, or of what gives its slices, piece by piece, without a detour over
    the default device."""
    dtype = canonical(x.dtype)
    key = _key(sharding, tuple(x.shape), dtype)
    events.happened("transfer", key)
    return wrap(put(x if x.dtype == dtype else x.astype(dtype), key), key)


@lru_cache(maxsize=4096)
def _key(sharding: Sharding, shape: tuple[int, ...], dtype: np.dtype) -> Placed:
    """The dispatch key of such an array that lies so; an error if none can."""
    aval = Aval(shape, dtype)
    sharding.check(aval)
    return Placed(aval, sharding.closed())
