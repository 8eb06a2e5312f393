"""Meshes and partition specs: devices with named axes, and axes of arrays divided over them.

A `Mesh` is an array of devices whose axes have names.  A `PartitionSpec` gives, for each axis of
an array, the mesh axes that it is divided over.

Invariant: these are values, hashable and compared by content; they hold names and numbers only,
and depend neither on the types of arrays nor on the compiler.
"""

import math
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache, wraps
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from plait.ext.errors import AxisError, PlaitError

__all__ = ["AbstractMesh", "AxisType", "Mesh", "P", "PartitionSpec"]

F = TypeVar("F", bound=Callable[..., Any])
Names = tuple[str, ...]
Parts = tuple[Names | None, ...]
"""For each axis of an array, the names it is divided over; None leaves that to the compiler."""


class Unconstrained:
    """The entry of a PartitionSpec that leaves an axis to the compiler."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"


class PartitionSpec:
    """For each axis of an array, the mesh axes it is divided over.

    Args:
      entries: a name; a tuple of names, whose first varies slowest; None for an axis that is not
        divided; `PartitionSpec.UNCONSTRAINED`, in constraints, for one that the compiler may
        divide.  Axes without an entry are not divided.
      unreduced, reduced: must be empty; other libraries name here the axes of a sum that is
        pending, or done.

    Raises AxisError for other entries, and for a name that occurs twice; PlaitError for pending
    sums.

    >>> import plait
    >>> plait.P("rows", None, ("x", "y"))
    PartitionSpec('rows', None, ('x', 'y'))
    """

    __slots__ = ("parts",)
    parts: Parts
    UNCONSTRAINED = Unconstrained()
    _placed: ClassVar[Callable[["PartitionSpec"], Any]]

    def __init__(self, *entries: object, unreduced: object = (), reduced: object = ()):
        self.parts = tuple([_names_of(e) for e in entries])
        if unreduced or reduced:
            raise PlaitError(
                f"{self!r} was to be {'un' if unreduced else ''}reduced along "
                f"{unreduced or reduced!r}: no type here tells of sums that are not done",
                fix="do the sum where its terms are: lax.psum in shard_map, or leave it to jit",
            )
        used = [n for p in self.parts for n in p or ()]
        twice = sorted({n for n in used if used.count(n) > 1})
        if twice:
            raise AxisError(
                f"{self!r} divides by the mesh axis {twice[0]!r} twice",
                fix="name each mesh axis once in a PartitionSpec",
            )

    def __iter__(self) -> Iterator[Any]:
        return map(_entry_of, self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, index: Any) -> Any:
        return tuple(self)[index]

    def __add__(self, other: object) -> "PartitionSpec":
        """Return the spec with further entries: those of another spec, or of a tuple."""
        if not isinstance(other, PartitionSpec | tuple):
            return NotImplemented
        return PartitionSpec(*self, *other)

    def __radd__(self, other: object) -> "PartitionSpec":
        return PartitionSpec(*other, *self) if isinstance(other, tuple) else NotImplemented

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The entries."""
        return tuple(self)

    @property
    def unreduced(self) -> frozenset[str]:
        """The axes of pending sums: none."""
        return frozenset()

    reduced = unreduced

    def update(
        self, partitions: Any = None, unreduced: Any = None, reduced: Any = None
    ) -> "PartitionSpec":
        """Return the spec with other entries."""
        entries = self if partitions is None else partitions
        return PartitionSpec(*entries, unreduced=unreduced or (), reduced=reduced or ())

    def index(self, entry: object) -> int:
        """Return the first axis with this entry; ValueError if there is none."""
        return tuple(self).index(entry)

    def count(self, entry: object) -> int:
        """Return the number of axes with this entry."""
        return tuple(self).count(entry)

    def __hash__(self) -> int:
        return hash(self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self.parts == other.parts

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self))})"

    def __reduce__(self) -> tuple[object, ...]:
        return PartitionSpec, tuple(self)

    # -- alone, with a mesh in context ------------------------------------------------------

    @classmethod
    def place_by(cls, placed: Callable[["PartitionSpec"], Any]) -> None:
        """Register `placed(spec)`, which returns the sharding of a spec by the mesh in context."""
        cls._placed = placed

    def here(self) -> Any:
        """Return the sharding over the mesh in context (`with mesh:`); MissingMesh without one."""
        return PartitionSpec._placed(self)

    def accept(self, x: object) -> Any:
        """Return `x` with this sharding over the mesh in context."""
        return self.here().accept(x)

    def constrain(self, x: object) -> Any:
        """Return `x`, a traced value, constrained to this sharding over the mesh in context."""
        return self.here().constrain(x)

    @property
    def names(self) -> Names:
        """All mesh axes that it divides by."""
        return tuple([n for p in self.parts for n in p or ()])

    @property
    def trimmed(self) -> "PartitionSpec":
        """The spec without its trailing entries of None, which have no effect."""
        last = max([i for i, p in enumerate(self.parts) if p != ()], default=-1)
        return self if last + 1 == len(self) else PartitionSpec(*tuple(self)[: last + 1])

    def full(self, ndim: int, said: Callable[[], str] = lambda: "the array") -> Parts:
        """Return an entry for every axis of an array with `ndim` axes.

        Raises AxisError if the spec has more; the message names the array by `said()`.
        """
        if len(self.parts) > ndim:
            raise AxisError(
                f"{self!r} has {len(self.parts)} entries, and {said()} has {ndim} axes",
                fix=f"give at most one entry per axis: {PartitionSpec(*self.parts[:ndim])!r}",
            )
        return (*self.parts, *[()] * (ndim - len(self.parts)))


