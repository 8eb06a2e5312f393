"""Shardings, which say where arrays are, and the operation that brings an array to one.

Invariant: a sharding is a value: what the core calls a Placement, part of the dispatch key of the
arrays that lie so.  A Program says nothing of where its operands are; it may say where a value
shall be (`constraint`), which moves data and changes none.
"""

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

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
    move,
    platform,
    put,
)
from plait.ext.errors import (
    AxisError,
    PlaitError,
)
from plait.ext.ir import (
    primitive,
)
from plait.ext.lower import (
    attr,
    bindings,
)
from plait.ext.rules import (
    Linear,
    Structural,
    eager_rules,
    lower_rules,
    physical_rules,
)
from plait.ext.trace import (
    GROUND,
    current,
)
from plait.ext.types import (
    Aval,
)
from plait.ext.values import (
    Array,
    as_value,
    canonical,
    solid,
    wrap,
)

from .contexts import MissingMesh, mesh_here
from .mesh import Mesh, PartitionSpec

__all__ = ["Grid", "NamedSharding", "Sharding", "SingleDeviceSharding", "constraint"]


class Sharding:
    """Where the pieces of an array are, and which device has which.

    `accept` and `constrain` are how `plait.jit` brings arguments and lays out results.
    """

    __slots__ = ()
    place: Any

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

    def check(self, aval: Aval) -> None:
        """AxisError if arrays of this type can not lie so."""

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
    def device_set(self) -> set[Device]:
        """The devices that have a piece."""
        every = devices()
        return {every[i] for i in self.place.devices}

    @property
    def addressable_devices(self) -> set[Device]:
        """Those of them that belong to this process."""
        every = devices()
        return {every[i] for i in self.place.devices if i in local()}

    @property
    def num_devices(self) -> int:
        """How many devices have a piece."""
        return len(self.place.devices)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all of its devices belong to this process."""
        return set(self.place.devices) <= set(local())

    @property
    def memory_kind(self) -> str:
        """The kind of the memory that arrays lie in: the default one of the devices."""
        return devices()[first()].default_memory().kind

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

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, tuple]:
        """The slice of an array of this shape that each device has."""
        every, key = devices(), Placed(Aval(global_shape, np.int8), self)
        self.check(key.aval)
        cut = boxes(layout_of(key), key.aval.shape)
        return {every[i]: box for i, box in zip(self.place.devices, cut, strict=True)}

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, tuple]:
        """The same, of the devices of this process."""
        found, mine = self.devices_indices_map(global_shape), set(local())
        return {d: box for d, box in found.items() if d.id in mine}

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the pieces of an array of this shape."""
        box = next(iter(self.devices_indices_map(global_shape).values()))
        return tuple([s.stop - s.start for s in box])

    def is_equivalent_to(self, other: "Sharding", ndim: int) -> bool:
        """Whether each device has the same piece of every array of `ndim` axes."""
        if self.place.devices != other.place.devices:
            return False
        shape = (len(self.place.devices),) * ndim  # which every division divides
        return self.devices_indices_map(shape) == other.devices_indices_map(shape)


# ---- on one device -------------------------------------------------------------------------


class SingleDeviceSharding(Sharding):
    """Whole, on one device.  It is a place of its own.

    Args:
      device: one of `plait.devices()`, or its number.

    >>> import plait
    >>> plait.SingleDeviceSharding(plait.devices()[0])
    SingleDeviceSharding(device=0)
    """

    __slots__ = ("devices",)
    devices: tuple[int, ...]

    def __init__(self, device: Device | int):
        self.devices = (device.id if isinstance(device, Device) else int(device),)

    @property
    def place(self) -> "SingleDeviceSharding":
        return self

    def __hash__(self) -> int:
        return hash(self.devices)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and self.devices == other.devices

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.devices[0]})"

    def lowered(self, e: Any, x: Any, aval: Aval) -> Any:
        if e.bound:
            raise _inside(self)
        e.unit.run_at(self)
        return x

    # -- Place -----------------------------------------------------------------------------

    def everywhere(self) -> "SingleDeviceSharding":
        """Where arrays of the default place are brought."""
        return self

    def placement(self, tiles: Any, ndim: int) -> "SingleDeviceSharding":
        """Where results are."""
        return self

    def once(self, unit: Any, operation: Any) -> None:
        """One device does everything."""


