"""device_put and the `sharding` of arrays: moving arrays to devices, and finding their place.

Invariant: moving never changes values.  `device_put` returns new memory unless it may alias.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from plait import config
from plait.ext import materialise_at_ground
from plait.ext.devices import Device, Placed, boxes, devices, first, layout_of, local, move
from plait.ext.errors import ArgumentError, AxisError, OperandTypeError
from plait.ext.surface import placed_by_default
from plait.ext.trace import GROUND, Value, arguments, current
from plait.ext.transfers import explicit
from plait.ext.tree import each_leaf, flatten, spread
from plait.ext.values import Array, as_argument, as_value, wrap

from .contexts import mesh_here, mesh_inside, push, remove, replace_top
from .mesh import AbstractMesh, Mesh, PartitionSpec
from .placement import Sharding, SingleDeviceSharding, constraint, from_host

T = TypeVar("T")

__all__ = [
    "Shard", "device_put", "get_abstract_mesh", "get_mesh", "make_mesh", "set_mesh", "sharding_of",
    "shards_of", "use_abstract_mesh", "use_mesh", "with_sharding_constraint",
]  # fmt: skip


def make_mesh(
    axis_shapes: Any, axis_names: Any, axis_types: object = None, *, devices: Any = None
) -> Mesh:
    """Return a mesh of the first devices.

    Args:
      axis_shapes: the size of each axis.
      axis_names: the name of each axis.
      axis_types: an `AxisType` for each axis, or one for all; `Auto` by default.
      devices: the devices to take, in this order; by default `plait.devices()`.

    Raises AxisError if there are too few devices.

    >>> import plait
    >>> plait.make_mesh((1, 1), ("x", "y"))
    Mesh('x': 1, 'y': 1)
    """
    sizes = tuple([int(n) for n in axis_shapes])
    given = list(_devices() if devices is None else devices)
    need = int(np.prod(sizes, dtype=np.int64))
    if min(sizes, default=1) < 1:
        raise AxisError(
            f"a mesh of shape {sizes} has no devices along axis {np.argmin(sizes)}",
            fix="each of its axes has at least one",
        )
    if need > len(given):
        raise AxisError(
            f"a mesh of shape {sizes} needs {need} devices, and there are {len(given)}",
            fix="make it smaller; or, for virtual CPU devices, set plait.config.cpu_devices = "
            f"{need} before the first array is made (or PLAIT_CPU_DEVICES={need})",
        )
    grid = np.empty(need, object)
    grid[:] = given[:need]
    return Mesh(grid.reshape(sizes), axis_names, axis_types)


class use_mesh:
    """A block that puts a mesh in context; otherwise it is like `set_mesh`.

    Raises TypeRule if `mesh` is not a mesh.

    >>> import plait
    >>> with plait.sharding.use_mesh(plait.make_mesh((1,), ("x",))):
    ...     plait.sharding.get_abstract_mesh()
    AbstractMesh('x': 1)
    """

    def __init__(self, mesh: Mesh):
        if not isinstance(mesh, Mesh):
            said = type(self).__name__
            raise ArgumentError(
                f"{said} needs a mesh, not {mesh!r}",
                fix=f'write {said}(plait.make_mesh(sizes, names)), and P("x") for shardings',
            )
        self._mesh: Mesh | None = mesh

    def __enter__(self) -> Mesh | None:
        push(self, self._mesh)
        return self._mesh

    def __exit__(self, *error: object) -> None:
        remove(self)


class use_abstract_mesh(use_mesh):
    """A block that puts axes in context without naming devices.

    They are axes of the mesh in context if that has them, of whatever types, else of the first
    devices.  These need not exist to lower a function.

    Raises ArgumentError if `mesh` is not an AbstractMesh.

    >>> import plait
    >>> with plait.sharding.use_abstract_mesh(plait.sharding.AbstractMesh((2, 4), ("x", "y"))):
    ...     plait.sharding.get_abstract_mesh()
    AbstractMesh('x': 2, 'y': 4)
    """

    def __init__(self, mesh: AbstractMesh):
        if not isinstance(mesh, AbstractMesh):
            raise ArgumentError(
                f"use_abstract_mesh needs an AbstractMesh, not {mesh!r}",
                fix="give mesh.abstract_mesh, or write use_mesh(mesh)",
            )
        here = mesh_here()
        same = here is not None and here.shape_tuple == mesh.shape_tuple
        super().__init__(here.like(mesh) if same and here is not None else mesh.of_first_devices())


class set_mesh(use_mesh):
    """A mesh put in context, permanently or, as a `with` block, for the block.

    With a mesh in context, jit's `in_shardings` and `out_shardings`, `with_sharding_constraint` and
    `device_put` take PartitionSpecs for shardings, and `shard_map` needs no mesh.  Functions that
    use the context are traced once for each mesh, others once.  `with mesh:` does the same for a
    block.

    The context is that of this thread or asyncio task: others do not see it.  Below it is the
    setting `plait.config.mesh`, which is for all of them.

    Args:
      mesh: the mesh; None removes it, in a block also that of the process.

    Raises TypeRule if `mesh` is not a mesh.

    >>> import plait
    >>> with plait.set_mesh(plait.make_mesh((1,), ("x",))):
    ...     plait.device_put(plait.numpy.ones(2), plait.P("x")).sharding
    NamedSharding(mesh=Mesh('x': 1), spec=PartitionSpec('x'))
    """

    def __init__(self, mesh: Mesh | None):
        if mesh is not None:
            super().__init__(mesh)
        self._mesh, self._before = mesh, replace_top(mesh)

    def __enter__(self) -> Mesh | None:
        replace_top(self._before)  # as a block, the mesh is not permanent: undo that
        return super().__enter__()


def get_mesh() -> Mesh | AbstractMesh:
    """Return the mesh in context; without one, an AbstractMesh that is `empty`.  See `set_mesh`.

    >>> import plait
    >>> with plait.make_mesh((1,), ("x",)):
    ...     plait.sharding.get_mesh()
    Mesh('x': 1)
    """
    mesh = mesh_here()
    return AbstractMesh((), ()) if mesh is None else mesh


def get_abstract_mesh() -> AbstractMesh:
    """Return the axes of the mesh in context, or an empty AbstractMesh; see `set_mesh`.

    Inside `shard_map` they are the axes of its mesh, with those it divides as Manual.

    >>> import plait
    >>> plait.sharding.get_abstract_mesh().empty
    True
    >>> f = lambda x: print(plait.sharding.get_abstract_mesh().manual_axes) or x
    >>> mesh = plait.make_mesh((1,), ("x",))
    >>> over = plait.shard_map(f, mesh=mesh, in_specs=plait.P(), out_specs=plait.P())
    >>> over(plait.numpy.ones(1))
    ('x',)
    Array([1.], dtype=float32)
    """
    mesh = mesh_inside() or get_mesh()
    return mesh.abstract_mesh if isinstance(mesh, Mesh) else mesh


_devices = devices  # `make_mesh` has a parameter of that name


# ---- to devices ----------------------------------------------------------------------------


def _is_target(x: object) -> bool:
    return x is None or isinstance(x, Sharding | PartitionSpec | Device)


def device_put(
    x: T,
    device: object = None,
    *,
    src: object = None,
    donate: object = False,
    may_alias: object = None,
) -> T:
    """Return a copy of every array of a tree, on a device or in pieces on several.

    Args:
      x: a tree of arrays, numpy arrays and Python scalars.
      device: a device, a sharding, or a tree prefix of them; None leaves arrays where they are,
        and moves other values to the default device.
      src: ignored, since arrays have their own placement.
      donate: whether the originals are deleted; a bool or a tree prefix of bools.
      may_alias: whether an array that is there already may be returned itself; a bool, None
        (False, unless the setting `default_copy` is off and nothing is donated), or a tree prefix
        of them.

    Returns:
      The tree of arrays.  In a traced function, arrays are constrained to this placement
      (`with_sharding_constraint`), and nothing is donated.

    Raises:
      AxisError: an array cannot be divided evenly as its sharding says.
      TypeRule: a leaf is not an array, or is both donated and may be aliased.
      TreeMismatch: `device` is not a prefix of `x`.

    >>> import plait
    >>> y = plait.device_put({"a": 1.0, "b": 2.0}, plait.devices()[0])
    >>> y["a"].sharding
    SingleDeviceSharding(device=0)
    """
    if device is None and x.__class__ is np.ndarray and donate is False and may_alias is None:
        if current() is GROUND and not config.guarded:
            return as_value(x)  # the fast path: most calls have no options
    with explicit() if config.guarded else nullcontext():
        return _put_tree(x, device, donate, may_alias)


def _put_tree(x: T, device: object, donate: Any, may_alias: Any) -> T:
    """Do what `device_put` does; transfers here are the user's own."""
    entry = "a device, a sharding (NamedSharding(mesh, P(...))) or None"
    targets = spread(device, x, "device", _is_target, entry)
    gone = spread(donate, x, "donate", _is_flag, "a bool")
    same = spread(may_alias, x, "may_alias", _is_flag, "a bool or None")
    if any(g and s for g, s in zip(gone, same)):
        raise ArgumentError(
            "device_put was told both to donate an array and that the result may alias it",
            fix="what is donated is deleted, so the result cannot be the same array",
        )
    wheres = [_place(t) for t in targets]
    leaves, tree = flatten(x)
    if current() is not GROUND or not all(isinstance(v, Array | np.ndarray) for v in leaves):
        values = arguments((x,), {}, "device_put", device_put)[
            0
        ]  # raises with the path of a bad leaf
        if current() is not GROUND:
            made = map(_put_inside, leaves, values, wheres)
            return tree.unflatten(each_leaf(made, x, lambda path: f"device_put: `x{path}`"))
    made = (_put(v, w, g, s) for v, w, g, s in zip(leaves, wheres, gone, same, strict=True))
    return tree.unflatten(each_leaf(made, x, lambda path: f"device_put: `x{path}`"))


