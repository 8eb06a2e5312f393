"""Shardings by the names of the axes of a mesh, and meshes as the places where programs run.

Invariant: a PartitionSpec and its forms for the runtime and the compiler divide arrays alike.
Their answers are decoded to the spec with the fewest axes.
"""

import itertools
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from plait.ext.devices import devices, local, same_devices
from plait.ext.errors import AxisError, PlaitError
from plait.ext.lower import Emitter, IrValue, attr
from plait.ext.types import Aval

from .contexts import MissingMesh, concrete, mesh_here
from .explicit_types import divided_results
from .mesh import AbstractMesh, Mesh, PartitionSpec, in_words
from .placement import Sharding, inside_shard_map, release
from .tilings import DeviceOrder, GSPMDSharding, quoted, spec_text, told_by_one, whole_along

__all__ = ["Grid", "NamedSharding"]


class Grid(NamedTuple):
    """A mesh as the place where a computation runs; the types of its axes do not matter."""

    mesh: Mesh

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grid) and self.mesh.untyped == other.mesh.untyped

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.mesh.untyped)

    def __str__(self) -> str:
        return f"{self.mesh!r} of the devices {in_words(self.mesh.ids)}"

    @property
    def devices(self) -> tuple[int, ...]:
        """The numbers of the devices."""
        return self.mesh.ids

    @property
    def topology(self) -> Any:
        """The topology of the devices; None for devices that processes drive."""
        return self.mesh.topology

    def everywhere(self) -> "NamedSharding":
        """Return the sharding with a whole copy on each device."""
        return NamedSharding(self.mesh, PartitionSpec())

    def placement(
        self, tiles: tuple[tuple[Any, ...], ...] | None, ndim: int
    ) -> "NamedSharding | None":
        """Return the sharding of a result with this tiling; None if no spec expresses it."""
        return _decoded(self.mesh, tiles, ndim)

    def tiled(self, tiles: tuple[tuple[Any, ...], ...], ndim: int) -> GSPMDSharding:
        """Return the sharding of such a result, without names of axes."""
        return DeviceOrder(self.devices, self.topology).tiled(tiles, ndim)

    def once(self, unit: object, operation: object) -> None:
        """Let the first device run an operation, and send the results to the others."""
        told_by_one(unit, operation, self.symbol(unit))

    def is_left(self, bound: Mapping[str, Any]) -> bool:
        """Return whether `shard_map` has left an axis of the mesh, of size above 1, unbound."""
        return any(k > 1 and n not in bound for n, k in self.mesh.shape.items())

    def whole_along(self, e: Emitter, x: IrValue, aval: Aval, axes: Collection[int]) -> Any:
        """Constrain a value to be whole along these axes; leave the others open."""
        return whole_along(e, self.symbol(e.unit), x, aval, axes)

    def symbol(self, unit: Any) -> str:
        """Return the name of the mesh in a module."""
        axes = [f"{quoted(n)}={k}" for n, k in self.mesh.shape.items()]
        text = ", ".join(axes).replace("{", "{{").replace("}", "}}")
        return unit.declare(self, "mesh", f"sdy.mesh @{{}} = <[{text}]>")


@cache
def _decoded(
    mesh: Mesh, tiles: tuple[tuple[Any, ...], ...] | None, ndim: int
) -> "NamedSharding | None":
    if tiles is None:
        return NamedSharding(mesh, PartitionSpec())
    counts, order = tiles
    at = np.empty((len(counts), len(order)), np.int64)  # each device's position along each axis
    at[:, list(order)] = np.indices(counts).reshape(len(counts), -1)
    entries = []
    for k in range(ndim):
        fit = [n for n in _divisions(mesh, counts[k]) if (mesh.coordinates(n) == at[k]).all()]
        if not fit:
            return None
        entries.append(fit[0])
    return NamedSharding(mesh, PartitionSpec(*entries).trimmed)


@cache
def _divisions(mesh: Mesh, pieces: int) -> list[tuple[str, ...]]:
    """Return the ways to divide an axis into `pieces`, those with few mesh axes first."""
    names = [n for n, k in mesh.shape.items() if k > 1]
    return [
        some
        for n in range(len(names) + 1)
        for some in itertools.permutations(names, n)
        if mesh.product(some) == pieces
    ]