P = PartitionSpec


def _names_of(entry: object) -> Names | None:
    if entry is None:
        return ()
    if isinstance(entry, str):
        return (entry,)
    if isinstance(entry, Unconstrained):
        return None
    if isinstance(entry, tuple | list) and all(isinstance(n, str) for n in entry):
        return tuple(entry)
    raise AxisError(
        f"{entry!r} is not an entry of a PartitionSpec",
        fix='write a name, a tuple of names or None, for instance P("x", None)',
    )


def _entry_of(names: Names | None) -> Any:
    if names is None:
        return PartitionSpec.UNCONSTRAINED
    return names if len(names) > 1 else names[0] if names else None


class AxisType(Enum):
    """The way in which values are divided over an axis of a mesh.

    `Auto`, the default: the compiler decides, guided by shardings of operands and by constraints.
    `Explicit`: types give the division of every value (`plait.typeof(x).sharding`).
    `Manual`: the program decides, inside `shard_map`, which makes its axes Manual.
    """

    Auto = "Auto"
    Explicit = "Explicit"
    Manual = "Manual"


def _types_of(axis_types: Any, names: Sequence[str]) -> tuple[AxisType, ...]:
    """Return the type of each axis from a user's `axis_types`; AxisError for other values."""
    if axis_types is None:
        return (AxisType.Auto,) * len(names)
    one = not isinstance(axis_types, tuple | list)
    given = (axis_types,) * len(names) if one else tuple(axis_types)
    known = [getattr(t, "name", t) for t in given]
    wrong = [t for t, name in zip(given, known) if name not in AxisType.__members__]
    if wrong:
        raise AxisError(
            f"{wrong[0]!r} is not a type of an axis of a mesh",
            fix="write AxisType.Explicit, AxisType.Auto or AxisType.Manual",
        )
    if len(known) != len(names):
        raise AxisError(
            f"axis_types has {len(known)} entries ({', '.join(known)}), and the mesh has the "
            f"{len(names)} axes {', '.join(map(repr, names)) or '()'}",
            fix="give one type for each axis, or a single one for all",
        )
    return tuple([AxisType[name] for name in known])


class FixedAttribute(PlaitError, AttributeError):
    """A part of a mesh was assigned to, which never changes."""