def _put_inside(leaf: object, x: Value, where: Sharding | None) -> Any:
    """Put a value in a block or a traced function; arrays without a place stay where they are."""
    if where is not None:
        return where.constrain(x)
    return x if isinstance(leaf, Value) else placed_by_default(materialise_at_ground(x))


def _place(target: Any) -> Sharding | None:
    if isinstance(target, Device):
        return SingleDeviceSharding(target)
    return None if target is None else target.here()


def _is_flag(x: bool | None) -> bool:
    return x is None or isinstance(x, bool)


def _constrained(x: Value, where: Sharding | None) -> Any:
    return x if where is None else constraint.bind(x, sharding=where)


def _put(
    x: np.ndarray | Value, where: Sharding | None, donate: bool | None, alias: bool | None
) -> Any:
    if isinstance(x, np.ndarray):
        return as_value(x) if where is None else from_host(x, where)
    given = as_argument(x)
    y = _constrained(given, where)
    if alias is None:
        alias = not (donate or config.default_copy)
    # The array of a scalar is cached, so it must not be returned.
    if y.buffer() is given.buffer() and (not alias or given is not x):
        y = wrap(move(y.buffer(), y.key), y.key)
    if donate and given is x:
        x.delete()
    return y


def with_sharding_constraint(x: T, shardings: object) -> T:
    """Return the tree `x` with its arrays laid out by the compiler in these shardings.

    Args:
      x: a tree of arrays.
      shardings: a sharding, or a tree prefix of them; in a tree None leaves an array to the
        compiler, and `P.UNCONSTRAINED` an axis.  In `with mesh:` PartitionSpecs suffice.

    Outside of traced functions, arrays are moved unless they have the sharding already.  Inside,
    axes need not divide evenly; for a result of `jit` with uneven axes the compiler chooses the
    sharding.

    Raises AxisError if, outside, an array cannot be divided evenly; TreeMismatch if `shardings` is
    not a prefix of `x`; ArgumentError if it is None, which says nothing.

    >>> import plait
    >>> s = plait.NamedSharding(plait.make_mesh((1,), ("x",)), plait.P("x"))
    >>> x = 3.0 + plait.numpy.zeros(2)
    >>> plait.jit(lambda v: plait.with_sharding_constraint(v * 2, s))(x).sharding
    NamedSharding(mesh=Mesh('x': 1), spec=PartitionSpec('x'))
    """
    if shardings is None:
        raise ArgumentError(
            "with_sharding_constraint was given None, which is not a sharding",
            fix="give NamedSharding(mesh, P(...)): P() is for equal copies on all devices; leave "
            "the call out where the compiler should choose",
        )
    entry = "a sharding (NamedSharding(mesh, P(...))) or None"
    wanted = spread(
        shardings,
        x,
        "shardings",
        lambda s: s is None or isinstance(s, Sharding | PartitionSpec),
        entry,
    )
    wanted = [None if s is None else s.here() for s in wanted]
    values = arguments((x,), {}, "with_sharding_constraint", with_sharding_constraint)[0]
    made = (_constrained(v, s) for v, s in zip(values, wanted, strict=True))
    return flatten(x)[1].unflatten(
        each_leaf(made, x, lambda path: f"with_sharding_constraint: `x{path}`")
    )


