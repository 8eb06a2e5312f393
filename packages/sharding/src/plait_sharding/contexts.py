"""The mesh in context, which PartitionSpecs alone refer to, per thread or task.

`with mesh:`, `use_mesh(mesh)` and `set_mesh(mesh)` put a mesh there; below them is the setting
`plait.config.mesh`, which is for the whole process.

Invariant: the end of a block removes only its own mesh, in whatever order blocks end.  Functions
see the mesh of the open block that began last.
"""

from contextvars import ContextVar
from typing import Any, NamedTuple

from plait import config
from plait.ext.errors import AxisError, PlaitError
from plait.ext.trace import surround, surrounding

from .mesh import AbstractMesh, AxisType, Mesh

__all__ = [
    "MeshChange", "MissingMesh", "concrete", "divide_by_hand", "known_here", "mesh_here",
    "mesh_inside", "push", "remove", "replace_top",
]  # fmt: skip


class MissingMesh(AxisError, RuntimeError):
    """Names of axes were used alone, with no mesh in context."""


class MeshChange(PlaitError, RuntimeError):
    """A change of the mesh in context where it must stay the same."""


class _Block(NamedTuple):
    owner: Any
    mesh: Mesh | None


_blocks: ContextVar[tuple[_Block, ...]] = ContextVar(
    "plait_sharding.blocks", default=(_Block(None, None),)
)
"""The open blocks of this thread or task, the last one on top.  The bottom entry holds the mesh set
outside of blocks."""

_WITHOUT = "without"
"""The value of the "mesh" surrounding in a block without a mesh, which also hides config.mesh."""


def mesh_here() -> Mesh | None:
    """Return the mesh that names of axes refer to; None if there is none.

    Inside a shard_map that is its mesh: names that its body uses alone must mean the axes that it
    divides and leaves, whatever block is open around it.
    """
    around = _divided()[0]
    if isinstance(around, Mesh):
        return around
    mesh: Any = surrounding("mesh")
    if mesh is _WITHOUT:
        return None
    return config.mesh if mesh is None else mesh


def concrete(mesh: AbstractMesh) -> Mesh:
    """Return the mesh of the surrounding shard_map, or that in context, if it has these axes; else
    that of the first devices."""
    found = known_here(mesh)
    return mesh.of_first_devices() if isinstance(found, AbstractMesh) else found


def known_here(mesh: AbstractMesh) -> Mesh | AbstractMesh:
    """Return the mesh of the surrounding shard_map, or that in context, if it has these axes.

    Otherwise return `mesh` itself, whose devices are known once a module is made.
    """
    for here in (_divided()[0], mesh_here()):
        if here is not None and here.shape_tuple == mesh.shape_tuple:
            return here
    return mesh


def _divided() -> tuple[Mesh | AbstractMesh | None, frozenset[str]]:
    found: Any = surrounding("manual")
    return found or (None, frozenset())


def mesh_inside() -> Mesh | AbstractMesh | None:
    """Return the mesh of the surrounding shard_map, with the axes that it divides as Manual; None
    outside."""
    mesh, names = _divided()
    return None if mesh is None else mesh.typed(names, AxisType.Manual)


def divide_by_hand(mesh: Mesh | AbstractMesh | None, names: frozenset[str]) -> None:
    """Record the mesh of the surrounding shard_map and the axes that it divides, or None."""
    surround("manual", None if mesh is None else (mesh, names))


def push(owner: object, mesh: Mesh | None) -> None:
    """Put a mesh on top, for the block of `owner`.

    Raises MeshChange inside `xmap`, whose logical axes are laid out on the surrounding mesh.
    """
    before = mesh_here()
    if surrounding("xmap") is not None and mesh != before:
        raise MeshChange(
            "Changing the physical mesh is not allowed from inside xmap: its named axes lie on "
            f"{before or 'no mesh'}, and {mesh!r} is to take its place",
            fix="enter the mesh around the outermost xmap: with mesh: xmap(...)(...)",
        )
    _adopt((*_blocks.get(), _Block(owner, mesh)))


def remove(owner: object) -> None:
    """End the last block of `owner`, wherever it is in the stack."""
    blocks = _blocks.get()
    mine = [i for i, block in enumerate(blocks) if block.owner is owner]
    if mine:  # otherwise it was entered in another thread or task, and is open there
        _adopt((*blocks[: mine[-1]], *blocks[mine[-1] + 1 :]))


def replace_top(mesh: Mesh | None) -> Mesh | None:
    """Replace the mesh on top, and return the old one."""
    *rest, (owner, before) = _blocks.get()
    _adopt((*rest, _Block(owner, mesh)))
    return before


def _adopt(blocks: tuple[_Block, ...]) -> None:
    _blocks.set(blocks)
    owner, mesh = blocks[-1]
    surround("mesh", _WITHOUT if mesh is None and owner is not None else mesh)


Mesh.enter_by(push, remove)