# ---- on a mesh -----------------------------------------------------------------------------


class Grid(NamedTuple):
    """A mesh, as the place where a computation runs."""

    mesh: Mesh

    def __str__(self) -> str:
        return f"{self.mesh!r} of the devices {list(self.mesh.ids)}"

    @property
    def devices(self) -> tuple[int, ...]:
        """Their numbers."""
        return self.mesh.ids

    def everywhere(self) -> "NamedSharding":
        """A whole copy on each device."""
        return NamedSharding(self.mesh, PartitionSpec())

    def placement(self, tiles: Any, ndim: int) -> "NamedSharding | None":
        """The sharding of a result that is tiled so; None if no PartitionSpec says it."""
        return _decoded(self.mesh, tiles, ndim)

    def once(self, unit: Any, operation: Any) -> None:
        """The first device does it, and tells the others the results."""
        one = unit.declare("one", "one", "sdy.mesh @{} = <[], device_ids=[0]>")
        results = list(operation.results)
        each = ", ".join([f"<@{one}, []>"] * max(1, len(results)))  # also if there are none
        operation.attributes["sdy.sharding"] = attr(f"#sdy.sharding_per_value<[{each}]>")
        m, symbol = bindings(), self.symbol(unit)
        for r in results:
            if r.type == m.token:
                continue
            how = {"sharding": attr("#sdy.sharding" + spec_text(symbol, ((),) * r.type.rank))}
            at = {"loc": m.unknown, "ip": m.ir.InsertionPoint(operation)}
            told = m.create("sdy.sharding_constraint", [r.type], [r], how, **at)
            told.move_after(operation)
            r.replace_all_uses_except(told.result, told)

    def symbol(self, unit: Any) -> str:
        """Its name in a module."""
        axes = [f"{quoted(n)}={k}" for n, k in self.mesh.shape.items()]
        text = ", ".join(axes).replace("{", "{{").replace("}", "}}")
        return unit.declare(self, "mesh", f"sdy.mesh @{{}} = <[{text}]>")