class NamedSharding(Sharding):
    """A division over the named axes of a mesh.

    Args:
      mesh: the devices.  An AbstractMesh stands for the mesh in context if that has these axes,
        else for the first devices.
      spec: the mesh axes that each axis of an array is divided over.
      memory_kind: None, or the kind of the devices' default memory, which holds all arrays.

    Raises AxisError if the spec names an axis that the mesh does not have; PlacementError for
    another kind of memory.

    >>> import plait
    >>> plait.NamedSharding(plait.make_mesh((1,), ("x",)), plait.P(None, "x"))
    NamedSharding(mesh=Mesh('x': 1), spec=PartitionSpec(None, 'x'))
    """

    __slots__ = ("mesh", "spec", "explicit", "_divided", "_hash")
    mesh: Mesh
    spec: PartitionSpec
    """The spec as it was given.  Trailing entries of None have no effect, and do not make
    shardings differ; those of arrays lack them, and types have an entry for each axis."""
    explicit: "NamedSharding | None"
    """The part of this sharding that is in the types of arrays, over the explicit axes only; None
    if the mesh has none."""

    def __init__(
        self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None
    ):
        if isinstance(mesh, AbstractMesh) and not mesh.empty:
            mesh = concrete(mesh)
        if not isinstance(mesh, Mesh) or not isinstance(spec, PartitionSpec):
            raise PlaitError(
                f"NamedSharding takes a mesh and a PartitionSpec, not {mesh!r} and {spec!r}",
                fix='write NamedSharding(mesh, P("x"))',
            )
        mesh.check(spec)
        self.mesh, self.spec = mesh, spec
        self._divided = spec.trimmed
        self._hash = hash((mesh, self._divided))
        self.explicit = self._of_types()
        if memory_kind is not None:
            self.with_memory_kind(memory_kind)

    def _of_types(self) -> "NamedSharding | None":
        said = self.mesh.explicit_axes
        if not said:
            return None
        if None not in self.spec.parts and set(self.spec.names) <= set(said):
            return self
        entries = [tuple([n for n in p or () if n in said]) for p in self.spec.parts]
        return NamedSharding(self.mesh, PartitionSpec(*entries))

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
        return self._divided == other._divided and self.mesh == other.mesh

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh!r}, spec={self.spec!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return NamedSharding, (self.mesh, self.spec)

    def untyped(self) -> "NamedSharding":
        """Return the sharding over the same mesh with all axes Auto, which types do not show."""
        return NamedSharding(self.mesh.untyped, self.spec)

    def with_spec(self, spec: Any) -> "NamedSharding":
        """Return the sharding over the same mesh with another PartitionSpec, or a tuple of entries.

        >>> import plait
        >>> plait.NamedSharding(plait.make_mesh((1,), ("x",)), plait.P("x")).with_spec(plait.P())
        NamedSharding(mesh=Mesh('x': 1), spec=PartitionSpec())
        """
        return NamedSharding(
            self.mesh, spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
        )

    def update(self, *, mesh: Any = None, spec: object = None) -> "NamedSharding":
        """Return the sharding with the given arguments replaced.

        >>> import plait
        >>> plait.NamedSharding(plait.make_mesh((1,), ("x",)), plait.P("x")).update(spec=plait.P())
        NamedSharding(mesh=Mesh('x': 1), spec=PartitionSpec())
        """
        there = self if mesh is None else NamedSharding(mesh, PartitionSpec())
        return there.with_spec(self.spec if spec is None else spec)

    @property
    def shortest(self) -> "NamedSharding":
        """The sharding as arrays have it, without entries of None at the end."""
        return self if self._divided is self.spec else NamedSharding(self.mesh, self._divided)

    def of_rank(self, ndim: int) -> "NamedSharding":
        if len(self.spec) == ndim:
            return self
        return NamedSharding(self.mesh, PartitionSpec(*self._divided.full(ndim)))

    def closed(self) -> "NamedSharding":
        if None not in self.spec.parts:
            return self
        return NamedSharding(self.mesh, PartitionSpec(*[p or () for p in self.spec.parts]))

    def admits(self, other: Sharding, ndim: int) -> bool:
        if None not in self.spec.parts:
            return super().admits(other, ndim)
        return same_devices(self.place, other.place)  # the compiler may divide an open axis freely

    def open_at(self, axis: int, ndim: int) -> "NamedSharding":
        open_ = PartitionSpec.UNCONSTRAINED
        entries = [open_ if p is None else p for p in self._divided.full(ndim)]
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
        entries = [open_ if p is None else p for p in self._divided.full(ndim)]
        entries.insert(axis, names)
        return NamedSharding(self.mesh, PartitionSpec(*entries))

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        shape = tuple(aval_shape)
        self.spec.full(len(shape), lambda: f"an array of shape {shape}")
        super().check_compatible_aval(shape)

    def check(self, aval: Aval, said: str = "") -> None:
        words = lambda: said or repr(aval)  # noqa: E731
        piece_shape(self.mesh, aval, self._divided.full(aval.ndim, words), words)

    def check_axes(self, aval: Aval) -> None:
        self._divided.full(aval.ndim, lambda: repr(aval))

    def divides(self, aval: Aval) -> bool:
        """Return whether all pieces have one shape, as pieces of arrays must."""
        parts = self._divided.full(aval.ndim)
        counts = [self.mesh.product(p or ()) for p in parts]
        return all(k == 1 or n % k == 0 for n, k in zip(aval.shape, counts))

    def tiling(self, ndim: int) -> str:
        names = [n for n in self.spec.names if self.mesh.shape[n] > 1]
        if not names:
            return "{replicated}"
        parts = self._divided.full(max(ndim, len(self._divided)))
        rest = [n for n in self.mesh.axis_names if n not in names]
        counts = [self.mesh.product(p or ()) for p in parts]
        copies = self.mesh.product(rest)
        order = ",".join([str(self.mesh.axis_names.index(n)) for n in (*names, *rest)])
        grid = f"<=[{','.join(map(str, self.mesh.axis_sizes))}]"
        turned = f"T({order})" if len(self.mesh.axis_names) > 1 else ""
        dims = ",".join(map(str, [*counts, *([copies] if copies > 1 else [])]))
        last = " last_tile_dim_replicate" if copies > 1 else ""
        return f"{{devices=[{dims}]{grid}{turned}{last}}}"

    def attributes(self, unit: object, ndim: int) -> dict[Any, Any]:
        return {"sdy.sharding": attr("#sdy.sharding" + self._text(unit, ndim))}

    # -- as part of a type (`plait.typeof(x).sharding`) ---------------------------------------

    def entries(self, ndim: int) -> tuple[tuple[str, ...], ...]:
        return tuple([p or () for p in self._divided.full(ndim)])

    def with_entries(self, entries: Any) -> "NamedSharding":
        return NamedSharding(self.mesh, PartitionSpec(*entries))

    def results(self, prim: object, avals: Any, params: Any, outs: Any) -> Any:
        return divided_results(prim, avals, params, outs)

    def release(self, x: object) -> Any:
        return release.bind(x)

    def obeyed(self, e: Any, x: Any, aval: Aval) -> Any:
        """Return `x`, in a module, divided as its type says.

        If the mesh has axes that are not explicit, the compiler may divide it further over these.
        """
        told = e.unit.placements.get(x)
        if told is not None and told.explicit == self:
            return x
        alone = self.mesh.are_all_axes_explicit
        e.unit.run_at(self.place)
        parts = self._divided.full(aval.physical.ndim)
        how = attr("#sdy.sharding" + spec_text(self.place.symbol(e.unit), parts, not alone))
        y = e.op("sdy.sharding_constraint", [x], aval, sharding=how)
        if alone and not e.bound and self.divides(aval):
            e.unit.placements[y] = self
        return y

    def _is_over(self, mesh: Mesh | AbstractMesh) -> bool:
        if isinstance(mesh, AbstractMesh):
            return mesh.shape_tuple == self.mesh.shape_tuple
        return mesh.untyped == self.mesh.untyped

    def _text(self, unit: object, ndim: int) -> str:
        return spec_text(self.place.symbol(unit), self._divided.full(ndim))

    def lowered(self, e: Any, x: Any, aval: Aval) -> Any:
        left = set(self.mesh.axis_names) - e.bound.keys()
        if e.bound and not (left and left.issuperset(self.spec.names)):
            raise inside_shard_map(self)
        if any(not self._is_over(by.mesh) for by in e.bound.values()):
            raise inside_shard_map(self)  # XLA ends the process
        e.unit.run_at(self.place)
        how = attr("#sdy.sharding" + self._text(e.unit, aval.ndim))
        y = e.op("sdy.sharding_constraint", [x], aval, sharding=how)
        if None not in self.spec.parts and not e.bound and self.divides(aval):
            e.unit.placements[y] = self
        return y


def _over_the_mesh(spec: PartitionSpec) -> NamedSharding:
    mesh = mesh_here()
    if mesh is None:
        raise MissingMesh(
            f"{spec!r} was given alone, and no mesh is in context whose axes it could mean",
            fix="write NamedSharding(mesh, spec), or put the mesh in context: with mesh: ...",
        )
    return NamedSharding(mesh, spec)


PartitionSpec.place_by(_over_the_mesh)


def _driver(number: int) -> int | None:
    return None if number in local() else devices()[number].process_index


Mesh.drive_by(_driver)


def piece_shape(
    mesh: Mesh | AbstractMesh,
    aval: Aval,
    parts: tuple[Any, ...],
    said: Callable[..., Any] | None = None,
) -> tuple[Any, ...]:
    """Return the shape of the pieces of an array; AxisError if they would differ in shape.

    `said()` names the array in the message.
    """
    out = []
    for i, (n, names) in enumerate(zip(aval.shape, parts, strict=True)):
        k = mesh.product(names or ())
        if k != 1 and n % k != 0:
            raise AxisError(
                f"axis {i} of {repr(aval) if said is None else said()} cannot be divided in {k} "
                f"equal pieces, over {' and '.join(map(repr, names))} of {mesh!r}",
                fix=f"give it a size that is a multiple of {k}, or divide another axis",
            )
        out.append(n // k if k != 1 else n)
    return tuple(out)