class _Axes:
    """Axes with names and sizes."""

    __slots__ = ()
    axis_names: Names
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]

    def __setattr__(self, name: str, value: Any) -> None:
        # Keys of caches hold meshes, by their hash.
        if hasattr(self, name):
            raise FixedAttribute(f"{name} of {self!r} cannot be changed", fix="make another mesh")
        object.__setattr__(self, name, value)

    @property
    def shape(self) -> "OrderedDict[str, int]":
        """The size of each axis, by name, in order."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[str, int], ...]:
        """(name, size) of each axis, in order."""
        return tuple(zip(self.axis_names, self.axis_sizes))

    def _of_type(self, kind: AxisType) -> Names:
        return tuple([n for n, t in zip(self.axis_names, self.axis_types) if t is kind])

    @property
    def explicit_axes(self) -> Names:
        """The names of the axes whose division is part of the types of values."""
        return self._of_type(AxisType.Explicit)

    @property
    def auto_axes(self) -> Names:
        """The names of the axes that are left to the compiler."""
        return self._of_type(AxisType.Auto)

    @property
    def manual_axes(self) -> Names:
        """The names of the axes that a surrounding `shard_map` has divided."""
        return self._of_type(AxisType.Manual)

    @property
    def are_all_axes_explicit(self) -> bool:
        """True if all axes are Explicit."""
        return all(t is AxisType.Explicit for t in self.axis_types)

    @property
    def are_all_axes_auto(self) -> bool:
        """True if all axes are Auto."""
        return all(t is AxisType.Auto for t in self.axis_types)

    @property
    def are_all_axes_manual(self) -> bool:
        """True if there are axes, and all are Manual."""
        return bool(self.axis_types) and all(t is AxisType.Manual for t in self.axis_types)

    def _said(self) -> str:
        """Return the names and sizes, and the types if they are not all Auto."""
        text = ", ".join([f"{n!r}: {k}" for n, k in self.shape_tuple])
        if self.are_all_axes_auto:
            return text
        kinds = [t.name for t in self.axis_types]
        return f"{text}, axis_types=({', '.join(kinds)}{',' if len(kinds) == 1 else ''})"

    @property
    def size(self) -> int:
        """The number of devices along all axes together."""
        return math.prod(self.axis_sizes)

    def typed(self, axes: Iterable[str], kind: AxisType) -> Any:
        """Return the mesh with the named axes changed to this type."""
        old = self.axis_types
        types = tuple([kind if n in axes else t for n, t in zip(self.axis_names, old)])
        return self if types == old else self._retyped(types)

    def like(self, other: "_Axes") -> Any:
        """Return the mesh with the types of the axes of another mesh with the same axes."""
        same = self.axis_types == other.axis_types
        return self if same else self._retyped(other.axis_types)

    @abstractmethod
    def _retyped(self, types: tuple[AxisType, ...]) -> Any:
        """Return the mesh with these types of axes."""

    # -- for partition specs ---------------------------------------------------------------

    def product(self, names: Iterable[str]) -> int:
        """Return the number of pieces that a division over these axes makes."""
        out = 1
        for n in names:
            out *= self.axis_sizes[self.axis_names.index(n)]
        return out

    def check(self, spec: PartitionSpec) -> None:
        """Raise AxisError if the spec names an axis that the mesh does not have."""
        for n in spec.names:
            if n not in self.axis_names:
                raise AxisError(
                    f"{spec!r} names the axis {n!r}, which {self!r} does not have",
                    fix=f"name axes of the mesh: {', '.join(map(repr, self.axis_names)) or 'none'}",
                )


class Mesh(_Axes):
    """An array of devices whose axes have names.

    Args:
      devices: an array, or nested lists, of devices (`plait.devices()`) or of their numbers.  Or
        devices of one topology (`plait.sharding.topologies`), to compile for.
      axis_names: a name for each axis of the array.
      axis_types: an `AxisType` for each axis, or one for all; `Auto` by default.

    Raises AxisError if there is not one name and one type per axis, if a name or device occurs
    twice, or if devices are of several topologies.

    >>> import plait
    >>> mesh = plait.Mesh([plait.devices()[:1]], ("x", "y"))
    >>> mesh, mesh.size, mesh.shape["y"]
    (Mesh('x': 1, 'y': 1), 1, 1)

    `with mesh:` puts it in context: PartitionSpecs alone then refer to its axes; see `set_mesh`.
    """

    __slots__ = (
        "devices", "axis_names", "axis_sizes", "axis_types", "ids", "topology", "_untyped", "_key",
        "_hash",
    )  # fmt: skip
    _push: ClassVar[Callable[[Any, "Mesh"], None]]
    _remove: ClassVar[Callable[[Any], None]]
    _html: ClassVar[Callable[["Mesh"], str | None]]
    _driver: ClassVar[Callable[[int], int | None]]
    devices: np.ndarray[Any, Any]
    ids: tuple[int, ...]
    topology: Any
    """The topology of its devices; None for devices that processes drive."""
    _untyped: "Mesh | None"
    """The mesh `untyped`; None if that is this one: a mesh that held itself would be a cycle."""

    def __init__(self, devices: Any, axis_names: str | Sequence[str], axis_types: object = None):
        grid = np.array(devices, dtype=object)  # a copy, since a mesh must not change
        grid.flags.writeable = False
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if grid.ndim != len(names):
            raise AxisError(
                f"a mesh of devices of shape {grid.shape} has {grid.ndim} axes, and the names "
                f"{names} are {len(names)}",
                fix="reshape the devices, or give one name per axis",
            )
        if not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
            raise AxisError(
                f"the names of the axes of a mesh must be different strings, not {names}",
                fix='write for instance Mesh(devices, ("x", "y"))',
            )
        if not grid.size:
            raise AxisError(
                f"a mesh of shape {grid.shape} has no devices",
                fix="give one device at least; plait.make_mesh(sizes, names) takes the first ones",
            )
        topology, ids = _topology(grid), _numbers(devices, grid)
        if len(set(ids)) < len(ids):
            raise AxisError(
                f"a mesh needs each of its devices once, and has {list(ids)}",
                fix="plait.make_mesh(sizes, names) takes the first devices",
            )
        self.devices, self.axis_names, self.axis_sizes = grid, names, grid.shape
        self.axis_types = _types_of(axis_types, names)
        self.ids, self.topology = ids, topology
        self._settle()

    def _settle(self) -> None:
        """Compute the key, the hash and `untyped` from devices, names and types."""
        self._key = self.ids, self.axis_sizes, self.axis_names, self.axis_types, self.topology
        self._hash = hash(self._key)
        auto = (AxisType.Auto,) * len(self.axis_names)
        self._untyped = None if self.axis_types == auto else self._retyped(auto)

    @property
    def untyped(self) -> "Mesh":
        """The same mesh with all axes Auto, which the compiler sees."""
        return self if self._untyped is None else self._untyped

    def _retyped(self, types: tuple[AxisType, ...]) -> "Mesh":
        """Return the mesh with these types of axes, without checks or work per device."""
        made = object.__new__(Mesh)
        for name in ("devices", "ids", "topology", "axis_names", "axis_sizes"):
            setattr(made, name, getattr(self, name))
        made.axis_types = types
        made._settle()
        return made

    @property
    def empty(self) -> bool:
        """False: a mesh has at least one device."""
        return False

    @property
    def is_multi_process(self) -> bool:
        """True if its devices belong to several processes."""
        if self.topology is not None:
            return len({d.process_index for d in self.devices.flat}) > 1
        return len({Mesh._driver(n) for n in self.ids}) > 1

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process, in order, in the form in which they were given (devices or
        numbers)."""
        return [d for d in self.devices.flat if self._is_here(_number(d))]

    def _is_here(self, number: int) -> bool:
        """Return whether this process drives a device."""
        return self.topology is None and Mesh._driver(number) is None

    @property
    def local_mesh(self) -> "Mesh":
        """The mesh of the devices of this process; the mesh itself if it has no others.

        Raises AxisError if these devices do not form a block of the mesh.
        """
        here = np.array([self._is_here(n) for n in self.ids]).reshape(self.axis_sizes)
        if here.all():
            return self
        where = np.nonzero(here)
        box = tuple([slice(k.min(), k.max() + 1) if k.size else slice(0) for k in where])
        if not here.any():
            raise AxisError(
                f"no device of {self!r} belongs to this process",
                fix="make the mesh of devices of all processes that ask for their part of it",
            )
        if not here[box].all():
            raise AxisError(
                f"the devices of this process are not a block of {self!r}, but those at "
                f"{np.argwhere(here).tolist()}",
                fix="make the mesh of plait.devices() in their order, or ask for `local_devices`",
            )
        return Mesh(self.devices[box], self.axis_names, self.axis_types)

    @property
    def abstract_mesh(self) -> "AbstractMesh":
        """Its axes without the devices.

        >>> import plait
        >>> plait.make_mesh((1, 1), ("x", "y")).abstract_mesh
        AbstractMesh('x': 1, 'y': 1)
        """
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)

    def update(
        self, devices: object = None, axis_names: Any = None, axis_types: object = None
    ) -> "Mesh":
        """Return a mesh with the given arguments replaced.

        >>> import plait
        >>> plait.make_mesh((1,), ("x",)).update(axis_names=("y",))
        Mesh('y': 1)
        """
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The numbers of the devices, in the shape of the mesh."""
        return np.array(self.ids).reshape(self.axis_sizes)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Mesh) and self._key == other._key)

    def __repr__(self) -> str:
        return f"Mesh({self._said()})"

    def __reduce__(self) -> tuple[object, ...]:
        devices = self.device_ids if self.topology is None else self.devices
        return Mesh, (devices, self.axis_names, self.axis_types)

    @classmethod
    def enter_by(cls, push: Callable[[Any, "Mesh"], None], remove: Callable[[Any], None]) -> None:
        """Register the functions of `with mesh:`: `push(mesh, mesh)` begins it, `remove(mesh)` ends
        it."""
        cls._push, cls._remove = staticmethod(push), staticmethod(remove)

    @classmethod
    def drive_by(cls, driver: Callable[[int], int | None]) -> None:
        """Register `driver(number)`: the other process that drives a device, None for this one."""
        cls._driver = staticmethod(driver)

    def __enter__(self) -> "Mesh":
        """Put the mesh in context: PartitionSpecs alone refer to its axes in the block."""
        Mesh._push(self, self)
        return self

    def __exit__(self, *error: object) -> None:
        Mesh._remove(self)

    def __call__(self, f: F) -> F:
        """Return `f` with the mesh in context whenever it is called (a decorator)."""

        @wraps(f)
        def inside(*args: Any, **kwargs: object) -> Any:
            with self:
                return f(*args, **kwargs)

        return cast(F, inside)

    @classmethod
    def draw_by(cls, html: Callable[["Mesh"], str | None]) -> None:
        """Register `html(mesh)`, which draws meshes in notebooks."""
        cls._html = staticmethod(html)

    def _repr_html_(self) -> str | None:
        return Mesh._html(self)

    # -- for collectives -------------------------------------------------------------------

    def coordinates(self, names: Sequence[str]) -> np.ndarray[Any, Any]:
        """Return each device's position along these axes together, the first slowest."""
        return _coordinates(self, tuple(names))

    def groups(self, names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """Return the groups of devices that differ along these axes only.

        Devices are given by their position in the mesh, in the order of their positions along
        these axes.
        """
        return _groups(self, tuple(names))


class AbstractMesh(_Axes):
    """The axes of a mesh without devices, for code that needs only names and sizes.

    Args:
      axis_sizes: the size of each axis.
      axis_names: the name of each axis.
      axis_types: an `AxisType` for each axis, or one for all; `Auto` by default.

    Raises AxisError if the number of names or types differs from that of sizes, or if a name occurs
    twice.

    >>> import plait
    >>> plait.sharding.AbstractMesh((2, 4), ("x", "y")).shape["y"]
    4
    """

    __slots__ = ("axis_names", "axis_sizes", "axis_types")

    def __init__(self, axis_sizes: Any, axis_names: str | Sequence[str], axis_types: object = None):
        sizes = tuple([int(n) for n in axis_sizes])
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if len(names) != len(sizes) or len(set(names)) < len(names):
            raise AxisError(
                f"the axes of a mesh have a size and a name of its own each, and not the sizes "
                f"{sizes} and the names {names}",
                fix='write for instance AbstractMesh((2, 4), ("x", "y"))',
            )
        self.axis_names, self.axis_sizes = names, sizes
        self.axis_types = _types_of(axis_types, names)

    @property
    def size(self) -> int:
        """The number of devices along all axes together; 0 for a mesh without axes."""
        return super().size if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """True if it has no axes, or no devices."""
        return not self.size

    def update(
        self, axis_sizes: Any = None, axis_names: Any = None, axis_types: object = None
    ) -> "AbstractMesh":
        """Return a mesh with the given arguments replaced.

        >>> import plait
        >>> plait.sharding.AbstractMesh((2, 4), ("x", "y")).update(axis_sizes=(4, 2))
        AbstractMesh('x': 4, 'y': 2)
        """
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def update_axis_types(self, name_to_type: Mapping[str, AxisType]) -> "AbstractMesh":
        """Return the mesh with the types of some axes, given by name, replaced.

        Raises AxisError if the mesh has no axis of such a name.

        >>> import plait
        >>> from plait.sharding import AbstractMesh, AxisType
        >>> AbstractMesh((2, 4), ("x", "y")).update_axis_types({"y": AxisType.Explicit}).axis_types
        (<AxisType.Auto: 1>, <AxisType.Explicit: 2>)
        """
        for name in name_to_type:
            if name not in self.axis_names:
                raise AxisError(
                    f"the mesh has no axis {name!r}", fix=f"its axes are {self.axis_names}"
                )
        kinds = zip(self.axis_names, self.axis_types)
        return self.update(axis_types=tuple([name_to_type.get(n, t) for n, t in kinds]))

    def of_first_devices(self) -> Mesh:
        """Return the mesh with these axes of the devices 0, 1, 2, ..., which need not exist.

        >>> import plait
        >>> plait.sharding.AbstractMesh((1, 4096), ("x", "y")).of_first_devices()
        Mesh('x': 1, 'y': 4096)
        """
        grid = np.arange(math.prod(self.axis_sizes)).reshape(self.axis_sizes)
        return Mesh(grid, self.axis_names, self.axis_types)

    def on(self, place: Any) -> Mesh:
        """Return the mesh with these axes of the devices of a place, in their order.

        The first devices are used if `place` is None or has another number of devices.
        """
        if place is None or len(place.devices) != self.size:
            return self.of_first_devices()
        mesh = getattr(place, "mesh", None)
        devices = np.array(place.devices) if mesh is None else mesh.devices
        return Mesh(devices.reshape(self.axis_sizes), self.axis_names, self.axis_types)

    def _retyped(self, types: tuple[AxisType, ...]) -> "AbstractMesh":
        return AbstractMesh(self.axis_sizes, self.axis_names, types)

    def __hash__(self) -> int:
        return hash((self.shape_tuple, self.axis_types))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AbstractMesh):
            return False
        return self.shape_tuple == other.shape_tuple and self.axis_types == other.axis_types

    def __repr__(self) -> str:
        return f"AbstractMesh({self._said()})"

    def __reduce__(self) -> tuple[object, ...]:
        return AbstractMesh, (self.axis_sizes, self.axis_names, self.axis_types)