def quoted(name: str) -> str:
    """A name of an axis as MLIR spells it."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def spec_text(symbol: str, parts: tuple, open_: bool = False) -> str:
    """The entries of a full spec as Shardy spells them; `open_` to further axes, all or those
    that are None."""
    each = [[*map(quoted, p or ()), *(["?"] if open_ or p is None else [])] for p in parts]
    return f"<@{symbol}, [{', '.join(['{' + ', '.join(names) + '}' for names in each])}]>"


@cache
def _decoded(mesh: Mesh, tiles: Any, ndim: int) -> "NamedSharding | None":
    if tiles is None:
        return NamedSharding(mesh, PartitionSpec())
    counts, order = tiles
    at = np.empty((len(counts), len(order)), np.int64)  # each device's place along each axis
    at[:, list(order)] = np.indices(counts).reshape(len(counts), -1)
    entries = []
    for k in range(ndim):
        fit = [n for n in _divisions(mesh, counts[k]) if (mesh.coordinates(n) == at[k]).all()]
        if not fit:
            return None
        entries.append(fit[0])
    return NamedSharding(mesh, PartitionSpec(*entries))


@cache
def _divisions(mesh: Mesh, pieces: int) -> list[tuple[str, ...]]:
    """The ways to divide an axis in so many pieces, those of few mesh axes first."""
    names = [n for n, k in mesh.shape.items() if k > 1]
    return [
        some
        for n in range(len(names) + 1)
        for some in itertools.permutations(names, n)
        if mesh.product(some) == pieces
    ]


class NamedSharding(Sharding):
    """Divided over the named axes of a mesh.

    Args:
      mesh: the devices.
      spec: which mesh axes each axis of an array is divided over.

    Raises AxisError if the spec names an axis that the mesh does not have.

    >>> import plait
    >>> plait.NamedSharding(plait.make_mesh((1,), ("x",)), plait.P(None, "x"))
    NamedSharding(mesh=Mesh('x': 1), spec=PartitionSpec(None, 'x'))
    """

    __slots__ = ("mesh", "spec", "_hash")
    mesh: Mesh
    spec: PartitionSpec

    def __init__(self, mesh: Mesh, spec: PartitionSpec):
        if not isinstance(mesh, Mesh) or not isinstance(spec, PartitionSpec):
            raise PlaitError(
                f"NamedSharding takes a mesh and a PartitionSpec, not {mesh!r} and {spec!r}",
                fix='write NamedSharding(mesh, P("x"))',
            )
        mesh.check(spec)
        entries = list(spec)
        while entries and entries[-1] is None:  # says nothing, and must not tell layouts apart
            entries.pop()
        self.mesh = mesh
        self.spec = spec if len(entries) == len(spec) else PartitionSpec(*entries)
        self._hash = hash((mesh, self.spec))

    @property
    def place(self) -> Grid:
        return Grid(self.mesh)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, NamedSharding) or self._hash != other._hash:
            return False
        return self.spec == other.spec and self.mesh == other.mesh

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh!r}, spec={self.spec!r})"

    def __reduce__(self):
        return NamedSharding, (self.mesh, self.spec)

    def with_spec(self, spec: Any) -> "NamedSharding":
        """The sharding over the same mesh with another PartitionSpec, or its entries in a tuple.

        >>> import plait
        >>> plait.NamedSharding(plait.make_mesh((1,), ("x",)), plait.P("x")).with_spec(plait.P())
        NamedSharding(mesh=Mesh('x': 1), spec=PartitionSpec())
        """
        return NamedSharding(
            self.mesh, spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
        )

    def closed(self) -> "NamedSharding":
        if None not in self.spec.parts:
            return self
        return NamedSharding(self.mesh, PartitionSpec(*[p or () for p in self.spec.parts]))

    def admits(self, other: Sharding, ndim: int) -> bool:
        if None not in self.spec.parts:
            return super().admits(other, ndim)
        return self.place.devices == other.place.devices  # an open axis may be divided anyhow

    def open_at(self, axis: int, ndim: int) -> "NamedSharding":
        open_ = PartitionSpec.UNCONSTRAINED
        entries = [open_ if p is None else p for p in self.spec.full(ndim)]
        entries.insert(axis, open_)
        return NamedSharding(self.mesh, PartitionSpec(*entries))

    def divided_at(self, axis: int, ndim: int, names: tuple[str, ...]) -> "NamedSharding":
        taken = [n for n in names if n in self.spec.names]
        if taken:
            raise AxisError(
                f"the mapped axis is divided over {taken[0]!r} (spmd_axis_name), and so is an axis "
                f"of its elements, by {self.spec!r}",
                fix="leave that name out of one of them",
            )
        open_ = PartitionSpec.UNCONSTRAINED
        entries = [open_ if p is None else p for p in self.spec.full(ndim)]
        entries.insert(axis, names)
        return NamedSharding(self.mesh, PartitionSpec(*entries))

    def check(self, aval: Aval) -> None:
        piece_shape(self.mesh, aval, self.spec.full(aval.ndim, lambda: repr(aval)))

    def check_axes(self, aval: Aval) -> None:
        self.spec.full(aval.ndim, lambda: repr(aval))

    def _divides(self, aval: Aval) -> bool:
        """Whether all pieces have one shape, as those of arrays have."""
        parts = self.spec.full(aval.ndim)
        counts = [self.mesh.product(p or ()) for p in parts]
        return all(k == 1 or n % k == 0 for n, k in zip(aval.shape, counts))

    def tiling(self, ndim: int) -> str:
        names = [n for n in self.spec.names if self.mesh.shape[n] > 1]
        if not names:
            return "{replicated}"
        parts = self.spec.full(max(ndim, len(self.spec)))
        rest = [n for n in self.mesh.axis_names if n not in names]
        counts = [self.mesh.product(p or ()) for p in parts]
        copies = self.mesh.product(rest)
        order = ",".join([str(self.mesh.axis_names.index(n)) for n in (*names, *rest)])
        grid = f"<=[{','.join(map(str, self.mesh.axis_sizes))}]"
        turned = f"T({order})" if len(self.mesh.axis_names) > 1 else ""
        dims = ",".join(map(str, [*counts, *([copies] if copies > 1 else [])]))
        last = " last_tile_dim_replicate" if copies > 1 else ""
        return f"{{devices=[{dims}]{grid}{turned}{last}}}"

    def attributes(self, unit: Any, ndim: int) -> dict:
        return {"sdy.sharding": attr("#sdy.sharding" + self._text(unit, ndim))}

    def _text(self, unit: Any, ndim: int) -> str:
        return spec_text(self.place.symbol(unit), self.spec.full(ndim))

    def lowered(self, e: Any, x: Any, aval: Aval) -> Any:
        left = set(self.mesh.axis_names) - e.bound.keys()
        if e.bound and not (left and left.issuperset(self.spec.names)):
            raise _inside(self)
        e.unit.run_at(self.place)
        how = attr("#sdy.sharding" + self._text(e.unit, aval.ndim))
        y = e.op("sdy.sharding_constraint", [x], aval, sharding=how)
        if None not in self.spec.parts and not e.bound and self._divides(aval):
            e.unit.placements[y] = self
        return y


def _over_the_mesh(spec: PartitionSpec) -> NamedSharding:
    mesh = mesh_here()
    if mesh is None:
        raise MissingMesh(
            f"pjit requires a non-empty mesh! {spec!r} was given alone, and no mesh is set whose "
            "axes it could mean. Alternatively, provide a Sharding to pjit and then the mesh "
            "context manager is not required.",
            fix="write NamedSharding(mesh, spec), or put the mesh in context: with mesh: ...",
        )
    return NamedSharding(mesh, spec)


PartitionSpec.place_by(_over_the_mesh)


def _driver(number: int) -> int | None:
    return None if number in local() else devices()[number].process_index


Mesh.drive_by(_driver)


def _inside(sharding: Sharding) -> PlaitError:
    return PlaitError(
        f"{sharding!r} is asked for inside shard_map, where each device has its own piece",
        fix="constrain the operands or results of shard_map instead",
    )


def piece_shape(mesh: Mesh, aval: Aval, parts: tuple, said: Callable | None = None) -> tuple:
    """The shape of the pieces of an array divided so; AxisError if they would differ.

    `said()` is the array in words.
    """
    out = []
    for i, (n, names) in enumerate(zip(aval.shape, parts, strict=True)):
        k = mesh.product(names or ())
        if k != 1 and n % k != 0:
            raise AxisError(
                f"axis {i} of {repr(aval) if said is None else said()} can not be divided in {k} "
                f"equal pieces, over {' and '.join(map(repr, names))} of {mesh!r}",
                fix=f"give it a size that is a multiple of {k}, or divide another axis",
            )
        out.append(n // k if k != 1 else n)
    return tuple(out)


# ---- bringing arrays there -----------------------------------------------------------------


@primitive("sharding.constraint", traits=(Linear, Structural))
def constraint(x: Aval, *, sharding: Sharding) -> Aval:
    """`x`, to lie as the sharding says; the compiler also divides what does not divide evenly."""
    sharding.check_axes(x)
    return x


@lower_rules.rule(constraint)
def _(e: Any, xs: Any, ins: Any, outs: Any, sharding: Sharding) -> Any:
    return sharding.lowered(e, xs[0], outs[0])


@physical_rules.rule(constraint)
def _(tail: tuple, xs: Any, sharding: Sharding) -> Any:
    return constraint.bind(*xs, sharding=sharding)  # which says nothing of the axes of an element


@eager_rules.rule(constraint)
def _(args: Any, params: dict[str, Any]) -> Array | None:
    """Between places, or on the host, where that is all one memory; else the compiler does it."""
    x, sharding = solid(args[0]), params["sharding"]
    have = x.key.placement
    if have == sharding:
        return x
    sharding.check(x.aval)
    key = Placed(x.aval, sharding.closed())
    here = (first(),) if have is None else have.place.devices
    if here == sharding.place.devices:
        if len(here) == 1:
            return wrap(x.buffer(), key)
        if platform() != "cpu" or not sharding.is_fully_addressable:
            return None
    events.happened("transfer", key)
    return wrap(move(x.buffer(), key), key)


def from_host(x: Any, sharding: Sharding) -> Array:
    """A copy of a numpy array, or of what gives its slices, piece by piece, without a detour over
    the default device."""
    aval = Aval(x.shape, canonical(x.dtype))
    sharding.check(aval)
    key = Placed(aval, sharding.closed())
    events.happened("transfer", key)
    return wrap(put(x.astype(aval.dtype, copy=False), key), key)