# ---- queries -------------------------------------------------------------------------------


def sharding_of(x: Any) -> Sharding:
    """Return the sharding of an array, which is also its `x.sharding`.

    Raises TypeRule if `x` is not an array: the compiler chooses the placement of a traced value.

    >>> import plait
    >>> plait.sharding.sharding_of(plait.numpy.zeros(3))
    SingleDeviceSharding(device=0)
    """
    if x.__class__ is not Array:
        raise OperandTypeError(
            f"{x!r} is not an array, and has no placement",
            fix="ask the arrays that a function takes and returns, outside of it",
        )
    return x.key.placement or SingleDeviceSharding(first())


@dataclass(frozen=True, eq=False)
class Shard:
    """One piece of an array.

    Attributes:
      device: the device that holds it.
      index: its slice of the array; slice(None) for an axis that is not divided.
      replica_id: its number among the copies of this slice.
      data: an array of its own on that device; None if another process has it.
    """

    device: Device
    index: tuple[slice, ...]
    replica_id: int
    data: Any


def shards_of(x: Any, everywhere: bool = False) -> list[Shard]:
    """Return the pieces of an array in this process, in the order of its devices.

    They are also its `x.addressable_shards`.  `everywhere` adds the pieces of other processes,
    without data, as in `x.global_shards`.

    Raises TypeRule if `x` is not an array.

    >>> import plait
    >>> plait.sharding.shards_of(plait.numpy.zeros(3))[0].index
    (slice(None, None, None),)
    """
    place = sharding_of(x).place
    every, seen, out = devices(), {}, []
    cut = boxes(layout_of(x.key), x.aval.shape)
    mine, pieces = set(local()), iter(x.buffer()._arrays)
    for number, box in zip(place.devices, cut, strict=True):
        corner = tuple([s.start for s in box])
        copies = seen[corner] = seen.get(corner, -1) + 1
        aval = x.aval.with_shape([s.stop - s.start for s in box])
        if number not in mine and not everywhere:
            continue
        # A piece of an array that was placed nowhere on purpose is placed nowhere either.
        key = aval if x.key.placement is None else Placed(aval, SingleDeviceSharding(number))
        data = wrap(next(pieces), key) if number in mine else None
        index = tuple([
            slice(None) if s.stop - s.start == n else s for s, n in zip(box, x.aval.shape)
        ])  # fmt: skip
        out.append(Shard(every[number], index, copies, data))
    return out