def in_words(numbers: Sequence[int]) -> str:
    """Return the numbers of devices for a message, abridged beyond 16."""
    if len(numbers) <= 16:
        return str(list(numbers))
    first, last = numbers[0], numbers[-1]
    return f"[{first}, {numbers[1]}, ..., {last}]"


def _numbers(
    given: np.ndarray[Any, Any] | list[Any], grid: np.ndarray[Any, Any]
) -> tuple[int, ...]:
    """Return the numbers of devices; an array of integers is taken without a call per device."""
    if isinstance(given, np.ndarray) and given.dtype.kind in "iu" and given.size:
        if given.min() >= 0:
            return tuple(given.ravel().tolist())
    return tuple([_number(d) for d in grid.flat])


def _number(device: object) -> int:
    number = getattr(device, "id", device)
    if isinstance(number, int | np.integer) and not isinstance(number, bool) and number >= 0:
        return int(number)
    raise AxisError(
        f"{device!r} is not a device", fix="give plait.devices(), or the numbers of devices"
    )


def _topology(devices: np.ndarray[Any, Any]) -> Any:
    """Return the topology of these devices or numbers; AxisError if there are several."""
    found = {getattr(d, "topology", None) for d in devices.flat}
    if len(found) > 1:
        said = " and ".join(sorted(["this process" if t is None else repr(t) for t in found]))
        raise AxisError(
            f"the devices of a mesh are of {said}",
            fix="make a mesh of plait.devices(), or one of the devices of one topology",
        )
    return found.pop()


@cache
def _coordinates(mesh: Mesh, names: Names) -> np.ndarray[Any, Any]:
    """Compute `Mesh.coordinates`, once per mesh and names."""
    out = np.zeros(mesh.size, np.int64)
    where = np.indices(mesh.axis_sizes).reshape(len(mesh.axis_sizes), mesh.size)
    for n in names:
        k = mesh.axis_names.index(n)
        out = out * mesh.axis_sizes[k] + where[k]
    return out


@cache
def _groups(mesh: Mesh, names: Names) -> tuple[tuple[int, ...], ...]:
    """Compute `Mesh.groups`, once per mesh and names."""
    others = [n for n in mesh.axis_names if n not in names]
    table = np.empty((mesh.product(others), mesh.product(names)), int)
    # A row has the devices that agree along the other axes, in order along these.
    table[_coordinates(mesh, tuple(others)), _coordinates(mesh, names)] = np.arange(mesh.size)
    return tuple(map(tuple, table.tolist()))
